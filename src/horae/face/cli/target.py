"""The target of a command: a server or a database, from options or the environment."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from horae.errors import InvalidInputError

PANEL = "Where"

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="A server, such as http://127.0.0.1:8420.  \\[HORAE_URL]",
        rich_help_panel=PANEL, show_default=False,
    ),
]  # fmt: skip
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token", metavar="TOKEN", help="The token that says to the server who asks.  \\[HORAE_TOKEN]",
        rich_help_panel=PANEL, show_default=False,
    ),
]  # fmt: skip
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", rich_help_panel=PANEL, show_default=False,
        help="A database instead: sqlite:///horae.db or postgresql://…  \\[HORAE_DATABASE_URL]",
    ),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="Answer with JSON, for programs.")]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The server or the database that a command works on, and the token of the caller."""

    url: str | None = None
    token: str | None = None
    database: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None and self.database is not None:
            raise InvalidInputError(
                "--url and --database", "name two places", hint="give the one that is to be asked"
            )

    def but(self, nearer: Target) -> Target:
        """Options after the command override those before it."""
        url, database = nearer.url, nearer.database
        if url is None and database is None:
            url, database = self.url, self.database
        return Target(url=url, database=database, token=self.token if nearer.token is None else nearer.token)

    def resolved(self) -> Target:
        """Fill in the rest from the environment; the setting for the database is read with the others."""
        url, token = self.url, self.token
        if url is None and self.database is None:
            url = os.environ.get("HORAE_URL") or None
        if token is None:
            token = os.environ.get("HORAE_TOKEN") or None
        return Target(url=url, database=self.database, token=token)

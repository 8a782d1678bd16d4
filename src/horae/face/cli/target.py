"""The target of a command: a server or a database, from options or the environment; and how it answers."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import msgspec
import typer

from horae.errors import InvalidInputError


def _where(name: str, metavar: str, meaning: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(name, metavar=metavar, help=meaning, rich_help_panel="Where", show_default=False)


UrlOption = Annotated[
    str | None, _where("--url", "URL", "A server, such as http://127.0.0.1:8420.  \\[HORAE_URL]")
]
TokenOption = Annotated[
    str | None, _where("--token", "TOKEN", "The token that identifies you to the server.  \\[HORAE_TOKEN]")
]
DatabaseOption = Annotated[
    str | None,
    _where("--database", "URL", "A database instead: sqlite:///horae.db or postgresql://…  \\[HORAE_DATABASE_URL]"),
]  # fmt: skip
OwnerOption = Annotated[
    str | None, _where("--owner", "NAME", "Whose schedules are meant.  \\[default: the caller's, or all]")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer with JSON, for programs.")]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The server or the database that a command works on, the token of the caller, the owner that is meant, and how to answer."""

    url: UrlOption = None
    token: TokenOption = None
    database: DatabaseOption = None
    owner: OwnerOption = None
    as_json: JsonOption = False

    def __post_init__(self) -> None:
        if self.url is not None and self.database is not None:
            raise InvalidInputError(
                "--url and --database", "name two places", hint="give the one that is to be asked"
            )

    def but(self, nearer: Target) -> Target:
        """Options after the command override those before it."""
        place = self if nearer.url is None and nearer.database is None else nearer
        return Target(
            url=place.url, database=place.database, as_json=nearer.as_json or self.as_json,
            token=self.token if nearer.token is None else nearer.token,
            owner=self.owner if nearer.owner is None else nearer.owner,
        )  # fmt: skip

    def source(self, field: Literal["url", "token", "database"]) -> str:
        """The option or the setting that a field comes from, for messages."""
        if getattr(self, field) is not None:
            return f"--{field}"
        if field == "database" and "HORAE_DATABASE_URL" not in os.environ:
            return "the file horae.db of this folder, or name another with --database"
        return {"url": "HORAE_URL", "token": "HORAE_TOKEN", "database": "HORAE_DATABASE_URL"}[field]

    def resolved(self) -> Target:
        """Fill in the rest from the environment; the setting for the database is read with the others."""
        url, token = self.url, self.token
        if url is None and self.database is None:
            url = os.environ.get("HORAE_URL") or None
        if token is None:
            token = os.environ.get("HORAE_TOKEN") or None
        return msgspec.structs.replace(self, url=url, token=token)

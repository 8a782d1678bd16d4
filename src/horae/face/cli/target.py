"""The target of a command: a server or a database, from options or the environment; and how the command answers."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import msgspec
import typer

from horae.errors import InvalidInputError


def _where(name: str, metavar: str, meaning: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(name, metavar=metavar, help=meaning, rich_help_panel="Where", show_default=False)


UrlOption = Annotated[
    str | None, _where("--url", "URL", "The server to call, such as http://127.0.0.1:8420.  \\[HORAE_URL]")
]
TokenOption = Annotated[str | None, _where("--token", "TOKEN", "Your token for the server.  \\[HORAE_TOKEN]")]
DatabaseOption = Annotated[
    str | None,
    _where("--database", "URL", "The database to work on, without a server: sqlite:///horae.db or postgresql://…  \\[HORAE_DATABASE_URL]"),
]  # fmt: skip
OwnerOption = Annotated[
    str | None,
    _where(
        "--owner", "NAME", "Act for this owner.  \\[default: yourself, or all owners if you may see them]"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The server or database that a command works on, the caller's token, the owner to act for, and how to answer."""

    url: UrlOption = None
    token: TokenOption = None
    database: DatabaseOption = None
    owner: OwnerOption = None
    as_json: JsonOption = False

    def __post_init__(self) -> None:
        if self.url is not None and self.database is not None:
            raise InvalidInputError("--url and --database", "exclude each other", hint="give one of them")

    def but(self, nearer: Target) -> Target:
        """This target with the options after the command, which override those before it."""
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
        """This target with URL and token from the environment; ``Config`` reads the database."""
        url, token = self.url, self.token
        if url is None and self.database is None:
            url = os.environ.get("HORAE_URL") or None
        if token is None:
            token = os.environ.get("HORAE_TOKEN") or None
        return msgspec.structs.replace(self, url=url, token=token)

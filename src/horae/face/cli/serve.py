"""``horae serve``: the service, in the foreground."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import msgspec
import typer

from horae.config import Config
from horae.face.cli.client import needed
from horae.face.cli.command_base import group
from horae.face.cli.target import DatabaseOption, Target

cli = group()


@cli.command("serve")
def serve(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Where to listen.  \\[HORAE_HOST, 127.0.0.1]", show_default=False
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="0 is any free one.  \\[HORAE_PORT, 8420]", show_default=False),
    ] = None,
    database: DatabaseOption = None,
    app: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE.MODULE",
            help="A module that registers actions, imported first.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve the API and keep time, until interrupted.

    [dim]On this machine only, with the database horae.db here:[/dim]

      horae serve

    [dim]One of several nodes, with actions of your own; others need a token then:[/dim]

      HORAE_JWT_SECRET=… horae serve --host 0.0.0.0 --database postgresql://db/horae --app shop.actions

    All settings are in docs/reference/settings.md; horae check looks at them.
    """
    target = (context.obj or Target()).but(Target(database=database))
    given: dict[str, Any] = {"host": host, "port": port, "database_url": target.database}
    named = {key: value for key, value in given.items() if value is not None}
    config = msgspec.structs.replace(Config.from_environment(), **named)
    for module in ("litestar", "uvicorn"):
        needed(module)
    importlib.import_module("horae.face.service.server").serve(config, app)

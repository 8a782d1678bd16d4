"""``horae serve``: run the service in the foreground."""

from __future__ import annotations

import importlib
from typing import Annotated

import msgspec

from horae.config import Config, setting_name
from horae.extras import import_extra
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.options import option
from horae.face.cli.schedule_options import given

cli = group()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Options that override the settings of the same names."""

    host: Annotated[
        str | None, option("--host", "ADDRESS", "The address to listen on.  \\[HORAE_HOST, 127.0.0.1]")
    ] = None
    port: Annotated[int | None, option("--port", "N", "The port to listen on; 0 is any free one.  \\[HORAE_PORT, 8420]", min=0, max=65535)] = None  # fmt: skip
    temporal_port: Annotated[int | None, option("--temporal-port", "N", "The port for Temporal clients' schedule calls.  \\[HORAE_TEMPORAL_PORT, none]", min=0, max=65535)] = None  # fmt: skip
    temporal_forward: Annotated[str | None, option("--temporal-forward", "HOST:PORT", "The Temporal cluster that gets all other Temporal calls.  \\[HORAE_TEMPORAL_FORWARD, none]")] = None  # fmt: skip
    flow_owner: Annotated[str | None, option("--flow-owner", "NAME", "The owner of the flows of --flows.  \\[HORAE_FLOW_OWNER, none]")] = None  # fmt: skip
    flow_fixes: Annotated[str | None, option("--flow-fixes", "FOLDER", "A folder with later versions of flows, used if a flow fails with a logic error.  \\[HORAE_FLOW_FIXES, none]")] = None  # fmt: skip


@command(cli, "serve", takes=["database"])
def serve(
    here: Command,
    settings: Settings,
    app: Annotated[
        str | None, option("--app", "PACKAGE.MODULE", "A module to import that registers actions.")
    ] = None,
    flows: Annotated[
        list[str] | None,
        option("--flows", "PACKAGE.MODULE", "A module whose flows to deploy and run. Repeatable."),
    ] = None,
) -> None:
    """Run the scheduler and its API until interrupted.

    [dim]On this machine only, with the database horae.db in this folder:[/dim]

      horae serve

    [dim]One of several nodes, with your own actions; callers need a token:[/dim]

      HORAE_JWT_SECRET=… horae serve --host 0.0.0.0 --database postgresql://db/horae --app shop.actions

    [dim]With the flows of a module:[/dim]

      horae serve --flows shop.flows

    docs/reference/settings.md lists all settings; horae check checks them.
    """
    options = given(**msgspec.structs.asdict(settings), database_url=here.target.database)
    named = {setting_name(field): f"--{field.replace('_', '-').removesuffix('-url')}" for field in options}
    config = Config.from_environment(options=options)
    for module in ("uvicorn", "prometheus_client", "structlog"):
        import_extra(module)
    if config.temporal_port is not None:
        for module in ("grpc", "temporalio"):
            import_extra(module, "temporal")
    importlib.import_module("horae.face.service.server").serve(config, app, named, flows or [])

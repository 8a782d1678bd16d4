"""``horae serve``: the service, in the foreground."""

from __future__ import annotations

import importlib
from typing import Annotated

from horae.config import Config, setting_name
from horae.face.cli.client import needed
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.options import option
from horae.face.cli.payload import given

_OPTIONS = {
    "host": "--host", "port": "--port", "database_url": "--database", "temporal_port": "--temporal-port",
    "temporal_forward": "--temporal-forward", "flow_owner": "--flow-owner", "flow_fixes": "--flow-fixes",
}  # fmt: skip
"""The options that give settings, by the settings' fields."""
FlowOwner = Annotated[
    str | None, option("--flow-owner", "NAME", "The owner of these flows.  \\[HORAE_FLOW_OWNER; none]")
]
FlowFixes = Annotated[
    str | None,
    option("--flow-fixes", "FOLDER", "Later versions of flows that fail.  \\[HORAE_FLOW_FIXES, none]"),
]
cli = group()


@command(cli, "serve", takes=["database"])
def serve(
    here: Command,
    host: Annotated[
        str | None, option("--host", "ADDRESS", "Where to listen.  \\[HORAE_HOST, 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, option("--port", "N", "0 is any free one.  \\[HORAE_PORT, 8420]", min=0, max=65535)
    ] = None,
    temporal_port: Annotated[
        int | None,
        option(
            "--temporal-port",
            "N",
            "Answer Temporal's schedule calls there.  \\[HORAE_TEMPORAL_PORT, none]",
            min=0,
            max=65535,
        ),
    ] = None,
    temporal_forward: Annotated[
        str | None,
        option(
            "--temporal-forward",
            "HOST:PORT",
            "A Temporal cluster for its other calls.  \\[HORAE_TEMPORAL_FORWARD, none]",
        ),
    ] = None,
    app: Annotated[
        str | None, option("--app", "PACKAGE.MODULE", "A module that registers actions, imported first.")
    ] = None,
    flows: Annotated[
        list[str] | None,
        option("--flows", "PACKAGE.MODULE", "A module whose flows are deployed and hosted; may be repeated."),
    ] = None,
    flow_owner: FlowOwner = None,
    flow_fixes: FlowFixes = None,
) -> None:
    """Serve the API and keep time, until interrupted.

    [dim]On this machine only, with the database horae.db here:[/dim]

      horae serve

    [dim]One of several nodes, with actions of your own; others need a token then:[/dim]

      HORAE_JWT_SECRET=… horae serve --host 0.0.0.0 --database postgresql://db/horae --app shop.actions

    [dim]With the flows of a module:[/dim]

      horae serve --flows shop.flows

    All settings are in docs/reference/settings.md; horae check looks at them.
    """
    options = given(
        host=host,
        port=port,
        temporal_port=temporal_port,
        temporal_forward=temporal_forward,
        flow_owner=flow_owner,
        flow_fixes=flow_fixes,
        database_url=here.target.database,
    )
    named = {setting_name(field): _OPTIONS[field] for field in options}
    config = Config.from_environment(options=options)
    for module in ("litestar", "uvicorn"):
        needed(module)
    if config.temporal_port is not None:
        for module in ("grpc", "temporalio"):
            needed(module, "temporal")
    importlib.import_module("horae.face.service.server").serve(config, app, named, flows or [])

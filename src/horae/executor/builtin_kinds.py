"""The kinds of actions, besides functions, that every service runs."""

from __future__ import annotations

from collections.abc import Callable

from horae.config import Config
from horae.executor.command_executor import CommandExecutor, read_commands
from horae.executor.http_executor import HttpExecutor
from horae.executor.named_request import NamedRequestExecutor, read_requests
from horae.executor.port import Executor
from horae.executor.supervisor import Supervisor
from horae.model import GRAPH, TEMPORAL_WORKFLOW

KINDS = (HttpExecutor.kind, CommandExecutor.kind, NamedRequestExecutor.kind, GRAPH, TEMPORAL_WORKFLOW)


def builtin_executors(
    config: Config, now: Callable[[], int], address: str, supervisor: Supervisor
) -> list[Executor]:
    """A new executor of each kind. ``now`` is in milliseconds, ``address`` is where external workers report to."""
    http = HttpExecutor(config, now, address)
    named = NamedRequestExecutor(read_requests(config), http)
    commands = CommandExecutor(read_commands(config), config.output_limit, supervisor)
    executors: list[Executor] = [http, named, commands]
    if config.temporal_forward:
        from horae.executor.temporal_workflow_start import ForwardingExecutor  # noqa: PLC0415 - an extra

        executors.append(ForwardingExecutor(config.temporal_forward, config.temporal_forward_token))
    return executors

"""The kinds of actions, besides functions, that every service runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from horae.executor import command, named_request
from horae.executor.command import CommandExecutor, read_commands
from horae.executor.http import HttpExecutor
from horae.executor.named_request import NamedRequestExecutor, read_requests
from horae.executor.port import Executor
from horae.model import GRAPH, TEMPORAL_WORKFLOW

KINDS = (HttpExecutor.kind, CommandExecutor.kind, NamedRequestExecutor.kind, GRAPH, TEMPORAL_WORKFLOW)


class Settings(command.Settings, named_request.Settings, Protocol):
    """The operator's settings for them."""

    @property
    def temporal_forward(self) -> str:
        """The Temporal cluster on which workflows may be started; empty if there is none."""

    @property
    def temporal_forward_token(self) -> str:
        """The token for it."""


def builtin_executors(settings: Settings, now: Callable[[], int], address: str) -> tuple[Executor, ...]:
    """A new executor of each kind. ``now`` is in milliseconds, ``address`` is where external workers report to."""
    http = HttpExecutor(settings, now, address)
    return (
        http,
        NamedRequestExecutor(read_requests(settings), http),
        CommandExecutor(read_commands(settings), settings.output_limit),
        *_forwarding(settings),
    )


def _forwarding(settings: Settings) -> Iterator[Executor]:
    if settings.temporal_forward:
        from horae.executor.temporal_forwarding import ForwardingExecutor  # noqa: PLC0415 - an extra

        yield ForwardingExecutor(settings.temporal_forward, settings.temporal_forward_token)

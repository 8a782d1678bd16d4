"""How a program finds its graphs: by its settings, and by the entry points of installed packages."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoints, entry_points

import msgspec

from horae.app.graph_execution import GraphExecution
from horae.app.graph_state import GraphMemoryTable
from horae.config import Config
from horae.errors import ConfigError
from horae.executor.graph_executor import Execution
from horae.executor.graph_provider_port import GraphProvider

GROUP = "horae.graphs"
"""The entry points that are providers: classes that are called without arguments."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PLACE = re.compile(r"[\w.]+:[\w.]+")


def graph_providers(config: Config, memory: GraphMemoryTable) -> list[GraphProvider]:
    """The providers of installed packages, and the provider of the graphs in the settings, which loads when it is used."""
    found: list[GraphProvider] = [each.load()() for each in _installed(tuple(sys.path))]
    graphs = read_graphs(config)
    if graphs:
        from horae.executor.langgraph_provider import LangGraphProvider  # noqa: PLC0415 - only some programs have graphs

        found.append(LangGraphProvider(graphs, memory))
    return found


@functools.cache
def _installed(path: tuple[str, ...]) -> EntryPoints:  # noqa: ARG001 - where packages are looked for
    """The entry points of installed packages. Finding them reads a file of each package, so it is done once."""
    return entry_points(group=GROUP)


def read_graphs(config: Config) -> dict[str, str]:
    """The graphs in the settings, by name, and the place of each."""
    if not config.graphs:
        return {}
    try:
        found = msgspec.json.decode(config.graphs, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise ConfigError("HORAE_GRAPHS", config.graphs, f"must be a JSON object of texts: {error}") from None
    for name, place in found.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                "HORAE_GRAPHS", name, "must have names of letters, digits, dots, dashes and underscores"
            )
        if not _PLACE.fullmatch(place):
            raise ConfigError("HORAE_GRAPHS", place, "must say where each graph is: module:attribute")
    return found


def execution_of(config: Config, here: GraphExecution, now: Callable[[], int]) -> Execution:
    """The executing side: another service if the settings name one, else this process."""
    if not config.graph_execution_url:
        return here
    from horae.executor.remote_graph_client import RemoteExecution  # noqa: PLC0415 - needs an HTTP client

    return RemoteExecution(config, here.graphs, now)

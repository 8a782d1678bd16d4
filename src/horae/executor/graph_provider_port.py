"""The port of graph providers: each runs the graphs of one prefix. Horae itself calls no model."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any, ClassVar, NamedTuple

import msgspec

from horae.errors import GraphUnavailableError, InvalidInputError
from horae.grant_model import GRAPH_ID

DEFAULT_MODEL = "default"
KEPT_EVENTS = 100
"""How many events of a graph are kept: the first half of them, and the last."""
MAX_EVENT_LENGTH = 2000


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The user for whom a graph runs. It is created for one execution, and never stored."""

    user_id: str
    billing_account_id: str
    grant_id: str
    virtual_key: str = ""
    """The key of the account, in the clear; empty if it has none."""

    def __repr__(self) -> str:
        """Omit the key."""
        return f"Caller({self.user_id})"


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a graph that reports what a part of its work used. A ``unit`` that is reported again is charged once."""

    unit: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0


class GraphRun(NamedTuple):
    """A graph that runs: its events, which must be read to the end, and its result, which resolves once."""

    events: AsyncIterator[Any]
    final: Awaitable[Any]


class GraphProvider(ABC):
    """Runs the graphs whose ids begin with its prefix: ``langgraph:poet``."""

    prefix: ClassVar[str]

    @abstractmethod
    def graphs(self) -> Collection[str]:
        """The ids of the graphs that it can run."""

    @abstractmethod
    def run_graph(self, run_id: str, graph_id: str, input: dict[str, Any], caller: Caller) -> GraphRun:  # noqa: A002 - the port's word
        """Run a graph. ``input`` has ``messages`` and ``model``; ``run_id`` is the same for every attempt of one slot.

        Events and the result are JSON. To stop the graph, the iterator is closed and ``final`` cancelled.
        """

    async def close(self) -> None:  # noqa: B027 - most hold nothing open
        """Release open resources: the program ends."""


class GraphRouter:
    """The providers of a program, behind the interface of one: routes by the prefix of the graph's id."""

    def __init__(self) -> None:
        self._providers: dict[str, GraphProvider] = {}

    def use(self, provider: GraphProvider) -> None:
        """Add the provider of a prefix, or replace it."""
        self._providers[provider.prefix] = provider

    @property
    def providers(self) -> Collection[GraphProvider]:
        """The providers, one for each prefix."""
        return self._providers.values()

    def graphs(self) -> list[str]:
        """The ids of all graphs that can be run."""
        return sorted({each for provider in self._providers.values() for each in provider.graphs()})

    def run_graph(self, run_id: str, graph_id: str, input: dict[str, Any], caller: Caller) -> GraphRun:  # noqa: A002
        """Run a graph with the provider of its prefix."""
        provider = self._providers.get(graph_id.partition(":")[0])
        if provider is None or graph_id not in provider.graphs():
            raise GraphUnavailableError(graph_id, "is not known here")
        return provider.run_graph(run_id, graph_id, input, caller)

    async def close(self) -> None:
        """Release what providers hold open."""
        for provider in self._providers.values():
            await provider.close()


def check_graph_id(graph_id: str) -> None:
    """Require the id of a graph to be a prefix and a name."""
    if not GRAPH_ID.fullmatch(graph_id):
        reason = f"is no id of a graph: {graph_id[:100]!r}"
        raise InvalidInputError("graph_id", reason, hint="such as langgraph:poet")


def graph_input(given: object) -> dict[str, Any]:
    """The input of a graph with its defaults; refuse one whose messages or model a graph cannot take."""
    if given is not None and not isinstance(given, dict):
        hint = 'such as {"messages": [], "model": "default"}'
        raise InvalidInputError("input", "must be an object", hint=hint)
    whole = {"messages": [], "model": DEFAULT_MODEL, **(given or {})}
    if not isinstance(whole["messages"], list):
        raise InvalidInputError("input.messages", "must be a list")
    if not isinstance(whole["model"], str) or not whole["model"]:
        raise InvalidInputError("input.model", "must be a text")
    return whole


class KeptEvents:
    """The first and the last events of a graph, as JSON texts within bounds."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=KEPT_EVENTS // 2)
        self._count = 0

    def add(self, event: object) -> str:
        """Keep an event, and return its text."""
        text = event_text(event)
        self._count += 1
        if len(self._first) < KEPT_EVENTS // 2:
            self._first.append(text)
        else:
            self._last.append(text)
        return text

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self._first, *self._last)

    @property
    def dropped(self) -> int:
        return self._count - len(self._first) - len(self._last)


def event_text(event: object) -> str:
    """An event as JSON, shortened; values that JSON does not have are shown as Python shows them."""
    try:
        text = msgspec.json.encode(event, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        text = msgspec.json.encode(f"<{type(event).__name__}>").decode()
    return text if len(text) <= MAX_EVENT_LENGTH else f"{text[:MAX_EVENT_LENGTH]}…"


async def drain(run: GraphRun, on_event: Callable[[Any], Awaitable[None]]) -> Any:  # noqa: ANN401 - what a graph returns
    """Read all events of a graph, then its result. A graph that never waits still lets other tasks run."""
    final = asyncio.ensure_future(run.final)
    try:
        async for event in run.events:
            await on_event(event)
            await asyncio.sleep(0)
        return await final
    finally:
        final.cancel()
        if (close := getattr(run.events, "aclose", None)) is not None:
            await close()
        await asyncio.gather(final, return_exceptions=True)

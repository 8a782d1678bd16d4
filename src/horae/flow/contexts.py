"""The contexts of handlers: what each part of a handler can ask of the host."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from horae.flow.failures import Failure, HandlerStopped, classify
from horae.flow.handler_values import Event, Input
from horae.flow.json_text import json_text
from horae.flow.phase_permissions import (
    ALLOWED,
    DEFAULT_PEEK,
    MAX_NAME,
    MAX_PAYLOAD,
    MAX_PEEK,
    MAX_PUBLISHED,
    MAX_PUBLISHED_BYTES,
    Operation,
    Part,
    is_name,
)
from horae.flow_model import FailureKind, FlowEvent, HandlerDefinition
from horae.model import instant

T = TypeVar("T")
Call = Callable[[], Awaitable[T]] | Callable[[], T]
"""An outside call: a function without parameters, which may be a coroutine function."""
_log = logging.getLogger("horae.flows")


class Done(Awaitable[T]):
    """A value that is already known; awaiting it is optional."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, None, T]:
        return self.value
        yield


class HandlerContext(Protocol):
    """The context of every handler."""

    @property
    def flow(self) -> str:
        """The name of the flow."""

    @property
    def handler(self) -> str:
        """The name of the handler."""

    @property
    def run_id(self) -> str:
        """The id of the run."""

    @property
    def now(self) -> datetime:
        """The current time by the clock that all nodes share."""

    @property
    def log(self) -> logging.Logger:
        """A logger whose lines are kept with the run, whatever their level: ``horae flows logs`` shows them."""


class ReadingContext(HandlerContext, Protocol):
    """The context of a part that may read the outside world."""

    async def read(self, call: Call[T]) -> T:
        """Read from the outside world."""


class MutationContext(HandlerContext, Protocol):
    """The context of a part that is about a mutation."""

    @property
    def key(self) -> str:
        """The idempotency key of the effect: the same in ``mutate``, ``reconcile`` and ``next``."""


class ProducerContext(ReadingContext, Protocol):
    """The context of a producer, which may read the outside world, register inputs and publish events."""

    def register_input(self, source: str, type: str, id: str, title: str = "") -> Done[Input]:  # noqa: A002
        """Register something in the outside world, once; the events that follow are caused by it."""

    def publish(
        self, topic: str | Sequence[str], message_id: str, payload: Any = None, *, caused_by: Input | None = None  # noqa: ANN401
    ) -> Done[None]:  # fmt: skip
        """Publish an event with the commit of this run."""


class PrepareContext(ReadingContext, Protocol):
    """The context of ``prepare``, which may look at events and read the outside world."""

    async def peek(self, topic: str, limit: int = DEFAULT_PEEK) -> list[Event[Any]]:
        """Pending events of a topic, oldest first."""

    async def get(self, topic: str, ids: Sequence[str]) -> list[Event[Any]]:
        """The events of a topic with these message ids, whatever their status."""


class MutateContext(MutationContext, Protocol):
    """The context of ``mutate``, which may have one outside effect."""

    async def effect(self, call: Call[T]) -> T:
        """Make the call that has the outside effect."""


class NextContext(MutationContext, Protocol):
    """The context of ``next``, which may publish events."""

    def publish(self, topic: str | Sequence[str], message_id: str, payload: Any = None) -> Done[None]:  # noqa: ANN401
        """Publish an event with the commit of this run."""


class ReconcileContext(MutationContext, ReadingContext, Protocol):
    """The context of ``reconcile``, which may read the outside world."""


class EventSource(Protocol):
    """Where a context reads events."""

    async def pending(self, topic: str, limit: int) -> Sequence[FlowEvent]:
        """Pending events of a topic, oldest first."""

    async def by_message(self, topic: str, message_ids: Sequence[str]) -> Sequence[FlowEvent]:
        """The events of a topic with these message ids."""


class Published(NamedTuple):
    """An event that a run publishes when it commits."""

    topic: str
    message_id: str
    payload: str
    cause: Input | None


class FlowContext:
    """The context of one run. It refuses operations that the current part must not call, and keeps the first failure."""

    def __init__(
        self,
        flow: str,
        handler: HandlerDefinition,
        run_id: str,
        events: EventSource,
        now: Callable[[], int],
        *,
        key: str = "",
    ) -> None:
        self.flow = flow
        self.handler = handler.name
        self.run_id = run_id
        self.key = key or run_id
        self._log: logging.Logger | None = None
        self.make_log: Callable[[], logging.Logger] = lambda: _log
        self.failure: Failure | None = None
        self.part = Part.PRODUCER
        self.published: list[Published] = []
        self.inputs: dict[Input, None] = {}
        self.seen: dict[tuple[str, str], FlowEvent] = {}
        """The events that the handler has looked at, by topic and message id."""
        self.effects = 0
        self.largest_peek = 0
        self._handler = handler
        self._events = events
        self._now = now
        self._latest: Input | None = None
        self._bytes = 0
        self._closed = False

    @property
    def now(self) -> datetime:
        return instant(self._now())

    @property
    def log(self) -> logging.Logger:
        self._log = self._log or self.make_log()
        return self._log

    def close(self) -> None:
        """Allow nothing more: the run has ended."""
        self._closed = True

    def enter(self, part: Part) -> None:
        """Begin a part of the handler."""
        self.part = part

    # The operations of handlers

    async def peek(self, topic: str, limit: int = DEFAULT_PEEK) -> list[Event[Any]]:
        self._require(Operation.PEEK, topic)
        if not 1 <= limit <= MAX_PEEK:
            self.refuse(f"peek takes a limit of 1 to {MAX_PEEK}, not {limit!r}")
        self.largest_peek = max(self.largest_peek, limit)
        return self._shown(await self._reading(self._events.pending(topic, limit)))

    async def get(self, topic: str, ids: Sequence[str]) -> list[Event[Any]]:
        self._require(Operation.GET, topic)
        wanted = list(dict.fromkeys(ids))
        if len(wanted) > MAX_PEEK or not all(isinstance(each, str) for each in wanted):
            self.refuse(f"get takes at most {MAX_PEEK} message ids, which are texts")
        return self._shown(await self._reading(self._events.by_message(topic, wanted)))

    def publish(
        self, topic: str | Sequence[str], message_id: str, payload: Any = None, *, caused_by: Input | None = None  # noqa: ANN401
    ) -> Done[None]:  # fmt: skip
        self._require(Operation.PUBLISH)
        topics = [topic] if isinstance(topic, str) else list(topic)
        for each in topics:
            if each not in self._handler.publishes:
                known = ", ".join(self._handler.publishes) or "none"
                self.refuse(f'it publishes to the topic "{each}", and declares: {known}')
        if not is_name(message_id):
            self.refuse(f"a message id must be a text of 1 to {MAX_NAME} characters, not {message_id!r}")
        if caused_by is not None and caused_by not in self.inputs:
            self.refuse("caused_by is no input that this run registered")
        try:
            text = json_text(payload, f'the payload of "{message_id}"', MAX_PAYLOAD)
        except ValueError as error:
            self.refuse(str(error))
        self._bytes += len(text) * len(topics)
        if len(self.published) + len(topics) > MAX_PUBLISHED or self._bytes > MAX_PUBLISHED_BYTES:
            self.refuse(
                f"a run publishes at most {MAX_PUBLISHED} events, and {MAX_PUBLISHED_BYTES} bytes in all"
            )
        cause = caused_by or self._latest
        self.published += [Published(each, message_id, text, cause) for each in topics]
        return Done(None)

    def register_input(self, source: str, type: str, id: str, title: str = "") -> Done[Input]:  # noqa: A002
        self._require(Operation.REGISTER_INPUT)
        if not (is_name(source) and is_name(type) and is_name(id)):
            self.refuse(f"source, type and id of an input must be texts of 1 to {MAX_NAME} characters")
        found = Input(source, type, id, str(title)[:MAX_NAME])
        self.inputs[found] = None
        self._latest = found
        return Done(found)

    async def read(self, call: Call[T]) -> T:
        self._require(Operation.READ)
        return await self._outside(call)

    async def effect(self, call: Call[T]) -> T:
        self._require(Operation.EFFECT)
        if self.effects:
            self.refuse("mutate may have one effect, and this is the second")
        self.effects += 1
        return await self._outside(call)

    # Refusals and failures

    def refuse(self, reason: str) -> None:
        """Stop the run: the handler did something that it must not do."""
        self.fail(Failure(FailureKind.VIOLATION, reason))

    def fail(self, failure: Failure) -> None:
        """Stop the run, with the first failure."""
        self.failure = self.failure or failure
        raise HandlerStopped(self.failure.issue)

    def _require(self, operation: Operation, topic: str | None = None) -> None:
        """Refuse an operation that the current part must not call, or a topic that the handler does not subscribe to."""
        if self._closed:
            raise HandlerStopped("the run has ended")
        if self.failure is not None:
            raise HandlerStopped(self.failure.issue)
        if self.part not in ALLOWED[operation]:
            self.refuse(f"{self.part} must not call ctx.{operation}")
        if topic is not None and topic not in self._handler.subscribes:
            known = ", ".join(self._handler.subscribes)
            self.refuse(f'it looks at the topic "{topic}", and subscribes to: {known}')

    async def _reading(self, reading: Awaitable[Sequence[FlowEvent]]) -> Sequence[FlowEvent]:
        try:
            return await reading
        except Exception as error:  # the database: a fault of the host, and a temporary one
            self.fail(Failure(FailureKind.TRANSIENT, f"events cannot be read now: {error}", error))
            raise

    async def _outside(self, call: Call[T]) -> T:
        try:
            found = call()
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            self.fail(classify(error))
            raise

    def _shown(self, events: Sequence[FlowEvent]) -> list[Event[Any]]:
        for each in events:
            self.seen[each.topic, each.message_id] = each
        return [
            Event(each.topic, each.message_id, each.payload, instant(each.created_at_ms)) for each in events
        ]

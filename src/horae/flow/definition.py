"""The definition of flows: a name, producers and consumers, checked as a whole when they are deployed."""

from __future__ import annotations

import hashlib
import inspect
import re
import types
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from horae.errors import HoraeError, InvalidFlowError
from horae.flow.contexts import MutateContext, NextContext, PrepareContext, ProducerContext, ReconcileContext
from horae.flow.handler_values import Applied, NotApplied, Outcome, Prepared, Unknown
from horae.flow.json_text import Typed
from horae.flow.phase_permissions import MAX_NAME, is_name
from horae.flow_model import FlowDefinition, HandlerDefinition, HandlerKind
from horae.spec import Spec
from horae.spec.duration import Duration, milliseconds
from horae.spec.zone import ZoneLike, zone_name

S = TypeVar("S")
D = TypeVar("D")
R = TypeVar("R")
ProducerFunction = Callable[[ProducerContext, Any], Awaitable[Any]]
P = TypeVar("P", bound=ProducerFunction)
INTERVAL = re.compile(r"^\d+(s|m|h|d)$")
Refuse = Callable[..., InvalidFlowError]
"""Makes the error for a handler, from a reason and a hint."""


class Consumer(Generic[S, D, R]):
    """An optional base class that types a consumer: its state, its prepared data, and its result.

    A consumer need not derive from it. ``prepare`` is required; leave out the other methods if they are not needed.
    """

    async def prepare(self, ctx: PrepareContext, state: S | None) -> Prepared[D]:
        """Read, choose, and reserve events; no effects."""
        raise NotImplementedError

    async def mutate(self, ctx: MutateContext, prepared: Prepared[D]) -> R:
        """Have the one outside effect of the run; the return value is the result of the outcome."""
        raise NotImplementedError

    async def next(self, ctx: NextContext, prepared: Prepared[D], outcome: Outcome[R | None]) -> S | None:
        """Publish events, and return the state for the next run."""
        raise NotImplementedError

    async def reconcile(
        self, ctx: ReconcileContext, prepared: Prepared[D]
    ) -> Applied[R] | NotApplied | Unknown:
        """Find out whether an interrupted ``mutate`` had its effect."""
        raise NotImplementedError


class Preparing(Protocol):
    """The method that every consumer has."""

    @property
    def prepare(self) -> Callable[..., Any]:
        """Read, choose, and reserve events."""


C = TypeVar("C", bound=Preparing | type[Preparing])


class Handler:
    """A handler of a flow: its definition and its code."""

    def __init__(self, definition: HandlerDefinition, code: Any) -> None:  # noqa: ANN401 - a function, a class or an object
        self.definition = definition
        self.code = code

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def target(self) -> Any:  # noqa: ANN401
        """The function of a producer, or the object of a consumer; a class is called without arguments."""
        if self.definition.kind is HandlerKind.CONSUMER and isinstance(self.code, type):
            return self.code()
        return self.code

    def part(self, name: str) -> Callable[..., Any] | None:
        """A method of a consumer; ``None`` if the consumer does not define it."""
        if not hasattr(self.code, name):
            return None
        owner = self.code if isinstance(self.code, type) else type(self.code)
        if getattr(owner, name, None) is getattr(Consumer, name, ...):
            return None
        found: Callable[..., Any] = getattr(self.target, name)
        return found

    @cached_property
    def state_type(self) -> Typed:
        """The annotated type of its state."""
        function = self.code if self.definition.kind is HandlerKind.PRODUCER else self.code.prepare
        return Typed(_annotation(function, 1 if self.definition.kind is HandlerKind.PRODUCER else 2))

    @cached_property
    def data_type(self) -> Typed:
        """The type of its prepared data."""
        found = _annotation(self.code.prepare, None)
        is_prepared = get_origin(found) is Prepared
        return Typed(get_args(found)[0] if is_prepared else None)


def _annotation(function: Any, place: int | None) -> Any:  # noqa: ANN401
    """The annotation of a parameter by its position, or of the return value; ``None`` if none can be read."""
    try:
        hints = get_type_hints(function)
        if place is None:
            return hints.get("return")
        names = list(inspect.signature(inspect.unwrap(function)).parameters)
        bound = inspect.ismethod(function)
        found = hints.get(names[place - bound])
    except Exception:  # annotations may name what is imported for type checkers only
        return None
    return None if isinstance(found, TypeVar) else found


class Flow:
    """A set of handlers joined by topics of events. Deploy it with ``app.flows.deploy(flow)``.

    ``topics``, if given, lists the only topics that handlers may use. ``revision`` names the version of the code; by default it is
    derived from the source of the handlers.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str = "",
        topics: Sequence[str] | None = None,
        revision: str | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self._topics = topics
        self._revision = revision
        self.handlers: list[Handler] = []

    def producer(
        self,
        *,
        publishes: Sequence[str],
        every: str | None = None,
        cron: str | None = None,
        timezone: ZoneLike = "UTC",
        name: str | None = None,
        timeout: Duration | None = None,
    ) -> Callable[[P], P]:
        """Add a producer, ``async def handler(ctx, state) -> state``: it reads the outside world and publishes events.

        It runs ``every`` interval (``"5m"``) or by a ``cron`` expression in a time zone. ``timeout`` limits the time of a run.
        """

        def add(function: P) -> P:
            definition = HandlerDefinition(
                name=name or _name(function), kind=HandlerKind.PRODUCER, publishes=tuple(publishes), every=every, cron=cron,
                timezone=zone_name(timezone), timeout_ms=milliseconds(timeout, "timeout"),
            )  # fmt: skip
            self.handlers.append(Handler(definition, function))
            return function

        return add

    def consumer(
        self,
        *,
        subscribes: Sequence[str],
        publishes: Sequence[str] = (),
        name: str | None = None,
        timeout: Duration | None = None,
    ) -> Callable[[C], C]:
        """Add a consumer: a class or an object with ``prepare``, and optionally ``mutate``, ``next`` and ``reconcile``."""

        def add(code: C) -> C:
            definition = HandlerDefinition(
                name=name or _name(code), kind=HandlerKind.CONSUMER, subscribes=tuple(subscribes),
                publishes=tuple(publishes), timeout_ms=milliseconds(timeout, "timeout"),
            )  # fmt: skip
            self.handlers.append(Handler(definition, code))
            return code

        return add

    def handler(self, name: str) -> Handler | None:
        """A handler by its name."""
        return next((each for each in self.handlers if each.name == name), None)

    def check(self) -> FlowDefinition:
        """Check the flow as a whole and return the definition to store. Raises ``InvalidFlowError``, which names the handler."""
        if not is_name(self.name):
            raise InvalidFlowError(str(self.name), None, "its name must be a text of 1 to 200 characters")
        if not self.handlers:
            raise InvalidFlowError(self.name, None, "it has no handlers", hint="add a producer or a consumer")
        names: set[str] = set()
        definitions = []
        for each in self.handlers:
            refuse = partial(InvalidFlowError, self.name, each.name)
            if each.name in names:
                raise refuse("another handler has the same name", hint="give one of them another name=…")
            names.add(each.name)
            self._check_topics(each.definition, refuse)
            check = _check_producer if each.definition.kind is HandlerKind.PRODUCER else _check_consumer
            definitions.append(check(each, refuse))
        self._check_subscribers(definitions)
        for handler, definition in zip(self.handlers, definitions, strict=True):
            handler.definition = definition
        return FlowDefinition(name=self.name, title=self.title, handlers=tuple(definitions))

    def _check_topics(self, handler: HandlerDefinition, refuse: Refuse) -> None:
        for topic in (*handler.publishes, *handler.subscribes):
            if not is_name(topic):
                raise refuse(f"a topic must be a text of 1 to {MAX_NAME} characters, not {topic!r}")
            if self._topics is not None and topic not in self._topics:
                hint = f"the topics of this flow are: {', '.join(self._topics)}"
                raise refuse(f'the topic "{topic}" is not declared', hint=hint)

    def _check_subscribers(self, handlers: Sequence[HandlerDefinition]) -> None:
        subscribed = {topic for each in handlers for topic in each.subscribes}
        for each in handlers:
            for topic in each.publishes:
                if topic not in subscribed:
                    known = ", ".join(sorted(subscribed))
                    hint = f"subscribe a consumer to it, or publish to one of: {known}"
                    reason = f'no consumer subscribes to the topic "{topic}"'
                    raise InvalidFlowError(self.name, each.name, reason, hint=hint)

    @cached_property
    def revision(self) -> str:
        """The version of the code: hosts with another revision do not run this flow."""
        if self._revision is not None:
            return self._revision
        sources = [msgspec.json.encode(self.check()), *(_source(each.code) for each in self.handlers)]
        return hashlib.sha256(b"\0".join(sources)).hexdigest()[:16]


def _name(code: object) -> str:
    found = getattr(code, "__name__", None) or type(code).__name__
    return str(found)


def _check_producer(handler: Handler, refuse: Refuse) -> HandlerDefinition:
    found = handler.definition
    if found.every is None and found.cron is None:
        raise refuse("it has no schedule", hint='give it every="5m" or cron="0 * * * *"')
    if found.every is not None and found.cron is not None:
        raise refuse("it has both every and cron", hint="give it one of them")
    if not found.publishes:
        raise refuse("it publishes nothing", hint='name its topics: publishes=["mail"]')
    if found.every is not None and (not INTERVAL.match(str(found.every)) or not int(found.every[:-1])):
        hint = 'write a number and s, m, h or d, such as "5m"'
        raise refuse(f"its interval {found.every!r} is invalid", hint=hint)
    if found.cron is not None:
        try:
            Spec.cron(found.cron, timezone=found.timezone)
        except HoraeError as error:
            raise refuse(f"its schedule cannot be read: {error.message}", hint=error.hint or "") from None
    _check_parameters(handler.code, "handler(ctx, state)", 2, refuse)
    return found


def _check_consumer(handler: Handler, refuse: Refuse) -> HandlerDefinition:
    found = handler.definition
    if not found.subscribes:
        raise refuse("it subscribes to nothing", hint='name its topics: subscribes=["mail"]')
    try:
        parts = {name: handler.part(name) for name in ("prepare", "mutate", "next", "reconcile")}
    except Exception as error:
        reason = f"its class cannot be instantiated without arguments: {error}"
        raise refuse(reason, hint="give the consumer an object instead") from None
    if parts["prepare"] is None:
        raise refuse("it has no prepare", hint="add async def prepare(self, ctx, state)")
    if found.publishes and parts["next"] is None:
        raise refuse("it publishes, but has no next", hint="events are published by its next")
    takes = {"prepare": "ctx, state", "mutate": "ctx, prepared", "next": "ctx, prepared, outcome", "reconcile": "ctx, prepared"}  # fmt: skip
    for name, code in parts.items():
        if code is not None:
            _check_parameters(code, f"{name}({takes[name]})", takes[name].count(",") + 1, refuse)
    return msgspec.structs.replace(
        found, mutates=parts["mutate"] is not None, emits=parts["next"] is not None,
        reconciles=parts["reconcile"] is not None,
    )  # fmt: skip


def _check_parameters(code: Callable[..., Any], wanted: str, number: int, refuse: Refuse) -> None:
    if not callable(code):
        raise refuse(f"it is not callable: {wanted}")
    try:
        inspect.signature(code).bind(*range(number))
    except TypeError:
        raise refuse("it takes other parameters", hint=f"write it as {wanted}") from None
    except ValueError:
        return  # its signature cannot be read


def _source(code: Any) -> bytes:  # noqa: ANN401
    """The source of a handler; its name if the source is not available."""
    kind = code if isinstance(code, type | types.FunctionType) else type(code)
    try:
        return inspect.getsource(kind).encode()
    except (OSError, TypeError):
        return _name(code).encode()

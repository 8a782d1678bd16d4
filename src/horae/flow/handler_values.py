"""The arguments and return values of handlers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

D = TypeVar("D")
R = TypeVar("R")


class Event(Generic[D]):
    """An event that a consumer sees. Its payload is decoded when it is read."""

    __slots__ = ("_payload", "created_at", "id", "topic")

    def __init__(self, topic: str, id: str, payload: str, created_at: datetime) -> None:  # noqa: A002
        self.topic = topic
        self.id = id
        """The message id, unique in its topic."""
        self.created_at = created_at
        self._payload = payload

    @property
    def payload(self) -> Any:  # noqa: ANN401 - any JSON
        """The published payload; each read decodes a new value."""
        return msgspec.json.decode(self._payload)

    def __repr__(self) -> str:
        return f"Event({self.topic!r}, {self.id!r})"


class Reservation(msgspec.Struct, frozen=True):
    """Events of a topic that a consumer takes."""

    topic: str
    ids: Sequence[str]


@dataclass(slots=True, eq=False)
class Prepared(Generic[D]):
    """The result of ``prepare``: the events to take, and data for ``mutate`` and ``next``.

    ``wake_at`` asks for another call at that time even without a new event. ``title`` says in a few words what the run does; a
    run that takes nothing and publishes nothing has no title.
    """

    reservations: Sequence[Reservation | Mapping[str, Any]] = ()
    data: D = None  # type: ignore[assignment]  # without data, D is None
    wake_at: datetime | str | None = None
    title: str | None = None
    key: str = field(default="", kw_only=True, repr=False)
    """The idempotency key of its mutation: the same in ``mutate``, ``reconcile`` and ``next``. The host sets it."""


@dataclass(slots=True, eq=False)
class Outcome(Generic[R]):
    """The outcome of the mutation: ``applied`` with its result, ``none`` if there was nothing to do, or ``skipped``."""

    status: str
    result: R


@dataclass(slots=True, eq=False)
class Applied(Generic[R]):
    """The answer of ``reconcile``: the effect happened, with this result."""

    result: R = None  # type: ignore[assignment]  # without a result, R is None


class NotApplied:
    """The answer of ``reconcile``: the effect did not happen, and will not."""


class Unknown:
    """The answer of ``reconcile``: it is not known yet."""


class Input(msgspec.Struct, frozen=True):
    """Something in the outside world that a producer registered; events can be caused by it."""

    source: str
    type: str
    id: str
    title: str = ""

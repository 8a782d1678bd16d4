"""The rules for handlers: what each phase may do, as a table, and how much of it."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """An operation of a handler's context."""

    PEEK = "peek"
    GET = "get"
    PUBLISH = "publish"
    REGISTER_INPUT = "register_input"
    READ = "read"
    EFFECT = "effect"


class Part(StrEnum):
    """A part of a handler."""

    PRODUCER = "producer"
    PREPARE = "prepare"
    MUTATE = "mutate"
    NEXT = "next"
    RECONCILE = "reconcile"


ALLOWED: dict[Operation, frozenset[Part]] = {
    Operation.PEEK: frozenset({Part.PREPARE}),
    Operation.GET: frozenset({Part.PREPARE}),
    Operation.PUBLISH: frozenset({Part.PRODUCER, Part.NEXT}),
    Operation.REGISTER_INPUT: frozenset({Part.PRODUCER}),
    Operation.READ: frozenset({Part.PRODUCER, Part.PREPARE, Part.RECONCILE}),
    Operation.EFFECT: frozenset({Part.MUTATE}),
}
"""Anything else is a logic error that ends the run at once. ``mutate`` may have one effect."""

DEFAULT_PEEK = 100
MAX_PEEK = 1000
MAX_PUBLISHED = 10_000
"""How many events one run may publish."""
MAX_RESERVED = 10_000
"""How many events one run may reserve."""
MAX_PAYLOAD = 256 * 1024
"""Bytes of JSON of one payload."""
MAX_PUBLISHED_BYTES = 16 * 1024 * 1024
"""Bytes of all payloads that one run publishes."""
MAX_KEPT = 1024 * 1024
"""Bytes of JSON of a state, of the data of a prepare result, and of the result of a mutation."""
MAX_NAME = 200
"""Characters of the name of a flow, a handler, a topic or a message."""
MAX_TITLE = 200


def is_name(value: object) -> bool:
    """Whether a value can name a flow, a topic, a message, or a part of an input."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_NAME and value.isprintable()

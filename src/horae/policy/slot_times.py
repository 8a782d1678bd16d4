"""The border between specs, which name whole seconds, and everything else, which counts milliseconds.

Slots are given by their nominal times. Bounds may be any millisecond; ``after`` is exclusive, ``until`` and ``at`` are inclusive.
"""

from __future__ import annotations

from horae.spec import Spec
from horae.spec.civil import END

END_MS = END * 1000
"""Later than every slot."""


def next_slot_ms(spec: Spec, after_ms: int) -> int | None:
    """The first slot after a moment."""
    found = spec.next_instant(after_ms // 1000)
    return None if found is None else found * 1000


def previous_slot_ms(spec: Spec, at_ms: int) -> int | None:
    """The last slot up to a moment."""
    found = spec.previous_instant(at_ms // 1000)
    return None if found is None else found * 1000


def is_slot(spec: Spec, nominal_ms: int) -> bool:
    """Whether a spec names a time."""
    return next_slot_ms(spec, nominal_ms - 1) == nominal_ms


def slots_ms(spec: Spec, after_ms: int, until_ms: int, limit: int) -> list[int]:
    """The first slots of a range, up to a limit."""
    return [each * 1000 for each in spec.instants(after_ms // 1000, until_ms // 1000, limit)]


def count_slots(spec: Spec, after_ms: int, until_ms: int, most: int | None = None) -> int:
    """How many slots a range has; counting may stop at ``most``."""
    return spec.count(after_ms // 1000, until_ms // 1000, most)


def count_slots_within_budget(spec: Spec, after_ms: int, until_ms: int) -> tuple[int, int]:
    """Count the slots of a range within the budget of one question; also return up to where they were counted."""
    count, reached = spec.count_within_budget(after_ms // 1000, until_ms // 1000)
    return count, reached * 1000


def all_but(spec: Spec, after_ms: int, last_ms: int, number: int) -> int | None:
    """The last slot of a range without its final ``number`` slots; ``None`` if the range has no more than these.

    The number may be large, so a search by counting finds it; from the end, because the range may be much longer.
    """
    after, last = after_ms // 1000, last_ms // 1000
    width = max(last - (spec.previous_instant(last - 1) or after), 1)
    while (found := spec.count(max(last - width, after), last)) <= number:
        if last - width <= after:
            return None
        width *= 4
    after = max(last - width, after)
    wanted = found - number
    while last - after > 1:
        middle = (after + last) // 2
        found = spec.count(after, middle)
        if found < wanted:
            after, wanted = middle, wanted - found
        else:
            last = middle
    return last * 1000

"""The budget of a question about times, in steps: counted where the work is done, and the same on every machine.

Every search ends (years and days are bounded), but the searches of some specs take long. So all code that loops over months, days
or candidates charges steps, and a question that exceeds its budget raises
:class:`~horae.errors.SpecTooCostlyError`. A step is about a microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from horae.errors import SpecTooCostlyError

QUESTION_STEPS = 20_000
"""The budget of one question, and of all questions of one decision together."""

LISTING_STEPS = 200_000
"""The budget for listing or counting the times of a range outside of a decision."""

SLICE_STEPS = 2000
"""The number of steps between two calls of the function given to :func:`between_slices`."""


class OverBudget(BaseException):
    """A question needs more steps than a small budget has; the spec is valid, and the work must be done elsewhere.

    It is a ``BaseException``, so that code that handles errors does not catch it.
    """


class _Meter(threading.local):
    left = QUESTION_STEPS
    later = 0
    """Steps that become available in slices once ``left`` is used up, with a call of ``between`` before each."""
    shared = False
    """Whether several questions share what is left."""
    small = False
    """Whether the budget is that of :func:`small_budget`, and not a limit on the spec."""
    between: Callable[[], None] | None = None
    """The function to call between slices of work."""


_meter = _Meter()


def charge(steps: int) -> None:
    """Charge some steps of work; raise an error if the question exceeds its budget."""
    _meter.left -= steps
    if _meter.left < 0:
        _go_on()


def _go_on() -> None:
    """Take the next slice of steps, or raise an error if none is left."""
    while _meter.left < 0 < _meter.later and _meter.between is not None:
        _meter.between()
        more = min(_meter.later, SLICE_STEPS)
        _meter.left, _meter.later = _meter.left + more, _meter.later - more
    if _meter.left < 0:
        if _meter.small:
            raise OverBudget
        raise SpecTooCostlyError("spec", "a question about its times takes more work than a spec may cause")


def begin_question(steps: int = QUESTION_STEPS) -> None:
    """Begin a question, with a new budget unless it shares one with other questions."""
    if _meter.shared:
        charge(1)
    elif _meter.between is None:
        _meter.left = steps
    else:
        _meter.between()
        _meter.left, _meter.later = min(steps, SLICE_STEPS), max(steps - SLICE_STEPS, 0)


def steps_left() -> int:
    """How many steps the current question has left."""
    return _meter.left + _meter.later


class Spent:
    """The cost of a group of questions."""

    steps = 0


@contextmanager
def shared_budget(steps: int) -> Iterator[Spent]:
    """Let all questions inside the block share one budget. Yields their cost, which is set even if they exceed it."""
    before = _meter.left, _meter.later, _meter.shared, _meter.small
    # Inside a small budget, its remaining steps are the bound if they are fewer.
    small = _meter.small and _meter.left < steps
    given = _meter.left if small else steps
    _meter.left, _meter.later, _meter.shared, _meter.small = given, 0, True, small
    spent = Spent()
    try:
        yield spent
    finally:
        spent.steps = given - _meter.left
        _meter.left, _meter.later, _meter.shared, _meter.small = before
        if _meter.small:
            _meter.left -= spent.steps


@contextmanager
def small_budget(steps: int) -> Iterator[None]:
    """Let all questions inside the block share a few steps; raise ``OverBudget`` if they need more."""
    before = _meter.left, _meter.later, _meter.shared, _meter.small
    _meter.left, _meter.later, _meter.shared, _meter.small = steps, 0, True, True
    try:
        yield
    finally:
        _meter.left, _meter.later, _meter.shared, _meter.small = before


@contextmanager
def between_slices(act: Callable[[], None]) -> Iterator[None]:
    """Call a function before each question inside the block, in this thread, and every :data:`SLICE_STEPS` steps of long ones."""
    _meter.between = act
    try:
        yield
    finally:
        _meter.between = None

"""The budget of a question about times, in steps: counted where the work is done, and the same on every machine.

Every search ends (years and days are bounded), but the searches of some specs take long. So all code that loops over months, days
or candidates charges steps, and a question that exceeds its budget raises
:class:`~horae.errors.SpecTooCostlyError`. A step is about a microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

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


class _Budget:
    """The remaining steps of the current questions."""

    __slots__ = ("later", "left", "shared", "small")

    def __init__(self, left: int, *, shared: bool = False, small: bool = False) -> None:
        self.left = left
        self.later = 0
        """Steps that become available in slices once ``left`` is used up, with a call of ``between`` before each."""
        self.shared = shared
        """Whether several questions share what is left."""
        self.small = small
        """Whether the budget is that of :func:`small_budget`, and not a limit on the spec."""


class _Meter(threading.local):
    def __init__(self) -> None:
        self.budget = _Budget(QUESTION_STEPS)
        self.between: Callable[[], None] | None = None
        """The function to call between slices of work."""


_meter = _Meter()


def charge(steps: int) -> None:
    """Charge some steps of work; raise an error if the question exceeds its budget."""
    budget = _meter.budget
    budget.left -= steps
    if budget.left < 0:
        _go_on(budget)


def _go_on(budget: _Budget) -> None:
    """Take the next slice of steps, or raise an error if none is left."""
    while budget.left < 0 < budget.later and _meter.between is not None:
        _meter.between()
        more = min(budget.later, SLICE_STEPS)
        budget.left, budget.later = budget.left + more, budget.later - more
    if budget.left < 0:
        if budget.small:
            raise OverBudget
        raise SpecTooCostlyError("spec", "a question about its times takes more work than a spec may cause")


def begin_question(steps: int = QUESTION_STEPS) -> None:
    """Begin a question, with a new budget unless it shares one with other questions."""
    budget = _meter.budget
    if budget.shared:
        charge(1)
    elif _meter.between is None:
        budget.left = steps
    else:
        _meter.between()
        budget.left, budget.later = min(steps, SLICE_STEPS), max(steps - SLICE_STEPS, 0)


def steps_left() -> int:
    """How many steps the current question has left."""
    return _meter.budget.left + _meter.budget.later


class shared_budget:  # noqa: N801 - used like a function; a generator would be slower, and every decision has one
    """Let all questions inside the block share one budget. ``steps`` is what they cost, even if they exceed it."""

    __slots__ = ("_before", "_budget", "_given", "steps")

    def __init__(self, steps: int) -> None:
        self._given = steps
        self.steps = 0

    def __enter__(self) -> Self:
        before = self._before = _meter.budget
        # Inside a small budget, its remaining steps are the bound if they are fewer.
        small = before.small and before.left < self._given
        if small:
            self._given = before.left
        self._budget = _meter.budget = _Budget(self._given, shared=True, small=small)
        return self

    def __exit__(self, *_: object) -> None:
        self.steps = self._given - self._budget.left
        _meter.budget = self._before
        if self._before.small:
            self._before.left -= self.steps


@contextmanager
def small_budget(steps: int) -> Iterator[None]:
    """Let all questions inside the block share a few steps; raise ``OverBudget`` if they need more."""
    before, _meter.budget = _meter.budget, _Budget(steps, shared=True, small=True)
    try:
        yield
    finally:
        _meter.budget = before


@contextmanager
def between_slices(act: Callable[[], None]) -> Iterator[None]:
    """Call a function before each question inside the block, in this thread, and every :data:`SLICE_STEPS` steps of long ones."""
    _meter.between = act
    try:
        yield
    finally:
        _meter.between = None

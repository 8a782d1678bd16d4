"""What a question about time may cost: steps, counted where the work is done, the same on every machine.

Every search ends (years and days are bounded), but a spec can be written whose searches end late. So whatever loops over months,
days or candidates charges for it, and a question that would take more than its budget is not answered: it raises
:class:`~horae.errors.SpecTooCostlyError`. A step is about a microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from horae.errors import SpecTooCostlyError

QUESTION_STEPS = 20_000
"""What one question may cost, and all questions of one decision together."""

LISTING_STEPS = 200_000
"""What it may cost to list or to count the times of a range, which may be many; not within a decision."""

SLICE_STEPS = 2000
"""After so many steps something else may be done, if that was asked for."""


class OverBudget(BaseException):
    """More work than may be done here, which is no fault of the spec: it is to be done elsewhere.

    Nothing that handles errors takes it for one.
    """


class _Meter(threading.local):
    left = QUESTION_STEPS
    later = 0
    """Steps that are left when these are used up, and something else was done in between."""
    shared = False
    """Whether several questions share what is left."""
    small = False
    """Whether what is left is no bound of the spec, but of what may be done here."""
    between: Callable[[], None] | None = None
    """What is done between slices of work."""


_meter = _Meter()


def charge(steps: int) -> None:
    """Count some steps of work; too many in one question are refused."""
    _meter.left -= steps
    if _meter.left < 0:
        _go_on()


def _go_on() -> None:
    """What was left is used up: go on with what was kept for later, or not at all."""
    while _meter.left < 0 < _meter.later and _meter.between is not None:
        _meter.between()
        more = min(_meter.later, SLICE_STEPS)
        _meter.left, _meter.later = _meter.left + more, _meter.later - more
    if _meter.left < 0:
        if _meter.small:
            raise OverBudget
        raise SpecTooCostlyError("spec", "a question about its times takes more work than a spec may cause")


def begin_question(steps: int = QUESTION_STEPS) -> None:
    """A question begins: it has a budget of its own, unless it shares one with others."""
    if _meter.shared:
        charge(1)
    elif _meter.between is None:
        _meter.left = steps
    else:
        _meter.between()
        _meter.left, _meter.later = min(steps, SLICE_STEPS), max(steps - SLICE_STEPS, 0)


def steps_left() -> int:
    """What is left for the present question."""
    return _meter.left + _meter.later


class Spent:
    """What a group of questions has cost."""

    steps = 0


@contextmanager
def shared_budget(steps: int) -> Iterator[Spent]:
    """Let all questions that are asked inside share one budget. Tells what they cost, also if it was too much."""
    before = _meter.left, _meter.later, _meter.shared, _meter.small
    # Where only a moment's work may be done, that is the bound if it is the narrower one.
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
    """Let all questions that are asked inside share so few steps that they take a moment only; else ``OverBudget``."""
    before = _meter.left, _meter.later, _meter.shared, _meter.small
    _meter.left, _meter.later, _meter.shared, _meter.small = steps, 0, True, True
    try:
        yield
    finally:
        _meter.left, _meter.later, _meter.shared, _meter.small = before


@contextmanager
def between_slices(act: Callable[[], None]) -> Iterator[None]:
    """Have something done before each question that is asked inside, in this thread, and now and then in long ones."""
    _meter.between = act
    try:
        yield
    finally:
        _meter.between = None

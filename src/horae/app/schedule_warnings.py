"""Warnings about schedules that were stored as asked for, but may not do what was meant."""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from horae.errors import HoraeError
from horae.executor.action_registry import Executors
from horae.model import Schedule, instant
from horae.policy.slot_times import next_slot_ms, previous_slot_ms
from horae.spec import Spec

if TYPE_CHECKING:
    from horae.app.owner_scope import OwnerScope

_FIXED = {"EST": "America/New_York", "MST": "America/Denver"}
"""Zone names that look like the time of a place but have no summer time, and the place that is usually meant."""


Place = tuple[str, int]
"""A file and a line of the calling program."""
Told = tuple[str, str, Place | None]
"""A warning: the id of its schedule, the sentence, and the place that it is about if that is not the call under way."""
_held: ContextVar[list[Told] | None] = ContextVar("held", default=None)


class ScheduleWarning(UserWarning):
    """A schedule was stored that may not do what was meant: it never fires, say."""


def schedule_warnings(schedule: Schedule, now_ms: int) -> list[str]:
    """Warnings about a schedule that was just created or changed; usually none."""
    found = _about_spec(schedule.spec, now_ms)
    if schedule.state.remaining_actions == 0:
        return [*found, "it does not start by itself: remaining_actions is 0"]
    return list(found)


@lru_cache(maxsize=16)
def _about_spec(text: str, now_ms: int) -> tuple[str, ...]:
    """Warnings about a spec; cached, because schedules that are created together often share one."""
    try:
        spec = Spec.parse(text)
        found = (_never(spec, now_ms), _times_over(spec, now_ms), _fixed_zone(spec))
    except HoraeError:  # a spec that cannot be read, or costs too much: other answers say so
        return ()
    return tuple(filter(None, found))


async def warn_of_specs(scope: OwnerScope, schedules: Sequence[Schedule], place: Place | None = None) -> None:
    """Warn the calling program about schedules that it stored, at the place of their definition if they have one."""
    now = scope.now()
    found = await scope.evaluate(
        lambda: [(each.id, sentence) for each in schedules for sentence in schedule_warnings(each, now)]
    )
    for schedule_id, sentence in found:
        warn_program(schedule_id, sentence, place)


def input_warnings(executors: Executors, schedule: Schedule, given: object = msgspec.UNSET) -> list[str]:
    """Whether a function of this program cannot be called with the input of a schedule, or with one that is given instead."""
    action = (
        schedule.action if given is msgspec.UNSET else msgspec.structs.replace(schedule.action, input=given)
    )
    return [] if (doubt := executors.doubt(action)) is None else [doubt]


def warn_of_input(executors: Executors, schedule: Schedule, given: object = msgspec.UNSET) -> None:
    """Warn the calling program about the input of a schedule, or about one that is given instead."""
    for sentence in input_warnings(executors, schedule, given):
        warn_program(schedule.id, sentence)


@contextlib.contextmanager
def warnings_held() -> Iterator[list[Told]]:
    """Hold the warnings to the calling program, for a caller in another thread: only there its line is known."""
    held: list[Told] = []
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)


def warn_program(schedule_id: str, sentence: str, place: Place | None = None) -> None:
    """Give a warning to the calling program, through Python's own ``warnings``; ``place`` is what it is about, if not the call under way."""
    if (held := _held.get()) is not None:
        held.append((schedule_id, sentence, place))
        return
    text = f'The schedule "{schedule_id}": {sentence}'
    if place is None:
        warnings.warn(text, ScheduleWarning, stacklevel=_level_of_program())
    else:
        warnings.warn_explicit(text, ScheduleWarning, *place)


def calling_place() -> Place:
    """Where the program calls Horae."""
    frame = sys._getframe(_level_of_program() - 1)  # noqa: SLF001 - as warnings find their line
    return frame.f_code.co_filename, frame.f_lineno


def _level_of_program() -> int:
    """The stack level of the program that called Horae, counted from the caller: the warning names its line."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("horae."):
        level, frame = level + 1, frame.f_back
    return level


def _never(spec: Spec, now_ms: int) -> str:
    if next_slot_ms(spec, now_ms) is not None:
        return ""
    if not spec.is_empty and previous_slot_ms(spec, now_ms) is not None:
        return f"it never fires again: {spec.why_never(instant(now_ms))}"
    return f"it never fires: {spec.why_never(instant(now_ms))}"


def _times_over(spec: Spec, now_ms: int) -> str:
    """A warning about single times that are over, if others are not."""
    if not (spec.elements.instants or spec.elements.labels) or next_slot_ms(spec, now_ms) is None:
        return ""
    zone = spec.elements.timezone
    over = [
        each
        for each in spec.document.times
        if next_slot_ms(Spec.parse({"times": [each], "timezone": zone}), now_ms) is None
    ]
    return f"of its times, these are over: {', '.join(over[:3])}" if over else ""


def _fixed_zone(spec: Spec) -> str:
    name = spec.elements.timezone
    if name not in _FIXED:
        return ""
    return f"{name} has no summer time; name a place to follow its clocks, such as {_FIXED[name]}"

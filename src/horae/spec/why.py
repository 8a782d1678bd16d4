"""Why a moment is, or is not, a nominal time of a spec.

The answers come from variants of the spec: the same one without its exclusions, or with every repeated wall-clock time. If a
variant names the moment and the spec does not, the difference is the reason. So the rules themselves are written only once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from horae.spec.calendar_bits import ALWAYS
from horae.spec.canonical import render_cron, render_instant
from horae.spec.civil_set import CivilSet
from horae.spec.clock_change import timeline
from horae.spec.compiled import Elements, closed_days, read_calendar
from horae.spec.duration import duration_text
from horae.spec.english import describe
from horae.spec.sources import CivilSource, sources_of
from horae.spec.spec import Spec

_replace = msgspec.structs.replace
_NOTHING = {"crons": (), "calendars": (), "intervals": (), "rrules": (), "instants": (), "labels": ()}


class Code(StrEnum):
    """How a moment relates to a spec."""

    NAMED = "named"
    EXCLUDED = "excluded"
    GAP = "gap"
    """The spec names the wall-clock time, and on that day it does not exist: clocks went forward."""
    FOLD = "fold"
    """The wall-clock time comes twice, and the spec leaves this one out."""
    BEFORE_START = "before_start"
    AFTER_END = "after_end"
    NOT_NAMED = "not_named"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a moment relates to a spec, and why."""

    code: Code
    instant: int
    """The second; of a wall-clock time that does not exist, the one at which clocks went forward."""
    label: int
    """What a wall clock shows, or would have shown."""
    exists: bool = True
    """Whether a wall clock ever shows that."""
    by: str = ""
    """The element that names it, or the exclusion; empty if it takes several."""
    moved_to: int | None = None
    """When a time that does not exist happens instead; ``None`` if not at all."""
    other: int | None = None
    """The other instant of a time that comes twice."""
    before: int | None = None
    """The nominal time before it."""
    after: int | None = None
    """The nominal time after it."""


def why_instant(spec: Spec, instant: int) -> Standing:
    """How an instant relates to a spec."""
    label = instant + spec.zone.offset_at(instant)
    standing = Standing(
        code=Code.NOT_NAMED, instant=instant, label=label, other=_other(spec, instant, label),
        before=spec.previous_instant(instant - 1), after=spec.next_instant(instant),
    )  # fmt: skip
    if spec.names(instant):
        return _replace(standing, code=Code.NAMED, by=_element(spec, instant, label))
    elements = spec.elements
    if outside := _outside(elements, instant):
        return _replace(standing, code=outside)
    open_elements = _replace(elements, exclude=(), exclude_shared=())
    if Spec(open_elements).names(instant):
        return _replace(standing, code=Code.EXCLUDED, by=_exclusion(spec, label))
    every = {"gap": "skip", "fold": "both", "clock_change": "literal"}
    if not Spec(_replace(open_elements, **every)).names(instant):
        return standing
    if Spec(_replace(elements, **every), spec.shared).names(instant):
        return _replace(standing, code=Code.FOLD)
    return _replace(standing, code=Code.EXCLUDED, by=_exclusion(spec, label))


def why_label(spec: Spec, label: int) -> Standing:
    """How a wall-clock time relates to a spec: of two instants that show it, the one that the spec names, or else the first."""
    instants = timeline(spec.elements.timezone).instants(label)
    if not instants:
        return _in_gap(spec, label)
    found = [why_instant(spec, instant) for instant in instants]
    return next((each for each in found if each.code is Code.NAMED), found[0])


def _in_gap(spec: Spec, label: int) -> Standing:
    """How a wall-clock time that no clock ever shows relates to a spec."""
    line = timeline(spec.elements.timezone)
    k = bisect_right(line.ends, label)
    jump, shown = line.begins[k], line.firsts[k]
    standing = Standing(
        code=Code.NOT_NAMED, instant=jump, label=label, exists=False,
        before=spec.previous_instant(jump - 1), after=spec.next_instant(jump - 1),
    )  # fmt: skip
    if outside := _outside(spec.elements, jump):
        return _replace(standing, code=outside)
    civil = [each for _, each in sources_of(spec.elements, (), ()) if isinstance(each, CivilSource)]
    naming = [each for each in civil if each.rule.next(label) == label]
    if not naming:
        return standing
    moves = any(each.line.moved[bisect_right(each.line.ends, label)] for each in naming)
    excluded = _exclusion(spec, label) or (_exclusion(spec, shown) if moves else "")
    if excluded:
        return _replace(standing, code=Code.EXCLUDED, by=excluded)
    moved_to = jump if moves and spec.names(jump) else None
    return _replace(standing, code=Code.GAP, moved_to=moved_to)


def _outside(elements: Elements, instant: int) -> Code | None:
    """On which side of the spec's window an instant lies; ``None`` if inside."""
    if elements.start_at is not None and instant < elements.start_at:
        return Code.BEFORE_START
    if elements.end_at is not None and instant > elements.end_at:
        return Code.AFTER_END
    return None


def _other(spec: Spec, instant: int, label: int) -> int | None:
    """The other instant at which a clock shows the same."""
    others = [each for each in timeline(spec.elements.timezone).instants(label) if each != instant]
    return others[0] if others else None


def _element(spec: Spec, instant: int, label: int) -> str:
    """The first element that names an instant."""
    elements, shared = spec.elements, spec.shared
    if spec.zone.offset_at(instant - 1) >= spec.zone.offset_at(instant):
        # It is not excluded, and no gap moved it here from a time that may be: exclusions need no second check.
        elements, shared = _replace(elements, exclude=(), exclude_shared=()), ()
    for text, only in _single(elements):
        if Spec(_replace(elements, **(_NOTHING | only)), shared).names(instant):
            return text
    if instant in elements.instants:
        return f'time "{render_instant(instant)}"'
    # Only a time without an offset is left; one that a clock change moved here is not found by what the clock shows.
    return f'time "{render_instant(label)[:-1]}"' if label in elements.labels else ""


def _single(elements: Elements) -> Iterator[tuple[str, dict[str, object]]]:
    """Each element in words, with the fields of a spec that has only this element; without single times, of which there may be many."""
    for calendar in elements.crons:
        yield f'cron "{render_cron(calendar)}"', {"crons": (calendar,)}
    for calendar in elements.calendars:
        yield f'calendar "{describe(calendar)}"', {"calendars": (calendar,)}
    for every in elements.intervals:
        yield f'interval "{duration_text(every.every * 1000)}"', {"intervals": (every,)}
    for rrule in elements.rrules:
        yield f'rrule "{rrule}"', {"rrules": (rrule,)}


def _exclusion(spec: Spec, label: int) -> str:
    """The first exclusion that a wall-clock time falls under; empty if none does."""
    for calendar in spec.elements.exclude:
        if CivilSet((ALWAYS,), (calendar,)).excludes(label):
            return f'exclusion "{describe(calendar)}"'
    for name, shared in spec.shared:
        calendars = tuple(read_calendar(each, name) for each in shared.calendars)
        if CivilSet((ALWAYS,), calendars, closed_days(shared, name)).excludes(label):
            return f'shared calendar "{name}"'
    return ""

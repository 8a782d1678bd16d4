"""The canonical form of a spec. Parsing it again gives the same elements.

Crons stay crons, in the dialect ``unix`` (of which ``posix`` is a part), with names as numbers and
lists in order. Expressions of the dialect ``temporal`` become calendars and intervals; calendars are
written as ranges.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from horae.spec import cron_field
from horae.spec.budget import charge
from horae.spec.calendar_bits import STAR_DAY, STAR_HOUR, STAR_MINUTE, STAR_WEEKDAY, Calendar, Special
from horae.spec.civil import bit_range, members
from horae.spec.compiled import CALENDAR_FIELDS, Elements
from horae.spec.cron_field import Field
from horae.spec.document import (
    CalendarDocument,
    ExcludeDocument,
    FieldDocument,
    IntervalDocument,
    JitterDocument,
    RangeDocument,
    SpecDocument,
)
from horae.spec.duration import duration_text

_CALENDAR_STEPS, _TIME_STEPS = 40, 3
"""The steps that writing an element costs."""

Range = tuple[int, int, int]
"""First value, last value, step."""


def document_of(elements: Elements) -> SpecDocument:
    """The canonical document of a spec."""
    calendars = len(elements.crons) + len(elements.calendars) + len(elements.exclude)
    charge(_CALENDAR_STEPS * calendars + _TIME_STEPS * (len(elements.instants) + len(elements.labels)))
    exclude = [msgspec.convert(_calendar_fields(calendar), ExcludeDocument) for calendar in elements.exclude]
    exclude += [ExcludeDocument(calendar=name) for name in elements.exclude_shared]
    jitter: str | JitterDocument | None = None
    if elements.jitter is not None:
        jitter = duration_text(elements.jitter.span_ms)
        if elements.jitter.centred:
            jitter = JitterDocument(jitter, centred=True)
    labels = [render_instant(label)[:-1] for label in elements.labels]
    return SpecDocument(
        crons=tuple(render_cron(calendar) for calendar in elements.crons),
        calendars=tuple(msgspec.convert(_calendar_fields(c), CalendarDocument) for c in elements.calendars),
        intervals=tuple(
            IntervalDocument(duration_text(i.every * 1000), duration_text(i.phase * 1000), i.anchor)
            for i in elements.intervals
        ),
        rrules=elements.rrules,
        times=(*(render_instant(instant) for instant in elements.instants), *labels),
        exclude=tuple(exclude),
        start_at=None if elements.start_at is None else render_instant(elements.start_at),
        end_at=None if elements.end_at is None else render_instant(elements.end_at),
        timezone=None if elements.timezone == "UTC" else elements.timezone,
        jitter=jitter,
        gap=elements.gap,
        fold=elements.fold,
        clock_change=elements.clock_change,
    )


def render_instant(instant: int) -> str:
    """``2026-03-08T07:30:00Z``."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_cron(calendar: Calendar) -> str:
    """A calendar that came from a cron expression, as a cron expression."""
    stars = calendar.stars
    written = [
        _cron_field(calendar.minutes, cron_field.MINUTE, star=stars & STAR_MINUTE),
        _cron_field(calendar.hours, cron_field.HOUR, star=stars & STAR_HOUR),
        _cron_field(calendar.days, cron_field.DAY_OF_MONTH, calendar.special, star=stars & STAR_DAY),
        _cron_field(calendar.months, cron_field.MONTH, star=_starry(calendar.months, cron_field.MONTH)),
        _cron_field(calendar.weekdays, cron_field.WEEKDAY, calendar.special, star=stars & STAR_WEEKDAY),
    ]
    if calendar.seconds != 1:
        starry = _starry(calendar.seconds, cron_field.SECOND)
        written.insert(0, _cron_field(calendar.seconds, cron_field.SECOND, star=starry))
    return " ".join(written)


def _cron_field(bits: int, field: Field, special: Special | None = None, *, star: int) -> str:
    items = [_item(item, field, star=bool(star)) for item in ranges_of(bits, field, star=bool(star))]
    return ",".join(items + special_items(special, field))


def _item(item: Range, field: Field, *, star: bool) -> str:
    first, last, step = item
    if first == last:
        return str(first)
    whole = star and (first, last) == (field.low, field.last)
    text = "*" if whole else f"{first}-{last}"
    return text if step == 1 else f"{text}/{step}"


def _starry(bits: int, field: Field) -> bool:
    """Whether a field in which a star has no special meaning is best written as ``*/n``."""
    steps = range(1, (field.last - field.low) // 2 + 1)
    return any(bits == bit_range(field.low, field.last, step) for step in steps)


def ranges_of(bits: int, field: Field, *, star: bool) -> list[Range]:
    """A field's values as ranges. ``star``: begin with one over the whole field, as ``*/n`` is."""
    values = [value + field.base for value in members(bits)]
    high = field.last
    if star:
        steps = range(1, high - field.low + 2)
        step = next(s for s in steps if set(range(field.low, high + 1, s)) <= set(values))
        rest = [value for value in values if value not in range(field.low, high + 1, step)]
        return [(field.low, high, step), *_runs(rest)]
    steps_found = {later - earlier for earlier, later in pairwise(values)}
    if len(values) >= 3 and not field.names and len(steps_found) == 1 and (step := steps_found.pop()) > 1:
        to_the_end = values[0] != field.low and values[-1] + step > high
        return [(values[0], high if to_the_end else values[-1], step)]
    return _runs(values)


def _runs(values: list[int]) -> list[Range]:
    runs: list[Range] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1] = (runs[-1][0], value, 1)
        else:
            runs.append((value, value, 1))
    return runs


def special_items(special: Special | None, field: Field) -> list[str]:
    """The special days of a day field: ``L``, ``L-2``, ``15W``, ``LW``; ``1#2``, ``5L``."""
    if special is None:
        return []
    if field is cron_field.DAY_OF_MONTH:
        items = ["L" if back == 0 else f"L-{back}" for back in members(special.from_last)]
        items += [f"{day}W" for day in members(special.nearest)]
        return items + ["LW"] * special.last_workday
    if field is cron_field.WEEKDAY:
        items = [f"{place % 7}#{place // 7 + 1}" for place in members(special.nth)]
        return items + [f"{weekday}L" for weekday in members(special.last)]
    return []


def _calendar_fields(calendar: Calendar) -> dict[str, FieldDocument | str]:
    """A calendar's fields as ranges; those with special days as text."""
    written: dict[str, FieldDocument | str] = {}
    sets = (calendar.seconds, calendar.minutes, calendar.hours, calendar.days, calendar.months,
            calendar.weekdays, calendar.years)  # fmt: skip
    for (name, field), bits in zip(CALENDAR_FIELDS, sets, strict=True):
        if bits is None:
            continue
        if special := special_items(calendar.special, field):
            plain = [_item(item, field, star=False) for item in ranges_of(bits, field, star=False)]
            written[name] = ",".join(plain + special)
            continue
        star = calendar.stars & {"minute": STAR_MINUTE, "hour": STAR_HOUR}.get(name, 0)
        written[name] = tuple(
            RangeDocument(first, None if last == first else last, step)
            for first, last, step in ranges_of(bits, field, star=bool(star))
        )
    if calendar.comment:
        written["comment"] = calendar.comment
    return written

"""A spec as a sentence: exact enough to check one's own schedule by reading it."""

from __future__ import annotations

from horae.spec import cron_field
from horae.spec.budget import charge
from horae.spec.calendar_bits import (
    EVERY_DAY,
    EVERY_HOUR,
    EVERY_MINUTE,
    EVERY_MONTH,
    EVERY_SECOND,
    EVERY_WEEKDAY,
    Calendar,
)
from horae.spec.canonical import ranges_of, render_instant
from horae.spec.civil import members
from horae.spec.compiled import Elements, Every
from horae.spec.cron_field import WEEKDAY_NAMES, Field
from horae.spec.duration import duration_text

MAX_TIMES_LISTED = 6
HOUR, DAY = 3600, 86_400
"""Seconds."""
_CALENDAR_STEPS = 20
"""The steps that describing a calendar costs."""
ORDINALS = ("first", "second", "third", "fourth", "fifth")


def sentence_of(elements: Elements) -> str:
    """Describe a spec in English."""
    charge(_CALENDAR_STEPS * (len(elements.crons) + len(elements.calendars) + len(elements.exclude)))
    parts = [describe(calendar) for calendar in elements.crons + elements.calendars]
    parts += [_interval(every, elements.start_at) for every in elements.intervals]
    parts += [f"by the rule {rrule}" for rrule in elements.rrules]
    parts += _one_shots(elements)
    if not parts:
        return "Never by itself: the spec is empty"
    sentence = "; and ".join(parts)
    if elements.exclude or elements.exclude_shared:
        excluded = [describe(calendar) for calendar in elements.exclude]
        excluded += [f'what the calendar "{name}" names' for name in elements.exclude_shared]
        sentence += f"; except {'; and except '.join(excluded)}"
    sentence += "".join(_frame(elements))
    return sentence[0].upper() + sentence[1:]


def _frame(elements: Elements) -> list[str]:
    """The window, the zone, jitter, what clock changes do."""
    parts = []
    if elements.start_at is not None:
        parts.append(f", from {render_instant(elements.start_at)}")
    if elements.end_at is not None:
        parts.append(f", until {render_instant(elements.end_at)}")
    parts.append(f", {elements.timezone} time")
    if elements.clock_change == "debian":
        parts.append(", clock changes as in Debian's cron")
    if elements.jitter is not None:
        span = duration_text(elements.jitter.span_ms)
        centred = elements.jitter.centred
        parts.append(f", moved by up to {span} either way" if centred else f", delayed by up to {span}")
    if elements.gap == "shift":
        parts.append("; when a clock change skips a time, it fires right after the change")
    if elements.fold != "both":
        parts.append(f"; when a clock change repeats a time, it fires the {elements.fold} time only")
    return parts


def _interval(every: Every, start_at: int | None) -> str:
    text = f"every {duration_text(every.every * 1000)}"
    if every.anchor == "start" and start_at is not None:
        origin = render_instant(start_at)
    elif HOUR % every.every == 0 and not every.phase:
        return text  # the same in each hour, which needs no origin
    else:
        origin = "midnight UTC" if DAY % every.every == 0 else "1970-01-01T00:00:00Z"
    phase = f" plus {duration_text(every.phase * 1000)}" if every.phase else ""
    return f"{text}, counted from {origin}{phase}"


def _one_shots(elements: Elements) -> list[str]:
    number = len(elements.instants) + len(elements.labels)
    texts = [render_instant(instant) for instant in elements.instants[:MAX_TIMES_LISTED]]
    texts += [render_instant(label)[:-1] for label in elements.labels[:MAX_TIMES_LISTED]]
    if number > MAX_TIMES_LISTED:
        return [f"at {number} single times, the first of them {texts[0]}"]
    return [f"once at {_joined(texts)}"] if texts else []


def describe(calendar: Calendar) -> str:
    """One cron expression or calendar, without a capital letter."""
    parts = [_time_of_day(calendar), _days(calendar)]
    if calendar.months != EVERY_MONTH:
        parts.append(f"in {_values(calendar.months, cron_field.MONTH)}")
    if calendar.years is not None:
        parts.append(f"in the year {_values(calendar.years, cron_field.YEAR)}")
    if calendar.comment:
        parts.append(f"({calendar.comment})")
    return " ".join(part for part in parts if part)


def _time_of_day(calendar: Calendar) -> str:
    seconds, minutes, hours = calendar.seconds, calendar.minutes, calendar.hours
    if _times_a_day(calendar) <= MAX_TIMES_LISTED:
        return f"at {_joined(_clock_times(calendar))}"
    if seconds == 1:
        phrase = _unit_phrase(minutes, EVERY_MINUTE, cron_field.MINUTE)
        return phrase + (_hours(hours, "of") or (" of every hour" if phrase.startswith("at ") else ""))
    if minutes == EVERY_MINUTE:
        return _unit_phrase(seconds, EVERY_SECOND, cron_field.SECOND) + _hours(hours, "in")
    return (
        f"{_unit_phrase(seconds, EVERY_SECOND, cron_field.SECOND)} of minute {_values(minutes, cron_field.MINUTE)}"
        + (_hours(hours, "of") or " of every hour")
    )


def _times_a_day(calendar: Calendar) -> int:
    return calendar.seconds.bit_count() * calendar.minutes.bit_count() * calendar.hours.bit_count()


def _clock_times(calendar: Calendar) -> list[str]:
    return [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if calendar.seconds != 1 else "")
        for hour in members(calendar.hours)
        for minute in members(calendar.minutes)
        for second in members(calendar.seconds)
    ]


def _unit_phrase(bits: int, every: int, field: Field) -> str:
    """``every minute``, ``every 5 minutes``, ``at minute 5 and 35``."""
    if bits == every:
        return f"every {field.name}"
    values = members(bits)
    step = values[1] - values[0] if len(values) > 1 else 0
    if step and 60 % step == 0 and values == list(range(0, 60, step)):
        return f"every {step} {field.name}s"
    return f"at {field.name} {_values(bits, field)}"


def _hours(hours: int, word: str) -> str:
    return "" if hours == EVERY_HOUR else f" {word} the hour {_values(hours, cron_field.HOUR)}"


def _days(calendar: Calendar) -> str:
    special = calendar.special
    by_day, by_weekday = [], []
    if calendar.days not in {0, EVERY_DAY}:
        by_day = [f"day {_values(calendar.days, cron_field.DAY_OF_MONTH)} of the month"]
    if calendar.weekdays not in {0, EVERY_WEEKDAY}:
        by_weekday = [_values(calendar.weekdays, cron_field.WEEKDAY)]
    if special is not None:
        by_day += [_from_last(back) for back in members(special.from_last)]
        by_day += [f"the working day nearest day {day}" for day in members(special.nearest)]
        by_day += ["the last working day of the month"] * special.last_workday
        by_weekday += [
            f"the {ORDINALS[place // 7]} {WEEKDAY_NAMES[place % 7].capitalize()} of the month"
            for place in members(special.nth)
        ]
        by_weekday += [
            f"the last {WEEKDAY_NAMES[weekday].capitalize()} of the month"
            for weekday in members(special.last)
        ]
    if calendar.either:  # both fields restrict, even where one names every value
        by_day = by_day or ["every day of the month"]
        by_weekday = by_weekday or ["every weekday"]
    phrases = [f"on {_joined(phrase)}" for phrase in (by_day, by_weekday) if phrase]
    if not phrases:
        listed = _times_a_day(calendar) <= MAX_TIMES_LISTED
        return "every day" if listed or calendar.hours != EVERY_HOUR else ""
    return (" or " if calendar.either else " if also ").join(phrases)


def _from_last(back: int) -> str:
    if back == 0:
        return "the last day of the month"
    return f"{back} day{'s' * (back > 1)} before the last day of the month"


def _values(bits: int, field: Field) -> str:
    """``9 to 17``, ``Monday to Friday``, ``1, 3 and 5``, ``0 to 55 by 5``."""

    def text(value: int) -> str:
        return field.names[value - field.low].capitalize() if field.names else str(value)

    items = []
    for first, last, step in ranges_of(bits, field, star=False):
        if first == last:
            items.append(text(first))
        elif last == first + 1 and step == 1:
            items += [text(first), text(last)]
        else:
            items.append(f"{text(first)} to {text(last)}" + (f" by {step}" if step > 1 else ""))
    return _joined(items)


def _joined(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

"""Expressions made together with what they mean, and moments where clocks change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache

from hypothesis import strategies as st

from horae.spec import installed_zones, load_zone
from tests.spec.oracle import Meaning, days_in_month, instant, nearest_workday, weekday

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Item:
    """One item of a field: its text, the values it stands for, or a test for special days."""

    text: str
    values: frozenset[int] = frozenset()
    special: Callable[[date], bool] | None = None


def _number(draw: st.DrawFn, low: int, high: int, names: list[str]) -> tuple[str, int]:
    value = draw(st.integers(low, high))
    if names and value - low < len(names) and draw(st.booleans()):
        name = names[value - low]
        return draw(st.sampled_from([name, name.upper(), name.capitalize()])), value
    return draw(st.sampled_from([str(value), str(value), f"{value:02}"])), value


@st.composite
def plain_item(
    draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = (), *, steps: bool = True
) -> Item:
    """A number or a range, perhaps with a step."""
    first_text, first = _number(draw, low, high, list(names))
    kind = draw(st.sampled_from(["number", "range", "open", "range step"] if steps else ["number", "range"]))
    if kind == "number":
        return Item(first_text, frozenset([first]))
    if kind == "open":
        step = draw(st.integers(1, high + 3))
        return Item(f"{first_text}/{step}", frozenset(range(first, high + 1, step)))
    last_text, last = _number(draw, first, high, list(names) if first == low else [])
    if kind == "range":
        return Item(f"{first_text}-{last_text}", frozenset(range(first, last + 1)))
    step = draw(st.integers(1, high + 3))
    return Item(f"{first_text}-{last_text}/{step}", frozenset(range(first, last + 1, step)))


@st.composite
def star_item(draw: st.DrawFn, low: int, high: int, *, steps: bool = True) -> Item:
    if not steps or draw(st.booleans()):
        return Item("*", frozenset(range(low, high + 1)))
    step = draw(st.integers(1, high + 3))
    return Item(f"*/{step}", frozenset(range(low, high + 1, step)))


@st.composite
def day_special(draw: st.DrawFn) -> Item:
    """``L``, ``L-2``, ``LW``, ``15W``."""
    kind = draw(st.sampled_from(["L", "L-", "LW", "W"]))
    if kind == "L":
        return Item("L", special=lambda day: day.day == days_in_month(day))
    if kind == "L-":
        back = draw(st.integers(0, 30))
        return Item(f"L-{back}", special=lambda day: day.day == days_in_month(day) - back)
    if kind == "LW":
        return Item("LW", special=lambda day: nearest_workday(day, days_in_month(day)))
    wanted = draw(st.integers(1, 31))
    return Item(f"{wanted}W", special=lambda day: nearest_workday(day, wanted))


@st.composite
def weekday_special(draw: st.DrawFn) -> Item:
    """``1#2``, ``5L``."""
    wanted = draw(st.integers(0, 7))
    if draw(st.booleans()):
        nth = draw(st.integers(1, 5))
        return Item(
            f"{wanted}#{nth}",
            special=lambda day: weekday(day) == wanted % 7 and (day.day + 6) // 7 == nth,
        )
    return Item(
        f"{wanted}L",
        special=lambda day: weekday(day) == wanted % 7 and day.day + 7 > days_in_month(day),
    )


@st.composite
def field_items(
    draw: st.DrawFn,
    low: int,
    high: int,
    names: tuple[str, ...] = (),
    special: st.SearchStrategy[Item] | None = None,
    *,
    star_share: float = 0.5,
    steps: bool = True,
) -> list[Item]:
    if draw(st.floats(0, 1)) < star_share:
        return [draw(star_item(low, high, steps=steps))]
    item = plain_item(low, high, names, steps=steps)
    if special is not None:
        item = st.one_of(item, item, special)
    return draw(st.lists(item, min_size=1, max_size=3))


def _text(items: list[Item]) -> str:
    return ",".join(item.text for item in items)


def _values(items: list[Item]) -> frozenset[int]:
    return frozenset().union(*(item.values for item in items))


def _day_test(days: list[Item], weekdays: list[Item], *, either: bool) -> Callable[[date], bool]:
    day_values, weekday_values = _values(days), frozenset(v % 7 for v in _values(weekdays))
    day_tests = [item.special for item in days if item.special]
    weekday_tests = [item.special for item in weekdays if item.special]

    @cache
    def matches(day: date) -> bool:
        by_day = day.day in day_values or any(test(day) for test in day_tests)
        by_weekday = weekday(day) in weekday_values or any(test(day) for test in weekday_tests)
        return (by_day or by_weekday) if either else (by_day and by_weekday)

    return matches


Case = tuple[str, Meaning]


@st.composite
def posix_crons(draw: st.DrawFn) -> Case:
    minutes = draw(field_items(0, 59, star_share=0.3, steps=False))
    hours = draw(field_items(0, 23, steps=False))
    days = draw(field_items(1, 31, star_share=0.6, steps=False))
    months = draw(field_items(1, 12, star_share=0.8, steps=False))
    weekdays = draw(field_items(0, 6, star_share=0.6, steps=False))
    either = "*" not in {_text(days), _text(weekdays)}
    blank = draw(st.sampled_from([" ", "  ", "\t", " \t "]))
    text = blank.join(map(_text, (minutes, hours, days, months, weekdays)))
    return text, Meaning(
        frozenset([0]), _values(minutes), _values(hours), _values(months),
        _day_test(days, weekdays, either=either),
        wildcard="*" in {_text(minutes), _text(hours)},
    )  # fmt: skip


@st.composite
def unix_crons(draw: st.DrawFn, *, seconds: bool = False) -> Case:
    second_items = draw(field_items(0, 59)) if seconds else [Item("0", frozenset([0]))]
    minutes = draw(field_items(0, 59, star_share=0.7 if seconds else 0.4))
    hours = draw(field_items(0, 23, star_share=0.7 if seconds else 0.5))
    days = draw(field_items(1, 31, special=day_special(), star_share=0.6))
    months = draw(field_items(1, 12, tuple(MONTHS), star_share=0.8))
    weekdays = draw(field_items(0, 7, tuple(WEEKDAYS), weekday_special(), star_share=0.6))
    either = not (_text(days).startswith("*") or _text(weekdays).startswith("*"))
    parts = [minutes, hours, days, months, weekdays]
    text = " ".join(map(_text, [second_items, *parts] if seconds else parts))
    return text, Meaning(
        _values(second_items), _values(minutes), _values(hours), _values(months),
        _day_test(days, weekdays, either=either),
        wildcard=_text(minutes).startswith("*") or _text(hours).startswith("*"),
    )  # fmt: skip


@st.composite
def temporal_crons(draw: st.DrawFn) -> Case:
    minutes, hours = draw(field_items(0, 59, star_share=0.4)), draw(field_items(0, 23))
    days = draw(field_items(1, 31, star_share=0.6))
    months = draw(field_items(1, 12, tuple(MONTHS), star_share=0.8))
    weekdays = draw(field_items(0, 7, ("sun", "mon", "tues", "wednes", "th", "fri", "sa"), star_share=0.6))
    parts = [minutes, hours, days, months, weekdays]
    years = frozenset(range(2000, 2101))
    shape = draw(st.sampled_from([5, 6, 7]))
    if shape >= 6:
        parts.append(draw(field_items(2000, 2100, star_share=0.5)))
        years = _values(parts[-1])
    if shape == 7:
        parts.insert(0, [Item("0", frozenset([0]))])
    comment = draw(st.sampled_from(["", " # each day", "  #"]))
    return " ".join(map(_text, parts)) + comment, Meaning(
        frozenset([0]), _values(minutes), _values(hours), _values(months),
        _day_test(days, weekdays, either=False), years,
    )  # fmt: skip


@lru_cache(maxsize=1)
def transitions() -> list[tuple[str, int]]:
    """Every change of every zone's clock from 2000 to 2037."""
    first, last = instant("2000-01-01"), instant("2038-01-01")
    return [
        (name, start)
        for name in sorted(installed_zones())
        for start in load_zone(name).starts
        if first <= start < last
    ]


HARD_ZONES = (
    "America/New_York", "Europe/London", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago",
    "America/Havana", "Pacific/Apia", "Africa/Casablanca", "Europe/Dublin", "Asia/Tehran",
    "Antarctica/Troll", "America/Scoresbysund", "Asia/Gaza", "America/Godthab", "Pacific/Chatham",
)  # fmt: skip


@st.composite
def zone_moments(draw: st.DrawFn) -> tuple[str, int]:
    """A zone and an instant: mostly near a clock change, of the well-known hard zones or any other."""
    kind = draw(st.sampled_from(["hard", "hard", "any", "any", "quiet"]))
    if kind == "quiet":
        name = draw(st.sampled_from(sorted(installed_zones())))
        # Not the very first days: calendars begin with the year 2000, and one looks back from here.
        return name, draw(st.integers(instant("2000-01-10"), instant("2037-12-31"))) // 60 * 60
    changes = transitions()
    if kind == "hard":
        wanted = draw(st.sampled_from(HARD_ZONES))
        changes = [change for change in changes if change[0] == wanted]
    return draw(st.sampled_from(changes))


def as_calendar(text: str) -> dict[str, str]:
    """A cron of six fields as a calendar, in which all fields must match."""
    names = ("second", "minute", "hour", "day_of_month", "month", "day_of_week")
    return dict(zip(names, text.split(), strict=True))

"""Questions as people ask them: "why did nightly not run yesterday at 2:30" is a schedule and a time."""

from __future__ import annotations

import difflib
import re
from datetime import datetime, timedelta

from horae.app import ScopedOperations
from horae.app.page import cursor_of
from horae.errors import HoraeError
from horae.face.console.schedule_display_names import ids_called
from horae.spec import load_zone

_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d\d)(?::(\d\d))?)\s*(am|pm)?\b|\b(\d{1,2})\s*(am|pm)\b", re.IGNORECASE)
_NAMED = re.compile(r"\b(noon|midnight)\b", re.IGNORECASE)
_DATE = re.compile(r"\b(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?(Z|[+-]\d\d:\d\d)?")
_AGO = re.compile(r"\b(\d{1,4})\s*(w|d|h|m|s)[a-z]*\s+ago\b", re.IGNORECASE)
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "now": 0}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FILLERS = frozenset(
    [
        "why",
        "did",
        "does",
        "do",
        "will",
        "would",
        "is",
        "was",
        "has",
        "not",
        "didn't",
        "doesn't",
        "won't",
        "isn't",
        "wasn't",
        "run",
        "ran",
        "running",
        "fire",
        "fired",
        "start",
        "started",
        "at",
        "on",
        "the",
        "a",
        "an",
        "of",
        "last",
        "next",
        "this",
        "schedule",
        "job",
        "happen",
        "happened",
        "in",
        "to",
        "what",
        "when",
        "it",
    ]
)
_QUOTED = re.compile(r"""["“]([^"“”]+)["”]|\B'([^']+)'\B""")
_MARKS = "?,.!\"'“”"
MAX_WORDS = 30
MAX_PHRASE, MAX_PHRASES = 4, 40
"""How many words an unquoted id in a question may have, and how many such phrases are looked up."""
MAX_NAMES = 2
"""How many words of a question are looked up as misspelt names."""
MAX_ALIKE = 100
"""How many schedules from each beginning of a misspelt name on are compared with it."""


def day_of(text: str, now: datetime) -> datetime | None:
    """The day that a question names, as midnight by the wall clock; ``now`` is what that clock shows."""
    lowered = text.lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for word, days in _DAYS.items():
        if re.search(rf"\b{word}\b", lowered):
            return midnight + timedelta(days=days)
    for number, name in enumerate(_WEEKDAYS):
        if match := re.search(rf"\b(last |next |this )?{name}\b", lowered):
            ahead = (number - now.weekday()) % 7
            return midnight + timedelta(
                days=ahead if match[1] == "next " and ahead else ahead - 7 if ahead else 0
            )
    return None


def time_of(text: str, now: datetime) -> str | None:
    """The time that a question names, in ISO 8601: a wall-clock time, or one with an offset; ``None`` if it names none."""
    if match := _DATE.search(text):
        clock = match[2] or _clock_of(text[match.end() :]) or "00:00:00"
        return f"{match[1]}T{clock}{match[3] or ''}"
    if match := _AGO.search(text):
        back = timedelta(**{_UNITS[match[2].lower()]: int(match[1])})
        return (now - back).replace(microsecond=0).isoformat()
    day, clock = day_of(text, now), _clock_of(text)
    if re.search(r"\bnow\b", text, re.IGNORECASE) and clock is None:
        return now.replace(microsecond=0).isoformat()
    if day is None and clock is None:
        return None
    day = day or now
    return f"{day:%Y-%m-%d}T{clock or '00:00:00'}"


def _clock_of(text: str) -> str | None:
    if match := _NAMED.search(text):
        return "12:00:00" if match[1].lower() == "noon" else "00:00:00"
    match = _CLOCK.search(text)
    if match is None:
        return None
    hour, half = int(match[1] or match[5]), (match[4] or match[6] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    minute, second = int(match[2] or 0), int(match[3] or 0)
    return f"{hour:02}:{minute:02}:{second:02}" if hour < 24 and minute < 60 and second < 60 else None


def _words_of(text: str) -> list[str]:
    return [word.strip(_MARKS) for word in text.split()][:MAX_WORDS]


def names_in(text: str) -> list[str]:
    """The words of a question that may name a schedule, the longest first."""
    others = {*_FILLERS, *_DAYS, *_WEEKDAYS, "noon", "midnight"}
    words = {each for each in _words_of(text) if each.lower() not in others and not _CLOCK.fullmatch(each)}
    names = [each for each in words if len(each) >= 3 and not _DATE.match(each)]
    return sorted(names, key=lambda each: (-len(each), each))[:MAX_NAMES]


async def schedules_like(name: str, operations: ScopedOperations) -> list[str]:
    """The ids of schedules that a misspelt id may mean: the most similar ones of those with a similar beginning."""
    ids: set[str] = set()
    for length in sorted({max(len(name) * share // 4, 1) for share in (1, 2, 3)}):
        found = await operations.schedules.list(cursor=cursor_of("", name[:length]), limit=MAX_ALIKE)
        ids |= {each.id for each in found}
    return difflib.get_close_matches(name[:200], sorted(ids), n=2, cutoff=0.7)


async def schedules_in(text: str, operations: ScopedOperations) -> list[str]:
    """The id that a question names, the longest first; or else the ids of the schedules that pages show under a name in it."""
    words = sorted({*_words_of(text)} - {""}, key=lambda each: (each.lower() in _FILLERS, -len(each)))
    meant = [each for each in words if each.lower() not in _FILLERS]
    for each in [*phrases_in(text), *meant]:
        if await _is_schedule(each, operations):
            return [each]
    for name in [*quoted_in(text), *names_in(text)]:
        if ids := await ids_called(operations, name):
            return ids
    fillers = words[len(meant) :]
    return [each for each in fillers if await _is_schedule(each, operations)][:1]


async def _is_schedule(name: str, operations: ScopedOperations) -> bool:
    try:
        return await operations.schedules.exists(name)
    except HoraeError:
        return False


def quoted_in(text: str) -> list[str]:
    """The quoted parts of a question."""
    return [single or double for single, double in _QUOTED.findall(text)][:MAX_NAMES]


def phrases_in(text: str) -> list[str]:
    """The phrases that may be an id with spaces: quoted parts, and then consecutive words, the longest first."""
    words = text.split()[:MAX_WORDS]
    phrases = [
        " ".join(words[place : place + length]).strip(_MARKS)
        for length in range(MAX_PHRASE, 1, -1)
        for place in range(len(words) - length + 1)
        if not _FILLERS & {words[place].lower(), words[place + length - 1].lower()}
    ]
    return list(dict.fromkeys([*quoted_in(text), *phrases[:MAX_PHRASES]]))


def wall_clock(zone: str, now_ms: int) -> datetime:
    """What the clocks of a zone show now."""
    shown = now_ms // 1000 + load_zone(zone).offset_at(now_ms // 1000)
    return datetime.fromisoformat("1970-01-01") + timedelta(seconds=shown)

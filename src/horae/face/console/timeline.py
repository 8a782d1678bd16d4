"""The timeline of all schedules: what ran, what did not and what comes, one lane a schedule on one axis of time. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import msgspec

from horae.face.console.history_strip import local, why_run, why_unstarted
from horae.face.console.problem_runs import is_problem
from horae.model import Run, ScheduleKey, UnstartedRange, owner_and_id

WIDTH = 1000.0
MAX_COMING = 60
"""How many coming slots of a schedule are drawn."""
NEAR = 60
"""Labels of the axis that are nearer than this to "now" are left out."""
CLOSE = 8.0
"""Coming slots that are closer than this on the axis become one band."""
SPANS: dict[str, tuple[str, timedelta]] = {
    "5m": ("5 minutes", timedelta(minutes=5)),
    "1h": ("1 hour", timedelta(hours=1)),
    "6h": ("6 hours", timedelta(hours=6)),
    "1d": ("1 day", timedelta(days=1)),
    "1w": ("1 week", timedelta(weeks=1)),
}
"""How far the timeline reaches in both directions."""
_BUCKETS = ((0.01, "≤ 10 ms"), (0.1, "≤ 100 ms"), (1.0, "≤ 1 s"), (10.0, "≤ 10 s"), (60.0, "≤ 1 min"))


class Piece(msgspec.Struct, frozen=True):
    """A bar or mark in a lane."""

    x: float
    width: float
    status: str
    why: str
    run_id: str = ""


class Lane(msgspec.Struct, frozen=True):
    """One schedule on the timeline."""

    schedule_id: str
    owner: str
    pieces: list[Piece]
    summary: str
    name: str


class Timeline(msgspec.Struct, frozen=True):
    """All lanes, and the labels of the axis."""

    lanes: list[Lane]
    ticks: list[tuple[float, str]]


def by_relevance(
    entries: Sequence[Run | UnstartedRange],
    soonest: Mapping[ScheduleKey, datetime],
    attention: Collection[ScheduleKey],
    now: datetime,
    until: datetime,
) -> list[ScheduleKey]:
    """The schedules of a timeline, the most relevant first: those in trouble, then those that ran or will run nearest to now."""
    near = {key: max(at - now, timedelta()) for key, at in soonest.items() if at <= until}
    trouble = set(attention)
    for entry in entries:
        key = entry.schedule_key
        ended = (
            entry.end
            if isinstance(entry, UnstartedRange)
            else entry.ended_at or entry.started_at or entry.fire
        )
        near[key] = min(near.get(key, timedelta.max), abs(now - ended))
        if is_problem(entry):
            trouble.add(key)
    return sorted(near, key=lambda key: (key not in trouble, near[key], key))


def timeline(
    entries: Sequence[Run | UnstartedRange],
    coming: Mapping[ScheduleKey, Sequence[datetime]],
    now: datetime,
    reach: timedelta,
    zone: ZoneInfo,
    shown: Collection[ScheduleKey],
    called: Mapping[ScheduleKey, str],
) -> Timeline:
    """Lay out what happened to some schedules and what comes. ``coming`` has their next fire times, ``called`` their names."""
    start, end = now - reach, now + reach
    pieces: dict[ScheduleKey, list[Piece]] = defaultdict(list)
    trouble = set()
    for entry in entries:
        if (key := entry.schedule_key) in shown and (piece := _piece(entry, start, end, now, zone)):
            pieces[key].append(piece)
            if is_problem(entry):
                trouble.add(key)
    for key, times in coming.items():
        if ahead := _coming(times, start, end, now, zone):
            pieces[key] += ahead
    # Trouble first, then by name: a page that lives must not shuffle its lines.
    names = {key: owner_and_id(key)[::-1] for key in pieces}
    order = sorted(pieces, key=lambda key: (key not in trouble, called.get(key, ""), names[key]))
    lanes = [
        Lane(*names[key], pieces[key], _summary(pieces[key]), called.get(key) or names[key][0])
        for key in order
    ]
    return Timeline(lanes, _ticks(start, end, zone))


def _piece(
    entry: Run | UnstartedRange, start: datetime, end: datetime, now: datetime, zone: ZoneInfo
) -> Piece | None:
    if isinstance(entry, UnstartedRange):
        begun, ended, why, run_id = entry.start, entry.end, why_unstarted(entry, zone), ""
    else:
        begun = entry.started_at or entry.fire
        ended = entry.ended_at or (now if entry.started_at else begun)
        why, run_id = why_run(entry, zone), entry.id
        if lateness := late(entry):
            why += f", {lateness} late"
    if ended < start or begun > end:
        return None
    x = _x(max(begun, start), start, end)
    least = 3.0 if run_id else 6.0  # a low mark must be wider to be seen
    width = max(_x(min(ended, end), start, end) - x, least)
    if ended <= now:  # what has ended must not reach past now
        x = min(x, WIDTH / 2 - width)
    return Piece(round(min(x, WIDTH - 3.0), 1), round(min(width, WIDTH - x), 1), entry.status, why, run_id)


def _coming(
    times: Sequence[datetime], start: datetime, end: datetime, now: datetime, zone: ZoneInfo
) -> list[Piece]:
    """The coming slots of a lane; where they would touch each other, one band stands for all of them."""
    shown = [each for each in times if now < each <= end]
    if not shown:
        return []
    places = [_x(each, start, end) for each in shown]
    if len(shown) > 2 and min(b - a for a, b in pairwise(places)) < CLOSE:
        more = len(shown) == len(times) >= MAX_COMING
        width = (WIDTH if more else places[-1] + 3.0) - places[0]
        until = f"{len(shown)} slots until {local(shown[-1], zone)}"
        text = f"from {local(shown[0], zone)} on" if more else until
        return [Piece(places[0], round(width, 1), "band", f"coming: {text}")]
    return [
        Piece(x, 3.0, "coming", f"{local(each, zone)}: coming") for x, each in zip(places, shown, strict=True)
    ]


def slots_since(unstarted: UnstartedRange, since: datetime) -> int:
    """How many slots of a range are at a moment or later, as if they were evenly spaced."""
    if unstarted.start >= since:
        return unstarted.count
    if unstarted.end < since:
        return 0
    apart = (unstarted.end - unstarted.start) / (unstarted.count - 1)
    return (unstarted.end - since) // apart + 1


def late(run: Run) -> str:
    """How late a run started; empty if it was less than five seconds."""
    if run.started_at is None or run.origin.kind != "automatic" or run.attempt > 1:
        return ""
    seconds = (run.started_at - run.fire).total_seconds()
    return f"{seconds:.0f} s" if seconds >= 5 else ""


def _x(moment: datetime, start: datetime, end: datetime) -> float:
    return round((moment - start) / (end - start) * WIDTH, 1)


def _summary(pieces: Iterable[Piece]) -> str:
    counted = Counter(each.status.replace("_", " ").replace("band", "coming band") for each in pieces)
    return ", ".join(f"{number} {status}" for status, number in sorted(counted.items()))


def _ticks(start: datetime, end: datetime, zone: ZoneInfo) -> list[tuple[float, str]]:
    """Labels of the axis, at round times of the viewer's clock."""
    steps = [60, 120, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400]
    wanted = (end - start).total_seconds() / 8
    step = next((each for each in steps if each >= wanted), steps[-1])
    form = "%H:%M" if step < 86400 else "%a %d"
    offset = int((start.astimezone(zone).utcoffset() or timedelta()).total_seconds())
    first = (int(start.timestamp()) + offset) // step * step + step - offset
    found = []
    for at in range(first, int(end.timestamp()), step):
        moment = datetime.fromtimestamp(at, zone)
        x = _x(moment, start, end)
        if 20 <= x <= WIDTH - 20 and abs(x - WIDTH / 2) > NEAR:
            found.append((x, moment.strftime(form)))
    return found


def lateness(entries: Iterable[Run | UnstartedRange]) -> list[tuple[str, int, float]]:
    """How many automatic starts were how late: a label, a number, and its share of the largest."""
    counted: Counter[str] = Counter()
    for run in entries:
        if isinstance(run, Run) and run.started_at and run.origin.kind == "automatic" and run.attempt <= 1:
            seconds = max((run.started_at - run.fire).total_seconds(), 0.0)
            counted[next((label for most, label in _BUCKETS if seconds <= most), "> 1 min")] += 1
    labels = [*(label for _, label in _BUCKETS), "> 1 min"]
    most = max(counted.values(), default=1)
    return [(label, counted[label], round(100 * counted[label] / most, 1)) for label in labels]

"""The history of a schedule as a strip of marks, one a slot or a range of slots, oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from horae.app.views import RunView, UnstartedView, sentence_of
from horae.face.console.page_request import Visit
from horae.face.console.rendering import span
from horae.face.console.statuses import status_word
from horae.model import Run, UnstartedRange

MOST = 60


class Mark(msgspec.Struct, frozen=True):
    """One mark of a strip: what became of a slot, why, and where to read more."""

    status: str
    at: datetime
    why: str
    href: str
    count: int = 1


class Bar(msgspec.Struct, frozen=True):
    """One run in a plot of durations."""

    x: float
    y: float
    height: float
    status: str
    why: str
    href: str


class Durations(msgspec.Struct, frozen=True):
    """A plot of how long runs took."""

    bars: list[Bar]
    top: str
    median: str


def local(moment: datetime, zone: ZoneInfo) -> str:
    """A moment for a sentence."""
    return f"{moment.astimezone(zone):%a %d %b %H:%M:%S}"


def why_run(run: RunView | Run, zone: ZoneInfo) -> str:
    """What became of a run, in one line."""
    text = f"{local(run.nominal, zone)}: {status_word(run.status)}"
    if run.started_at and run.ended_at and run.status not in {"skipped", "missed", "dropped"}:
        text += f" in {span(run.ended_at - run.started_at)}"
    if run.attempt > 1:
        text += f", attempt {run.attempt}"
    if sentence := sentence_of(run.reason):
        text += f" – {sentence}"
    return text


def why_unstarted(unstarted: UnstartedView | UnstartedRange, zone: ZoneInfo) -> str:
    """Why slots did not start, in one line."""
    text = local(unstarted.start, zone)
    if unstarted.count > 1:
        text += f" to {local(unstarted.end, zone)}: {unstarted.count:,} slots"
    return f"{text}: {status_word(unstarted.status)} – {sentence_of(unstarted.reason)}"


def marks_of(
    visit: Visit, runs: Iterable[RunView], unstarted: Iterable[UnstartedView], most: int = MOST
) -> list[Mark]:
    """The marks of runs and unstarted ranges together, the latest ``most`` of them."""
    zone = visit.zone
    found = [Mark(run.status, run.nominal, why_run(run, zone), visit.url("runs", run.id)) for run in runs] + [
        Mark(each.status, each.end, why_unstarted(each, zone), explain_url(visit, each, each.end), each.count)
        for each in unstarted
    ]
    return sorted(found, key=lambda mark: mark.at)[-most:]


def explain_url(visit: Visit, entry: RunView | UnstartedView, moment: datetime) -> str:
    """Where a moment of a schedule is explained."""
    time = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return visit.of_owner(entry.owner, "explain", schedule=entry.schedule_id, time=time)


def durations_of(visit: Visit, runs: Sequence[RunView], height: float = 64) -> Durations | None:
    """A plot of the runs that have ended, oldest first; ``None`` if there are too few to see anything."""
    ended = [
        (run, run.ended_at - run.started_at) for run in reversed(runs) if run.started_at and run.ended_at
    ]
    if len(ended) < 3:
        return None
    longest = max([took for _, took in ended] + [timedelta(milliseconds=1)])
    bars = []
    for place, (run, took) in enumerate(ended[-MOST:]):
        tall = max(2.0, round(height * (took / longest), 1))
        why = why_run(run, visit.zone)
        bars.append(Bar(place * 10.0, height - tall, tall, run.status, why, visit.url("runs", run.id)))
    middle = sorted(took for _, took in ended)[len(ended) // 2]
    return Durations(bars, span(longest), span(middle))

"""``horae explain``: why a schedule did, or did not, run at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from horae.clock import SystemClock
from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import ScheduleId, argument
from horae.face.cli.printing import both, clock, instant, none, word
from horae.face.cli.render import Json
from horae.face.cli.tables import facts, printable, table
from horae.face.time_parser import instant_of, is_day, needs_zone, read_time
from horae.spec import Spec

MAX_SLOTS = 200
"""How many slots of a day are explained at most."""
MAX_VERSIONS = 100
MAX_SECONDS = 25 * 60 * 60
"""The most slots in a day: one each second of 25 hours."""
SECOND = timedelta(seconds=1)
NARROWING = {"exclude", "start_at", "end_at"}
"""The parts of a spec that exclude times."""

cli = group()


@command(cli, "explain", lenient=True)
async def explain(
    session: Session,
    schedule_id: ScheduleId,
    time: Annotated[
        str, argument("TIME", "A time or a day, in the schedule's zone unless it has an offset.")
    ],
) -> None:
    """Explain why a schedule did or did not run at a time, or whether it will. For a day: each of its slots.

    horae explain report 2026-03-08T09:00

    horae explain report -2h --json

    horae explain report 2026-12-25
    """
    versions = await _versions(session, schedule_id) if needs_zone(time) else []
    zone = versions[0]["spec"].get("timezone") or "UTC" if versions else "UTC"
    asked = read_time(time, "TIME", zone, SystemClock().now())
    if not is_day(time):
        answer = await session.client.get(path("schedules", schedule_id, "explain"), time=asked.isoformat())
        session.show(answer, _answer)
        return
    named = _slots(versions, zone, asked)
    created = min(filter(None, (instant(each["since"]) for each in versions)), default=None)
    slots = [each for each in named if created is None or each >= created]
    ask = partial(session.client.get, path("schedules", schedule_id, "explain"))
    items = [await ask(time=slot.isoformat()) for slot in slots[:MAX_SLOTS]]
    day = {
        "schedule_id": schedule_id,
        "day": f"{asked:%Y-%m-%d}",
        "timezone": zone,
        "items": items,
        "slots": len(slots),
        "before_creation": len(named) - len(slots),
    }
    around = None if items else await ask(time=asked.isoformat())
    session.show(day, partial(_day, around=around))


async def _versions(session: Session, schedule_id: str) -> list[Json]:
    """The present version of a schedule, unless it was deleted, and its earlier ones."""
    versions = await session.client.items(path("schedules", schedule_id, "versions"), MAX_VERSIONS)
    place = path("schedules", schedule_id)
    present = await (session.client.find(place) if versions else session.client.get(place))
    if present is None:
        return versions
    since = versions[0]["until"] if versions else present["created_at"]
    return [{"spec": present["spec"], "since": since, "until": None}, *versions]


def _slots(versions: list[Json], zone: str, day: datetime) -> list[datetime]:
    """The times of a day that a version of that day names, excluded ones too: the answer says why they did not run."""
    first, end = (
        instant_of(f"{each:%Y-%m-%d}", "TIME", zone, day) for each in (day, day + timedelta(days=1))
    )
    slots: set[datetime] = set()
    for each in versions:
        since, until = instant(each["since"]) or first, instant(each["until"]) or end
        if since < end and until > first:
            named = {key: value for key, value in each["spec"].items() if key not in NARROWING}
            slots.update(Spec.parse(named).between(first - SECOND, end - SECOND, MAX_SECONDS))
    return sorted(slots)


def _day(day: Json, around: Json | None) -> RenderableType:
    """The slots of a day and the outcome of each."""
    zone = day["timezone"]
    if around is not None:
        near = [("the one before", around["before"]), ("the one after", around["after"])]
        times = [(name, both(time, zone)) for name, time in near if time]
        why = facts(*times) if times else Text(around["sentence"])
        return Group(Text(f"There is no slot on {day['day']}.", style="bold"), why)
    rows = [
        (
            *clock(each["nominal"], zone),
            word(each["status"] or each["verdict"]),
            each["sentence"],
            each["run_id"],
        )
        for each in day["items"]
    ]
    slots = table(f"slot ({zone})", "UTC?", "status", "why~", "run!?", rows=rows)
    left, early = day["slots"] - len(rows), day["before_creation"]
    notes = [none(f"There are {left} more on that day.")] if left else []
    if early:
        notes.append(none(f"The schedule did not exist yet at {early} earlier times of that day."))
    return Group(slots, *notes)


def _answer(answer: Json) -> RenderableType:
    zone = answer.get("timezone") or "UTC"
    times = {
        "time": "nominal", "fire time": "fire", "happens instead": "moved_to", "decided": "decided_at",
        "the one before": "before", "the one after": "after",
    }  # fmt: skip
    moments = [(name, both(answer.get(key), zone)) for name, key in times.items() if answer.get(key)]
    return Group(
        Text(printable(str(answer["sentence"])), style="bold"),
        facts(
            *moments,
            ("clock there", answer["local"] if answer.get("nominal") is None else None),
            ("together with", _range(answer.get("range"), zone)),
            ("status", word(answer["status"]) if answer.get("status") else None),
            ("run id", answer.get("run_id")),
            ("by", answer.get("by")),
        ),
    )


def _range(span: Json | None, zone: str) -> Text | None:
    """The slots that did not start for the same reason."""
    if span is None or span["count"] == 1:
        return None
    return Text.assemble(
        f"{span['count']} slots from ", both(span["start"], zone), " to ", both(span["end"], zone)
    )

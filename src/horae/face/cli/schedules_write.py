"""Changing schedules, and acting on them by hand: create, update, pause, resume, skip, trigger, delete."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from horae.errors import InvalidInputError
from horae.face.cli.client import path
from horae.face.cli.command import Session, confirm
from horae.face.cli.files import contents, decoded
from horae.face.cli.options import (
    ActionName,
    At,
    CatchUpChoice,
    CommandName,
    Crons,
    Every,
    Headers,
    HttpUrl,
    Input,
    Jitter,
    Method,
    Note,
    OverlapChoice,
    ScheduleId,
    SpecFile,
    Tags,
    Timezone,
    WholeFile,
    Yes,
)
from horae.face.cli.output import local, utc
from horae.face.cli.payload import SCHEDULE_EXAMPLE, What, When, any_json, moment, policies, when_said
from horae.face.cli.render import Json
from horae.face.cli.schedules_read import changed_spec


async def create(
    session: Session,
    schedule_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Its id; none: one is made.", show_default=False)
    ] = None,
    crons: Crons = None,
    every: Every = None,
    at: At = None,
    timezone: Timezone = None,
    jitter: Jitter = None,
    spec: SpecFile = None,
    action: ActionName = None,
    http: HttpUrl = None,
    method: Method = None,
    headers: Headers = None,
    command: CommandName = None,
    given: Input = None,
    overlap: OverlapChoice = None,
    catch_up: CatchUpChoice = None,
    tags: Tags = None,
    paused: Annotated[bool, typer.Option("--paused", help="It waits to be resumed.")] = False,
    note: Note = None,
    trigger: Annotated[bool, typer.Option("--trigger", help="Run it once right away, too.")] = False,
    file: WholeFile = None,
) -> None:
    """Create a schedule.

    [dim]A request every weekday at nine, spread over a minute:[/dim]

      horae schedules create report --cron "0 9 * * 1-5" --tz Europe/Berlin --jitter 60s --http https://example.org/report

    [dim]An action of yours every 90 minutes, one at a time, with an input:[/dim]

      horae schedules create sync --every 90m --action shop.sync --input '{"full": false}' --overlap buffer_one

    [dim]Anything, as the API takes it:[/dim]

      horae schedules create --file schedule.json
    """
    when = when_said(crons, every, at, timezone, jitter, spec)
    what = What(
        action=action, http=http, method=method, headers=tuple(headers or ()), command=command, input=given
    )
    base = {} if file is None else decoded(contents(file, "--file"), "--file", SCHEDULE_EXAMPLE)
    body = base | _fields(when, what, overlap, catch_up, tags, base)
    named = {"id": schedule_id, "paused": paused or None, "note": note, "trigger": trigger or None}
    body |= {key: value for key, value in named.items() if value is not None}
    if "spec" not in body:
        raise InvalidInputError("the times", "are missing", hint="give --cron, --every, --at or --spec")
    if "action" not in body:
        raise InvalidInputError(
            "the action", "is missing", hint="give --action NAME, --http URL or --command NAME"
        )
    made = await session.client.post("/schedules", body)
    session.show(made, lambda: _in_short(made, "Created"))


def _fields(
    when: When, what: What, overlap: str | None, catch_up: str | None, tags: list[str] | None, base: Json
) -> Json:
    """The fields of a schedule that options name."""
    fields: Json = {}
    if when.names_times:
        fields["spec"] = when.document()
    elif when.timezone or when.jitter:
        present = base.get("spec")
        fields["spec"] = when.document(present if isinstance(present, dict) else {"crons": [present]})
    if (document := what.document()) is not None:
        fields["action"] = document
    if named := policies(overlap, catch_up):
        fields["policies"] = (base.get("policies") or {}) | named
    if tags:
        fields["tags"] = tags
    return fields


async def update(
    session: Session,
    schedule_id: ScheduleId,
    crons: Crons = None,
    every: Every = None,
    at: At = None,
    timezone: Timezone = None,
    jitter: Jitter = None,
    spec: SpecFile = None,
    action: ActionName = None,
    http: HttpUrl = None,
    method: Method = None,
    headers: Headers = None,
    command: CommandName = None,
    given: Input = None,
    overlap: OverlapChoice = None,
    catch_up: CatchUpChoice = None,
    tags: Tags = None,
    file: WholeFile = None,
    if_version: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only if its token is still this one.", show_default=False),
    ] = None,
) -> None:
    """Change a schedule; what is not named stays as it is.

    [dim]See what a change does, then make it:[/dim]

      horae schedules preview report --cron "0 10 * * 1-5"

      horae schedules update report --cron "0 10 * * 1-5"

    [dim]Only if nobody changed it since it was read (describe shows the token):[/dim]

      horae schedules update report --overlap allow_all --if-version 3
    """
    when = when_said(crons, every, at, timezone, jitter, spec)
    what = What(
        action=action, http=http, method=method, headers=tuple(headers or ()), command=command, input=given
    )
    body = {} if file is None else decoded(contents(file, "--file"), "--file", SCHEDULE_EXAMPLE)
    body |= _fields(When(), what, overlap, catch_up, tags, body)
    if when != When():
        # The times of now and the zone of then would be neither: it must be the schedule that was read.
        present = await session.client.get(path("schedules", schedule_id))
        body |= {"spec": changed_spec(present, when), "version": present["version"]}
    if if_version is not None:
        body["version"] = if_version
    if not set(body) - {"version"}:
        raise InvalidInputError(
            "the change", "is missing", hint="name what is to be different, such as --cron"
        )
    changed = await session.client.patch(path("schedules", schedule_id), body)
    session.show(changed, lambda: _in_short(changed, "Changed"))


async def pause(
    session: Session,
    schedule_id: ScheduleId,
    note: Note = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="It resumes by itself then.", show_default=False)
    ] = None,
) -> None:
    """Pause a schedule: nothing starts by itself; what runs goes on.

    horae schedules pause report --note "the source is being moved" --until 2026-03-09T06:00:00Z
    """
    body = {} if note is None else {"note": note}
    if until is not None:
        body["until"] = moment(until, "--until")
    changed = await session.client.post(path("schedules", schedule_id, "pause"), body)
    session.show(changed, lambda: _in_short(changed, "Paused"))


async def resume(session: Session, schedule_id: ScheduleId, note: Note = None) -> None:
    """Resume a schedule; what fell due meanwhile is made up, or not, by its policies.

    horae schedules resume report
    """
    changed = await session.client.post(
        path("schedules", schedule_id, "resume"), {} if note is None else {"note": note}
    )
    session.show(changed, lambda: _in_short(changed, "Resumed"))


async def skip(
    session: Session,
    schedule_id: ScheduleId,
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="How many; 0 takes it back.")] = 1,
) -> None:
    """Pass over the next times of a schedule; they are recorded as skipped.

    horae schedules skip report 2
    """
    changed = await session.client.post(path("schedules", schedule_id, "skip"), {"number": number})
    session.show(changed, lambda: _in_short(changed, f"Will skip the next {number} of"))


async def trigger(
    session: Session,
    schedule_id: ScheduleId,
    overlap: OverlapChoice = None,
    given: Input = None,
    note: Note = None,
) -> None:
    """Run a schedule's action now, besides its times.

    horae schedules trigger report --note "the numbers were wrong" --input '{"full": true}'
    """
    body: dict[str, Any] = {"overlap": overlap, "note": note}
    body = {key: value for key, value in body.items() if value is not None}
    if given is not None:
        body["input"] = any_json(given, "--input")
    accepted = await session.client.post(path("schedules", schedule_id, "trigger"), body)
    said = f"Triggered {schedule_id}: the run is {accepted['run_id']}."
    session.show(accepted, lambda: Group(Text(said), Text(f"horae runs show {accepted['run_id']}", "dim")))


async def delete(session: Session, schedule_id: ScheduleId, yes: Yes = False) -> None:
    """Delete a schedule; the ledger of its runs is kept.

    horae schedules delete report --yes
    """
    confirm(f"Delete the schedule {schedule_id}?", yes=yes)
    await session.client.delete(path("schedules", schedule_id))
    session.show({"deleted": schedule_id}, lambda: Text(f"Deleted {schedule_id}."))


def _in_short(schedule: Json, done: str) -> RenderableType:
    """What was done, what the schedule says now, and when it fires next."""
    lines = [Text(f"{done} {schedule['id']}: {schedule['sentence']}.")]
    zone, time = schedule["timezone"], schedule["next_time"]
    if time is not None:
        lines.append(Text.assemble("next: ", local(time, zone), "  ", utc(time)))
    return Group(*lines)

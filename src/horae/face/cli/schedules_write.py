"""Change schedules: create, update, pause, resume, skip, trigger, delete."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from horae.errors import InvalidInputError
from horae.face.api_client import path
from horae.face.cli.command_base import Session
from horae.face.cli.options import (
    DryRun,
    Input,
    Note,
    OverlapChoice,
    ScheduleId,
    Wait,
    WholeFile,
    Yes,
    argument,
    flag,
    option,
)
from horae.face.cli.printing import both, none, warn
from horae.face.cli.render import Json
from horae.face.cli.run_following import show_run
from horae.face.cli.schedule_options import (
    TIMES,
    How,
    What,
    When,
    given,
    schedule_fields,
    start_fields,
)
from horae.face.cli.schedules_read import changed_spec
from horae.model import OnResume


async def create(
    session: Session,
    *,
    schedule_id: Annotated[str | None, argument("ID", "The schedule's id. Generated if omitted.")] = None,
    when: When,
    what: What,
    how: How,
    paused: Annotated[bool, flag("--paused", "Create it paused.")] = False,
    note: Note = None,
    trigger: Annotated[bool, flag("--trigger", "Also run it once right away.")] = False,
    file: WholeFile = None,
) -> None:
    """Create a schedule.

    [dim]An HTTP request every weekday at nine, spread over a minute:[/dim]

      horae schedules create report --cron "0 9 * * 1-5" --tz Europe/Berlin --jitter 60s --http https://example.org/report

    [dim]Your own action every 90 minutes, one run at a time, with an input:[/dim]

      horae schedules create sync --every 90m --action shop.sync --input '{"full": false}' --overlap buffer_one

    [dim]From a file, in the form that the API takes:[/dim]

      horae schedules create --file schedule.json
    """
    base = {} if file is None else _read(file)
    body = base | schedule_fields(when, what, how, base)
    body |= given(id=schedule_id, paused=paused or None, note=note, trigger=trigger or None)
    if "spec" not in body:
        raise InvalidInputError("the times", "are missing", hint="give --cron, --every, --at or --spec")
    if "action" not in body:
        raise InvalidInputError(
            "the action", "is missing", hint="give --action NAME, --http URL or --command NAME"
        )
    created = await session.client.post("/schedules", body)
    warn_of(created)
    session.show(created, partial(summary, "Created"))


async def update(
    session: Session,
    *,
    schedule_id: ScheduleId,
    when: When,
    what: What,
    how: How,
    file: WholeFile = None,
    if_version: Annotated[
        int | None, option("--if-version", "N", "Fail unless the schedule still has this version.")
    ] = None,
) -> None:
    """Change a schedule. Other fields keep their values.

    [dim]See what a change does, then make it:[/dim]

      horae schedules preview report --cron "0 10 * * 1-5"

      horae schedules update report --cron "0 10 * * 1-5"

    [dim]Only if the schedule did not change since you read it (describe shows the version):[/dim]

      horae schedules update report --overlap allow_all --if-version 3
    """
    body = {} if file is None else _of_file(file)
    body |= schedule_fields(When(), what, how, body)
    if when.names_times or when.details:
        # The version makes sure that the zone did not change since it was read.
        present = await session.client.get(path("schedules", schedule_id))
        spec = changed_spec(present, when)
        removed = dict.fromkeys(present["spec"].keys() - spec.keys())
        body |= {"spec": removed | spec, "version": present["version"]}
    if if_version is not None:
        body["version"] = if_version
    if not set(body) - {"version"}:
        raise InvalidInputError("the change", "is missing", hint="name a field to change, such as --cron")
    changed = await session.client.patch(path("schedules", schedule_id), body)
    warn_of(changed)
    session.show(changed, partial(summary, "Changed"))


def _read(file: str) -> Json:
    from horae.face.documents.schedule_documents import one_schedule  # noqa: PLC0415 - it needs what few commands need

    return one_schedule(file)


def _of_file(file: str) -> Json:
    """The change that a file makes; its times replace the present ones, as with options."""
    body = {key: value for key, value in _read(file).items() if key != "id"}
    spec = body.get("spec")
    if isinstance(spec, dict) and spec.keys() & set(TIMES):
        body["spec"] = dict.fromkeys(TIMES) | spec
    return body


async def pause(
    session: Session,
    schedule_id: ScheduleId,
    note: Note = None,
    until: Annotated[str | None, option("--until", "TIME", "Resume automatically at this time.")] = None,
) -> None:
    """Pause a schedule: no new runs start automatically; running ones continue.

    horae schedules pause report --note "the source is being moved" --until 2026-03-09T06:00:00Z
    """
    end = await session.moment(until, "--until", schedule_id)
    await _act(session, schedule_id, "pause", "Paused", note=note, until=end)


async def resume(
    session: Session,
    schedule_id: ScheduleId,
    note: Note = None,
    on_resume: Annotated[
        OnResume | None,
        option("--on-resume", None, "What to do with the slots of the pause, this time only."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Resume a schedule. Its policies decide whether slots that fell due during the pause run now.

    horae schedules resume report

    [dim]See what would start now, then resume without starting any of it:[/dim]

      horae schedules resume report --dry-run

      horae schedules resume report --on-resume skip
    """
    body = given(note=note, on_resume=on_resume, dry_run=dry_run or None)
    changed = await session.client.post(path("schedules", schedule_id, "resume"), body)
    done = "Would resume" if dry_run else "Resumed"
    session.show(changed, lambda each: Group(summary(done, each), Text(each["resumption"]["sentence"])))


async def skip(
    session: Session,
    schedule_id: ScheduleId,
    number: Annotated[
        int, argument("N", "How many slots to skip; 0 cancels an earlier skip.  \\[default: 1]", min=0)
    ] = 1,
) -> None:
    """Skip the next slots of a schedule. They are recorded as skipped.

    horae schedules skip report 2
    """
    await _act(session, schedule_id, "skip", f"Will skip the next {number} of", number=number)


async def _act(session: Session, schedule_id: str, verb: str, done: str, **body: object) -> None:
    changed = await session.client.post(path("schedules", schedule_id, verb), given(**body))
    session.show(changed, partial(summary, done))


async def trigger(
    session: Session,
    schedule_id: ScheduleId,
    overlap: OverlapChoice = None,
    input: Input = None,  # noqa: A002 - as the API calls it
    note: Note = None,
    wait: Wait = False,
) -> None:
    """Run a schedule's action now, in addition to its times.

    horae schedules trigger report --note "the numbers were wrong" --input '{"full": true}'

    [dim]Wait for the outcome, which also sets the exit status:[/dim]

      horae schedules trigger report --wait
    """
    body = start_fields(overlap, input, note)
    accepted = await session.client.post(path("schedules", schedule_id, "trigger"), body)
    warn_of(accepted)
    if wait:
        await show_run(session, {"id": accepted["run_id"]}, wait=True)
        return
    sentence = f"Triggered {schedule_id}: the run is {accepted['run_id']}."
    session.show(accepted, lambda run: Group(Text(sentence), none(f"horae runs show {run['run_id']}")))


async def delete(session: Session, schedule_id: ScheduleId, yes: Yes = False) -> None:
    """Delete a schedule. The ledger of its runs is kept.

    horae schedules delete report --yes
    """
    await session.delete("schedule", schedule_id, yes=yes)


def warn_of(stored: Json) -> None:
    """Print the warnings about a stored schedule."""
    for sentence in stored.get("warnings", ()):
        warn(sentence)


def summary(done: str, schedule: Json) -> RenderableType:
    """A sentence about a changed schedule, until when it is paused, and when it fires next."""
    lines = [Text(f"{done} {schedule['id']}: {schedule['sentence']}.")]
    for name, field in (("paused until", "paused_until"), ("next", "next_time")):
        if schedule[field] is not None:
            lines.append(Text.assemble(f"{name}: ", both(schedule[field], schedule["timezone"])))
    return Group(*lines)

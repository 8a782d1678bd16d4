"""``horae runs``: list, follow, show, stop and repeat runs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec

from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import (
    Input,
    Limit,
    Note,
    OverlapChoice,
    RunId,
    Wait,
    argument,
    flag,
    number,
    option,
    schedule_ids,
)
from horae.face.cli.render import run_table
from horae.face.cli.run_following import follow, show_run
from horae.face.cli.run_logs import print_logs
from horae.face.cli.schedule_options import start_fields
from horae.model import Reason, Status

cli = group("runs", "Look at runs, follow them, stop and repeat them.")


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """The options that choose runs and slots that did not run."""

    schedule_id: Annotated[str | None, argument("ID", "Of this schedule; none: of all.", autocompletion=schedule_ids)] = None  # fmt: skip
    status: Annotated[list[Status] | None, option("--status", None, "In this status; may be repeated.")] = None  # fmt: skip
    reason: Annotated[Reason | None, option("--reason", None, "Skipped or ended for this reason.")] = None
    tag: Annotated[str | None, option("--tag", "TAG", "Of schedules with this tag.")] = None
    since: Annotated[str | None, option("--since", "TIME", "Decided at this time or later.")] = None
    timezone: Annotated[str | None, option("--tz", "ZONE", "The zone of times.  \\[default: the schedule's, or UTC]")] = None  # fmt: skip

    async def query(self, session: Session) -> dict[str, Any]:
        """The parameters of the search that are not about how it ended."""
        since = await session.moment(self.since, "--since", self.schedule_id, self.timezone)
        return {"schedule": self.schedule_id, "tag": self.tag, "since": since}

    async def zone(self, session: Session) -> str:
        """The zone in which times are shown."""
        if self.timezone is None and self.schedule_id is not None:
            return await session.zone(self.schedule_id)
        return self.timezone or "UTC"


@command(cli, "list")
async def list_runs(
    session: Session,
    which: Which,
    until: Annotated[str | None, option("--until", "TIME", "Decided before this time.")] = None,
    limit: Limit = 20,
) -> None:
    """List runs, of one schedule or of all, the latest decided first, with the slots that did not run among them and why.

    horae runs list report -n 50

    [dim]What went wrong since yesterday, and what was skipped because another run was still running:[/dim]

      horae runs list --status failed --status timed_out --since yesterday

      horae runs list --reason overlap --tag billing --json
    """
    query = await which.query(session)
    query["until"] = await session.moment(until, "--until", which.schedule_id, which.timezone)
    query |= {"status": ",".join(which.status) if which.status else None, "reason": which.reason}
    table = partial(run_table, zone=await which.zone(session), whose=which.schedule_id is None)
    await session.show_list("/runs", limit, table, order="latest", **query)


@command(cli, "tail")
async def tail(
    session: Session,
    which: Which,
    limit: Annotated[int | None, number("--limit -n", "Stop after so many lines.")] = None,
) -> None:
    """Follow runs live, of one schedule or of all: a line when one is decided, starts, waits for another attempt or ends.

    horae runs tail

    horae runs tail --status failed --since -1h

    horae runs tail --tag billing --json
    """
    query, zone = await which.query(session), await which.zone(session)
    await follow(session, query, zone=zone, statuses=which.status, reason=which.reason, limit=limit)


@command(cli, "show")
async def show(session: Session, run_id: RunId) -> None:
    """Show a run: its slot, its attempts, what they saved, its result, and why it ended so.

    horae runs show 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.get(path("runs", run_id)))


@command(cli, "logs")
async def logs(
    session: Session,
    run_id: RunId,
    attempt: Annotated[int | None, option("--attempt", "N", "Only of this attempt.", min=1)] = None,
    follow_it: Annotated[
        bool, flag("--follow -f", "Print lines as they come, until the run has ended.")
    ] = False,
) -> None:
    """Show what the action logged while it ran, by attempt. Of very long logs the first and the last lines are kept.

    horae runs logs 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11 --follow

    horae runs logs 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11 --attempt 2 --json
    """
    run = await session.client.get(path("runs", run_id))
    zone, place = await session.zone(run["schedule_id"], run["owner"]), path("runs", run_id, "logs")
    await print_logs(session, place, zone, attempts=run["attempt"], follow=follow_it, attempt=attempt)


@command(cli, "rerun")
async def rerun(
    session: Session,
    run_id: RunId,
    overlap: OverlapChoice = None,
    input: Input = None,  # noqa: A002 - as the API calls it
    note: Note = None,
    wait: Wait = False,
) -> None:
    """Start the slot of an ended run again, as a new run that names it, with its input unless another is given.

    horae runs rerun 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11 --note "the source is back" --wait
    """
    run = await session.client.post(path("runs", run_id, "rerun"), start_fields(overlap, input, note))
    await show_run(session, run, wait=wait)


@command(cli, "cancel")
async def cancel(session: Session, run_id: RunId) -> None:
    """Ask a run to stop; it may take its time, as its schedule allows.

    horae runs cancel 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.post(path("runs", run_id, "cancel")))


@command(cli, "terminate")
async def terminate(session: Session, run_id: RunId) -> None:
    """Make a run stop now.

    horae runs terminate 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.post(path("runs", run_id, "terminate")))

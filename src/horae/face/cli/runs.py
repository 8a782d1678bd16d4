"""``horae runs``: list, follow, show, stop and rerun runs."""

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

cli = group("runs", "List, show, follow, stop and rerun runs.")


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """The options that choose runs and slots that did not run."""

    schedule_id: Annotated[str | None, argument("ID", "The schedule. Without it: all schedules.", autocompletion=schedule_ids)] = None  # fmt: skip
    status: Annotated[list[Status] | None, option("--status", None, "Only runs in this status. Repeatable.")] = None  # fmt: skip
    reason: Annotated[
        Reason | None, option("--reason", None, "Only runs that were skipped or ended for this reason.")
    ] = None
    tag: Annotated[str | None, option("--tag", "TAG", "Only schedules with this tag.")] = None
    since: Annotated[str | None, option("--since", "TIME", "Decided at or after this time.")] = None
    timezone: Annotated[str | None, option("--tz", "ZONE", "The time zone of options and output.  \\[default: the schedule's, or UTC]")] = None  # fmt: skip

    async def query(self, session: Session) -> dict[str, Any]:
        """The parameters of the search, without status and reason."""
        since = await session.moment(self.since, "--since", self.schedule_id, self.timezone)
        return {"schedule": self.schedule_id, "tag": self.tag, "since": since}

    async def zone(self, session: Session) -> str:
        """The zone to show times in."""
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
    """List runs, latest decided first, among them the slots that did not run, and why.

    horae runs list report -n 50

    [dim]Failures since yesterday, and slots skipped because another run was still running:[/dim]

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
    limit: Annotated[int | None, number("--limit -n", "Stop after this many lines.")] = None,
) -> None:
    """Follow runs live: print a line when a run is decided, starts, waits for a retry or ends.

    horae runs tail

    horae runs tail --status failed --since -1h

    horae runs tail --tag billing --json
    """
    query, zone = await which.query(session), await which.zone(session)
    await follow(session, query, zone=zone, statuses=which.status, reason=which.reason, limit=limit)


@command(cli, "show")
async def show(session: Session, run_id: RunId) -> None:
    """Show a run: its slot, its attempts and checkpoints, its result, and why it ended as it did.

    horae runs show 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.get(path("runs", run_id)))


@command(cli, "logs")
async def logs(
    session: Session,
    run_id: RunId,
    attempt: Annotated[int | None, option("--attempt", "N", "Only this attempt.", min=1)] = None,
    follow_it: Annotated[bool, flag("--follow -f", "Print new lines until the run has ended.")] = False,
) -> None:
    """Show the log lines of a run, by attempt. Very long logs keep their first and last lines.

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
    """Run the slot of an ended run again, as a new run with the same input, or with --input.

    horae runs rerun 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11 --note "the source is back" --wait
    """
    run = await session.client.post(path("runs", run_id, "rerun"), start_fields(overlap, input, note))
    await show_run(session, run, wait=wait)


@command(cli, "cancel")
async def cancel(session: Session, run_id: RunId) -> None:
    """Ask a run to stop. It may take as long as its schedule allows.

    horae runs cancel 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.post(path("runs", run_id, "cancel")))


@command(cli, "terminate")
async def terminate(session: Session, run_id: RunId) -> None:
    """Stop a run now, without waiting for it.

    horae runs terminate 0b9f6f8c-7a44-4c63-9f0b-2a6a3f6c9c11
    """
    await show_run(session, await session.client.post(path("runs", run_id, "terminate")))

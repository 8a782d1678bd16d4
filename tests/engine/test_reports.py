"""Work of external workers: who may report on it, what a report means, and what silence does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from horae import Accepted, App, Config, Context, Overlap, Policies, RetryPolicy, Timeouts
from horae.errors import InvalidInputError, ReportRefusedError
from horae.executor.attempt_context import hash_of
from horae.executor.stored_output import MAX_RESULT_LENGTH
from horae.model import Run, Status
from horae.testing import TimeMachine
from tests.support.nodes import end_leases, running
from tests.support.process import run_program
from tests.support.wait import wait_until

QUICK = Config(lease_ms=60_000, housekeeping_ms=200, tick_ms=100, terminate_ms=200, drain_ms=500)


class Outside:
    """An external worker, to which an action hands its work."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.attempts: list[int] = []

    async def __call__(self, context: Context) -> Accepted:
        self.tokens[context.run_id] = await context.report_token()
        self.attempts.append(context.attempt)
        return Accepted()


@pytest.fixture
def outside(machine: TimeMachine) -> Outside:
    outside = Outside()
    machine.app.action("outside")(outside)
    return outside


async def handed_off(machine: TimeMachine, **policies: Any) -> Run:
    """A run that an external worker continues."""
    await machine.app.schedules.create("s", {}, "outside", policies=Policies(**policies))
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=0)
    return await machine.app.runs.get(run_id)


async def status(machine: TimeMachine, run: Run) -> tuple[str, str]:
    found = await machine.app.runs.get(run.id)
    return found.status, found.reason


@pytest.mark.contract("CRON-13")
async def test_a_run_that_was_accepted_stays_running_until_its_end_is_reported(
    machine: TimeMachine, outside: Outside
):
    run = await handed_off(machine)
    assert (run.status, run.epoch, machine.app.worker.tasks) == ("running", 0, [])
    assert machine.app.worker.free_capacity == machine.app.config.concurrency
    token = outside.tokens[run.id]
    for what in ("started", "heartbeat"):
        assert (await machine.app.runs.report(run.id, token, what)).status is Status.RUNNING
    ended = await machine.app.runs.report(run.id, token, "succeeded", result={"rows": 3})
    assert (ended.status, ended.result) == ("succeeded", {"rows": 3})
    assert (await machine.app.runs.report(run.id, token, "succeeded", result="again")).result == {"rows": 3}
    for what in ("started", "heartbeat", "failed"):
        with pytest.raises(ReportRefusedError, match="is over, and the run is succeeded"):
            await machine.app.runs.report(run.id, token, what)
    await machine.advance(hours=2)
    assert await status(machine, run) == ("succeeded", "")


@pytest.mark.contract("CRON-13")
@pytest.mark.parametrize("token", ["", "wrong", "\ud800", "ü" * 5000])
async def test_without_the_token_a_caller_learns_nothing_and_changes_nothing(
    machine: TimeMachine, outside: Outside, token: str
):
    run = await handed_off(machine)
    refusals = []
    for run_id in (run.id, "0" * len(run.id)):
        with pytest.raises(ReportRefusedError) as refused:
            await machine.app.runs.report(run_id, token, "succeeded")
        refusals.append(str(refused.value).replace(run_id, "ID"))
    assert len(set(refusals)) == 1  # it looks the same whether there is such a run or not
    assert await status(machine, run) == ("running", "")


async def test_a_report_that_says_nothing_that_can_be_is_refused(machine: TimeMachine, outside: Outside):
    run = await handed_off(machine)
    token = outside.tokens[run.id]
    with pytest.raises(InvalidInputError, match="what must be"):
        await machine.app.runs.report(run.id, token, "done")
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    for result in ("x" * MAX_RESULT_LENGTH, object(), "\ud800", nested):
        with pytest.raises(InvalidInputError, match="result must be JSON"):
            await machine.app.runs.report(run.id, token, "succeeded", result=result)
    assert await status(machine, run) == ("running", "")
    ended = await machine.app.runs.report(run.id, token, "failed", failure="a\x00b \ud800 " + "x" * 20_000)
    assert ended.failure is not None
    assert ended.failure.startswith("a\\x00b \\ud800 xxx")
    assert len(ended.failure) <= 10_001


@pytest.mark.contract("CRON-13", "SCHD-16")
async def test_a_reported_failure_is_followed_by_another_attempt_with_its_own_token(
    machine: TimeMachine, outside: Outside
):
    run = await handed_off(machine, retry=RetryPolicy(attempts=2, initial_delay="1s"))
    first = outside.tokens[run.id]
    again = await machine.app.runs.report(run.id, first, "failed", failure="no luck")
    assert (again.status, again.failures) == ("retrying", 1)
    with pytest.raises(ReportRefusedError):
        await machine.app.runs.report(run.id, first, "succeeded")
    await machine.advance(seconds=1)
    assert outside.attempts == [1, 2]
    with pytest.raises(ReportRefusedError):
        await machine.app.runs.report(run.id, first, "succeeded")  # the attempt it was for is over
    ended = await machine.app.runs.report(run.id, outside.tokens[run.id], "failed", failure="none at all")
    assert (ended.status, ended.failure, ended.attempt) == ("failed", "none at all", 2)
    attempts = await machine.app.runs.attempts(run.id)
    assert [(each.attempt, each.failure) for each in attempts] == [(1, "no luck"), (2, "none at all")]


@pytest.mark.contract("CRON-13")
async def test_silence_ends_a_run_after_an_hour(machine: TimeMachine, outside: Outside):
    run = await handed_off(machine)
    await machine.advance(minutes=59)
    await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")  # this does not make it longer
    assert await status(machine, run) == ("running", "")
    await machine.advance(minutes=1)
    assert await status(machine, run) == ("timed_out", "run_timeout")
    with pytest.raises(ReportRefusedError, match="is over, and the run is timed out"):
        await machine.app.runs.report(run.id, outside.tokens[run.id], "succeeded")


@pytest.mark.contract("CRON-13", "SCHD-17")
async def test_the_schedule_says_how_long_it_may_take_and_be_silent(machine: TimeMachine, outside: Outside):
    timeouts = Timeouts(run="1m40s", heartbeat="30s")
    run = await handed_off(machine, timeouts=timeouts, retry=RetryPolicy(attempts=2, initial_delay="1ms"))
    for _ in range(4):
        await machine.advance(seconds=20)
        await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")
    await machine.advance(seconds=20)
    assert await status(machine, run) == ("retrying", "run_timeout")  # 100 s, whatever was heard
    await machine.advance(seconds=1)
    assert outside.attempts == [1, 2]
    await machine.advance(seconds=30)
    assert await status(machine, run) == ("timed_out", "heartbeat_timeout")


@pytest.mark.contract("CRON-13")
@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.BUFFER_ALL])
async def test_external_work_overlaps_the_next_slot(machine: TimeMachine, outside: Outside, overlap: Overlap):
    policies = Policies(overlap=overlap, timeouts=Timeouts(run="2m30s"))
    await machine.app.schedules.create("s", "* * * * *", "outside", policies=policies)
    await machine.advance(minutes=2)
    (first, *waiting) = reversed(await machine.app.runs.list("s"))
    assert first.status is Status.RUNNING
    assert [run.status for run in waiting] == ([] if overlap is Overlap.SKIP else ["pending"])
    await machine.app.runs.report(first.id, outside.tokens[first.id], "succeeded")
    await machine.advance(minutes=1)
    assert len(outside.attempts) == 2  # the next one began
    await machine.advance(minutes=4)  # it is never heard of again, and does not block for ever
    assert len(outside.attempts) >= 3


@pytest.mark.contract("CRON-13")
async def test_silence_ends_at_its_time_however_far_time_is_moved(machine: TimeMachine, outside: Outside):
    await machine.app.schedules.create(
        "s", "30 * * * *", "outside", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    await machine.advance(hours=10)
    runs = await machine.app.runs.list("s")
    assert [run.status for run in runs] == ["running", *["timed_out"] * 9]
    assert {(run.ended_at_ms or 0) - run.fire_ms for run in runs[1:]} == {60 * 60 * 1000}


@pytest.mark.contract("SCHD-17")
async def test_a_worker_that_is_asked_to_stop_learns_it_with_its_next_heartbeat(
    machine: TimeMachine, outside: Outside
):
    run = await handed_off(machine, timeouts=Timeouts(cancel="20s"))
    asked = await machine.app.runs.cancel(run.id)
    assert (asked.status, asked.stop) == ("running", "cancel")
    await machine.advance(seconds=10)
    heard = await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")
    assert (heard.status, heard.stop) == ("running", "cancel")
    ended = await machine.app.runs.report(run.id, outside.tokens[run.id], "failed", failure="as you wish")
    assert (ended.status, ended.reason, ended.failure) == ("cancelled", "cancelled", "as you wish")


@pytest.mark.contract("SCHD-17")
async def test_a_worker_that_does_not_stop_when_asked_to_is_cancelled_after_a_while(
    machine: TimeMachine, outside: Outside
):
    run = await handed_off(machine, timeouts=Timeouts(cancel="20s"), retry=RetryPolicy(attempts=9))
    await machine.app.runs.cancel(run.id)
    await machine.advance(seconds=19)
    await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")
    assert await status(machine, run) == ("running", "cancelled")
    await machine.advance(seconds=1)
    assert await status(machine, run) == ("cancelled", "cancelled")


@pytest.mark.contract("SCHD-17")
async def test_external_work_that_is_terminated_has_ended_at_once(machine: TimeMachine, outside: Outside):
    run = await handed_off(machine)
    ended = await machine.app.runs.terminate(run.id)
    assert (ended.status, ended.reason) == ("terminated", "terminated")
    with pytest.raises(ReportRefusedError, match="is over, and the run is terminated"):
        await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize(
    ("overlap", "first"),
    [(Overlap.CANCEL_OTHER, "cancelled"), (Overlap.TERMINATE_OTHER, "terminated")],
)
async def test_external_work_makes_way_for_the_next_slot(
    machine: TimeMachine, outside: Outside, overlap: Overlap, first: str
):
    policies = Policies(overlap=overlap, timeouts=Timeouts(cancel="5s"))
    await machine.app.schedules.create("s", "* * * * *", "outside", policies=policies)
    await machine.advance(minutes=2, seconds=5)
    runs = await machine.app.runs.list("s")
    assert [run.status for run in runs] == ["running", first]
    assert runs[1].reason == "replaced"
    assert len(outside.attempts) == 2


@pytest.mark.contract("CRON-13")
async def test_an_end_that_is_reported_before_the_acceptance_is_recorded(machine: TimeMachine):
    tokens: list[str] = []

    async def hasty(context: Context) -> Accepted:
        tokens.append(await context.report_token())
        await machine.app.runs.report(context.run_id, tokens[-1], "started")
        await machine.app.runs.report(context.run_id, tokens[-1], "succeeded", result=7)
        return Accepted()

    machine.app.action("outside")(hasty)
    run = await handed_off(machine)
    await machine.advance(hours=2)
    found = await machine.app.runs.get(run.id)
    assert (found.status, found.result, found.attempt) == ("succeeded", 7, 1)


async def test_work_continues_whose_schedule_was_deleted_or_edited(machine: TimeMachine, outside: Outside):
    run = await handed_off(machine, retry=RetryPolicy(attempts=5))
    await machine.app.schedules.delete("s")
    await machine.app.runs.report(run.id, outside.tokens[run.id], "heartbeat")
    ended = await machine.app.runs.report(run.id, outside.tokens[run.id], "failed")
    assert (ended.status, ended.failure) == ("failed", "it was reported as failed")


async def test_a_second_token_is_the_one_that_holds(machine: TimeMachine):
    tokens: list[str] = []

    async def twice(context: Context) -> Accepted:
        tokens.extend([await context.report_token(), await context.report_token()])
        return Accepted()

    machine.app.action("outside")(twice)
    run = await handed_off(machine)
    with pytest.raises(ReportRefusedError):
        await machine.app.runs.report(run.id, tokens[0], "succeeded")
    await machine.app.runs.report(run.id, tokens[1], "succeeded")


# Real processes, on both stores


@asynccontextmanager
async def started(database: str, **more: Any) -> AsyncIterator[tuple[App, Outside]]:
    app = App(database, config=QUICK)
    outside = Outside()
    app.action("outside")(outside)
    async with running(app):
        if more.pop("create", True):
            await app.schedules.create("s", {}, "outside", policies=Policies(**more))
        yield app, outside


async def is_handed_off(app: App, run_id: str) -> bool:
    run = await app.runs.get(run_id)
    return run.status is Status.RUNNING and run.epoch == 0


@pytest.mark.contract("CRON-13")
async def test_the_ledger_keeps_no_token_and_the_run_outlives_its_node(database: str, tmp_path: Path):
    async with started(database) as (app, outside):
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: is_handed_off(app, run_id))
        token = outside.tokens[run_id]
    async with started(database, create=False) as (app, other):  # the node that handed it over is gone
        assert (await app.runs.report(run_id, token, "heartbeat")).status is Status.RUNNING
        await asyncio.sleep(3 * QUICK.housekeeping_ms / 1000)
        assert await is_handed_off(app, run_id)
        assert (await app.runs.report(run_id, token, "succeeded", result=[1])).result == [1]
        assert other.attempts == []
        async with app.transaction() as transaction:
            found = await transaction.reportable_run(run_id)
    assert found is not None
    assert found.token_hash == hash_of(token)
    for file in tmp_path.iterdir():
        assert token.encode() not in file.read_bytes()


@pytest.mark.contract("CRON-13", "SCHD-17")
async def test_silence_is_noticed_by_maintenance_of_any_node(database: str):
    async with started(database, timeouts=Timeouts(heartbeat="300ms")) as (app, _):
        ids = [await app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL) for _ in range(3)]

        async def have_ended() -> bool:
            return {(await app.runs.get(each)).status for each in ids} == {Status.TIMED_OUT}

        await wait_until(have_ended)
        assert {(await app.runs.get(each)).reason for each in ids} == {"heartbeat_timeout"}


@pytest.mark.contract("CRON-13")
async def test_many_reports_at_once_end_each_run_once(database: str):
    async with started(database) as (app, outside):
        ids = [await app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL) for _ in range(20)]
        await wait_until(lambda: len(outside.tokens) == 20)

        async def say(run_id: str, what: str) -> str:
            try:
                return (await app.runs.report(run_id, outside.tokens[run_id], what)).status
            except ReportRefusedError:
                return "refused"

        answers = await asyncio.gather(*(say(each, what) for each in ids for what in ("succeeded", "failed")))
        for run_id, one, other in zip(ids, answers[::2], answers[1::2], strict=True):
            ended = (await app.runs.get(run_id)).status
            assert ended in {"succeeded", "failed"}
            assert sorted([one, other]) == sorted([ended, "refused"])


@pytest.mark.parametrize("run_id", ["", "a\x00b", "\ud800", "x" * 100_000])
async def test_a_report_on_no_run_is_refused_by_every_database(database: str, run_id: str):
    async with started(database) as (app, _):
        with pytest.raises(ReportRefusedError):
            await app.runs.report(run_id, "token", "succeeded")


PROGRAM = """
import asyncio, os, signal, sys
from horae import Accepted, App, Config, Policies

async def main(database, log):
    app = App(database, config=Config(lease_ms=60_000, housekeeping_ms=200, tick_ms=100))

    @app.action("outside")
    async def outside(context):
        token = await context.report_token()
        with open(log, "a") as file:
            file.write(f"{context.run_id} {context.attempt} {token}\\n")
        os.kill(os.getpid(), signal.SIGKILL)  # the token is out, and it is not recorded that it was taken
        return Accepted()

    async with app:
        await app.schedules.create("s", {}, "outside")
        await app.schedules.trigger("s")
        await app.serve()

asyncio.run(main(*sys.argv[1:]))
"""


async def killed(database: str, folder: Path) -> list[str]:
    """What a program wrote that dies with its token out: the run, the attempt, and the token."""
    program, log = folder / "program.py", folder / "log"
    program.write_text(PROGRAM)
    ended = await asyncio.to_thread(run_program, str(program), database, str(log))
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    await end_leases(database)
    (line,) = log.read_text().splitlines()
    return line.split()


@pytest.mark.contract("CRON-13", "CRON-16")
async def test_a_node_killed_between_token_and_acceptance(database: str, tmp_path: Path):
    run_id, attempt, token = await killed(database, tmp_path)
    assert attempt == "1"
    async with started(database, create=False) as (app, outside):
        await wait_until(lambda: is_handed_off(app, run_id))
        assert outside.attempts == [2]  # the same run again, because no node could know
        with pytest.raises(ReportRefusedError):
            await app.runs.report(run_id, token, "succeeded")
        ended = await app.runs.report(run_id, outside.tokens[run_id], "succeeded")
        assert (ended.status, ended.attempt, ended.crashes) == ("succeeded", 2, 1)


@pytest.mark.contract("CRON-13", "CRON-16")
async def test_a_token_of_a_killed_node_is_heard_until_another_takes_over(database: str, tmp_path: Path):
    run_id, _, token = await killed(database, tmp_path)
    app = App(database)
    await app.open()  # no node: it takes nothing over
    ended = await app.runs.report(run_id, token, "succeeded", result="done")
    await app.close()
    assert (ended.status, ended.result) == ("succeeded", "done")
    async with started(database, create=False) as (app, outside):
        await asyncio.sleep(3 * QUICK.housekeeping_ms / 1000)
        assert outside.attempts == []
        assert (await app.runs.get(run_id)).result == "done"

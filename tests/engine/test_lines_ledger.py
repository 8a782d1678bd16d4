"""The ledger: every reason can come about, and is recorded with its slot; nothing in it goes backwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, Context, NotStartedError
from horae.model import (
    WAITING,
    CatchUp,
    CatchUpPolicy,
    Denial,
    OnResume,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Status,
    Timeouts,
)
from horae.policy.lifecycle import ENDED, TRANSITIONS
from horae.spec import Spec
from horae.store.sqlite import SqliteStore
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, at

Scenario = Callable[[TimeMachine], Awaitable[None]]
PRODUCED: dict[Reason, tuple[Scenario, list[int]]] = {}


def produces(reason: Reason, *minutes: int) -> Callable[[Scenario], Scenario]:
    """What makes the slots of some minutes end for a reason."""

    def note(scenario: Scenario) -> Scenario:
        PRODUCED[reason] = scenario, list(minutes)
        return scenario

    return note


async def every_minute(
    machine: TimeMachine, seconds: float = 0, policies: Policies | None = None, **more: Any
) -> Recorder:
    """A schedule whose action takes so long."""
    work = machine.app.action("work")(Recorder(machine, seconds, fails=more.pop("fails", 0)))
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies or Policies(), **more)
    return work


async def reasons(machine: TimeMachine) -> dict[int, tuple[str, str]]:
    """What the ledger says of each slot: its status and reason, by the minute."""
    spec = Spec.cron("* * * * *")
    found = {}
    for each in await machine.app.runs.unstarted_ranges("s", 1000):
        for nominal in spec.instants(each.start_ms // 1000 - 1, each.end_ms // 1000, 1000):
            found[nominal] = (str(each.status), str(each.reason))
    for run in await machine.app.runs.list("s", 1000):
        assert run.nominal_ms // 1000 not in found  # one answer for a slot
        found[run.nominal_ms // 1000] = (str(run.status), run.reason)
    return {round(nominal - START.timestamp()) // 60: answer for nominal, answer in found.items()}


@produces(Reason.OVERLAP, 2)
async def overlap(machine: TimeMachine) -> None:
    await every_minute(machine, 90)
    await machine.advance(minutes=2)


@produces(Reason.REPLACED, 1)
async def replaced(machine: TimeMachine) -> None:
    await every_minute(machine, 90, Policies(overlap=Overlap.CANCEL_OTHER))
    await machine.advance(minutes=2)


@produces(Reason.LATE, 1, 2)
async def late(machine: TimeMachine) -> None:
    await every_minute(machine, 0, Policies(catch_up=CatchUpPolicy(mode=CatchUp.NONE)))
    machine.clock.move_to(at(3))
    await machine.advance(seconds=0)


@produces(Reason.SUPERSEDED, 1, 2)
async def superseded(machine: TimeMachine) -> None:
    await every_minute(machine, 0, Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST)))
    machine.clock.move_to(at(3))
    await machine.advance(seconds=0)


@produces(Reason.NO_CONSENT, 1)
async def no_consent(machine: TimeMachine) -> None:
    await every_minute(machine, 0, Policies(overlap=Overlap.ALLOW_ALL, backfill_limit=1))
    machine.clock.move_to(at(3))
    await machine.advance(seconds=0)


@produces(Reason.PAUSED, 1, 2)
async def paused(machine: TimeMachine) -> None:
    await every_minute(machine, 0, Policies(on_resume=OnResume.SKIP), paused=True)
    await machine.advance(minutes=2)
    await machine.app.schedules.resume("s")


@produces(Reason.SKIP_NEXT, 1)
async def skip_next(machine: TimeMachine) -> None:
    await every_minute(machine)
    await machine.app.schedules.skip_next("s")
    await machine.advance(minutes=2)


@produces(Reason.LIMIT_REACHED, 2, 3)
async def limit_reached(machine: TimeMachine) -> None:
    await every_minute(machine, remaining_actions=1)
    await machine.advance(minutes=3)


@produces(Reason.BUFFER_FULL, 3, 4)
async def buffer_full(machine: TimeMachine) -> None:
    await every_minute(machine, 600, Policies(overlap=Overlap.BUFFER_ALL, max_buffer_size=1))
    await machine.advance(minutes=4)


@produces(Reason.SERVED, 2)
async def served(machine: TimeMachine) -> None:
    retry = RetryPolicy(attempts=5, initial_delay="1m", preempted=True)
    await every_minute(machine, 0, Policies(retry=retry), fails=1)
    await machine.advance(minutes=2)


@produces(Reason.PREEMPTED, 1)
async def preempted(machine: TimeMachine) -> None:
    retry = RetryPolicy(attempts=5, initial_delay="1m30s", max_delay="1m30s", preempted=True)
    await every_minute(machine, 0, Policies(retry=retry), fails=1)
    await machine.advance(minutes=2)


@produces(Reason.EDITED, 1, 2)
async def edited(machine: TimeMachine) -> None:
    await every_minute(machine)
    machine.clock.move_to(at(2))  # two are due and is not decided yet
    await machine.app.schedules.update("s", "0 * * * *")
    await machine.advance(minutes=1)


@produces(Reason.DELETED, 2)
async def deleted(machine: TimeMachine) -> None:
    await every_minute(machine, 600, Policies(overlap=Overlap.BUFFER_ALL))
    await machine.advance(minutes=2)
    await machine.app.schedules.delete("s")


@produces(Reason.BACKFILL_CANCELLED, -1)
async def backfill_cancelled(machine: TimeMachine) -> None:
    await every_minute(machine, 600)
    backfill = await machine.app.backfills.start("s", at(-2), at(-1), overlap=Overlap.BUFFER_ALL)
    await machine.advance(seconds=1)
    await machine.app.backfills.cancel(backfill.id)


@produces(Reason.NOT_STARTED, 1)
async def not_started(machine: TimeMachine) -> None:
    await every_minute(machine)

    async def work(context: Context) -> None:
        raise NotStartedError("never", permanent=True)

    machine.app.functions.register("work", work, replace=True)
    await machine.advance(minutes=1)


@produces(Reason.NOT_ALLOWED, 1)
async def not_allowed(machine: TimeMachine) -> None:
    work = await every_minute(machine)
    denial = Denial(Reason.NOT_ALLOWED, "not any more")
    machine.app.functions.register("work", work, admit=lambda _: denial)
    await machine.advance(minutes=1)


@produces(Reason.START_TIMEOUT, 2)
async def start_timeout(machine: TimeMachine) -> None:
    policies = Policies(overlap=Overlap.BUFFER_ALL, timeouts=Timeouts(start="30s"))
    await every_minute(machine, 600, policies)
    await machine.advance(minutes=2, seconds=30)


@produces(Reason.RUN_TIMEOUT, 1)
async def run_timeout(machine: TimeMachine) -> None:
    await every_minute(machine, 600, Policies(timeouts=Timeouts(run="30s")))
    await machine.advance(minutes=1, seconds=30)


@produces(Reason.HEARTBEAT_TIMEOUT, 1)
async def heartbeat_timeout(machine: TimeMachine) -> None:
    await every_minute(machine, 600, Policies(timeouts=Timeouts(heartbeat="30s")))
    await machine.advance(minutes=1, seconds=30)


async def stop(machine: TimeMachine, how: Callable[[str], Awaitable[object]]) -> None:
    await every_minute(machine, 600)
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    await how(run.id)
    await machine.advance(seconds=1)


@produces(Reason.CANCELLED, 1)
async def cancelled(machine: TimeMachine) -> None:
    await stop(machine, machine.app.runs.cancel)


@produces(Reason.TERMINATED, 1)
async def terminated(machine: TimeMachine) -> None:
    await stop(machine, machine.app.runs.terminate)


@produces(Reason.FAILED, 1)
async def failed(machine: TimeMachine) -> None:
    await every_minute(machine, 0, fails=1)
    await machine.advance(minutes=1)


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize("reason", PRODUCED, ids=str)
async def test_a_slot_is_recorded_with_its_reason(machine: TimeMachine, reason: Reason):
    scenario, minutes = PRODUCED[reason]
    await scenario(machine)
    ledger = await reasons(machine)
    assert [minute for minute, (_, why) in sorted(ledger.items()) if why == reason] == minutes
    assert {ledger[minute][0] for minute in minutes} <= {str(status) for status in ENDED}


@pytest.mark.contract("SCHD-28", "CRON-06")
@pytest.mark.parametrize(
    ("reason", "at_most_once", "status"),
    [("crashed", True, "failed"), ("crashed", False, "succeeded"), ("shutdown", True, "failed")],
)
async def test_a_process_that_ended_before_its_run_is_recorded(
    tmp_path: Path, reason: str, at_most_once: bool, status: str
):
    """The holder of an attempt dies, or ends: it has failed, or is taken again under the same key."""
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    keys: list[str] = []

    def machine_on(seconds: float) -> TimeMachine:
        machine = TimeMachine(START)
        machine.app = App(database, clock=machine.clock, config=Config(drain_ms=0))

        @machine.app.action("work")
        async def work(context: Context) -> None:
            keys.append(context.key)
            await machine.sleep(seconds=seconds)

        return machine

    before = machine_on(600)
    async with before:
        policies = Policies(at_most_once=at_most_once)
        await before.app.schedules.create("s", "0 0 * * *", "work", policies=policies)
        await before.advance(days=1)
        if reason == "shutdown":
            await before.app.engine.drain(before.app.now)
    after = machine_on(0)
    after.clock.move_to(at(1441))
    async with after:
        await after.advance(seconds=1)
        (run,) = await after.app.runs.list("s")
        assert run.status == status
        if at_most_once:
            assert (run.reason, len(keys)) == (reason, 1)
        else:
            (attempt,) = await after.app.runs.attempts(run.id)
            assert (attempt.reason, len(keys), len(set(keys))) == (reason, 2, 1)


OF_GRAPHS = {
    Reason.GRANT_NOT_FOUND, Reason.GRANT_REVOKED, Reason.GRANT_EXPIRED, Reason.GRANT_SCOPE, Reason.NO_CREDIT,
    Reason.GRAPH_UNAVAILABLE, Reason.INVALID_RESULT,
}  # fmt: skip
"""The reasons of runs of graphs, which their own tests produce."""


def test_every_reason_is_produced_here():
    assert set(PRODUCED) | {Reason.CRASHED, Reason.SHUTDOWN} | OF_GRAPHS == set(Reason)


@pytest.mark.contract("SCHD-28")
async def test_versions_are_kept_on_edit(machine: TimeMachine):
    await every_minute(machine)
    await machine.advance(minutes=3)
    await machine.app.schedules.update("s", "*/2 * * * *")
    await machine.advance(minutes=3)
    await machine.app.schedules.update("s", policies=Policies(overlap=Overlap.ALLOW_ALL))
    await machine.app.schedules.update("s", tags=["nothing that matters"])
    second, first = await machine.app.schedules.versions("s")
    assert [Spec.parse(each.spec) for each in (first, second)] == [
        Spec.cron("* * * * *"),
        Spec.cron("*/2 * * * *"),
    ]
    moments = [int(at(m).timestamp() * 1000) for m in (0, 3, 6)]
    assert [first.since_ms, first.until_ms, second.since_ms, second.until_ms] == [
        moments[0],
        moments[1],
        moments[1],
        moments[2],
    ]
    assert (first.version, second.version) == (1, 2)
    await machine.app.schedules.delete("s")
    assert len(await machine.app.schedules.versions("s")) == 3  # what it was when it was deleted


@pytest.mark.contract("SCHD-26", "GRNT-14")
async def test_an_edit_replaces_the_slot_that_was_to_come(machine: TimeMachine):
    work = await every_minute(machine)
    await machine.advance(minutes=1, seconds=30)
    await machine.app.schedules.update("s", "*/5 * * * *")
    await machine.advance(minutes=9)
    assert work.nominal == [at(1), at(5), at(10)]


async def watch(machine: TimeMachine) -> None:
    """Have the database itself write down every change of a run's status."""
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    await store.work(
        lambda c: c.executescript(
            """
            CREATE TABLE seen (run TEXT, before TEXT, after TEXT);
            CREATE TRIGGER see AFTER UPDATE OF status ON run WHEN OLD.status <> NEW.status
            BEGIN INSERT INTO seen VALUES (OLD.id, OLD.status, NEW.status); END;
            """
        )
    )


@pytest.mark.contract("SCHD-24", "SCHD-28")
@pytest.mark.parametrize("reason", PRODUCED, ids=str)
async def test_what_never_started_is_counted_by_its_reason(machine: TimeMachine, reason: Reason):
    await PRODUCED[reason][0](machine)
    found = Counter[str]()
    for each in await machine.app.runs.unstarted_ranges("s"):
        found[each.reason] += each.count
    runs = await machine.app.runs.list("s", 1000)
    never_started = [run for run in runs if not run.attempt or run.status is Status.SKIPPED]
    found.update(run.reason for run in never_started if run.status in ENDED)
    if not await machine.app.schedules.exists("s"):
        return
    for by_hand in (Reason.CANCELLED, Reason.TERMINATED, Reason.BACKFILL_CANCELLED):  # of single runs
        del found[by_hand]
    counts = (await machine.app.schedules.describe("s")).counts
    assert counts.unstarted == found
    late = (Reason.LATE, Reason.SUPERSEDED, Reason.NO_CONSENT)
    assert (counts.skipped, counts.missed, counts.dropped) == (
        found[Reason.OVERLAP], sum(found[each] for each in late), found[Reason.BUFFER_FULL],
    )  # fmt: skip
    started = [run for run in runs if run not in never_started or run.status is Status.STARTING]
    assert counts.started == len(started)


@pytest.mark.contract("GRNT-15", "GRNT-07")
@pytest.mark.parametrize("reason", PRODUCED, ids=str)
async def test_no_row_goes_backwards(machine: TimeMachine, reason: Reason):
    await watch(machine)
    await PRODUCED[reason][0](machine)
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    seen = await store.work(lambda c: c.execute("SELECT before, after FROM seen").fetchall())
    # Released and claimed in one transaction is one change.
    allowed = TRANSITIONS | {each: TRANSITIONS[each] | {Status.RUNNING} for each in WAITING}
    for before, after in seen:
        assert Status(after) in allowed[Status(before)]
    ids = await store.work(lambda c: c.execute("SELECT schedule_key, nominal_ms, origin FROM run").fetchall())
    assert len(ids) == len(set(ids))


@pytest.mark.contract("CRON-06", "GRNT-10")
@pytest.mark.parametrize("what", ["returns", "raises", "refuses", "goes on"])
async def test_the_row_and_the_next_slot_are_in_place_before_anything_is_launched(
    machine: TimeMachine, what: str
):
    seen: list[Any] = []
    store = machine.app._store
    assert isinstance(store, SqliteStore)

    @machine.app.action("work")
    async def work(context: Context) -> None:
        rows = "SELECT status, attempt, nominal_ms / 1000 FROM run WHERE id = ?"
        row = await store.work(lambda c: c.execute(rows, (context.run_id,)).fetchone())
        (next_at_ms,) = await store.work(lambda c: c.execute("SELECT next_at_ms FROM due").fetchone())
        seen.append((tuple(row), (next_at_ms // 1000 - row[2])))
        if what == "raises":
            raise ValueError
        if what == "refuses":
            raise NotStartedError("no", permanent=True)
        if what == "goes on":
            await machine.sleep(seconds=10_000)

    await machine.app.schedules.create(
        "s", "*/10 * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL)
    )
    await machine.advance(minutes=20)
    assert seen == [(("running", 1, int(at(m).timestamp())), 600) for m in (10, 20)]


@pytest.mark.contract("GRNT-10")
async def test_the_next_slot_is_the_first_after_now_and_this_one(machine: TimeMachine):
    """Also when the present one is late: what lies between has been decided too."""
    work = await every_minute(machine, 0, Policies(catch_up=CatchUpPolicy(mode=CatchUp.NONE)))
    machine.clock.move_to(at(7.1))
    await machine.advance(seconds=0)
    assert work.called == [(at(7), at(7.1))]
    store = machine.app._store
    assert isinstance(store, SqliteStore)
    row = await store.work(lambda c: c.execute("SELECT cursor_ms / 1000, next_at_ms FROM due").fetchone())
    assert tuple(row) == (int(at(7).timestamp()), int(at(8).timestamp() * 1000))


@pytest.mark.contract("GRNT-09")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Forbid", {1: "succeeded", 2: "skipped", 3: "running"}),
        ("Allow", {1: "succeeded", 2: "running", 3: "running"}),
        ("Replace", {1: "cancelled", 2: "cancelled", 3: "running"}),
    ],
)
async def test_one_at_a_time_by_a_policy(machine: TimeMachine, policy: str, expected: dict[int, str]):
    await every_minute(machine, 90, Policies(overlap=Overlap(policy)))
    await machine.advance(minutes=3)
    assert {minute: status for minute, (status, _) in (await reasons(machine)).items()} == expected


@pytest.mark.contract("GRNT-09")
async def test_two_nodes_that_decide_at_once_start_a_slot_once(tmp_path: Path):
    """One database, two processes' worth of engine, one slot: one of them decides and starts it."""
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    called: list[str] = []
    first, second = TimeMachine(START), TimeMachine(START)
    for name, machine in (("first", first), ("second", second)):
        machine.app = App(database, clock=machine.clock)

        @machine.app.action("work")
        async def work(context: Context, name: str = name) -> None:
            called.append(name)
            await asyncio.Event().wait()

    async with first, second:
        await first.app.schedules.create("s", "* * * * *", "work")
        for minute in range(1, 6):
            first.clock.move_to(at(minute))
            second.clock.move_to(at(minute))
            await asyncio.gather(*(m.app.engine.step(m.app.now()) for m in (first, second)))
        await asyncio.sleep(0)
        assert len(called) == 1
        assert len(await first.app.runs.list("s")) == 1
        assert sum(each.count for each in await first.app.runs.unstarted_ranges("s")) == 4

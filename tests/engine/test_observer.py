"""Observers are told what happened, once it is durable, and cannot stop it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horae import (
    Accepted,
    App,
    Config,
    Context,
    NotStartedError,
    OnResume,
    Overlap,
    Policies,
    RetryPolicy,
)
from horae.app import ScopedOperations, Trigger
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Observer, Observers
from horae.errors import ClockOffError, InvalidInputError, StoreUnavailableError
from horae.face.declarative.registration import read_registrations
from horae.model import AttemptEnd, AttemptResult, Outcome, Reason, Run, Schedule, Status, UnstartedRange
from horae.policy.ledger_changes import Decision
from horae.testing import TimeMachine, VirtualClock
from tests.engine.programs import Programs
from tests.support.nodes import ShiftedClock
from tests.support.process import kill
from tests.support.wait import wait_for

START = datetime(2026, 3, 2, tzinfo=UTC)


class Notes(Observer):
    """Writes down everything."""

    def __init__(self) -> None:
        self.decisions: list[tuple[Schedule, Decision]] = []
        self.launches: list[tuple[Run, int]] = []
        self.withheld: list[Run] = []
        self.ends: list[tuple[AttemptResult, Outcome]] = []
        self.never_ran: list[Run | UnstartedRange] = []
        self.steps: list[float] = []
        self.transactions: list[BaseException | None] = []
        self.reports: list[MaintenanceReport] = []
        self.lost = 0

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
        self.decisions += decisions

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
        if not launched:
            self.withheld += runs

    def launched(self, run: Run, at: int) -> None:
        self.launches.append((run, at))

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        self.ends += ended

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        self.never_ran += unstarted

    def stepped(self, seconds: float) -> None:
        self.steps.append(seconds)

    def stored(self, seconds: float, error: BaseException | None) -> None:
        assert seconds >= 0
        self.transactions.append(error)

    def maintained(self, report: MaintenanceReport) -> None:
        self.reports.append(report)

    def lost_lease(self) -> None:
        self.lost += 1


@pytest.mark.contract("CRON-17")
async def test_what_becomes_of_slots_is_told():
    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(notes)

        @tm.app.action("slow")
        async def slow(context: Context) -> None:
            await tm.sleep(seconds=90)

        await tm.app.schedules.create("s", "* * * * *", action="slow")
        await tm.advance(minutes=4, seconds=1)
    launched = [
        (run.nominal_ms // 1000 - START.timestamp(), at - run.fire_ms, run.attempt)
        for run, at in notes.launches
    ]
    assert launched == [(60, 0, 1), (180, 0, 1)]
    unstarted = [each for each in notes.never_ran if isinstance(each, UnstartedRange)]
    assert [(each.start_ms // 1000 - START.timestamp(), each.reason) for each in unstarted] == [
        (120, Reason.OVERLAP),
        (240, Reason.OVERLAP),
    ]
    assert {schedule.id for schedule, _ in notes.decisions} == {"s"}
    assert [(each.ending, outcome.status) for each, outcome in notes.ends] == [
        (AttemptEnd.RETURNED, Status.SUCCEEDED)
    ]
    assert notes.steps
    assert set(notes.transactions) == {None}
    assert notes.reports


class Ticking(VirtualClock):
    """A clock that advances by a millisecond whenever it is read."""

    def now(self) -> datetime:
        self.move_to(super().now() + timedelta(milliseconds=1))
        return super().now()


@pytest.mark.contract("SCHD-28")
async def test_a_start_is_the_moment_of_the_launch_in_the_ledger_and_for_observers(tmp_path: Path):
    clock, notes, seen = Ticking(START), Notes(), dict[str, int]()
    async with App(f"sqlite:///{tmp_path / 'horae.db'}", clock=clock) as app:
        app.watch(notes)

        @app.action("looks at the clock")
        async def look(context: Context) -> None:
            seen[context.run_id] = app.now()
            if context.attempt == 1:
                raise RuntimeError("no")

        retry = Policies(retry=RetryPolicy(attempts=2, initial_delay="1s"))
        for number in range(3):
            await app.schedules.create(f"s{number}", "* * * * *", "looks at the clock", policies=retry)
        clock.move_to(START + timedelta(minutes=1))
        await app.engine.step(app.now())
        runs = [run for number in range(3) for run in await app.runs.list(f"s{number}")]
        # While it is running, the ledger has the moment of the claim: one for all that was claimed together.
        (claimed,) = {run.started_at_ms for run in runs}
        while len(seen) < 3:
            await asyncio.sleep(0)
        first = {run.id: at for run, at in notes.launches}
        assert first == {run_id: at - 1 for run_id, at in seen.items()}
        assert claimed is not None
        assert claimed < min(first.values())
        await app.engine.step(app.now())
        attempts = [each for run in runs for each in await app.runs.attempts(run.id)]
        assert {each.run_id: each.started_at_ms for each in attempts} == first

        clock.move_to(START + timedelta(minutes=1, seconds=5))
        await app.engine.step(app.now())
        while len(notes.launches) < 6:
            await asyncio.sleep(0)
        await app.engine.step(app.now())
        second = {run.id: at for run, at in notes.launches[3:]}
        assert {
            each.id: (each.status, each.started_at_ms)
            for run in runs
            for each in [await app.runs.get(run.id)]
        } == {run_id: (Status.SUCCEEDED, at) for run_id, at in second.items()}
        explained = [await app.why.explain(run.schedule_id, START + timedelta(minutes=1)) for run in runs]
        assert [each.late_ms for each in explained] == [first[run.id] - run.fire_ms for run in runs]


async def test_ends_are_told_with_what_they_meant():
    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(notes)

        @tm.app.action("fails")
        async def fails(context: Context) -> None:
            raise RuntimeError("no")

        @tm.app.action("refuses")
        async def refuses(context: Context) -> None:
            raise NotStartedError("not now", permanent=True)

        policies = Policies(retry=RetryPolicy(attempts=2))
        await tm.app.schedules.create("f", "0 1 * * *", action="fails", policies=policies)
        await tm.app.schedules.create("r", "0 1 * * *", action="refuses", policies=policies)
        await tm.advance(hours=2)
    told = {
        name: [(each.ending, outcome.status) for each, outcome in notes.ends if each.run.schedule_id == name]
        for name in ("f", "r")
    }
    assert told == {
        "f": [(AttemptEnd.RAISED, Status.RETRYING), (AttemptEnd.RAISED, Status.FAILED)],
        "r": [(AttemptEnd.REFUSED, Status.DROPPED)],
    }


async def test_an_observer_that_fails_stops_neither_the_engine_nor_the_others(
    caplog: pytest.LogCaptureFixture,
):
    class Clumsy(Observer):
        def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
            raise RuntimeError("oops")

    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(Clumsy())
        tm.app.watch(notes)
        tm.app.functions.register("noop", noop)
        await tm.app.schedules.create("s", "0 1 * * *", action="noop")
        await tm.advance(hours=2)
    assert len(notes.launches) == 1
    assert "oops" in caplog.text


async def noop(context: Context) -> None:
    pass


async def test_what_is_withheld_when_the_lease_may_be_over(postgres: str):
    notes, clock = Notes(), ShiftedClock()
    async with App(postgres, clock=clock) as app:
        app.watch(notes)
        app.functions.register("noop", noop)
        await app.schedules.create("s", "0 0 1 1 *", action="noop")
        await app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
        clock.slept = 60  # the lease has ended, as far as this node can know
        await app.engine.step(app.now())
        assert [run.schedule_id for run in notes.withheld] == ["s"]
        assert notes.launches == []
        await app.engine.step(app.now())
        unlaunched = [(each.ending, outcome.status) for each, outcome in notes.ends]
        assert unlaunched == [(AttemptEnd.UNLAUNCHED, Status.RETRYING)]


async def test_a_lost_lease_is_told(postgres: str):
    notes = Notes()
    async with App(postgres) as app:
        app.watch(notes)
        await app.engine._maintenance.deregister([app.engine.epoch])  # others took it for dead
        await app.engine.renew_and_maintain(app.now())
        assert notes.lost == 1


async def test_a_clock_that_is_off_and_a_store_that_is_away_are_told(postgres: str):
    notes = Notes()
    async with App(postgres) as app:
        app.watch(notes)
        app.functions.register("noop", noop)
        await app.schedules.create("s", "* * * * *", action="noop")
        with pytest.raises(ClockOffError):
            await app.engine.step(app.now() + 120_000)
        assert isinstance(notes.transactions[-1], ClockOffError)
        await app._store.close()
        with pytest.raises(StoreUnavailableError):
            await app.engine.step(app.now())
        assert isinstance(notes.transactions[-1], StoreUnavailableError)
        await app._store.open(app.wake)


async def test_what_dead_nodes_left_is_told(programs: Programs, tmp_path: Path):
    process = programs.start(seconds=60, schedules=3)
    wait_for(lambda: programs.lines() >= 3)
    kill(process)
    notes = Notes()
    app = App(f"sqlite:///{tmp_path / 'horae.db'}", config=Config(drain_ms=0))
    app.watch(notes)
    async with app:
        pass
    assert [report.rescued for report in notes.reports] == [3]
    assert {(each.ending, outcome.reason) for each, outcome in notes.ends} == {
        (AttemptEnd.CRASHED, Reason.CRASHED)
    }


async def test_what_others_did_is_told_when_it_was_reported():
    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(notes)
        tokens = {}

        @tm.app.action("outside")
        async def outside(context: Context) -> Accepted:
            tokens[context.run_id] = await context.report_token()
            return Accepted()

        await tm.app.schedules.create("s", "0 * * * *", action="outside")
        await tm.advance(hours=1)
        assert notes.ends == []  # an external worker continues it
        (run,) = await tm.app.runs.list("s")
        await tm.app.runs.report(run.id, tokens[run.id], "succeeded")
        assert [outcome.status for _, outcome in notes.ends] == [Status.SUCCEEDED]
        await tm.advance(hours=1)
        run, _ = await tm.app.runs.list("s")
        await tm.app.runs.terminate(run.id)
        assert [outcome.status for _, outcome in notes.ends] == [Status.SUCCEEDED, Status.TERMINATED]


NEVER_RAN = {Status.SKIPPED, Status.MISSED, Status.DROPPED, Status.CANCELLED, Status.TERMINATED}


async def in_the_ledger(app: App | ScopedOperations, schedule_id: str) -> tuple[dict[Reason, int], set[str]]:
    """How many slots of a schedule stayed unstarted for which reasons, and which runs never ran."""
    counts = Counter[Reason]()
    for each in await app.runs.unstarted_ranges(schedule_id):
        counts[each.reason] += each.count
    return counts, {run.id for run in await app.runs.list(schedule_id) if run.status in NEVER_RAN}


def told_of(notes: Notes, schedule_id: str) -> tuple[dict[Reason, int], set[str]]:
    counts = Counter[Reason]()
    runs = []
    for each in notes.never_ran:
        if each.schedule_id != schedule_id:
            continue
        if isinstance(each, UnstartedRange):
            counts[each.reason] += each.count
        else:
            runs.append(each.id)
    assert len(set(runs)) == len(runs)
    return counts, set(runs)


@pytest.mark.contract("CRON-17")
async def test_slots_that_a_manual_change_leaves_unstarted_are_told_once():
    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(notes)
        app = tm.app

        @app.action("slow")
        async def slow(context: Context) -> None:
            await tm.sleep(seconds=360_000)

        skip, wait = Policies(on_resume=OnResume.SKIP), Policies(overlap=Overlap.BUFFER_ALL)
        for name in ("edited", "resumed", "deleted", "stopped"):
            policies = wait if name in {"deleted", "stopped"} else skip
            await app.schedules.create(name, "0 * * * *", action="slow", policies=policies)
        await app.schedules.pause("resumed")
        await tm.advance(hours=3)  # two slots of one are skipped, two of others wait, one is paused
        for run in await app.runs.list("stopped"):
            if run.status is Status.PENDING:
                await app.runs.cancel(run.id)
        tm.clock.move_to(START.replace(hour=5))  # and no node has decided about these two hours
        await app.schedules.update("edited", "30 * * * *")
        await app.schedules.resume("resumed")
        await app.schedules.delete("deleted")
        await tm.advance(minutes=10)

        expected = {
            "edited": ({Reason.OVERLAP: 2, Reason.EDITED: 2}, 0),
            "resumed": ({Reason.PAUSED: 5}, 0),
            "deleted": ({Reason.DELETED: 2}, 2),
            "stopped": ({}, 2),
        }
        for name, (counts, runs) in expected.items():
            told = told_of(notes, name)
            assert told == await in_the_ledger(app, name)
            assert (told[0], len(told[1])) == (counts, runs)


async def test_slots_that_initializing_leaves_unstarted_are_told():
    async def callback() -> None: ...

    def tasks(*registered: tuple[str, str]) -> dict[str, Any]:
        return read_registrations([(*each, callback, timedelta(0)) for each in registered], "x", "UTC")

    async def initialize(app: App, tasks: dict[str, Any]) -> None:
        await app.owned_by("x").tasks.reconcile(tasks)

    async with TimeMachine(START.replace(minute=1)) as tm:
        notes = Notes()
        tm.app.watch(notes)
        listed = tasks(("changed", "0 * * * *"), ("forgotten", "0 * * * *"))
        await initialize(tm.app, listed)
        await tm.advance(hours=1)  # their runs wait for a node that has the callbacks
        tm.clock.move_to(START.replace(hour=3, minute=1))
        await initialize(tm.app, tasks(("changed", "30 * * * *")))
        for schedule_id, counts in zip(listed, ({Reason.EDITED: 2}, {}), strict=True):
            told = told_of(notes, schedule_id)
            assert told == await in_the_ledger(tm.app.owned_by("x"), schedule_id)
            assert (told[0], len(told[1])) == (counts, 1)


async def test_what_was_not_written_is_not_told(tmp_path: Path):
    async def undone(app: App) -> None:
        async with app.transaction() as transaction:
            assert transaction.recorded is not None
            transaction.recorded.append(None)  # type: ignore[arg-type]
            raise RuntimeError("undone")

    notes = Notes()
    async with App(f"sqlite:///{tmp_path / 'horae.db'}") as app:
        app.watch(notes)
        with pytest.raises(RuntimeError):
            await undone(app)
        assert notes.ends == []
        assert isinstance(notes.transactions[-1], RuntimeError)


async def test_a_change_that_is_undone_tells_nothing():
    async with TimeMachine(START) as tm:
        notes = Notes()
        tm.app.watch(notes)
        tm.app.functions.register("noop", noop)
        policies = Policies(on_resume=OnResume.SKIP)
        await tm.app.schedules.create("s", "0 * * * *", action="noop", policies=policies)
        await tm.app.schedules.pause("s")
        await tm.advance(hours=3)
        with pytest.raises(
            InvalidInputError
        ):  # which is found out after the slots were recorded as unstarted
            await tm.app.schedules.patch("s", resume="", trigger=Trigger(note="x" * 10_001))
        assert isinstance(notes.transactions[-1], InvalidInputError)
        assert notes.never_ran == []
        await tm.app.schedules.patch("s", resume="")
        assert [each.count for each in notes.never_ran if isinstance(each, UnstartedRange)] == [3]


async def test_without_observers_nothing_is_gathered(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any) -> None:
        raise AssertionError("nobody wants to know")

    async with TimeMachine(START) as tm:
        monkeypatch.setattr(Observers, "tell", refuse)
        tm.app.functions.register("noop", noop)
        await tm.app.schedules.create("s", "0 * * * *", action="noop")
        await tm.advance(hours=3)
        assert tm.app._store.observe is None
        assert len(await tm.app.runs.list("s")) == 3

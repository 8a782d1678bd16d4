"""Between claim and call: a run that is not admitted is skipped with its reason, was never called, and consumed nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from horae import App, Config, Context
from horae.errors import StoreUnavailableError
from horae.executor.action_registry import Executors
from horae.executor.function_executor import FunctionExecutor
from horae.executor.http_executor import HttpExecutor
from horae.model import (
    AUTOMATIC,
    NOT_READ,
    Action,
    Denial,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Run,
    ScheduleKey,
    Status,
)
from horae.store.port import Transaction
from horae.testing import TimeMachine
from tests.executor.harness import serving
from tests.support.machine import at
from tests.support.nodes import step

DENIAL = Denial(Reason.NOT_ALLOWED, "the host example.com is not among the allowed ones")
STUBBORN = Policies(retry=RetryPolicy(attempts=5, initial_delay="1s"), pause_on_failure=True)


class Door:
    """An action whose admission a test decides."""

    def __init__(self, app: App, *, fails: bool = False) -> None:
        self.is_open = False
        self.fails = fails
        self.calls: list[tuple[str, int]] = []
        app.functions.register("work", self.work, admit=self.admit)

    def admit(self, action: Action) -> Denial | None:
        assert action.name == "work"
        return None if self.is_open else DENIAL

    async def work(self, context: Context) -> None:
        assert self.is_open
        self.calls.append((context.run_id, context.attempt))
        if self.fails:
            raise RuntimeError("as planned")


async def only_run(app: App) -> Run:
    (run,) = await app.runs.list("s")
    return run


@pytest.mark.contract("SCHD-28")
async def test_a_denied_run_is_skipped_with_its_reason_and_its_sentence(machine: TimeMachine):
    door = Door(machine.app)
    await machine.app.schedules.create("s", "* * * * *", "work", policies=STUBBORN)
    await machine.advance(minutes=1, seconds=30)
    run = await only_run(machine.app)
    assert (run.status, run.reason, run.failure) == (Status.SKIPPED, "not_allowed", DENIAL.sentence)
    assert (run.started_at_ms, run.ended_at_ms) == (None, round(at(1).timestamp() * 1000))
    assert (run.failures, run.refusals, run.crashes) == (0, 0, 0)
    assert door.calls == []
    assert await machine.app.runs.attempts(run.id) == []  # nothing is retried
    assert not (await machine.app.schedules.get("s")).state.paused  # and nothing has failed
    told = await machine.app.why.explain("s", at(1))
    assert told.verdict == "skipped"
    assert "before it started: the settings no longer allow its action" in told.sentence


@pytest.mark.contract("SCHD-26")
async def test_a_denied_run_consumes_nothing(machine: TimeMachine):
    door = Door(machine.app)
    await machine.app.schedules.create("s", "* * * * *", "work", remaining_actions=2)
    await machine.advance(minutes=3, seconds=30)
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 2
    counts = await machine.app.schedules.counts("s")
    assert (counts.started, dict(counts.unstarted)) == (0, {Reason.NOT_ALLOWED: 3})
    door.is_open = True
    await machine.advance(minutes=5)
    assert len(door.calls) == 2
    counts = await machine.app.schedules.counts("s")
    assert (counts.started, counts.unstarted[Reason.NOT_ALLOWED]) == (2, 3)


async def test_the_last_start_is_given_back_to_a_schedule_at_its_limit(machine: TimeMachine):
    door = Door(machine.app)
    await machine.app.schedules.create("s", "* * * * *", "work", remaining_actions=1)
    await machine.advance(minutes=1, seconds=30)
    door.is_open = True
    await machine.advance(minutes=1)
    assert [number for _, number in door.calls] == [1]
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 0


async def test_a_denied_trigger_gives_back_no_automatic_start(machine: TimeMachine):
    Door(machine.app)
    await machine.app.schedules.create("s", "0 0 1 1 *", "work", remaining_actions=2)
    await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert (await only_run(machine.app)).status is Status.SKIPPED
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 2
    assert (await machine.app.schedules.counts("s")).started == 0


async def test_what_waits_behind_a_denied_run_is_next(machine: TimeMachine):
    door = Door(machine.app)
    policies = Policies(overlap=Overlap.BUFFER_ALL)
    await machine.app.schedules.create("s", "* * * * *", "work", policies=policies)
    machine.clock.move_to(at(3))
    await machine.advance(seconds=1)
    runs = await machine.app.runs.list("s")
    assert [(run.status, run.reason) for run in runs] == [(Status.SKIPPED, "not_allowed")] * 3
    door.is_open = True
    await machine.advance(minutes=1)
    assert len(door.calls) == 1


async def test_a_retry_that_is_denied_has_started_and_stays_charged(machine: TimeMachine):
    door = Door(machine.app, fails=True)
    door.is_open = True
    await machine.app.schedules.create("s", "0 * * * *", "work", policies=STUBBORN, remaining_actions=5)
    await machine.advance(hours=1)
    door.is_open = False
    await machine.advance(minutes=1)
    run = await only_run(machine.app)
    assert (run.status, run.reason, run.attempt, run.failures) == (Status.SKIPPED, "not_allowed", 2, 1)
    assert len(door.calls) == 1
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 4
    counts = await machine.app.schedules.counts("s")
    assert (counts.started, dict(counts.unstarted)) == (1, {})


async def test_an_attempt_that_was_never_launched_does_not_count_as_a_start(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    Door(machine.app)
    await machine.app.schedules.create("s", "0 * * * *", "work", remaining_actions=5)
    worker = machine.app.worker
    with monkeypatch.context() as patch:
        patch.setattr(
            worker, "launch", lambda name, start: worker.refuse(name, start.run)
        )  # as if the lease may be over
        machine.clock.move_to(at(60))
        await machine.app.engine.step(machine.app.now())
    await machine.advance(minutes=1)
    run = await only_run(machine.app)
    assert (run.status, run.attempt) == (Status.SKIPPED, 2)
    assert (await machine.app.schedules.get("s")).state.remaining_actions == 5
    assert (await machine.app.schedules.counts("s")).started == 0


@pytest.mark.contract("CRON-23")
async def test_a_destination_that_is_not_allowed_any_more_is_not_asked(database: str):
    async with serving() as server:
        async with App(database, config=Config(http_private=("127.0.0.0/8",))) as app:
            app.use_builtin()
            action = {"kind": "http", "options": {"url": server.url}}
            await app.schedules.create("s", {}, action, policies=STUBBORN)
        async with App(database, config=Config(http_allow=("example.com",))) as app:
            app.use_builtin()
            run_id = await app.schedules.trigger("s")
            for _ in range(3):  # claim it, record that it was denied, and find nothing more to do
                await step(app)
            run = await app.runs.get(run_id)
            assert (run.status, run.reason) == (Status.SKIPPED, "not_allowed")
            assert "127.0.0.1: the host is not among the allowed ones" in (run.failure or "")
            assert (await app.schedules.counts("s")).unstarted == {Reason.NOT_ALLOWED: 1}
        assert server.connections == 0


def a_run(action: str) -> Run:
    return Run(
        id="r", schedule_key=ScheduleKey("s"), generation=1, nominal_ms=0, origin=AUTOMATIC, overlap=Overlap.SKIP,
        status=Status.RUNNING, fire_ms=0, start_at_ms=0, action=action,
    )  # fmt: skip


def test_a_request_is_admitted_as_long_as_its_destination_is_allowed():
    config = Config(http_allow=("*.example.com",))
    executors = Executors(FunctionExecutor())
    executors.use(HttpExecutor(config, int))
    allowed, elsewhere = (
        Action(kind="http", options={"url": f"https://{host}/x"}) for host in ("a.example.com", "example.org")
    )
    assert executors.admit(a_run("http"), allowed) is None
    assert executors.admit(a_run("http"), Action(name="work")) is None
    assert executors.admit(a_run("work"), elsewhere) is None  # the schedule has another action by now
    denial = executors.admit(a_run("http"), elsewhere)
    assert denial is not None
    assert denial.reason is Reason.NOT_ALLOWED


@pytest.mark.contract("GRNT-14")
@pytest.mark.parametrize("again", [False, True])
async def test_a_schedule_that_is_deleted_between_claim_and_call_runs_nothing(
    database: str, again: bool, monkeypatch: pytest.MonkeyPatch
):
    """The commit that claimed it came through, its answer did not: it is launched when the node finds out."""
    async with App(database) as app:
        door = Door(app)
        door.is_open = True
        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")
        plain = app._store.transaction

        @asynccontextmanager
        async def cut() -> AsyncIterator[Transaction]:
            async with plain() as transaction:
                yield transaction
            raise StoreUnavailableError("the answer to the commit was lost")

        with monkeypatch.context() as patch:
            patch.setattr(app._store, "transaction", cut)
            with pytest.raises(StoreUnavailableError):
                await step(app)
        assert (await app.runs.get(run_id)).status is Status.RUNNING
        await app.schedules.delete("s")
        if again:
            await app.schedules.create("s", {}, "work")
        for _ in range(3):
            await step(app)
        run = await app.runs.get(run_id)
        assert (run.status, run.reason) == (Status.SKIPPED, "deleted")
        assert door.calls == []


async def test_waiting_runs_are_given_their_inputs_when_they_start_and_no_earlier(machine: TimeMachine):
    """A decision reads all open runs, at each slot: their inputs, which may be large, are left out."""
    app = machine.app
    given = []

    @app.action("work")
    async def work(context: Context) -> None:
        given.append(context.input)
        await machine.sleep(minutes=1)

    await app.schedules.create("s", "0 0 1 1 *", "work", policies={"overlap": "buffer_all"})
    for number in range(4):
        await app.schedules.trigger("s", input={"number": number})
    await machine.advance(seconds=1)
    async with app.transaction() as transaction:
        waiting = [
            run for run in await transaction.open_runs([ScheduleKey("s")]) if run.status is Status.PENDING
        ]
        assert [run.input for run in waiting] == [NOT_READ] * 3
        # A run whose input was spoiled by hand while it waited is not called with anything else.
        await transaction.execute("UPDATE run SET input = '{' WHERE id = :id", id=waiting[1].id)
    await machine.advance(minutes=5)
    assert given == [{"number": 0}, {"number": 1}, {"number": 3}]
    async with app.reading() as transaction:
        found = await transaction.execute(
            "SELECT status, reason, failure FROM run WHERE id = :id", id=waiting[1].id
        )
    assert found[0][:2] == ("skipped", "not_started")
    assert found[0][2].startswith("its input cannot be read: DecodeError")


async def test_an_admission_that_fails_denies_its_run_and_no_other(machine: TimeMachine):
    def broken(action: Action) -> Denial | None:
        raise KeyError(action.name)

    calls: list[str] = []
    machine.app.functions.register("broken", lambda: calls.append("broken"), admit=broken)
    machine.app.functions.register("work", lambda: calls.append("work"))
    for schedule_id, action in (("a", "broken"), ("s", "work")):
        await machine.app.schedules.create(schedule_id, "* * * * *", action)
    await machine.advance(minutes=1, seconds=30)
    assert calls == ["work"]
    (run,) = await machine.app.runs.list("a")
    assert (run.status, run.reason) == (Status.SKIPPED, "not_allowed")
    assert run.failure == "whether the action may run is not known: KeyError: 'broken'"

"""Checkpoints through the engine, on both stores: the next attempt is given what earlier ones saved; a stale one saves nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from horae import App, Context, Policies, RetryPolicy, Status
from horae.engine.attempt_results import record
from horae.errors import StaleClaimError
from horae.model import AttemptEnd, AttemptResult, Limits
from horae.store.sqlite import SqliteTransaction
from horae.testing import TimeMachine
from tests.support.nodes import step
from tests.support.wait import wait_until

AGAIN = Policies(retry=RetryPolicy(attempts=3, initial_delay="0s"))


async def stepped(app: App, run_id: str, *statuses: Status) -> bool:
    await step(app)
    return (await app.runs.get(run_id)).status in statuses


@pytest.mark.parametrize("threaded", [False, True])
async def test_the_next_attempt_is_given_what_earlier_ones_saved(database: str, threaded: bool):
    seen: list[dict[str, Any]] = []

    async def work(context: Context) -> dict[str, Any]:
        seen.append(dict(context.checkpoints))
        await context.checkpoint(f"step {context.attempt}", {"done": context.attempt})
        await context.checkpoint("latest", context.attempt)
        if context.attempt < 3:
            raise RuntimeError("as planned")
        return dict(context.checkpoints)

    def plain(context: Context) -> dict[str, Any]:
        seen.append(dict(context.checkpoints))
        context.checkpoint_from_thread(f"step {context.attempt}", {"done": context.attempt})
        context.checkpoint_from_thread("latest", context.attempt)
        if context.attempt < 3:
            raise RuntimeError("as planned")
        return dict(context.checkpoints)

    async with App(database) as app:
        app.action("work")(plain if threaded else work)
        await app.schedules.create("s", {}, "work", policies=AGAIN)
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        saved = await app.runs.checkpoints(run_id)
        run = await app.runs.get(run_id)
    first, second = {"step 1": {"done": 1}, "latest": 1}, {"step 2": {"done": 2}, "latest": 2}
    assert seen == [{}, first, first | second]
    assert run.result == first | second | {"step 3": {"done": 3}, "latest": 3}
    assert {each.key: each.attempt for each in saved} == {"step 1": 1, "step 2": 2, "step 3": 3, "latest": 3}


@pytest.mark.contract("GRNT-07")
async def test_an_attempt_that_was_taken_over_saves_nothing(database: str):
    go_on = asyncio.Event()
    errors: list[BaseException] = []

    async with App(database) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            if context.attempt > 1:
                return
            await context.checkpoint("in time", 1)
            await go_on.wait()
            try:
                await context.checkpoint("too late", 1)
            except StaleClaimError as error:
                errors.append(error)
                raise

        await app.schedules.create("s", {}, "work", policies=AGAIN)
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.RUNNING))

        async def has_saved() -> bool:
            return bool(await app.runs.checkpoints(run_id))

        await wait_until(has_saved)
        run = await app.runs.get(run_id)
        async with app.transaction() as transaction:  # what another node does when it takes this one for dead
            crashed = AttemptResult(run=run, ending=AttemptEnd.CRASHED)
            await record(transaction, [crashed], app.now(), Limits())
        go_on.set()
        await wait_until(lambda: stepped(app, run_id, Status.SUCCEEDED))
        assert [each.key for each in await app.runs.checkpoints(run_id)] == ["in time"]
    (error,) = errors
    assert "Attempt 1 of the run" in str(error)


async def test_first_attempts_ask_the_store_for_no_checkpoints(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    """What does not use checkpoints pays nothing for them: only a further attempt looks for some, once a batch."""

    @machine.app.action("work")
    async def work(context: Context) -> None:
        if context.attempt == 1 and context.nominal.minute == 3:
            raise RuntimeError("as planned")

    asked: list[str] = []
    rows = SqliteTransaction.rows

    async def noted(transaction: SqliteTransaction, name: str, /, **values: Any) -> Any:
        asked.append(name)
        return await rows(transaction, name, **values)

    monkeypatch.setattr(SqliteTransaction, "rows", noted)
    for name in "ab":
        await machine.app.schedules.create(name, "* * * * *", "work", policies=AGAIN)
    await machine.advance(minutes=2)
    assert "last_outcomes" in asked
    assert "checkpoints" not in asked
    await machine.advance(minutes=1)
    assert asked.count("checkpoints") == 1


async def test_a_blocking_call_in_the_event_loop_is_refused(machine: TimeMachine):
    @machine.app.action("work")
    async def work(context: Context) -> None:
        context.checkpoint_from_thread("key", 1)

    await machine.app.schedules.create("s", "* * * * *", "work")
    await machine.advance(minutes=1)
    (run,) = await machine.app.runs.list("s")
    assert "await context.checkpoint" in (run.failure or "")


async def test_a_thread_that_was_given_up_saves_nothing_more(database: str):
    """Its run was made to stop, and has ended in the ledger; the thread itself keeps running."""
    go_on, over = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    async with App(database) as app:

        @app.action("work")
        def work(context: Context) -> None:
            context.checkpoint_from_thread("in time")
            go_on.wait(30)
            try:
                context.checkpoint_from_thread("too late")
            except StaleClaimError as error:
                errors.append(error)
            over.set()

        await app.schedules.create("s", {}, "work")
        run_id = await app.schedules.trigger("s")
        await wait_until(lambda: stepped(app, run_id, Status.RUNNING))

        async def has_saved() -> bool:
            return bool(await app.runs.checkpoints(run_id))

        await wait_until(has_saved)
        run = await app.runs.terminate(run_id)
        app.worker.stop("schedules", run)
        app.worker.give_up_all()
        await wait_until(lambda: stepped(app, run_id, Status.TERMINATED))
        go_on.set()
        await wait_until(over.is_set)
        assert [each.key for each in await app.runs.checkpoints(run_id)] == ["in time"]
    assert len(errors) == 1

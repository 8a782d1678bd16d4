"""On PostgreSQL a node records results and decides several batches at the same time; the ledger shows no difference."""

from __future__ import annotations

import asyncio

import pytest

from horae import App, Config, Context, NewSchedule, Overlap, Policies, Status
from horae.store.postgres import PostgresStore
from tests.support.nodes import due_now, running, soon, step, step_until
from tests.support.wait import wait_until

MANY = 1700  # more than three batches


async def test_a_slot_is_not_skipped_because_of_a_run_whose_end_is_about_to_be_recorded(
    postgres: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(PostgresStore, "batch", 1)  # so that one is a herd
    async with App(postgres) as app:

        @app.action("work")
        async def work(context: Context) -> None: ...

        times = [*soon(app, 1)["times"], *soon(app, 2)["times"]]
        await app.schedules.create("s", {"times": times}, "work")
        await wait_until(lambda: step_until(app, "running"))
        await wait_until(lambda: bool(app.worker.ended()))
        await wait_until(lambda: due_now(app))  # the end of the first is known, and not recorded
        await step(app)
        await step(app)
        await wait_until(lambda: bool(app.worker.ended()))
        await step(app)
        runs = await app.runs.list("s")
        assert [run.status for run in runs] == [Status.SUCCEEDED] * 2


async def test_no_more_runs_go_on_at_once_than_a_node_may_have(postgres: str):
    held = asyncio.Event()
    async with App(postgres, config=Config(concurrency=601, lease_ms=60_000)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            await held.wait()

        await app.schedules.create_many(
            NewSchedule(id=f"{number}", spec=soon(app), action="work") for number in range(MANY)
        )
        await wait_until(lambda: due_now(app))
        await step(app)
        assert len(app.worker.tasks) == 500  # a batch, and there is more
        await step(app)  # two batches share the capacity that is left
        assert len(app.worker.tasks) == 601
        held.set()
        await wait_until(lambda: stepped_to_the_end(app))


async def stepped_to_the_end(app: App) -> bool:
    await step(app)
    async with app.reading() as transaction:
        return await transaction.count_open(1) == {} and not await due_now(app)


@pytest.mark.contract("CRON-06")
async def test_batches_that_are_decided_at_the_same_time_start_everything_once(postgres: str):
    begun: list[str] = []

    async with running(App(postgres)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            begun.append(context.run_id)

        policies = Policies(overlap=Overlap.ALLOW_ALL)
        await app.schedules.create_many(
            NewSchedule(id=f"{number}", spec="* * * * * *", action="work", policies=policies)
            for number in range(MANY)
        )
        await wait_until(lambda: len(begun) >= 5 * MANY)
    assert len(set(begun)) == len(begun)

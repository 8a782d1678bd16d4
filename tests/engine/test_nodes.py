"""Several nodes on one PostgreSQL: they share, they follow each other, and no clock but the database's counts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae import App, Config, Context, NewSchedule, Overlap, Policies, Run, Timeouts
from horae.engine.engine import Engine
from horae.errors import StoreUnavailableError
from horae.model import Schedule, ScheduleKey
from horae.spec import slot_key
from horae.store.postgres import PostgresStore
from tests.engine.programs import Programs
from tests.support.nodes import (
    ShiftedClock,
    due_now,
    end_leases,
    fetch,
    has_status,
    keeping_time,
    only_run,
    running,
    soon,
    step,
    step_until,
    waits_for_lock,
    writes_wait,
)
from tests.support.postgres import commits_wait
from tests.support.wait import wait_for, wait_until

QUICK = Config(
    lease_ms=60_000, housekeeping_ms=200, tick_ms=200, attention_ms=500, terminate_ms=200, drain_ms=1000
)
"""Everything that takes its time by default, in a hurry, but for leases, which tests end themselves."""
SHORT = msgspec.structs.replace(QUICK, lease_ms=5000)


async def database_time(database: str) -> float:
    found: float = (await fetch(database, "SELECT extract(epoch FROM clock_timestamp())::float8"))[0][0]
    return found


KEY = ScheduleKey("s")
HERD = 10_000


async def create_herd(database: str) -> None:
    async with App(database) as app:
        spec = soon(app, 12)
        await app.schedules.create_many(
            NewSchedule(id=f"{number}", spec=spec, action="work") for number in range(HERD)
        )
        assert (await app.schedules.counts("0")).started == 0
        due = await fetch(database, "SELECT min(next_at_ms) FROM due")
        assert due[0][0] > app.now()  # all of it is there before any of it is due


@pytest.mark.contract("CRON-16")
@pytest.mark.long
def test_of_ten_thousand_slots_due_at_once_each_of_three_nodes_starts_its_share(
    postgres: str, programs: Programs
):
    nodes = [programs.start(0.01, postgres) for _ in range(3)]
    joined = "SELECT count(*) FROM node WHERE actions LIKE '%work%'"
    wait_for(lambda: schema_exists(postgres) and asyncio.run(fetch(postgres, joined))[0][0] == 3)
    asyncio.run(create_herd(postgres))
    wait_for(lambda: programs.lines() >= 2 * HERD)
    open_runs = "SELECT count(*) FROM run WHERE status <> 'succeeded'"
    wait_for(lambda: asyncio.run(fetch(postgres, open_runs))[0][0] == 0)
    programs.end()
    begun = [(key, pid) for key, word, pid in programs.log() if word == "1"]
    assert len(begun) == len({key for key, _ in begun}) == HERD  # none twice
    share = Counter(pid for _, pid in begun)
    assert all(share[str(node.pid)] >= 1000 for node in nodes), share


def schema_exists(database: str) -> bool:
    return asyncio.run(fetch(database, "SELECT to_regclass('node') IS NOT NULL"))[0][0] is True


@pytest.mark.contract("CRON-16")
def test_a_node_that_stood_still_longer_than_its_lease_begins_anew(postgres: str, programs: Programs):
    config = {"lease_ms": 4000, "housekeeping_ms": 500, "terminate_ms": 500}
    standing = programs.start(600, postgres, 4, **config)  # a node whose runs never end
    wait_for(lambda: len({key for key, _, _ in programs.log()}) == 4)
    held = {key for key, _, _ in programs.log()}
    stand_still(standing, postgres)
    (epoch,) = (row[0] for row in asyncio.run(fetch(postgres, "SELECT epoch FROM node")))
    programs.start(0.01, postgres, 4, **config)
    wait_for(lambda: held <= {key for key, word, _ in programs.log() if word == "done"})
    assert Counter(key for key, word, _ in programs.log() if word == "2" and key in held) == dict.fromkeys(
        held, 1
    )
    standing.send_signal(signal.SIGCONT)
    wait_for(lambda: held == {key for key, word, pid in programs.log() if word == "stopped"})  # it let go
    # It rejoins, and continues under a new epoch; the old one began nothing more, and wrote nothing.
    later = "SELECT count(*) FROM node WHERE name LIKE '%:' || $1 || ':%' AND epoch > $2"
    wait_for(lambda: asyncio.run(fetch(postgres, later, str(standing.pid), epoch))[0][0] == 1)
    wait_for(lambda: len({key for key, _, pid in programs.log() if pid == str(standing.pid)}) > 4)
    programs.end()
    claims = "SELECT schedule_key, nominal_ms / 1000, attempt, epoch, status FROM run"
    rows = asyncio.run(fetch(postgres, claims))
    assert all(row[3] != epoch for row in rows)
    taken_over = {slot_key(row[0], row[1]): (row[2], row[4]) for row in rows}
    assert {taken_over[key] for key in held} == {(2, "succeeded")}
    attempts = asyncio.run(fetch(postgres, "SELECT attempt, epoch, reason FROM attempt ORDER BY run_id"))
    assert [tuple(row) for row in attempts if row[1] == epoch] == [(1, epoch, "crashed")] * 4


def stand_still(process: Any, database: str) -> None:
    """Stop a process, between two transactions: what one does that is in the middle of one, another test shows."""
    busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"

    def stands() -> bool:
        process.send_signal(signal.SIGSTOP)
        if asyncio.run(fetch(database, busy))[0][0] == 0:
            return True
        process.send_signal(signal.SIGCONT)
        return False

    wait_for(stands)


async def test_a_claimed_run_whose_node_may_have_lost_its_lease_goes_back_and_runs_later(postgres: str):
    clock = ShiftedClock()
    done: list[int] = []
    async with App(postgres, clock=clock) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            done.append(context.attempt)

        await app.schedules.create("s", soon(app), "work")
        await wait_until(lambda: due_now(app))
        clock.slept = 60  # the lease has ended, as far as this node can know
        assert not app.engine.holds_lease
        await step(app)
        run = await only_run(app)
        assert (run.status, run.attempt, run.epoch) == ("running", 1, app.engine.epoch)
        await app.engine.renew_and_maintain(app.now())  # the database says that it lives
        assert app.engine.holds_lease
        assert done == []
        await step(app)
        await wait_until(lambda: done == [2])
        await step(app)
        assert (await only_run(app)).status == "succeeded"
        assert [each.attempt for each in await app.runs.attempts(run.id)] == [1]


async def test_the_outcome_of_a_run_that_was_taken_over_writes_nothing(postgres: str):
    held = asyncio.Event()
    async with App(postgres, config=QUICK) as late, App(postgres, config=QUICK) as other:

        @late.action("work")
        async def wait(context: Context) -> str:
            await held.wait()
            return "late"

        @other.action("work")
        async def work(context: Context) -> str:
            return "other"

        await late.schedules.create("s", soon(late), "work")
        await wait_until(lambda: step_until(late, "running"))
        await end_leases(postgres, late.engine.epoch)
        await wait_until(lambda: step_until(other, "succeeded", house=True))
        held.set()
        await asyncio.sleep(0)
        await wait_until(lambda: bool(late.worker.ended()))
        before = await only_run(other)
        await step(late)
        assert await only_run(other) == before
        assert (before.result, before.attempt) == ("other", 2)
        async with other._store.transaction() as transaction:
            last = (await transaction.last_outcomes([KEY]))[KEY]
        assert last.result == '"other"'  # that is what the next run is given


async def test_a_node_decides_what_it_cannot_run_and_leaves_it_to_one_that_can(postgres: str):
    able = App(postgres, config=QUICK)
    ran: list[str] = []

    @able.action("work")
    async def work(context: Context) -> None:
        ran.append(context.run_id)

    async with able:
        created = await able.schedules.create("s", soon(able, 2), "work")
    async with running(App(postgres, config=QUICK)) as unable:
        await wait_until(lambda: has_status(unable, "starting"))
        run = await only_run(unable)
        assert (run.attempt, run.epoch) == (0, 0)
        assert (
            await unable.schedules.get("s")
        ).cursor_ms // 1000 > created.cursor_ms // 1000  # it was decided

        async def says_so() -> bool:
            return (await unable.schedules.get("s")).state.attention != ""

        await wait_until(says_so)
        attention = (await unable.schedules.get("s")).state.attention
        assert attention == 'no living node can run the action "work"'
        assert (await only_run(unable)).status == "starting"
        again = App(postgres, config=QUICK)
        again.functions.register("work", work)
        async with running(again):
            await wait_until(lambda: has_status(unable, "succeeded"))
        assert ran == [run.id]
        assert (await only_run(unable)).attempt == 1
        assert (await unable.schedules.get("s")).state.attention == ""


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
async def test_no_more_runs_go_on_at_once_than_a_node_may_have(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
):
    database = (
        request.getfixturevalue("postgres") if where == "postgres" else f"sqlite:///{tmp_path / 'horae.db'}"
    )
    busy, peak = 0, 0
    async with running(App(database, config=Config(concurrency=3, tick_ms=100))) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            nonlocal busy, peak
            busy += 1
            peak = max(peak, busy)
            await asyncio.sleep(0.05)
            busy -= 1

        spec = soon(app, 2)
        await app.schedules.create_many(
            NewSchedule(id=f"s{number}", spec=spec, action="work") for number in range(20)
        )

        async def all_ran() -> bool:
            async with app._store.transaction() as transaction:
                runs = [await transaction.runs(ScheduleKey(f"s{number}"), 2) for number in range(20)]
            return all(len(found) == 1 and found[0].status == "succeeded" for found in runs)

        await wait_until(all_ran)
    assert peak == 3


def check_second_by_second(schedule: Schedule, runs: list[Run], unstarted: list[Any], now: float) -> None:
    """A schedule of every second: each slot once, none before its time, none ahead of the present."""
    slots = [run.nominal_ms // 1000 for run in runs]
    slots += [
        second for each in unstarted for second in range(each.start_ms // 1000, each.end_ms // 1000 + 1)
    ]
    assert sorted(slots) == list(range(schedule.created_at_ms // 1000 + 1, schedule.cursor_ms // 1000 + 1))
    assert max(slots) <= now
    assert all(run.started_at_ms is None or run.started_at_ms >= run.nominal_ms for run in runs)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_an_hour_off_fires_by_the_database_s_time(postgres: str, hours: int):
    clock = ShiftedClock(timedelta(hours=hours))
    async with running(App(postgres, clock=clock, config=QUICK)) as app:
        await fires_every_second(app, postgres, 3)


async def fires_every_second(app: App, database: str, times: int) -> None:
    seen: list[float] = []

    @app.action("work")
    async def work(context: Context) -> None:
        seen.append(context.nominal.timestamp())

    before = await database_time(database)
    await app.schedules.create("s", "* * * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL))
    await wait_until(lambda: len(seen) >= times)
    assert seen[0] >= before - 1
    await check_by_database(app, database)


async def check_by_database(app: App, database: str) -> None:
    async with app._store.transaction() as transaction:
        (schedule,) = await transaction.schedules([KEY])
        runs, unstarted = (
            await transaction.runs(KEY, 1000),
            await transaction.unstarted_ranges(KEY, 1000),
        )
    check_second_by_second(schedule, runs, unstarted, await database_time(database))


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_jumps_by_an_hour_fires_nothing_early_and_nothing_twice(postgres: str, hours: int):
    clock = ShiftedClock()
    seen: list[tuple[str, int]] = []
    config = Config(tick_ms=200)  # maintenance does not come in time to correct the clock
    async with running(App(postgres, clock=clock, config=config)) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            seen.append((context.key, context.attempt))

        await app.schedules.create("s", "* * * * * *", "work", policies=Policies(overlap=Overlap.ALLOW_ALL))
        await wait_until(lambda: len(seen) >= 2)
        clock.shift = timedelta(hours=hours)
        before = len(seen)
        await wait_until(lambda: len(seen) >= before + 2)
        await check_by_database(app, postgres)
    assert len(set(seen)) == len(seen)
    assert {attempt for _, attempt in seen} == {1}


async def test_a_clock_that_jumps_by_an_hour_ends_no_run_before_its_time_is_up(postgres: str):
    clock = ShiftedClock()
    held = asyncio.Event()
    async with App(postgres, clock=clock, config=QUICK) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            await held.wait()

        policies = Policies(timeouts=Timeouts(run="30m"))
        await app.schedules.create("s", soon(app), "work", policies=policies)
        await wait_until(lambda: step_until(app, "running"))
        clock.shift = timedelta(hours=1)
        await step(app)
        clock.shift = timedelta(0)
        for _ in range(3):
            await step(app)
        assert (await only_run(app)).status == "running"


@asynccontextmanager
async def outdated_engine(database: str, app: App) -> AsyncIterator[Engine]:
    """A node with old time-zone data, which can run what an app can."""
    store = PostgresStore(database)
    await store.open(lambda: None)
    engine = Engine(store, app.worker, app.clock, app.config, tzdata="2020a")
    await engine.enter(app.now())
    await engine.maintain(app.now())
    try:
        yield engine
    finally:
        await engine.drain(app.now)
        await store.close()


async def test_a_node_with_older_zone_data_decides_nothing_and_runs_what_others_release(postgres: str):
    able, unable = App(postgres), App(postgres)
    ran: list[str] = []

    @able.action("work")
    async def work(context: Context) -> None:
        ran.append(context.run_id)

    async with able:
        await able.schedules.create("s", soon(able), "work")
    async with unable, outdated_engine(postgres, able) as engine:
        assert not engine.generating
        await wait_until(lambda: due_now(unable))
        await engine.step(unable.now())
        assert await unable.runs.list("s") == []  # it is due, and this node leaves it alone
        await wait_until(lambda: step_until(unable, "starting"))
        await engine.step(unable.now())
        await wait_until(lambda: len(ran) == 1)
        await engine.step(unable.now())
        assert (await only_run(unable)).status == "succeeded"
        assert (await only_run(unable)).epoch == engine.epoch


async def test_a_node_with_older_zone_data_decides_nothing_when_it_takes_what_others_released(postgres: str):
    able, unable = App(postgres), App(postgres)

    @able.action("work")
    async def work(context: Context) -> None:
        await asyncio.sleep(0)

    async with able:
        await able.schedules.create("s", "* * * * * *", "work")
    async with unable, outdated_engine(postgres, able) as engine:
        await wait_until(lambda: step_until(unable, "starting"))
        decided = (await unable.schedules.get("s")).cursor_ms // 1000
        await wait_until(lambda: due_now(unable))  # the next slot
        assert not engine.generating
        await engine.step(unable.now())
        assert (await unable.schedules.get("s")).cursor_ms // 1000 == decided


async def test_a_node_that_falls_silent_in_the_middle_of_a_decision_holds_up_no_other_for_long(postgres: str):
    async with App(postgres, config=SHORT) as silent, App(postgres, config=SHORT) as other:

        @other.action("work")
        async def work(context: Context) -> None:
            await asyncio.sleep(0)

        await other.schedules.create("s", soon(other), "work")
        with contextlib.suppress(Exception):  # what it finds when it wakes is its own affair
            async with silent._store.transaction() as transaction:
                await transaction.schedules([KEY])
                # It is silent for several leases; the database is to end what it had begun.
                await wait_until(lambda: step_until(other, "succeeded", house=True))
        assert await has_status(other, "succeeded")


async def test_a_node_that_joins_anew_in_the_middle_of_a_step_begins_nothing_under_its_old_number(
    postgres: str,
):
    async with App(postgres, config=QUICK) as app:
        epoch = app.engine.epoch
        begun: list[int] = []

        @app.action("work")
        async def work(context: Context) -> None:
            begun.append((await only_run(app)).epoch)

        await app.schedules.create("s", soon(app), "work")
        await wait_until(lambda: due_now(app))
        async with writes_wait("run", postgres):
            step = asyncio.create_task(app.engine.step(app.now()))
            await wait_until(lambda: waits_for_lock(postgres))
            await end_leases(postgres, epoch)
            await app.engine.renew_and_maintain(app.now())
            assert app.engine.epoch > epoch
        with contextlib.suppress(StoreUnavailableError):  # it may notice in time
            await step
        await wait_until(lambda: step_until(app, "succeeded", house=True))
        assert begun == [app.engine.epoch]


async def test_a_node_that_is_buried_before_it_claims_holds_nothing_up(postgres: str):
    async with App(postgres, config=QUICK) as other:
        late = await able_node(postgres, other)
        async with writes_wait("run", postgres):
            step = asyncio.create_task(late.engine.step(late.now()))
            await wait_until(lambda: waits_for_lock(postgres))
            await end_leases(postgres, late.engine.epoch)
            await wait_until(lambda: is_buried(late.engine.epoch, by=other))
        with contextlib.suppress(StoreUnavailableError):  # it may notice in time
            await step
        await late.close()  # and there it dies, right after the commit, if there was one
        await wait_until(lambda: step_until(other, "succeeded", house=True))


async def test_a_node_that_is_buried_while_it_claims_holds_nothing_up(postgres: str):
    async with App(postgres, config=SHORT) as other:
        late = await able_node(postgres, other, SHORT)
        async with commits_wait("run", postgres):  # all is written and checked when its lease ends
            step = asyncio.create_task(late.engine.step(late.now()))
            await wait_until(lambda: waits_for_lock(postgres))
            await wait_until(lambda: is_dead(late.engine.epoch, other))
            burial = asyncio.create_task(other.engine.renew_and_maintain(other.now()))
            await wait_until(lambda: burial.done() or waits_for_lock(postgres, 2))
        await step
        await late.close()
        await burial
        await wait_until(lambda: step_until(other, "succeeded", house=True))


async def able_node(database: str, other: App, config: Config = QUICK) -> App:
    """A node with a schedule that is due; it can run it, and so can another."""
    app = await App(database, config=config).__aenter__()

    @other.action("work")
    @app.action("work")
    async def work(context: Context) -> None:
        await asyncio.sleep(0)

    await app.schedules.create("s", soon(app), "work")
    await wait_until(lambda: due_now(app))
    return app


async def is_buried(epoch: int, by: App) -> bool:
    await by.engine.renew_and_maintain(by.now())
    return all(node.epoch != epoch for node in await by.nodes())


async def is_dead(epoch: int, app: App) -> bool:
    return not any(node.alive and node.epoch == epoch for node in await app.nodes())


async def test_an_app_that_runs_long_after_it_was_opened_starts_without_complaint(
    postgres: str, caplog: pytest.LogCaptureFixture
):
    done: list[int] = []
    clock = ShiftedClock()
    async with App(postgres, clock=clock, config=QUICK) as app:

        @app.action("work")
        async def work(context: Context) -> None:
            done.append(context.attempt)

        await app.schedules.create("s", soon(app), "work")
        clock.slept = QUICK.lease_ms / 1000 + 1
        await end_leases(postgres)
        async with keeping_time(app):
            await wait_until(lambda: done == [1])
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []

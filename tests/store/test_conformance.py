"""One suite for every store: what the engine relies on."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path

import asyncpg
import msgspec
import pytest

from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.model import Action, Overlap, PassedOver, Policies, Reason, Run, Schedule, State, Status
from horae.store.port import Advance, Outcome, Store
from horae.store.postgres import PostgresStore
from horae.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "file", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store
    if request.param == "postgres":
        store = PostgresStore(request.getfixturevalue("postgres"))
    else:
        path = ":memory:" if request.param == "memory" else str(tmp_path / "horae.db")
        store = SqliteStore(path, inline=request.param == "memory")
    await store.open(lambda: None)
    yield store
    await store.close()


def schedule(name: str, cursor: int = 100) -> Schedule:
    return Schedule(
        id=name, incarnation=1, spec='{"crons":["* * * * *"]}', action=Action(name="a", input={"x": [1, None]}),
        policies=Policies(overlap=Overlap.BUFFER_ALL), state=State(note="ü"), token=1, cursor=cursor,
        created_at=1, updated_at=2,
    )  # fmt: skip


def run(number: int, status: Status = Status.RUNNING, schedule_id: str = "s") -> Run:
    return Run(
        id=f"run-{schedule_id}-{number}", schedule_id=schedule_id, incarnation=1, nominal=number, origin="automatic",
        overlap=Overlap.SKIP, status=status, fire_at=number * 1000, start_at=number * 1000,
        attempt=int(status is Status.RUNNING), epoch=7 if status is Status.RUNNING else 0, input={"a": 1},
    )  # fmt: skip


async def test_what_is_written_is_read_again(store: Store):
    async with store.transaction() as transaction:
        await transaction.put_schedule(schedule("s"), 5000)
        await transaction.insert_runs([run(1), run(2, Status.PENDING)])
    async with store.transaction() as transaction:
        assert await transaction.schedules(["s", "none"]) == [schedule("s")]
        assert await transaction.open_runs(["s"]) == [run(1), run(2, Status.PENDING)]
        assert await transaction.runs("s", 1) == [run(2, Status.PENDING)]
        assert await transaction.claimed() == [run(1)]


async def test_due_schedules_come_in_the_order_of_their_time(store: Store):
    async with store.transaction() as transaction:
        for name, next_at in (("a", 300), ("b", 100), ("c", None), ("d", 200), ("e", 999)):
            await transaction.put_schedule(schedule(name), next_at)
        assert await transaction.wake_at() == 100
        assert [s.id for s in await transaction.due(300, 10)] == ["b", "d", "a"]
        assert [s.id for s in await transaction.due(300, 2)] == ["b", "d"]
        assert await transaction.due(99, 10) == []
        await transaction.look_now(["c", "e"], 50)
        assert [s.id for s in await transaction.due(60, 10)] == ["c", "e"]
        assert [s.id for s in await transaction.all_schedules("b", 2)] == ["c", "d"]


async def test_a_transaction_is_all_or_nothing(store: Store):
    with contextlib.suppress(RuntimeError):
        async with store.transaction() as transaction:
            await transaction.put_schedule(schedule("s"), 5000)
            raise RuntimeError
    async with store.transaction() as transaction:
        assert await transaction.schedules(["s"]) == []


@pytest.mark.contract("CRON-06", "GRNT-07")
async def test_a_slot_is_unique(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
    with pytest.raises((sqlite3.IntegrityError, asyncpg.UniqueViolationError)):
        async with store.transaction() as transaction:
            await transaction.insert_runs([run(2), msgspec.structs.replace(run(1), id="another")])
    async with store.transaction() as transaction:
        assert await transaction.runs("s", 9) == [run(1)]


async def test_a_stale_claim_writes_nothing(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
        for stale in (Outcome("run-s-1", 6, 1, Status.FAILED, 9), Outcome("run-s-1", 7, 2, Status.FAILED, 9)):
            assert await transaction.finish([stale]) == []
        done = Outcome("run-s-1", 7, 1, Status.SUCCEEDED, 9, result='{"ok":true}')
        assert await transaction.finish([done]) == ["s"]
        assert await transaction.finish([done]) == []  # an end is final
        (read,) = await transaction.runs("s", 9)
        assert (read.status, read.result, read.ended_at) == (Status.SUCCEEDED, {"ok": True}, 9)
        assert await transaction.open_runs(["s"]) == []


async def test_only_a_waiting_run_is_released(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2, Status.PENDING)])
        for number in (1, 2):
            changed = msgspec.structs.replace(run(number), status=Status.SKIPPED, reason="overlap")
            await transaction.update_runs([changed])
        assert [r.status for r in await transaction.runs("s", 9)] == [Status.SKIPPED, Status.RUNNING]


def passed(first: int, last: int, before: int | None, reason: Reason = Reason.OVERLAP) -> PassedOver:
    return PassedOver(
        schedule_id="s", incarnation=1, first=first, last=last, count=last - first + 1,
        status=Status.SKIPPED, reason=reason, decided_at=last, before=before,
    )  # fmt: skip


async def test_consecutive_slots_that_did_not_run_are_one_range(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_passed([passed(1, 1, 0), passed(2, 5, 1)])
        await transaction.insert_passed([passed(6, 6, 5)])
        await transaction.insert_passed([passed(8, 9, 7)])
        await transaction.insert_passed([passed(10, 10, 9, Reason.PAUSED)])
        found = [(p.first, p.last, p.count) for p in await transaction.passed_over("s", 9)]
    assert found == [(10, 10, 1), (8, 9, 2), (1, 6, 6)]


async def test_cursors_and_states_advance(store: Store):
    async with store.transaction() as transaction:
        await transaction.put_schedule(schedule("s"), 1)
        await transaction.put_schedule(schedule("t"), 1)
        await transaction.advance([Advance("s", 160, 200, None), Advance("t", 170, None, State(paused=True))])
        first, second = await transaction.schedules(["s", "t"])
        assert (first.cursor, first.state) == (160, schedule("s").state)
        assert (second.cursor, second.state) == (170, State(paused=True))
        assert await transaction.wake_at() == 200


async def test_numbers_are_never_given_twice(store: Store):
    async with store.transaction() as transaction:
        assert [await transaction.next_number() for _ in range(3)] == [1, 2, 3]
        assert [await transaction.next_incarnation(name) for name in "aab"] == [1, 2, 1]
        await transaction.put_schedule(schedule("a"), 1)
        await transaction.delete_schedule("a")
        assert await transaction.next_incarnation("a") == 3
        assert await transaction.wake_at() is None


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path):
    path = str(tmp_path / "horae.db")
    first = SqliteStore(path)
    await first.open(lambda: None)
    await first.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE horae SET version = 99")
    second = SqliteStore(path)
    with pytest.raises(DatabaseVersionError, match="99"):
        await second.open(lambda: None)
    await second.close()


async def test_the_due_query_stays_on_its_index(tmp_path: Path):
    store = SqliteStore(str(tmp_path / "horae.db"))
    await store.open(lambda: None)
    from horae.store.sqlite import query  # noqa: PLC0415 - only this test looks inside

    plan = await store.work(
        lambda c: c.execute("EXPLAIN QUERY PLAN " + query("due"), {"now": 1, "limit": 1}).fetchall()
    )
    text = " / ".join(row[3] for row in plan)
    assert "USING INDEX due_next" in text
    assert "SCAN" not in text
    assert "TEMP B-TREE" not in text
    await store.close()


async def test_the_life_of_a_node_is_known_by_a_lock(tmp_path: Path):
    path = str(tmp_path / "horae.db")
    one, other = SqliteStore(path), SqliteStore(path)
    await one.open(lambda: None)
    await other.open(lambda: None)
    await one.announce(4)
    assert await other.living([4, 5]) == {4}
    await one.close()
    assert await other.living([4, 5]) == set()
    await other.close()


async def test_the_life_of_a_node_is_known_by_its_lease(postgres: str, monkeypatch: pytest.MonkeyPatch):
    one, other = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda: None)
    await other.open(lambda: None)
    await one.announce(4)
    assert await one.renew(4)
    assert await other.living([4, 5]) == {4}
    monkeypatch.setattr("horae.store.postgres.LEASE", -1.0)
    assert await one.renew(4)  # now its deadline has passed
    assert await other.living([4, 5]) == set()
    assert not await one.renew(4)  # too late: others may have taken its runs
    await one.close()
    await other.close()


async def test_a_schedule_that_one_node_decides_is_passed_by_by_another(postgres: str):
    one, other = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda: None)
    await other.open(lambda: None)
    async with one.transaction() as setup:
        for name in "abc":
            await setup.put_schedule(schedule(name), 1)
    async with one.transaction() as first:
        assert [s.id for s in await first.due(5, 2)] == ["a", "b"]
        async with other.transaction() as second:
            assert [s.id for s in await second.due(5, 9)] == ["c"]
    await one.close()
    await other.close()


async def test_one_node_wakes_another(postgres: str):
    woken = asyncio.Event()
    one, other = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda: None)
    await other.open(woken.set)
    for _ in range(100):  # until the other one listens
        async with one.transaction() as transaction:
            await transaction.notify()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), 0.1)
            break
    assert woken.is_set()
    await one.close()
    await other.close()


def test_both_dialects_have_the_same_queries():
    names = {
        folder: {
            file.name
            for file in (resources.files("horae.store") / folder).iterdir()
            if file.name.endswith(".sql")
        }
        for folder in ("sqlite", "postgres")
    }
    # PostgreSQL has leases, notifications and a clock of its own; a file has locks of the operating system.
    extra = {"announce.sql", "renew.sql", "living.sql", "notify.sql", "time.sql"}
    assert names["postgres"] - extra == names["sqlite"]


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: SqliteStore(str(folder / "nowhere" / "horae.db")),
        lambda folder: SqliteStore(str(folder)),
        lambda _: PostgresStore("postgresql://nobody@127.0.0.1:1/none"),
    ],
)
async def test_a_database_that_cannot_be_had_is_said_to_be_away(
    make: Callable[[Path], Store], tmp_path: Path
):
    store = make(tmp_path)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        await store.open(lambda: None)
    await store.close()

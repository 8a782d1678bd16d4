"""Real processes, killed: nothing committed is lost, no slot is decided twice."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from horae import App, Overlap, Policies
from horae.app import NewSchedule
from horae.model import Checkpoint
from horae.spec import slot_key
from tests.engine.programs import Programs
from tests.support.nodes import end_leases, fetch
from tests.support.postgres import FragileServer
from tests.support.process import Process, kill
from tests.support.wait import wait_for, wait_until

T = TypeVar("T")


def grown(programs: Programs, beyond: int) -> bool:
    return programs.lines() > beyond


def statuses(tmp_path: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(tmp_path / "horae.db")) as connection:
        return connection.execute("SELECT status, attempt FROM run ORDER BY number").fetchall()


def begun_twice(programs: Programs) -> list[tuple[str, str]]:
    """The attempts that were begun more than once: there must be none, ever."""
    begun = Counter((key, word) for key, word, _ in programs.log() if word.isdigit())
    return [attempt for attempt, times in begun.items() if times > 1]


def test_a_killed_run_is_attempted_again_under_the_same_key(tmp_path: Path, programs: Programs):
    process = programs.start(60, schedules=1)
    wait_for(lambda: len(programs.log()) == 1)
    kill(process)
    assert statuses(tmp_path) == [("running", 1)]
    programs.start(0.01, schedules=1)
    wait_for(lambda: len(programs.log()) >= 5)
    programs.end()
    (key, first, _), (again, second, _), (done, word, _) = programs.log()[:3]
    assert key == again == done
    assert (first, second, word) == ("1", "2", "done")
    assert statuses(tmp_path)[0] == ("succeeded", 2)


async def trigger(database: str, action: str) -> str:
    """A run of an action that another process will do."""
    async with App(database) as app:
        app.action(action)(print)
        await app.schedules.create("s", {}, action)
        return await app.schedules.trigger("s")


async def saved_by(database: str, run_id: str, least: int = 0) -> list[Checkpoint]:
    """What attempts of a run saved, once there is as much."""
    async with reading(database) as app:
        return await at_least(least, partial(app.runs.checkpoints, run_id))


@asynccontextmanager
async def reading(database: str) -> AsyncIterator[App]:
    """An app that is no node."""
    app = App(database)
    await app.open()
    try:
        yield app
    finally:
        await app.close()


async def at_least(number: int, read: Callable[[], Awaitable[Sequence[T]]]) -> list[T]:
    found: list[T] = []

    async def are_there() -> bool:
        found[:] = await read()
        return len(found) >= number

    await wait_until(are_there)
    return found


def test_the_next_attempt_sees_what_a_killed_one_saved(database: str, programs: Programs):
    run_id = asyncio.run(trigger(database, "steps"))
    lease = {"lease_ms": 60_000, "housekeeping_ms": 300}
    killed = programs.start(60, database, **lease)
    wait_for(lambda: any(word == "saved:one" for _, word, _ in programs.log()))
    kill(killed)
    asyncio.run(end_leases(database))
    programs.start(0.01, database, **lease)
    wait_for(lambda: any(word == "done" for _, word, _ in programs.log()))
    programs.end()
    words = [word for _, word, _ in programs.log()]
    assert words == [
        "1", "did:one", "saved:one", "2", f"saw:one={killed.pid}", "did:two", "saved:two", "did:three", "saved:three",
        "done",
    ]  # fmt: skip
    saved = asyncio.run(saved_by(database, run_id))
    assert [(each.key, each.attempt) for each in saved] == [("one", 1), ("two", 2), ("three", 2)]


async def logged_by(database: str, run_id: str, least: int) -> list[tuple[int, str]]:
    """What attempts of a run logged, once there is as much."""
    async with reading(database) as app:
        lines = await at_least(least, partial(app.runs.logs, run_id))
    return [(line.attempt, line.message) for line in lines]


def test_what_a_killed_attempt_logged_can_be_read_up_to_its_last_write(database: str, programs: Programs):
    run_id = asyncio.run(trigger(database, "talk"))
    settings = {"lease_ms": 60_000, "housekeeping_ms": 300, "attempt_log_flush_ms": 20}
    killed = programs.start(60, database, **settings)
    asyncio.run(logged_by(database, run_id, 1))
    kill(killed)
    asyncio.run(end_leases(database))
    again = programs.start(0.01, database, **settings)
    wait_for(lambda: any(word == "done" for _, word, _ in programs.log()))
    assert asyncio.run(logged_by(database, run_id, 3)) == [
        (1, f"attempt 1 begins in {killed.pid}"),
        (2, f"attempt 2 begins in {again.pid}"),
        (2, "attempt 2 ends"),
    ]


@pytest.mark.contract("GRNT-07")
def test_a_node_that_stood_still_while_its_run_was_taken_over_saves_nothing(
    postgres: str, programs: Programs
):
    run_id = asyncio.run(trigger(postgres, "keep saving"))
    lease = {"lease_ms": 4000, "housekeeping_ms": 300}
    stopped = programs.start(0.02, postgres, **lease)
    asyncio.run(saved_by(postgres, run_id, 4))
    stopped.send_signal(signal.SIGSTOP)
    programs.start(0.02, postgres, **lease)
    wait_for(lambda: any(word == "2" for _, word, _ in programs.log()))
    stopped.send_signal(signal.SIGCONT)
    wait_for(lambda: ["stale", str(stopped.pid)] in [line[1:] for line in programs.log()])
    programs.end()
    (seen,) = [
        int(word[4:]) for _, word, pid in programs.log() if word[:4] == "saw:" and pid != str(stopped.pid)
    ]
    saved = asyncio.run(saved_by(postgres, run_id))
    assert (
        sum(each.attempt == 1 for each in saved) == seen > 3
    )  # all that is there of the first, the second was given


def test_every_slot_is_in_the_ledger_once_whatever_is_killed(tmp_path: Path, programs: Programs):
    for _ in range(4):
        before = programs.lines()
        process = programs.start(0.3, schedules=1)
        wait_for(partial(grown, programs, before + 1))
        kill(process)
    with closing(sqlite3.connect(tmp_path / "horae.db")) as connection:
        runs = [n for (n,) in connection.execute("SELECT nominal_ms / 1000 FROM run ORDER BY nominal_ms")]
        unstarted = connection.execute(
            "SELECT start_ms / 1000, end_ms / 1000, count FROM unstarted_range"
        ).fetchall()
        ((cursor,),) = connection.execute("SELECT cursor_ms / 1000 FROM due").fetchall()
        ((created,),) = connection.execute("SELECT created_at_ms / 1000 FROM schedule").fetchall()
    slots = runs + [n for first, last, _ in unstarted for n in range(first, last + 1)]
    assert sorted(slots) == list(range(created + 1, cursor + 1))
    assert all(count == last - first + 1 for first, last, count in unstarted)


def test_two_processes_share_a_file_and_start_nothing_twice(programs: Programs):
    programs.start(0.01, schedules=1)
    programs.start(0.01, schedules=1)
    wait_for(lambda: len(programs.log()) >= 8)
    programs.end()
    assert begun_twice(programs) == []


@pytest.mark.contract("CRON-16")
@pytest.mark.long
def test_three_nodes_on_postgresql_share_the_work_and_take_over_from_the_dead(
    postgres: str, programs: Programs
):
    lease = {"lease_ms": 60_000, "housekeeping_ms": 1000}
    for _ in range(3):
        programs.start(0.01, postgres, 10, **lease)
    wait_for(lambda: len({pid for _, _, pid in programs.log()}) == 3)
    hanging = programs.start(600, postgres, 10, **lease)  # a node whose runs never end
    wait_for(lambda: any(pid == str(hanging.pid) for _, _, pid in programs.log()))
    kill(hanging)
    dead = asyncio.run(fetch(postgres, "SELECT epoch FROM node WHERE name LIKE $1", f"%:{hanging.pid}:%"))
    asyncio.run(end_leases(postgres, *(epoch for (epoch,) in dead)))
    stuck = {key for key, _, pid in programs.log() if pid == str(hanging.pid)}
    wait_for(lambda: stuck <= {key for key, word, _ in programs.log() if word == "done"})
    programs.end()
    assert begun_twice(programs) == []
    again = {key for key, word, _ in programs.log() if word == "2"}
    begun = {key for key, word, pid in programs.log() if word == "1" and pid != str(hanging.pid)}
    assert stuck <= again
    assert not again & begun  # only what the dead node held was attempted again; it had not begun all of it


@pytest.mark.contract("CRON-16")
def test_connections_that_are_cut_lose_no_slot(postgres: str, postgres_server: Any, programs: Programs):
    programs.start(0.01, postgres, 3)
    wait_for(lambda: len(programs.log()) > 6)
    postgres_server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 't%' AND pid <> pg_backend_pid();"
    )
    before = programs.lines()
    wait_for(lambda: len(programs.log()) > before + 12)
    programs.end()
    rows = asyncio.run(fetch(postgres, LEDGER))
    for schedule, first, last, runs, unstarted in rows:
        assert runs + unstarted == last - first, schedule


LEDGER = """
    SELECT d.schedule_key, s.created_at_ms / 1000, d.cursor_ms / 1000,
        (SELECT count(*) FROM run AS r WHERE r.schedule_key = d.schedule_key),
        (SELECT coalesce(sum(count), 0) FROM unstarted_range AS p WHERE p.schedule_key = d.schedule_key)
    FROM due AS d JOIN schedule AS s ON s.key = d.schedule_key
"""
"""Each schedule with its first and last decided second, its runs, and its unstarted slots."""


KINDS = (
    Policies(overlap=Overlap.SKIP),
    Policies(overlap=Overlap.BUFFER_ALL),
    Policies(overlap=Overlap.ALLOW_ALL),
    Policies(overlap=Overlap.SKIP, at_most_once=True),
)
EVERY = (2, 3, 4, 5)
MANY = 200


async def create_many_schedules(database: str) -> None:
    """Schedules of all kinds and rhythms; each tenth takes longer than its rhythm."""
    async with App(database) as app:
        app.action("work")(print)  # it is never called here
        await app.schedules.create_many(
            NewSchedule(
                id=f"{number:04d}", spec=f"*/{EVERY[number % 4]} * * * * *", action="work",
                policies=KINDS[number // 4 % 4], input=2.5 if number % 10 == 0 else None,
            )
            for number in range(MANY)
        )  # fmt: skip


@pytest.mark.contract("CRON-16", "CRON-06")
@pytest.mark.long
def test_nodes_and_the_database_are_killed_at_any_time_and_every_slot_is_in_the_ledger_once(
    fragile_server: FragileServer, programs: Programs
):
    database = fragile_server.address
    asyncio.run(create_many_schedules(database))
    node = partial(
        programs.start, 0.1, database, lease_ms=3000, housekeeping_ms=750, drain_ms=5000, terminate_ms=1000
    )
    nodes = [node() for _ in range(3)]
    wait_for(partial(take_part, programs, nodes))
    for round_number, victim in enumerate((0, 2, 1, 1, 0, 2)):
        wait_for(partial(grown, programs, programs.lines() + 300))
        kill(nodes[victim])
        if round_number == 2:
            fragile_server.stop("immediate")
            fragile_server.start()
        nodes[victim] = node()
    wait_for(partial(take_part, programs, nodes))
    assert all(process.poll() is None for process in nodes)  # losing the database ended no node
    reached = asyncio.run(fetch(database, "SELECT max(cursor_ms) / 1000 FROM due"))[0][0]
    living = "SELECT count(*) FROM due WHERE cursor_ms / 1000 < $1"
    wait_for(lambda: asyncio.run(fetch(database, living, reached))[0][0] == 0)
    # A killed node lives on for the rest of its lease; then the others take over what it held, and bury it.
    wait_for(lambda: asyncio.run(fetch(database, "SELECT count(*) FROM node"))[0][0] == len(nodes))
    # A node that ends claims nothing more, so first they claim everything that is released.
    unclaimed = "SELECT count(*) FROM run WHERE status = 'starting' AND epoch = 0"
    wait_for(lambda: asyncio.run(fetch(database, unclaimed))[0][0] == 0)
    for process in nodes:
        process.send_signal(signal.SIGTERM)
    assert [process.wait(30) for process in nodes] == [0, 0, 0]
    check_ledger(database, programs)


def take_part(programs: Programs, nodes: list[Process]) -> bool:
    """Whether each node has begun a run."""
    return {str(process.pid) for process in nodes} <= {pid for _, word, pid in programs.log() if word == "1"}


def check_ledger(database: str, programs: Programs) -> None:
    places = asyncio.run(
        fetch(database, "SELECT d.schedule_key, s.created_at_ms / 1000, d.cursor_ms / 1000 FROM due AS d "
              "JOIN schedule AS s ON s.key = d.schedule_key")
    )  # fmt: skip
    runs = asyncio.run(
        fetch(database, "SELECT schedule_key, nominal_ms / 1000, id, status, reason, attempt FROM run")
    )
    unstarted = asyncio.run(
        fetch(
            database,
            "SELECT schedule_key, start_ms / 1000, end_ms / 1000, count, status, reason FROM unstarted_range",
        )
    )
    assert len(places) == MANY
    slots: dict[str, list[int]] = defaultdict(list)
    for schedule_id, nominal, *_ in runs:
        slots[schedule_id].append(nominal)
    for schedule_id, first, last, count, _, _ in unstarted:
        covered = range(first, last + 1, EVERY[int(schedule_id) % 4])
        assert len(covered) == count
        slots[schedule_id].extend(covered)
    for schedule_id, created, cursor in places:
        every = EVERY[int(schedule_id) % 4]
        expected = [second for second in range(created + 1, cursor + 1) if second % every == 0]
        assert sorted(slots[schedule_id]) == expected, schedule_id
    assert len({row[2] for row in runs}) == len(runs)
    never = {"skipped", "missed", "dropped"}
    assert {status for *_, status, _ in unstarted} <= never
    assert all(reason for *_, reason in unstarted)
    assert all(row[4] for row in runs if row[3] in never)
    assert [row for row in runs if row[3] in {"starting", "running"}] == []  # nothing was left lying
    check_log(runs, programs)


def check_log(runs: list[Any], programs: Programs) -> None:
    assert begun_twice(programs) == []
    lines = programs.log()
    # The first three and the last three; others may be killed before they decide anything.
    assert len({pid for _, word, pid in lines if word == "1"}) >= 6
    once = {slot_key(row[0], row[1]): row[5] for row in runs if KINDS[int(row[0]) // 4 % 4].at_most_once}
    begun = Counter(key for key, word, _ in lines if word.isdigit())
    assert all(begun[key] <= 1 for key in once)
    ended = {key for key, word, _ in lines if word == "done"}
    assert any(row[5] > 1 for row in runs)  # some of the killed were busy
    succeeded = {slot_key(row[0], row[1]) for row in runs if row[3] == "succeeded"}
    assert succeeded <= ended  # what is said to have ended well, has

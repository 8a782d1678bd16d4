"""One suite for every store: what the engine relies on."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import (
    AUTOMATIC,
    NOT_READ,
    Action,
    Attempt,
    Backfill,
    BackfillStatus,
    Checkpoint,
    Counts,
    LastOutcome,
    LogBatch,
    LogChunk,
    LogEntry,
    Node,
    Origin,
    Outcome,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    UnstartedRange,
    Version,
    owner_and_id,
    schedule_key,
)
from horae.store.port import (
    BEGINNING,
    Advance,
    Filter,
    LedgerFilter,
    RetentionBounds,
    Store,
    Transaction,
    Write,
)
from horae.store.postgres import PostgresStore
from horae.store.sqlite import SqliteStore

_replace = msgspec.structs.replace


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


def schedule(name: str, cursor: int = 100, **more: Any) -> Schedule:
    return Schedule(
        id=name, generation=1, spec='{"crons":["* * * * *"]}', action=Action(name="a", input={"x": [1, None]}),
        policies=Policies(overlap=Overlap.BUFFER_ALL), version=1, cursor_ms=cursor * 1000, created_at_ms=1, updated_at_ms=2,
        **{"state": State(note="ü"), **more},
    )  # fmt: skip


def run(number: int, status: Status = Status.RUNNING, schedule_id: str = "s", **more: Any) -> Run:
    made = Run(
        id=f"run-{schedule_id}-{number}", schedule_key=ScheduleKey(schedule_id), generation=1, nominal_ms=number * 1000, origin=AUTOMATIC,
        overlap=Overlap.SKIP, status=status, fire_ms=number * 1000, start_at_ms=number * 1000, action="a",
        action_id=f"{schedule_id}-{number}", attempt=int(status is Status.RUNNING),
        epoch=7 if status is Status.RUNNING else 0, input={"a": 1},
    )  # fmt: skip
    return _replace(made, **more)


def ended(number: int, status: Status = Status.SUCCEEDED, **more: Any) -> Outcome:
    return Outcome(run_id=f"run-s-{number}", epoch=7, attempt=1, status=status, ended_at_ms=9, **more)


async def sends_no_input(transaction: Transaction, name: str, **given: Any) -> None:
    """The database does not send the inputs of the runs that a query finds, not only what is made of its rows."""
    rows = await transaction.rows(name, **given)
    assert rows, name
    assert not any('{"a":1}' in map(str, row) for row in rows), name


async def test_what_is_written_is_read_again(store: Store):
    made = schedule("s", tags=("red", "blue"))
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(made, 5000)])
        await transaction.insert_runs([run(1), run(2, Status.PENDING, author="ada", note="why not")])
    async with store.transaction() as transaction:
        assert await transaction.schedules([ScheduleKey("s"), ScheduleKey("none")]) == [made]
        found = [run(1), run(2, Status.PENDING, author="ada", note="why not")]
        assert await transaction.runs(ScheduleKey("s"), 1) == found[1:]
        assert await transaction.runs_by_id(["run-s-1", "none"]) == found[:1]
        without_input = [_replace(each, input=NOT_READ) for each in found]
        assert await transaction.open_runs([ScheduleKey("s")]) == without_input
        assert await transaction.claimed([7, 8], 10) == without_input[:1]
        await sends_no_input(transaction, "open_runs", keys=["s"])
        await sends_no_input(transaction, "claimed", epochs=[7, 8], limit=10)
        await sends_no_input(transaction, "claims_of", ids=["run-s-1"])
        assert await transaction.claimed([8], 10) == []
        changed = _replace(made, version=2, cursor_ms=150_000, state=State(paused=True), tags=())
        await transaction.update_schedules([(changed, None)])
        assert await transaction.schedules([ScheduleKey("s")]) == [changed]


async def test_due_schedules_come_in_the_order_of_their_time(store: Store):
    base = (await store.time() or 1000) - 500
    async with store.transaction() as transaction:
        times = {"a": base + 300, "b": base + 100, "c": None, "d": base + 200, "e": base + 99_999}
        await transaction.insert_schedules((schedule(name), next_at_ms) for name, next_at_ms in times.items())
        assert await transaction.wake_at() == base + 100
        assert [s.id for s in await transaction.due(base + 300, 10)] == ["b", "d", "a"]
        assert [s.id for s in await transaction.due(base + 300, 2)] == ["b", "d"]
        assert await transaction.due(base + 99, 10) == []
        assert await transaction.without_next_time(ScheduleKey(""), 9) == ["c"]
        await transaction.mark_due([ScheduleKey("c"), ScheduleKey("e")], base + 50)
        assert [s.id for s in await transaction.due(base + 60, 10)] == ["c", "e"]


@pytest.mark.contract("SCHD-13")
async def test_schedules_are_found_by_what_they_are(store: Store):
    made = [
        schedule("a1", owner="ada", tags=("red",), state=State(paused=True)),
        schedule("a2", owner="bob", tags=("red", "blue"), state=State(attention="look")),
        schedule(
            "b1",
            owner="ada",
            managed_by="program jobs",
            state=State(orphaned=True, note='"paused"', completed_at_ms=7),
        ),
    ]
    made[2] = _replace(made[2], action=Action(name="other"), description="The Books")
    async with store.transaction() as transaction:
        await transaction.insert_schedules((each, 1) for each in made)
        for only, expected in (
            (Filter(), ["a1", "a2", "b1"]),
            (Filter(prefix="a"), ["a1", "a2"]),
            (Filter(prefix="%"), []),
            (Filter(owner="ada"), ["a1", "b1"]),
            (Filter(tag="red"), ["a1", "a2"]),
            (Filter(tag="re"), []),
            (Filter(action="other"), ["b1"]),
            (Filter(paused=True), ["a1"]),
            (Filter(paused=False), ["a2", "b1"]),
            (Filter(attention=True), ["a2"]),
            (Filter(managed_by="program jobs"), ["b1"]),
            (Filter(managed_by=""), ["a1", "a2"]),
            (Filter(orphaned=True), ["b1"]),
            (Filter(orphaned=False), ["a1", "a2"]),
            (Filter(owner="ada", paused=False), ["b1"]),
            (Filter(completed=True), ["b1"]),
            (Filter(owner="bob", completed=True), []),
            (Filter(owner="ada", paused=True, tag="red"), ["a1"]),
            (Filter(text="1"), ["a1", "b1"]),
            (Filter(text="blu"), ["a2"]),
            (Filter(text="books"), ["b1"]),
            (Filter(text="othe"), ["b1"]),
            (Filter(text="%"), []),
        ):
            assert [s.id for s in await transaction.find_schedules(only, BEGINNING, 9)] == expected, only
            sizes = await transaction.schedule_sizes(only, BEGINNING, 9)
            assert [owner_and_id(key)[1] for key, _ in sizes] == expected, only
            examined = await transaction.examine_schedules(only, BEGINNING, 9)
            assert [owner_and_id(key)[1] for key, size in examined if size is not None] == expected, only
            assert len(examined) == (
                3 if only.owner is None else sum(each.owner == only.owner for each in made)
            )
        assert await transaction.soonest_schedules("ada", None, 9, 9) == [
            (each.key, 1) for each in (made[0], made[2])
        ]
        assert await transaction.soonest_schedules(None, "blue", 9, 9) == [(made[1].key, 1)]
        assert await transaction.soonest_schedules(None, None, 2, 1) == [(made[0].key, 1)]
        assert [s.id for s in await transaction.find_schedules(Filter(), made[0].key, 1)] == ["a2"]


async def test_a_transaction_is_all_or_nothing(store: Store):
    with contextlib.suppress(RuntimeError):
        async with store.transaction() as transaction:
            await transaction.insert_schedules([(schedule("s"), 5000)])
            raise RuntimeError
    async with store.transaction() as transaction:
        assert await transaction.schedules([ScheduleKey("s")]) == []


async def test_several_writes_in_one_round_trip_are_counted_each(store: Store):
    flows = [{"flow_id": number, "topic": "t"} for number in (1, 2)]
    events = [
        {"flow_id": number, "topic": "t", "message_id": "m", "payload": "1", "caused": False} for number in (1, 2, 3)
    ]  # fmt: skip
    signals, published = Write("insert_signal", flows), Write("publish_events", events, {"created_at_ms": 5})
    async with store.transaction() as transaction:
        assert await transaction.write_together(signals, Write("insert_signal", []), published) == [2, 0, 3]
        assert await transaction.write_together(Write("insert_signal", []), published) == [0, 3]
        assert await transaction.write_together() == []
        found = await transaction.rows("pending_events", flow_id=2, topic="t", limit=9)
        assert [(*tuple(row)[1:5], row[8]) for row in found] == [(2, "t", "m", "1", 5)]
        assert len(await transaction.rows("take_signals", ids=[1, 2])) == 2


@pytest.mark.contract("CRON-06", "GRNT-07")
async def test_a_slot_is_unique(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
    with pytest.raises((sqlite3.IntegrityError, asyncpg.UniqueViolationError)):
        async with store.transaction() as transaction:
            await transaction.insert_runs([run(2), run(1)])
    async with store.transaction() as transaction:
        assert await transaction.runs(ScheduleKey("s"), 9) == [run(1)]


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.RETRYING])
async def test_a_stale_claim_writes_nothing_however_it_ended(store: Store, status: Status):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
        done = ended(1, status)
        for stale in (_replace(done, epoch=6), _replace(done, attempt=2)):
            assert await transaction.finish([stale]) == 0
        assert await transaction.runs(ScheduleKey("s"), 9) == [run(1)]
        assert await transaction.finish([done]) == 1


async def test_an_end_is_final(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
        done = ended(1, result='{"ok":true}')
        assert await transaction.finish([done]) == 1
        assert await transaction.finish([done]) == 0
        assert await transaction.finish([ended(1, Status.FAILED)]) == 0
        (read,) = await transaction.runs(ScheduleKey("s"), 9)
        assert (read.status, read.result, read.ended_at_ms) == (Status.SUCCEEDED, {"ok": True}, 9)
        assert await transaction.open_runs([ScheduleKey("s")]) == []


async def test_only_runs_that_no_node_has_claimed_are_changed(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2, Status.PENDING), run(3, Status.STARTING)])
        for number in (1, 2, 3):
            changed = _replace(run(number), status=Status.SKIPPED, reason="overlap")
            await transaction.update_runs([changed])
        assert [r.status for r in await transaction.runs(ScheduleKey("s"), 9)] == [
            "skipped",
            "skipped",
            "running",
        ]


def unstarted(first: int, last: int, before: int | None, reason: Reason = Reason.OVERLAP) -> UnstartedRange:
    return UnstartedRange(
        schedule_key=ScheduleKey("s"), generation=1, start_ms=first * 1000, end_ms=last * 1000, count=last - first + 1,
        status=Status.SKIPPED, reason=reason, decided_at_ms=last, before_ms=None if before is None else before * 1000,
    )  # fmt: skip


async def test_consecutive_slots_that_did_not_run_are_one_range(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_unstarted_ranges([unstarted(1, 1, 0)])
        await transaction.insert_unstarted_ranges([unstarted(2, 5, 1), unstarted(8, 9, 7)])
        await transaction.insert_unstarted_ranges(
            [unstarted(10, 10, 9), unstarted(11, 11, 10, Reason.PAUSED)]
        )
        await transaction.insert_unstarted_ranges([unstarted(12, 20, 11, Reason.PAUSED)])
        found = [
            (p.start_ms // 1000, p.end_ms // 1000, p.count)
            for p in await transaction.unstarted_ranges(ScheduleKey("s"), 9)
        ]
    assert found == [(11, 20, 10), (8, 10, 3), (1, 5, 5)]


async def test_the_latest_outcome_is_of_what_was_decided_last_run_or_not(store: Store):
    s, t, u, none = (ScheduleKey(name) for name in "stux")
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule(name), 1) for name in "stux"])
        await transaction.insert_runs(
            [
                run(1, decided_at_ms=3),
                run(2, Status.PENDING, decided_at_ms=4),
                run(3, schedule_id="t", decided_at_ms=9),
            ]
        )
        await transaction.insert_unstarted_ranges(
            [
                unstarted(1, 2, None),
                unstarted(4, 7, None),
                _replace(unstarted(8, 8, None), schedule_key=t),
                _replace(unstarted(5, 5, None), schedule_key=u),
            ]
        )
        found = await transaction.latest_outcomes([s, t, u, none])
        assert {key: (each.status, each.decided_at_ms, each.run_id) for key, each in found.items()} == {
            s: ("skipped", 7, None), t: ("running", 9, "run-t-3"), u: ("skipped", 5, None),
        }  # fmt: skip
        assert found[s].nominal_ms == 7000
        assert await transaction.latest_outcomes([none]) == {}


async def test_cursors_states_and_counts_advance(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule("s"), 1), (schedule("t"), 1)])
        counted = Counts(started=1, unstarted={Reason.OVERLAP: 2, Reason.LATE: 3, Reason.PAUSED: 4})
        await transaction.advance(
            [
                Advance(ScheduleKey("s"), 160_000, 200, counts=counted),
                Advance(ScheduleKey("t"), 170_000, None, State(paused=True)),
            ]
        )
        await transaction.advance([Advance(ScheduleKey("s"), 160_000, 200, counts=counted)])
        first, second = await transaction.schedules([ScheduleKey("s"), ScheduleKey("t")])
        assert (first.cursor_ms // 1000, first.state) == (160, schedule("s").state)
        assert (second.cursor_ms // 1000, second.state) == (170, State(paused=True))
        assert await transaction.wake_at() == 200
        assert await transaction.counts_of([ScheduleKey("s"), ScheduleKey("t")]) == {
            "s": Counts(started=2, unstarted={Reason.OVERLAP: 4, Reason.LATE: 6, Reason.PAUSED: 8}),
            "t": Counts(),
        }
        await transaction.delete_schedules([ScheduleKey("s")])
        await transaction.insert_schedules([(schedule("s"), 1)])
        assert await transaction.counts_of([ScheduleKey("s")]) == {"s": Counts()}


async def test_numbers_are_never_given_twice(store: Store):
    async with store.transaction() as transaction:
        assert [await transaction.next_number() for _ in range(3)] == [1, 2, 3]
        assert await transaction.next_generations([ScheduleKey("a"), ScheduleKey("b")]) == {"a": 1, "b": 1}
        assert await transaction.next_generations([ScheduleKey("a")]) == {"a": 2}
        await transaction.insert_schedules([(schedule("a"), 1)])
        await transaction.delete_schedules([ScheduleKey("a")])
        assert await transaction.next_generations([ScheduleKey("a")]) == {"a": 3}
        assert await transaction.wake_at() is None
        assert await transaction.known_keys(BEGINNING, 9) == ["a", "b"]


async def test_what_waits_behind_a_run_that_ended_is_due(store: Store):
    base = await store.time() or 1000
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule(name), base + 9000) for name in "st"])
        await transaction.insert_schedules([(schedule("u"), None)])
        await transaction.insert_runs([run(1), run(2, Status.PENDING), run(1, schedule_id="t")])
        await transaction.wake_waiting([ScheduleKey("s"), ScheduleKey("t"), ScheduleKey("u")], base)
        assert sorted(s.id for s in await transaction.due(base, 9)) == ["s", "u"]


async def test_released_runs_are_left_to_nodes_that_can_run_them(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule("s"), None), (schedule("t"), None)])
        await transaction.insert_runs([run(1, Status.STARTING), run(1, Status.PENDING, "t")])
        assert [s.id for s in await transaction.unclaimed(["b", "a"], 5)] == ["s"]
        assert await transaction.unclaimed(["b"], 5) == []
        assert await transaction.waiting_for_node(1001, 5) == [("s", "a")]
        assert await transaction.waiting_for_node(1000, 5) == []


@pytest.mark.contract("SCHD-28")
async def test_an_end_says_when_its_attempt_began(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs(run(number, started_at_ms=5) for number in (1, 2, 3, 4))
        outcomes = [
            ended(1, started_at_ms=6), ended(2, Status.FAILED, started_at_ms=7),
            ended(3, Status.RUNNING, started_at_ms=8, report_by_ms=99), ended(4, Status.RETRYING, start_at_ms=10),
        ]  # fmt: skip
        assert await transaction.finish(outcomes) == 4
        found = await transaction.runs_by_id([f"run-s-{number}" for number in (1, 2, 3, 4)])
        assert {each.id[-1]: each.started_at_ms for each in found} == {"1": 6, "2": 7, "3": 8, "4": None}
        assert {each.id[-1] for each in found if each.ended_at_ms is not None} == {
            "1",
            "2",
        }  # the others are open


@pytest.mark.contract("SCHD-17")
async def test_a_run_is_asked_to_stop_by_way_of_the_store(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2, Status.PENDING)])
        asked = [_replace(run(number), stop="terminate", reason="replaced") for number in (1, 2)]
        assert await transaction.ask_to_stop(asked) == 1
        assert await transaction.ask_to_stop([_replace(asked[0], stop="cancel")]) == 0  # no way back
        assert [(r.id, r.stop) for r in await transaction.stopping(7)] == [("run-s-1", "terminate")]
        assert await transaction.stopping(8) == []
        await sends_no_input(transaction, "stopping", epoch=7)
        await transaction.finish([ended(1, Status.TERMINATED)])
        assert await transaction.stopping(7) == []


async def test_attempts_and_what_is_left_to_the_next_run(store: Store):
    attempt = Attempt(
        run_id="run-s-1", attempt=1, epoch=7, reason="failed", failure="oh", started_at_ms=3, ended_at_ms=4
    )
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
        await transaction.insert_attempts([attempt])
        assert await transaction.attempts("run-s-1", 9) == [attempt]
        await transaction.insert_schedules([(schedule("s"), None), (schedule("t"), None)])
        s, t = (_replace(run(1), schedule_key=ScheduleKey(each)) for each in "st")
        await transaction.keep_last_outcomes([(s, ended(1)), (t, ended(1, result="1"))])
        assert await transaction.last_outcomes([ScheduleKey("s"), ScheduleKey("t")]) == {
            "t": LastOutcome(ScheduleKey("t"), "1", None)
        }
        await transaction.keep_last_outcomes(
            [(s, ended(1, result="2")), (s, ended(1, result="3")), (t, ended(1, Status.FAILED, failure="no"))]
        )  # fmt: skip
        assert await transaction.last_outcomes([ScheduleKey("s"), ScheduleKey("t")]) == {
            "s": LastOutcome(ScheduleKey("s"), "3", None),
            "t": LastOutcome(ScheduleKey("t"), "1", "no"),
        }
        earlier = [_replace(each, generation=each.generation + 1) for each in (s, t)]
        await transaction.keep_last_outcomes(
            [(earlier[0], ended(1, result="4")), (earlier[1], ended(1, Status.FAILED, failure="not mine"))]
        )
        assert await transaction.last_outcomes([ScheduleKey("s"), ScheduleKey("t")]) == {
            "s": LastOutcome(ScheduleKey("s"), "3", None),
            "t": LastOutcome(ScheduleKey("t"), "1", "no"),
        }
        await transaction.keep_last_outcomes([(earlier[0], ended(1)), (s, ended(1)), (earlier[1], ended(1))])
        assert await transaction.last_outcomes([ScheduleKey("s"), ScheduleKey("t")]) == {
            "s": LastOutcome(ScheduleKey("s"), None, None),
            "t": LastOutcome(ScheduleKey("t"), "1", "no"),
        }
        await transaction.keep_last_outcomes([(t, ended(1))])
        assert await transaction.last_outcomes([ScheduleKey("t")]) == {
            "t": LastOutcome(ScheduleKey("t"), None, None)
        }


async def test_checkpoints_are_kept_by_run_and_key_and_gone_with_the_run(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2)])
        assert await transaction.save_checkpoints([(run(1), {"b": "1"})], 5) == [True]
        assert await transaction.save_checkpoints([(run(1), {"a": '{"x":"ü"}'})], 6) == [True]
        assert await transaction.save_checkpoints([(run(1), {"b": "[2]"})], 7) == [True]
        assert await transaction.save_checkpoints([(run(2), {"b": "null"})], 5) == [True]
    async with store.transaction() as transaction:
        kept = [
            Checkpoint(run_id="run-s-1", key="a", value='{"x":"ü"}', attempt=1, saved_at_ms=6),
            Checkpoint(run_id="run-s-1", key="b", value="[2]", attempt=1, saved_at_ms=7),
        ]
        assert await transaction.checkpoints(["run-s-1", "none"]) == kept
        assert len(await transaction.checkpoints(["run-s-1", "run-s-2"])) == 3
        await transaction.finish([ended(1)])
        assert await transaction.checkpoints(["run-s-1"]) == kept
        assert await transaction.prune([RetentionBounds(ScheduleKey("s"), 100, 100)]) == 1
        assert await transaction.checkpoints(["run-s-1"]) == []
        assert len(await transaction.checkpoints(["run-s-2"])) == 1


@pytest.mark.contract("GRNT-07")
@pytest.mark.parametrize(
    "change",
    [{"attempt": 2}, {"epoch": 8}, {"epoch": 0}, {"status": Status.PENDING}, {"status": Status.FAILED}],
)
async def test_a_stale_claim_saves_no_checkpoint(store: Store, change: dict[str, Any]):
    async with store.transaction() as transaction:
        await transaction.insert_runs([_replace(run(1), **change)])
        await transaction.insert_runs([run(3)])
        saved = [
            (run(1), {"a": "1"}),
            (run(3), {"a": "1", "b": "2"}),
            (run(2), {"a": "1"}),
        ]  # the last was pruned
        assert await transaction.save_checkpoints(saved, 5) == [False, True, False]
        assert await transaction.checkpoints(["run-s-1", "run-s-2"]) == []


@pytest.mark.contract("GRNT-07")
async def test_a_claim_that_becomes_stale_meanwhile_saves_no_checkpoint(store: Store):
    """Another node takes the run over while the checkpoint waits for it."""
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])

    async def save() -> list[bool]:
        async with store.transaction() as transaction:
            return await transaction.save_checkpoints([(run(1), {"a": "1"})], 5)

    async with store.transaction() as transaction:
        await transaction.finish([ended(1, Status.PENDING, start_at_ms=5)])
        saving = asyncio.create_task(save())
        await asyncio.wait([saving], timeout=0.2)
    assert await saving == [False]
    async with store.transaction() as transaction:
        assert await transaction.checkpoints(["run-s-1"]) == []


def logged(number: int, first: int, *texts: str, dropped: tuple[int, ...] = ()) -> LogBatch:
    """A chunk of the log of a run's first attempt, whose first line has a number."""
    claim = run(number)
    lines = tuple(LogEntry(5, "INFO", "jobs", text) for text in texts)
    chunk = LogChunk(run_id=claim.id, attempt=claim.attempt, number=first, lines=lines)
    return LogBatch(
        run_id=claim.id, epoch=claim.epoch, attempt=claim.attempt, chunks=(chunk,) if texts else (), dropped=dropped
    )  # fmt: skip


async def test_logs_are_kept_by_run_and_attempt_and_gone_with_the_run(store: Store):
    begin, end = (0, 10**9), 10**9
    batches = [logged(1, 1, "a", "ü\n'"), logged(1, 3, "c"), logged(2, 1, "other")]
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2)])
        await transaction.write_logs(batches)
        await transaction.write_logs([logged(1, 1, "said again"), logged(1, 4, "d")])
    async with store.transaction() as transaction:
        kept = [batches[0].chunks[0], batches[1].chunks[0], logged(1, 4, "d").chunks[0]]
        assert await transaction.log("run-s-1", begin, end, 9) == kept
        assert await transaction.log("run-s-1", (1, 2), 1, 1) == kept[1:2]
        assert await transaction.log("run-s-1", begin, 0, 9) == []
        sizes = await transaction.log_sizes("run-s-1", (1, 2), 1, 9)
        assert len(sizes) == 2
        assert all(sizes)
        await transaction.write_logs([logged(1, 5, "e", dropped=(3, 4))])
        assert [each.number for each in await transaction.log("run-s-1", begin, end, 9)] == [1, 5]
        await transaction.finish([ended(1)])
        assert await transaction.prune([RetentionBounds(ScheduleKey("s"), 100, 100)]) == 1
        assert await transaction.log("run-s-1", begin, end, 9) == []
        assert len(await transaction.log("run-s-2", begin, end, 9)) == 1


@pytest.mark.contract("GRNT-07")
@pytest.mark.parametrize(
    "change",
    [{"attempt": 2}, {"epoch": 8}, {"epoch": 0}, {"status": Status.PENDING}, {"status": Status.FAILED}],
)
async def test_a_stale_claim_writes_no_log(store: Store, change: dict[str, Any]):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
        await transaction.write_logs([logged(1, 1, "in time")])
        (kept,) = await transaction.log("run-s-1", (0, 0), 9, 9)
    async with store.transaction() as transaction:
        await transaction.execute(
            "UPDATE run SET attempt = :attempt, epoch = :epoch, status = :status", **{"attempt": 1, "epoch": 7, "status": "running", **change}
        )  # fmt: skip
        await transaction.write_logs(
            [logged(1, 2, "too late", dropped=(1,)), logged(2, 1, "of a run that was pruned")]
        )
        assert await transaction.log("run-s-1", (0, 0), 9, 9) == [kept]
        assert await transaction.log("run-s-2", (0, 0), 9, 9) == []


async def test_backfills_and_versions(store: Store):
    backfill = Backfill(
        id="b1", schedule_key=ScheduleKey("s"), generation=1, start_ms=10000, end_ms=90000, overlap=Overlap.BUFFER_ALL, cursor_ms=9000, total=5,
        created_at_ms=1, author="ada", note="again", input={"x": 1},
    )  # fmt: skip
    version = Version(
        schedule_key=ScheduleKey("s"),
        generation=1,
        version=1,
        spec="{}",
        policies=Policies(),
        since_ms=1,
        until_ms=5,
        created_at_ms=1,
    )
    async with store.transaction() as transaction:
        await transaction.insert_backfills([backfill, _replace(backfill, id="b2")])
        assert [b.id for b in await transaction.open_backfills([ScheduleKey("s")])] == ["b1", "b2"]
        done = _replace(backfill, cursor_ms=90_000, made=5, status=BackfillStatus.DONE, ended_at_ms=7)
        await transaction.update_backfills([done])
        await transaction.update_backfills([_replace(backfill, made=1)])  # what ended stays as it is
        assert await transaction.backfill("b1") == done
        assert await transaction.backfill("none") is None
        assert [b.id for b in await transaction.backfills(ScheduleKey("s"), 1)] == ["b2"]
        await transaction.insert_versions([version])
        assert await transaction.versions(ScheduleKey("s"), 9) == [version]


@pytest.mark.contract("SCHD-28")
async def test_what_was_at_a_moment_is_found(store: Store):
    """The runs of a nominal time by how their ids begin, the range it lies in, the version that was in force."""
    first = run(1, id="019ca6f5-b000-8aaa-aaaa-0", origin=AUTOMATIC)
    again = run(1, id="019ca6f5-b000-8fff-aaaa-0", origin=Origin.parse("backfill:1"))
    version = Version(
        schedule_key=ScheduleKey("s"),
        generation=1,
        version=3,
        spec="{}",
        policies=Policies(),
        since_ms=1000,
        until_ms=5000,
        created_at_ms=900,
    )
    async with store.transaction() as transaction:
        await transaction.insert_runs([again, first])
        await transaction.insert_runs(
            [run(2, id="019ca6f5-b001-8000-aaaa-0"), run(3, id="019ca6f5-afff-8fff-aaaa-0")]
        )
        await transaction.insert_runs([run(1, id="019ca6f5-b000-8bbb-aaaa-0", schedule_id="t")])
        assert await transaction.runs_at(ScheduleKey("s"), "019ca6f5-b000-") == [again, first]
        assert await transaction.runs_at(ScheduleKey("s"), "019ca6f5-b002-") == []
        await transaction.insert_attempts(
            Attempt(
                run_id=first.id,
                attempt=number,
                epoch=7,
                reason="",
                failure=None,
                started_at_ms=at,
                ended_at_ms=9,
            )
            for number, at in ((3, 8), (2, 7), (1, None))
        )
        assert await transaction.runs_at(ScheduleKey("s"), "019ca6f5-b000-") == [
            again,
            _replace(first, started_at_ms=7),
        ]
        await transaction.insert_unstarted_ranges([unstarted(10, 20, None), unstarted(30, 30, None)])
        for nominal, expected in ((9, None), (10, 10), (15, 10), (20, 10), (21, None), (30, 30)):
            found = await transaction.unstarted_at(ScheduleKey("s"), nominal * 1000)
            assert (None if found is None else found.start_ms // 1000) == expected
        assert await transaction.unstarted_at(ScheduleKey("t"), 15_000) is None
        following = _replace(version, version=7, since_ms=6000, until_ms=9000)
        later = _replace(version, generation=2, version=1, since_ms=9500, until_ms=9900)
        await transaction.insert_versions([later, following, version])
        for moment, at, before in (
            (0, version, None), (5000, version, None), (5001, following, version), (9000, following, version),
            (9001, later, following), (9901, None, later),
        ):  # fmt: skip
            assert await transaction.version_at(ScheduleKey("s"), moment) == at
            assert await transaction.version_before(ScheduleKey("s"), moment) == before
        assert await transaction.version_at(ScheduleKey("t"), 0) is None


async def test_what_is_past_its_retention_is_removed_and_nothing_open(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs(run(number) for number in range(1, 7))
        for number in range(2, 7):
            await transaction.finish([_replace(ended(number), ended_at_ms=number * 100)])
        await transaction.insert_attempts(
            [
                Attempt(
                    run_id="run-s-2",
                    attempt=1,
                    epoch=7,
                    reason="",
                    failure=None,
                    started_at_ms=1,
                    ended_at_ms=2,
                )
            ]
        )
        for number in (10, 20, 30):
            await transaction.insert_unstarted_ranges(
                [_replace(unstarted(number, number, None), decided_at_ms=number * 100)]
            )
        assert (
            await transaction.prune(
                [RetentionBounds(ScheduleKey("s"), 0, 100), RetentionBounds(ScheduleKey("none"), 9999, 0)]
            )
            == 0
        )
        assert await transaction.prune([RetentionBounds(ScheduleKey("s"), 300, 100)]) == 1  # run 2, by age
        assert [r.nominal_ms // 1000 for r in await transaction.runs(ScheduleKey("s"), 9)] == [6, 5, 4, 3, 1]
        assert await transaction.attempts("run-s-2", 9) == []
        assert (
            await transaction.prune([RetentionBounds(ScheduleKey("s"), 0, 2)]) == 3
        )  # runs 3 and 4, and a range, by number
        assert [r.nominal_ms // 1000 for r in await transaction.runs(ScheduleKey("s"), 9)] == [6, 5, 1]
        assert [p.start_ms // 1000 for p in await transaction.unstarted_ranges(ScheduleKey("s"), 9)] == [
            30,
            20,
        ]


async def test_a_ledger_is_pruned_a_few_rows_at_a_time_the_oldest_first(store: Store):
    """Whatever has piled up, one transaction removes no more than it was told to."""
    backfills = [
        Backfill(
            id=f"b{number}", schedule_key=ScheduleKey("s"), generation=1, start_ms=1000, end_ms=2000, overlap=Overlap.SKIP, cursor_ms=2000, total=0,
            created_at_ms=1,
        )
        for number in range(3)
    ]  # fmt: skip
    versions = [
        Version(
            schedule_key=ScheduleKey("s"),
            generation=1,
            version=number,
            spec="{}",
            policies=Policies(),
            since_ms=1,
            until_ms=5,
            created_at_ms=1,
        )
        for number in range(3)
    ]
    async with store.transaction() as transaction:
        await transaction.insert_runs(run(number) for number in range(3))
        for number in range(3):
            await transaction.finish([_replace(ended(number), ended_at_ms=5)])
            await transaction.insert_unstarted_ranges([unstarted(10 * number + 10, 10 * number + 11, None)])
        await transaction.insert_backfills(backfills)
        await transaction.update_backfills(
            _replace(each, status=BackfillStatus.DONE, ended_at_ms=5) for each in backfills
        )
        await transaction.insert_versions(versions)
        past = RetentionBounds(ScheduleKey("s"), 10_000, 100, 2)
        assert await transaction.prune([past]) == 8  # two of each
        assert [each.nominal_ms // 1000 for each in await transaction.runs(ScheduleKey("s"), 9)] == [2]
        assert [each.id for each in await transaction.backfills(ScheduleKey("s"), 9)] == ["b2"]
        assert [each.version for each in await transaction.versions(ScheduleKey("s"), 9)] == [2]
        assert [await transaction.prune([past]) for _ in range(2)] == [4, 0]


def node(epoch: int, name: str = "one") -> Node:
    return Node(epoch=epoch, name=name, actions=("a", "b"), tzdata="2026a", started_at_ms=5)


async def has_claims(transaction: Transaction, epoch: int) -> bool:
    return bool(await transaction.claimed([epoch], 1))


async def test_a_node_says_what_it_can_run_and_is_buried_when_nothing_of_its_is_left(store: Store):
    await store.register_node(node(7))
    assert await store.renew(7)
    assert await store.nodes() == [node(7)]
    await store.register_node(_replace(node(7), actions=("c",)))
    assert [n.actions for n in await store.nodes()] == [("c",)]
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1)])
    await store.deregister([7], has_claims)
    assert len(await store.nodes()) == 1
    async with store.transaction() as transaction:
        await transaction.finish([ended(1)])
    await store.deregister([7], has_claims)
    assert await store.nodes() == []


async def test_the_life_of_a_node_is_known_by_a_lock(tmp_path: Path):
    path = str(tmp_path / "horae.db")
    one, other = SqliteStore(path), SqliteStore(path)
    await one.open(lambda: None)
    await other.open(lambda: None)
    await one.register_node(node(4))
    assert [n.alive for n in await other.nodes()] == [True]
    await one.close()
    assert [n.alive for n in await other.nodes()] == [False]
    await other.close()


async def test_the_life_of_a_node_is_known_by_its_lease(postgres: str):
    one, other = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda: None)
    await other.open(lambda: None)
    await one.register_node(node(4))
    assert await one.renew(4)
    assert [n.alive for n in await other.nodes()] == [True]
    one.lease = -1.0
    assert await one.renew(4)  # now its deadline has passed
    assert [n.alive for n in await other.nodes()] == [False]
    assert not await one.renew(4)  # too late: others may have taken its runs
    await one.close()
    await other.close()


async def test_a_schedule_that_one_node_decides_is_passed_by_by_another(postgres: str):
    one, other = PostgresStore(postgres), PostgresStore(postgres)
    await one.open(lambda: None)
    await other.open(lambda: None)
    now = await one.time() or 0
    async with one.transaction() as setup:
        await setup.insert_schedules((schedule(name), number) for number, name in enumerate("abc"))
    async with one.transaction() as first:
        assert [s.id for s in await first.due(now, 2)] == ["a", "b"]
        async with other.transaction() as second:
            assert [s.id for s in await second.due(now, 9)] == ["c"]
    await one.close()
    await other.close()


async def test_a_node_whose_clock_is_off_decides_and_claims_nothing(postgres: str):
    store = PostgresStore(postgres)
    await store.open(lambda: None)
    try:
        async with store.transaction() as transaction:
            await transaction.insert_schedules([(schedule("s"), 1)])
        await store.register_node(node(1))
        now = await store.time() or 0
        for off in (-5000, 5000):
            with pytest.raises(ClockOffError, match="off the database's"):
                async with store.transaction() as transaction:
                    await transaction.is_node(1, now + off)
        with pytest.raises(ClockOffError, match="off the database's"):
            async with store.transaction() as transaction:
                await transaction.due(now + 5000, 9)
        async with (
            store.transaction() as transaction
        ):  # a step that is late decides what was due when it began
            assert [each.id for each in await transaction.due(now - 5000, 9)] == ["s"]
    finally:
        await store.close()


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


@pytest.mark.contract("CRON-13")
async def test_work_that_was_handed_over_is_held_by_no_node_and_expected_in_time(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule("s"), None)])
        await transaction.insert_runs([run(1), run(2), _replace(run(3), epoch=8)])
        assert await transaction.keep_token(run(1), "hash")
        assert not await transaction.keep_token(run(3), "hash")  # the claim is another's
        accepted = [ended(number, Status.RUNNING, report_by_ms=number * 100) for number in (1, 2, 3)]
        assert await transaction.finish(accepted) == 2
        assert [each.id for each in await transaction.claimed([7, 8], 10)] == ["run-s-3"]
    async with store.transaction() as transaction:
        found = await transaction.reportable_run("run-s-1")
        assert found == (_replace(run(1), epoch=0), "hash", 100)
        assert await transaction.reportable_run("run-s-9") is None
        assert await transaction.overdue_reports(99, 10) == []
        assert [each.run.id for each in await transaction.overdue_reports(200, 10)] == ["run-s-1", "run-s-2"]
        assert [each.report_by_ms for each in await transaction.overdue_reports(200, 1)] == [100]
        await sends_no_input(transaction, "overdue_reports", now=200, limit=10)
        assert await transaction.finish([ended(1)]) == 0  # the claim it was handed over under is gone


@pytest.mark.contract("CRON-13", "SCHD-17")
async def test_who_was_asked_to_stop_never_gets_more_time(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2), run(3)])
        await transaction.finish([ended(number, Status.RUNNING, report_by_ms=100) for number in (1, 2)])
        await transaction.ask_to_stop([_replace(run(2), stop="cancel", reason="cancelled")])
        for by in (500, 50, 70):
            await transaction.expect_reports([(run(1), by), (run(2), by), (run(3), by)])
        expected = [await transaction.reportable_run(f"run-s-{number}") for number in (1, 2, 3)]
    assert [each and each.report_by_ms for each in expected] == [70, 50, None]


@pytest.mark.contract("CRON-13")
async def test_the_token_of_an_attempt_is_for_no_other(store: Store):
    async with store.transaction() as transaction:
        await transaction.insert_runs([run(1), run(2)])
        for number in (1, 2):
            await transaction.keep_token(run(number), "hash")
        await transaction.finish([ended(1, Status.RETRYING, start_at_ms=5), ended(2, Status.FAILED)])
        waiting = await transaction.reportable_run("run-s-1")  # its failure may be reported once more
        await transaction.update_runs([_replace(run(1), status=Status.RUNNING, attempt=2)])
        again, over = [await transaction.reportable_run(f"run-s-{number}") for number in (1, 2)]
    assert [each and each.token_hash for each in (waiting, again, over)] == ["hash", None, "hash"]


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


async def test_of_several_ends_of_one_schedule_the_order_counts(store: Store):
    good, nothing = ended(1, result="1"), ended(1)
    bad = ended(1, Status.FAILED, failure="no")
    left = {
        ScheduleKey("gb"): ([good, bad], LastOutcome(ScheduleKey("gb"), "1", "no")),
        ScheduleKey("bg"): ([bad, good], LastOutcome(ScheduleKey("bg"), "1", None)),
        ScheduleKey("gn"): ([good, nothing], None),
        ScheduleKey("ng"): ([nothing, good], LastOutcome(ScheduleKey("ng"), "1", None)),
        ScheduleKey("bn"): ([bad, nothing], None),
        ScheduleKey("gbn"): ([good, bad, nothing], None),
        ScheduleKey("gnb"): ([good, nothing, bad], LastOutcome(ScheduleKey("gnb"), None, "no")),
    }
    async with store.transaction() as transaction:
        await transaction.insert_schedules([(schedule(name), None) for name in left])
        await transaction.keep_last_outcomes(
            (_replace(run(1), schedule_key=name), end) for name, (ends, _) in left.items() for end in ends
        )
        found = await transaction.last_outcomes(list(left))
    assert found == {name: last for name, (_, last) in left.items() if last is not None}


async def test_a_name_belongs_to_who_came_first_whatever_the_numbers(store: Store):
    first, second = (_replace(node(epoch), name="one") for epoch in (8, 7))
    assert await store.register_node(first)
    assert not await store.register_node(second)
    assert [each.epoch for each in await store.nodes()] == [8]
    assert await store.register_node(_replace(first, actions=("c",)))
    await store.deregister([8], has_claims)
    assert await store.register_node(second)


async def test_the_ledger_is_searched_along_an_index_each(store: Store):
    async with store.transaction() as transaction:
        ours = schedule("s", owner="ada", tags=("red",))
        await transaction.insert_schedules([(ours, 5000), (schedule("t", owner="bob"), 5000)])
        await transaction.insert_runs(
            [
                run(n, Status.FAILED if n % 2 else Status.SUCCEEDED, "ada\x1fs" if n < 4 else "bob\x1ft", reason="late" if n == 3 else "",
                    decided_at_ms=n * 10, owner="ada" if n < 4 else "bob")
                for n in range(1, 6)
            ]
        )  # fmt: skip
        for n in (1, 3):
            left = _replace(unstarted(n, n, None), schedule_key=ours.key, decided_at_ms=n * 10, owner="ada")
            await transaction.insert_unstarted_ranges([left])

    async def found(only: LedgerFilter) -> tuple[list[int], list[int]]:
        async with store.reading() as transaction:
            runs = await transaction.search_runs(only, 100, 0, 10)
            ranges = await transaction.search_ranges(only, (1000, 100), 10)
            return (
                [at for _, at, size in runs if size is not None],
                [each.decided_at_ms for each, matches in ranges if matches],
            )

    assert await found(LedgerFilter()) == ([50, 40, 30, 20, 10], [30, 10])
    assert await found(LedgerFilter(owner="ada")) == ([30, 20, 10], [30, 10])
    assert await found(LedgerFilter(owner="")) == ([], [])
    assert await found(LedgerFilter(schedule_key=schedule_key("bob", "t"))) == ([50, 40], [])
    assert await found(LedgerFilter(tag="red", statuses=(Status.FAILED,))) == ([30, 10], [])
    assert await found(LedgerFilter(reason="late", until=30)) == ([], [])
    assert (await found(LedgerFilter(owner="ada", without_reasons=(Reason.LATE,))))[0] == [20, 10]
    assert await found(LedgerFilter(since=30, statuses=(Status.SKIPPED,), schedule_key=ours.key)) == (
        [],
        [30],
    )
    async with store.reading() as transaction:
        assert await transaction.search_ranges(
            LedgerFilter(), (30, 1), 10
        ) == await transaction.search_ranges(LedgerFilter(until=30), (30, 1), 10)
        numbers = [await transaction.run_number_at(moment) for moment in (0, 10, 11, 50, 51)]
        assert [number - numbers[0] for number in numbers[1:4]] == [0, 1, 4]
        ((_, size),) = await transaction.run_sizes(schedule_key("bob", "t"), 1)
        assert await transaction.search_runs(LedgerFilter(), numbers[4], numbers[3], 10) == [
            (numbers[3], 50, size)
        ]
        (last,) = await transaction.runs_numbered([numbers[3]])
        assert (last.nominal_ms, last.owner) == (5000, "bob")


@pytest.mark.parametrize(
    ("owner", "schedule_id"), [("", "s"), ("ada", "s"), ("a", "da s"), ("ada ", "s"), ("", "ada s")]
)
def test_a_key_says_whose_schedule_it_is_and_which(owner: str, schedule_id: str):
    assert owner_and_id(schedule_key(owner, schedule_id)) == (owner, schedule_id)
    assert owner or schedule_key(owner, schedule_id) == schedule_id


async def test_owners_have_schedules_of_the_same_id_and_ledgers_of_their_own(store: Store):
    owners = ["", "ada", "bob"]
    ours = [schedule("s", owner=each, tags=(each,), cursor=100) for each in owners]
    keys = [each.key for each in ours]
    async with store.transaction() as transaction:
        assert await transaction.next_generations(keys) == dict.fromkeys(keys, 1)
        assert await transaction.next_generations(keys[1:2]) == {keys[1]: 2}
        await transaction.insert_schedules([(each, 5000) for each in ours])
        await transaction.insert_runs(
            [_replace(run(n), id=f"r{n}", schedule_key=key, owner=owners[n]) for n, key in enumerate(keys)]
        )
    with pytest.raises(Exception, match=r"(?i)unique"):
        async with store.transaction() as transaction:
            await transaction.insert_schedules([(schedule("s", owner="ada"), 5000)])
    async with store.transaction() as transaction:
        assert await transaction.schedules(list(reversed(keys))) == ours
        assert [each.id for each in await transaction.runs(keys[1], 9)] == ["r1"]
        assert (await transaction.runs(keys[1], 9))[0].schedule_id == "s"
        assert await transaction.keys_of_id("s", 9) == keys
        assert await transaction.keys_of_id("s", 2) == keys[:2]
        assert await transaction.find_schedules(Filter(prefix="s"), BEGINNING, 2) == ours[:2]
        assert await transaction.find_schedules(Filter(prefix="s"), keys[1], 2) == ours[2:]
        assert await transaction.find_schedules(Filter(owner=""), BEGINNING, 9) == ours[:1]
        await transaction.update_schedules([(_replace(ours[1], version=2), None)])
        await transaction.advance([Advance(keys[1], 200_000, None, State(note="n"), Counts(started=3))])
        await transaction.delete_schedules([keys[2]])
        assert [each.version for each in await transaction.schedules(keys)] == [1, 2]
        assert (await transaction.schedules(keys))[0] == ours[0]
        counts = await transaction.counts_of(keys)
        assert {key: each.started for key, each in counts.items()} == {keys[0]: 0, keys[1]: 3}
        assert await transaction.keys_of_id("s", 9) == keys[:2]
        await transaction.delete_schedules(keys[:2])
        assert sorted(await transaction.keys_of_id("s", 9)) == sorted(keys)  # of those that were deleted
        assert await transaction.keys_of_id("t", 9) == []
        assert [each.id for each in await transaction.runs(keys[2], 9)] == ["r2"]

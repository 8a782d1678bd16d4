"""Corrupted records, unexpected errors, and no secret in any message."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from horae import Scheduler
from horae.errors import (
    DatabaseVersionError,
    HoraeError,
    SchedulerInitializationError,
    StoreUnavailableError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from tests.face.declarative import DELAY, Registered, Story

WHERE = "WHERE json_valid(action) AND json_extract(action, '$.input.task') = 'spoiled'"
ID = f"(SELECT key FROM schedule {WHERE})"  # noqa: S608 - a text of our own


def column(name: str, value: str) -> str:
    return f"UPDATE schedule SET {name} = {value} {WHERE}"  # noqa: S608


def put(path: str, value: str) -> str:
    return column("action", f"json_set(action, '{path}', {value})")


def drop(path: str) -> str:
    return column("action", f"json_remove(action, '{path}')")


GOOD_CRON = "0 0 1 1 *"
DESERIALIZE = ("field", "value", "expectedType")
Spoiled = tuple[str, type[TaskTryDeserializeError], str, dict[str, Any]]
MISSING: list[Spoiled] = [
    (drop(path), TaskMissingFieldError, f"Missing required field: {field}", {"field": field})
    for path, field in (
        ("$.input", "input"), ("$.input.cron", "cron"), ("$.input.retryDelayMs", "retryDelayMs"),
    )
]  # fmt: skip
TYPES: list[Spoiled] = [
    (
        put(f"$.{path}", text), TaskInvalidTypeError,
        f"Invalid type for field '{field}': expected {expected}, got {actual}",
        {"field": field, "value": value, "expectedType": expected, "actualType": actual},
    )
    for path, text, field, value, expected, actual in (
        ("input.cron", "5", "cron", 5, "string", "number"),
        ("input.cron", "json('null')", "cron", None, "string", "null"),
        ("input.cron", "json('[]')", "cron", [], "string", "array"),
        ("input.retryDelayMs", "'5'", "retryDelayMs", "5", "number", "string"),
        ("input.retryDelayMs", "json('true')", "retryDelayMs", True, "number", "boolean"),
        ("input.retryDelayMs", "json('{}')", "retryDelayMs", {}, "number", "object"),
        ("input.retryDelayMs", "json('null')", "retryDelayMs", None, "number", "null"),
    )
]  # fmt: skip
VALUES: list[Spoiled] = [
    (put("$.input.retryDelayMs", "-1"), TaskInvalidValueError, "Invalid value for field 'retryDelayMs': must be non-negative",
     {"field": "retryDelayMs", "value": -1, "reason": "must be non-negative"}),
    (put("$.input.cron", "'61 * * * *'"), TaskInvalidValueError, "Invalid value for field 'cron': ",
     {"field": "cron", "value": "61 * * * *"}),
    (put("$.input.cron", "'0 0 31 2 *'"), TaskInvalidValueError, "Invalid value for field 'cron': ",
     {"field": "cron", "value": "0 0 31 2 *"}),
    (column("state", "'{\"paused\": 5}'"), TaskInvalidValueError, "Invalid value for field 'state': ",
     {"field": "state", "value": {"paused": 5}}),
]  # fmt: skip
STRUCTURES: list[Spoiled] = [
    (column("action", "'[1]'"), TaskInvalidStructureError, "", {"value": [1]}),
    (column("action", "'7'"), TaskInvalidStructureError, "", {"value": 7}),
    (column("state", "'[]'"), TaskInvalidStructureError, "", {"value": []}),
    (column("policies", "'null'"), TaskInvalidStructureError, "", {"value": None}),
]
TEXTS: list[Spoiled] = [
    (column(field, "'{\"'"), TaskTryDeserializeError, f"Cannot read the field '{field}'",
     {"field": field, "value": '{"', "expectedType": "object"})
    for field in ("action", "policies", "state")
]  # fmt: skip
COLUMNS: list[Spoiled] = [
    (column("action", "5"), TaskInvalidStructureError, "", {"value": 5}),  # a number is text in a column of texts
    (column("action", "x'00'"), TaskInvalidTypeError, "Invalid type for field 'action': expected string, got ",
     {"field": "action", "value": b"\x00", "expectedType": "string"}),
    (f"UPDATE due SET cursor_ms = 'yesterday' WHERE schedule_key = {ID}", TaskInvalidTypeError,  # noqa: S608
     "Invalid type for field 'cursor': expected number, got string",
     {"field": "cursor", "value": "yesterday", "expectedType": "number", "actualType": "string"}),
    (f"UPDATE due SET cursor_ms = 1.5 WHERE schedule_key = {ID}", TaskInvalidTypeError,  # noqa: S608
     "Invalid type for field 'cursor': expected ", {"field": "cursor", "value": 1.5}),
    (f"UPDATE due SET attempted_at_ms = 'noon' WHERE schedule_key = {ID}", TaskInvalidTypeError,  # noqa: S608
     "Invalid type for field 'lastAttemptAt': expected number, got string",
     {"field": "lastAttemptAt", "value": "noon", "expectedType": "number", "actualType": "string"}),
]  # fmt: skip
SPOILED = MISSING + TYPES + VALUES + STRUCTURES + TEXTS + COLUMNS


async def spoil(tmp_path: Path, statement: str, cron: str = "* * * * *") -> tuple[Story, list[Registered]]:
    """Tasks that ran, of which one is spoiled then."""
    story = Story(tmp_path)
    tasks = [story.task("good"), story.task("spoiled", cron), story.task("other")]
    await (await story.begin(*tasks)).stop()
    story.sql(statement)
    story.starts.clear()
    story.events.clear()
    return story, tasks


def names(story: Story) -> set[str]:
    return set(story.starts)


@pytest.mark.contract("DECL-34", "DECL-12")
@pytest.mark.parametrize(
    ("statement", "kind", "message", "details"), SPOILED, ids=lambda each: str(each)[:60]
)
async def test_a_spoiled_record_is_reported_with_the_task_and_nothing_is_changed(
    statement: str, kind: type[TaskTryDeserializeError], message: str, details: dict[str, Any], tmp_path: Path
):
    story, tasks = await spoil(tmp_path, statement)
    before = story.dump()
    scheduler = story.scheduler()
    with pytest.raises(TaskTryDeserializeError) as raised:
        await scheduler.initialize([*tasks, story.task("new")])
    error = raised.value
    assert type(error) is kind
    assert error.message.startswith(message)
    assert {key: error.details[key] for key in details} == details
    keys = {
        TaskTryDeserializeError: {"field", "value", "expectedType"}, TaskMissingFieldError: {"field"},
        TaskInvalidTypeError: {"field", "value", "expectedType", "actualType"},
        TaskInvalidValueError: {"field", "value", "reason"}, TaskInvalidStructureError: {"value"},
    }  # fmt: skip
    assert error.details.keys() == keys[kind]
    assert error.task == "spoiled"
    assert "spoiled" in (error.hint or "")
    assert any("spoiled" in note for note in error.__notes__)
    assert story.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert story.dump() == before
    await story.clock.advance(minutes=3)
    assert story.starts == {}
    without = [task for task in tasks if task[0] != "spoiled"]
    await scheduler.initialize(without)  # leaving it out lets the others start
    await story.clock.settle()
    assert story.counts() == {"preserved": 2, "forgotten": 1}
    assert names(story) == {"good", "other"}
    await scheduler.stop()
    await scheduler.initialize(tasks)  # and then it may come back
    await story.clock.settle()
    await scheduler.stop()
    assert story.counts() == {"preserved": 2, "new": 1}
    assert "spoiled" in names(story)


@pytest.mark.contract("DECL-34")
async def test_a_repaired_record_lets_its_task_start_with_its_history(tmp_path: Path):
    story, tasks = await spoil(tmp_path, put("$.input.cron", "5"))
    scheduler = story.scheduler()
    with pytest.raises(TaskInvalidTypeError):
        await scheduler.initialize(tasks)
    story.sql(put("$.input.cron", "'* * * * *'"))
    await story.clock.advance(minutes=3)
    await scheduler.initialize(tasks)
    await story.clock.settle()
    await scheduler.stop()
    assert story.counts() == {"preserved": 3}
    assert {name: len(times) for name, times in story.starts.items()} == {"good": 1, "spoiled": 1, "other": 1}


@pytest.mark.contract("DECL-34")
async def test_a_record_that_names_another_task_is_reported(tmp_path: Path):
    story, tasks = await spoil(tmp_path, put("$.input.task", "'somebody else'"))
    with pytest.raises(TaskInvalidValueError) as raised:
        await story.scheduler().initialize(tasks)
    assert raised.value.details == {"field": "task", "value": "somebody else", "reason": 'is not "spoiled"'}


@pytest.mark.contract("DECL-34")
async def test_a_delay_that_is_no_whole_number_is_reported_in_words_that_say_so(tmp_path: Path):
    story, tasks = await spoil(tmp_path, put("$.input.retryDelayMs", "1.5"))
    with pytest.raises(TaskTryDeserializeError) as raised:
        await story.scheduler().initialize(tasks)
    assert "expected number, got number" not in raised.value.message


ELSEWHERE = {
    "spec": column("spec", "'{\"'"),
    "spec of another kind": column("spec", "'[]'"),
    "policies": column("policies", "'{\"overlap\": 5}'"),
    "action name": put("$.name", "'nobody'"),
    "no action name": drop("$.name"),
    "tags": column("tags", "'{'"),
    "status of a run": f"UPDATE run SET status = 'pending', overlap = 'weird' WHERE schedule_key = {ID}",  # noqa: S608
    "origin of a run": f"UPDATE run SET status = 'pending', origin = 'weird' WHERE schedule_key = {ID}",  # noqa: S608
    "input of a run": f"UPDATE run SET status = 'pending', input = '{{' WHERE schedule_key = {ID}",  # noqa: S608
    "start of a run": f"UPDATE run SET status = 'pending', start_at_ms = 'x' WHERE schedule_key = {ID}",  # noqa: S608
}
"""What is derived from a record, or belongs to its runs: put right in silence, or reported."""


@pytest.mark.contract("DECL-34")
@pytest.mark.parametrize("kind", ELSEWHERE)
async def test_a_record_spoiled_elsewhere_is_reported_or_does_no_harm(kind: str, tmp_path: Path):
    story, tasks = await spoil(tmp_path, ELSEWHERE[kind])
    scheduler = story.scheduler()
    try:
        await scheduler.initialize(tasks)
    except TaskTryDeserializeError as error:
        assert error.task == "spoiled"
        return
    await story.clock.advance(minutes=2)
    await scheduler.stop()
    assert names(story) == {"good", "spoiled", "other"}


@pytest.mark.contract("DECL-34", "DECL-36")
@pytest.mark.parametrize("kind", [kind for kind in ELSEWHERE if "run" not in kind])
async def test_a_spoiled_record_of_a_task_that_is_left_out_is_forgotten(kind: str, tmp_path: Path):
    story, tasks = await spoil(tmp_path, ELSEWHERE[kind])
    scheduler = await story.begin(tasks[0], tasks[2])
    await story.clock.advance(minutes=1)
    await scheduler.stop()
    assert story.counts() == {"preserved": 2, "forgotten": 1}
    assert names(story) == {"good", "other"}


@pytest.mark.contract("DECL-34")
@pytest.mark.parametrize("kind", ["status of a run", "input of a run"])
async def test_a_spoiled_run_of_a_task_that_is_left_out_is_forgotten(kind: str, tmp_path: Path):
    story, tasks = await spoil(tmp_path, ELSEWHERE[kind])
    await (await story.begin(tasks[0], tasks[2])).stop()
    assert story.counts() == {"preserved": 2, "forgotten": 1}


RUNNING = [ELSEWHERE[kind] for kind in ELSEWHERE if "run" not in kind] + [
    statement for statement, *_ in TEXTS + COLUMNS[:4]
]


@pytest.mark.contract("DECL-34", "DECL-08")
@pytest.mark.parametrize("statement", RUNNING, ids=lambda each: each[:60])
async def test_a_record_that_is_spoiled_while_running_stops_no_other(statement: str, story: Story):
    scheduler = await story.begin(story.task("good"), story.task("spoiled"), story.task("other"))
    story.sql(statement)
    await story.clock.advance(minutes=5)
    assert len(story.starts["good"]) == len(story.starts["other"]) == 6
    await scheduler.stop()
    await scheduler.stop()


@pytest.mark.contract("DECL-34", "DECL-08")
@pytest.mark.parametrize("kind", ["status of a run", "input of a run"])
async def test_a_run_that_is_spoiled_while_running_stops_no_other(kind: str, story: Story):
    scheduler = await story.begin(story.task("good"), story.task("spoiled"), story.task("other"))
    story.sql(ELSEWHERE[kind])
    await story.clock.advance(minutes=5)
    try:
        assert len(story.starts["good"]) == len(story.starts["other"]) == 6
    finally:
        await scheduler.stop()


@pytest.mark.contract("DECL-35")
async def test_an_unexpected_error_while_running_is_logged_and_the_scheduler_continues(
    story: Story, caplog: pytest.LogCaptureFixture
):
    scheduler = await story.begin(story.task("a"))
    story.sql("CREATE TRIGGER fate BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'fate'); END")
    await story.clock.advance(minutes=2)
    try:
        assert [record for record in caplog.records if record.levelno >= logging.WARNING]
        story.sql("DROP TRIGGER fate")
        await story.clock.advance(days=1)  # on a virtual clock it looks again after a day at the latest
        assert len(story.starts["a"]) > 1
    finally:
        await scheduler.stop()


@pytest.mark.contract("DECL-35", "DECL-14")
async def test_an_unexpected_error_while_stopping_is_wrapped_and_everything_is_freed(story: Story):
    story.takes["a"] = 10
    scheduler = await story.begin(story.task("a", "0 12 * * *"))
    story.sql("CREATE TRIGGER fate BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'fate'); END")
    stopping = asyncio.ensure_future(scheduler.stop())
    await story.clock.advance(seconds=10)
    (found,) = await asyncio.gather(stopping, return_exceptions=True)
    assert scheduler._state == "Stopped"
    assert story.names()[-2:] == ["PollingStopped", "SchedulerStopped"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    story.sql("DROP TRIGGER fate")
    story.takes.clear()
    await scheduler.initialize([story.task("a", "0 12 * * *")])
    await story.clock.settle()
    await scheduler.stop()
    assert story.counts() == {"orphaned": 1}  # no node could record that it had ended
    assert found is None or isinstance(found, HoraeError)


@pytest.mark.contract("DECL-35", "DECL-08")
async def test_an_unexpected_error_in_taking_over_from_the_dead_keeps_no_task_from_running(
    story: Story, caplog: pytest.LogCaptureFixture
):
    story.takes["orphan"] = 600
    tasks = [story.task("orphan", "0 12 * * *"), story.task("a")]
    await story.crash(await story.begin(*tasks))
    story.sql(
        "CREATE TRIGGER fate BEFORE UPDATE ON run WHEN OLD.status = 'running' AND NEW.status = 'retrying' "
        "BEGIN SELECT RAISE(ABORT, 'fate'); END"
    )
    scheduler = await story.begin(*tasks)
    await story.clock.advance(minutes=2)
    try:
        assert [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(story.starts["a"]) == 3
        story.sql("DROP TRIGGER fate")
        await story.clock.advance(hours=1)  # the next round of maintenance
        assert len(story.starts["orphan"]) == 2
    finally:
        await story.crash(scheduler)


@pytest.mark.contract("DECL-35", "DECL-12")
async def test_unexpected_errors_are_wrapped_and_keep_their_cause(story: Story):
    await (await story.begin()).stop()
    story.sql("UPDATE horae SET version = 'somebody was here'")
    with pytest.raises(SchedulerInitializationError) as raised:
        await story.scheduler().initialize([story.task("a")])
    cause = raised.value.__cause__
    assert isinstance(cause, ValueError)
    assert raised.value.details == {"cause": cause}
    assert raised.value.message == "Cannot initialize scheduler: ValueError"
    assert story.events[-1].details == {"error": raised.value}


@pytest.mark.contract("DECL-35")
async def test_a_file_that_is_no_database_is_refused_in_words(story: Story, tmp_path: Path):
    (tmp_path / "horae.db").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreUnavailableError, match="not a database"):
        await story.scheduler().initialize([story.task("a")])


@pytest.mark.contract("DECL-35")
async def test_a_database_of_a_newer_version_is_refused_in_words(story: Story):
    await (await story.begin()).stop()
    story.sql("UPDATE horae SET version = version + 1000")
    with pytest.raises(DatabaseVersionError):
        await story.scheduler().initialize([])


SECRET = "hunter2"  # noqa: S105 - it guards nothing
ADDRESSES = [
    f"postgresql://user:{SECRET}@127.0.0.1:1/horae",
    f"postgres://user:{SECRET}@127.0.0.1:1/horae?sslmode=bogus",
    f"postgresql://user:{SECRET}@[bad/horae",
    f"postgresql://127.0.0.1:1/horae?user=x&password={SECRET}",
    f"postgresql://user:{SECRET}@127.0.0.1:notaport/horae",
]


async def words(address: str, caplog: pytest.LogCaptureFixture) -> str:
    """Everything that is said of a database that cannot be opened."""
    caplog.set_level(logging.DEBUG, "horae")
    heard: list[Any] = []
    with pytest.raises(HoraeError) as raised:
        await Scheduler(database=address, timezone="UTC", listener=heard.append).initialize([])
    said = [raised.value.message, str(raised.value), raised.value.hint or "", repr(raised.value)]
    return "\n".join([*said, *(record.getMessage() for record in caplog.records)])


@pytest.mark.contract("DECL-35")
@pytest.mark.parametrize("address", ADDRESSES)
async def test_no_message_shows_the_password_of_a_database(address: str, caplog: pytest.LogCaptureFixture):
    assert SECRET not in await words(address, caplog)


@pytest.mark.contract("DECL-35")
@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "mysql", "POSTGRESQL"])
async def test_no_message_shows_the_password_in_an_address_that_cannot_be_read(
    scheme: str, caplog: pytest.LogCaptureFixture
):
    assert SECRET not in await words(f"{scheme}://user:{SECRET}@127.0.0.1/horae", caplog)


@pytest.mark.contract("DECL-35", "DECL-17")
async def test_the_listener_gets_the_exception_of_a_callback(story: Story):
    error = ValueError("as it was")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise error

    scheduler = await story.begin(("a", "0 12 * * *", fails, DELAY))
    await scheduler.stop()
    (failed,) = (event for event in story.events if event.name == "TaskRunFailed")
    assert failed.details["error"] is error

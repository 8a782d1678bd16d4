"""With very many schedules, every question that is asked all the time is answered by an index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae.store.dialect import query
from horae.store.port import Filter, Store
from horae.store.postgres import PLANNING, PostgresStore
from horae.store.postgres.dialect import prepared
from horae.store.row_mapping import to_json
from horae.store.sqlite import SQLITE, SqliteStore
from tests.support.plans import literal, make_schema

MANY = 100_000
ENDED = 50_000
DUE = 300
IDS = [f"s{number:07d}" for number in range(1, 501)]

SEARCH = {
    "statuses": ["failed", "skipped"],
    "reason": "late",
    "without_reasons": ["deleted"],
    "tag": "t",
    "owner": None,
    "since": 500,
    "until": 49_000,
    "limit": 1000,
}

FILTER = dict.fromkeys(Filter.__struct_fields__) | {"after_id": "s", "after_owner": "", "limit": 51}
QUESTIONS: dict[str, dict[str, Any]] = {
    "paused_schedule_sizes": FILTER | {"paused": True},
    "completed_schedule_sizes": FILTER | {"completed": True},
    "attention_schedule_sizes": FILTER | {"attention": True, "owner": "o7"},
    "examine_schedules": {key: value for key, value in FILTER.items() if key != "owner"}
    | {"text": "nothing"},
    "examine_owned_schedules": {key: value for key, value in FILTER.items() if key != "after_owner"}
    | {"owner": "", "tag": "x"},
    "soonest_schedules": {"owner": None, "tag": None, "examined": 4000, "limit": 40},
    "due": {"now": DUE, "limit": 500},
    "wake_at": {},
    "managed_keys": {"managed_by": "program:jobs", "after": "s", "limit": 200},
    "known_keys": {"after": "s", "limit": 500},
    "keys_of_id": {"id": "s0000001", "limit": 11},
    "known_keys_of_id": {"id": "s0000001", "limit": 11},
    "count_due": {"now": DUE, "limit": 500},
    "count_open": {"limit": 500},
    "unclaimed": {"actions": ["a", "b"], "limit": 500},
    "stopping": {"epoch": 7},
    "overdue_reports": {"now": DUE, "limit": 500},
    "reportable_run": {"id": "r7"},
    "open_runs": {"keys": IDS},
    "wake_waiting": {"keys": IDS, "now": DUE},
    "mark_due": {"keys": IDS, "now": DUE},
    "last_outcomes": {"keys": IDS},
    "latest_outcomes": {"keys": IDS},
    "claimed": {"epochs": [7, 8], "limit": 500},
    "waiting_for_node": {"before": 5, "limit": 500},
    "delete_node": {"epoch": 7},
    "without_next_time": {"after": "", "limit": 500},
    "open_backfills": {"keys": IDS},
    "recent_runs": {"keys": IDS, "limit": 10},
    "runs": {"key": "s0000001", "limit": 20, "before": 9},
    "unstarted_ranges": {"key": "s0000001", "limit": 20, "before": 9},
    "versions": {"key": "s0000001", "limit": 20, "generation": 1, "version": 9},
    "version_sizes": {"key": "s0000001", "limit": 20, "generation": 1, "version": 9},
    "backfills": {"key": "s0000001", "limit": 20, "before": 9},
    "backfill_sizes": {"key": "s0000001", "limit": 20, "before": 9},
    "count_open_backfills": {"key": "s0000001", "limit": 100},
    "counts_of": {"keys": IDS},
    "runs_at": {"key": "s0000001", "from_id": "019ca6f5-b000-", "to_id": "019ca6f5-b000-g"},
    "unstarted_at": {"key": "s0000001", "nominal_ms": 5},
    "version_at": {"key": "s0000001", "at": 5},
    "version_before": {"key": "s0000001", "at": 5},
    "read_schedules": {"keys": IDS},
    "schedules_with_grant": {"grant_id": "g7", "limit": 2},
    "last_starts": {"keys": IDS},
    "checkpoints": {"ids": ["r1", "r2"]},
    "open_counts": {"keys": IDS},
    "count_triggers": {"key": "s0000001", "limit": 1000},
    "count_waiting": {"key": "s0000001", "limit": 1000},
    "run_sizes": {"key": "s0000001", "limit": 20, "before": 9},
    "runs_numbered": {"numbers": [7, 8]},
    "run_number_at": {"moment": 25_000},
    "search_runs": SEARCH | {"before": 37_500, "least": 1000},
    "search_owned_runs": SEARCH | {"before": 37_500, "least": 1000, "owner": "o7"},
    "search_runs_of_schedule": SEARCH | {"before": 9, "least": 1, "schedule_key": "s0000001"},
    "search_ranges": SEARCH | {"before_ms": 37_500, "before": 9},
    "search_owned_ranges": SEARCH | {"before_ms": 37_500, "before": 9, "owner": "o7"},
    "search_ranges_of_schedule": SEARCH | {"before": 9, "schedule_key": "s0000001"},
}

# One schedule in each row, a few of them due, a thousand with nothing ahead; many runs that ended, some that are open.
SCHEDULES = """
    INSERT INTO schedule (key, id, generation, spec, action, policies, state, version, created_at_ms, updated_at_ms, owner, tags)
    SELECT {id}, {id}, 1, '{{"crons":["0 0 * * *"]}}', '{{"name":"a"}}', '{{}}', '{{}}', 1, 1, 1, '', '[]' FROM {numbers}
"""
PLACES = """
    INSERT INTO due (schedule_key, cursor_ms, next_at_ms)
    SELECT {id}, 1, CASE WHEN n % 1000 = 999 THEN NULL ELSE n END FROM {numbers}
"""
RUNS = """
    INSERT INTO run (id, schedule_key, generation, nominal_ms, origin, overlap, status, fire_ms, start_at_ms, decided_at_ms, owner,
        action, action_id, reason, attempt, epoch, stop, author, note)
    SELECT 'r' || n, {id}, 1, n, 'automatic', 'skip',
        CASE WHEN n % 400 <> 0 THEN 'succeeded' WHEN n % 1200 = 0 THEN 'starting' WHEN n % 800 = 0 THEN 'pending'
            WHEN n % 2000 = 0 THEN 'retrying' ELSE 'running' END,
        n, n, n, CASE WHEN n % 3 = 0 THEN '' ELSE 'o' || n % 1000 END, 'a', 'a', '', 1, n % 9, CASE WHEN n % 10000 = 400 THEN 'cancel' ELSE '' END, '', ''
    FROM {numbers}
"""

RANGES = """
    INSERT INTO unstarted_range (schedule_key, generation, start_ms, end_ms, count, status, reason, decided_at_ms, owner)
    SELECT {id}, 1, n, n, 1, 'skipped', 'overlap', n, CASE WHEN n % 3 = 0 THEN '' ELSE 'o' || n % 1000 END FROM {numbers}
"""

LASTS = "INSERT INTO last_outcome (schedule_key, result) SELECT {id}, '1' FROM {numbers}"

ANSWERED_BY = {
    name: index
    for index, names in {
        "schedule_paused": ["paused_schedule_sizes"],
        "schedule_completed": ["completed_schedule_sizes"],
        "schedule_attention": ["attention_schedule_sizes"],
        "schedule_by_id": ["examine_schedules", "examine_owned_schedules", "keys_of_id"],
        "schedule_managed_by": ["managed_keys"],
        "schedule_grant": ["schedules_with_grant"],
        "due_next": ["due", "wake_at", "count_due", "soonest_schedules"],
        "due_never": ["without_next_time"],
        "run_unclaimed": ["unclaimed", "waiting_for_node"],
        "run_stopping": ["stopping"],
        "run_reports": ["overdue_reports"],
        "run_open": ["count_open", "open_runs", "open_counts", "count_triggers", "count_waiting"],
        "run_latest": ["runs", "run_sizes", "recent_runs", "last_starts", "search_runs_of_schedule"],
        "run_owned": ["search_owned_runs"],
        "unstarted_range_decided": ["search_ranges"],
        "unstarted_range_owned": ["search_owned_ranges"],
    }.items()
    for name in names
}
"""The index by which PostgreSQL answers a question: another one may do for as many rows as there are here, and not for more."""


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "horae.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    make_schema(connection)
    for text, count in ((SCHEDULES, MANY), (PLACES, MANY), (RUNS, ENDED), (RANGES, ENDED)):
        numbers = f"(WITH RECURSIVE c (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < {count}) SELECT n FROM c)"  # noqa: S608
        connection.execute(text.format(id="printf('s%07d', n)", numbers=numbers))
    yield connection
    connection.close()
    path.unlink()


SMALL = r"(due_next|due_never|run_unclaimed|run_open|run_stopping|run_reports|schedule_paused|schedule_completed|schedule_attention)"
"""Indexes of a part of their tables: all of one may be scanned, because it has only that part."""


def check_sqlite(connection: sqlite3.Connection, name: str) -> None:
    given = {key: to_json(each) if isinstance(each, list) else each for key, each in QUESTIONS[name].items()}
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query(SQLITE, name)}", given)]
    allowed = rf"SCAN (json_each|CONSTANT ROW|counted|halves|soon|\w+ USING (COVERING )?INDEX {SMALL})"
    assert [line for line in plan if line.startswith("SCAN") and not re.match(allowed, line)] == [], name
    if (
        name.startswith("search_") or "schedule_sizes" in name or "examine" in name
    ):  # it ends when enough are read
        assert not any("TEMP B-TREE" in line for line in plan), plan
    if name == "due":  # the longest overdue first, without sorting all that is due
        assert plan == [
            "SEARCH due USING INDEX due_next (next_at_ms<?)",
            "SEARCH schedule USING PRIMARY KEY (key=?)",
        ]


def test_sqlite_answers_by_its_indexes_before_and_after_analyze(sqlite_file: sqlite3.Connection):
    for name in QUESTIONS:
        check_sqlite(sqlite_file, name)
    sqlite_file.execute("ANALYZE")
    for name in QUESTIONS:
        check_sqlite(sqlite_file, name)


@pytest.fixture
async def full_database(postgres: str) -> AsyncIterator[Any]:
    store: Store = PostgresStore(postgres)
    await store.open(lambda: None)
    await store.close()
    connection = await asyncpg.connect(postgres)
    await connection.execute("SET synchronous_commit = off")
    for text, count in ((SCHEDULES, MANY), (PLACES, MANY), (RUNS, ENDED), (RANGES, ENDED)):
        numbers = f"generate_series(1, {count}) AS n"
        await connection.execute(text.format(id="'s' || lpad(n::text, 7, '0')", numbers=numbers))
    await connection.execute("ANALYZE")
    yield connection
    await connection.execute(
        "TRUNCATE schedule, due, run, unstarted_range CASCADE"
    )  # the server lives on, its disk is small
    await connection.close()


async def test_postgresql_answers_by_its_indexes(full_database: Any):
    for name, values in {**QUESTIONS, "lock": {"keys": IDS}}.items():
        text, names = prepared(name)
        given = ", ".join(literal(values[each]) for each in names)
        call = f"EXECUTE {name}_question" + (f" ({given})" if given else "")
        await full_database.execute(f"PREPARE {name}_question AS {text}")
        transaction = full_database.transaction()
        await transaction.start()
        for _ in range(7):  # from the sixth time on the server may have one plan for all values
            await full_database.execute(call)
        plan = [row[0] for row in await full_database.fetch(f"EXPLAIN {call}")]
        await transaction.rollback()
        assert whole_scans(plan) == [], (name, "\n".join(plan))
        if name.startswith("search_") or "schedule_sizes" in name or "examine" in name:
            assert not any("Sort" in line for line in plan), "\n".join(plan)
        if name in ANSWERED_BY:
            assert any(f"using {ANSWERED_BY[name]}" in line for line in plan), (name, "\n".join(plan))


LOOKED_UP = {
    "run_id_key": (
        "succeed",
        "finish",
        "hand_off",
        "keep_token",
        "ask_to_stop",
        "expect_report",
        "update_run",
        "save_checkpoints",
    ),
    "due_pkey": ("advance", "update_due"),
    "schedule_pkey": (
        "update_state",
        "update_schedule",
        "put_last_result",
        "put_last_failure",
        "clear_last_outcome",
    ),
    "run_latest": ("prune_runs",),
    "unstarted_range_latest": ("prune_unstarted_ranges",),
    "backfill_latest": ("prune_backfills",),
    "version_pkey": ("prune_versions",),
}


async def test_postgresql_looks_up_what_it_changes_however_much_there_is(postgres: str):
    store: Store = PostgresStore(postgres)
    await store.open(lambda: None)
    await store.close()
    connection = await asyncpg.connect(postgres, server_settings=PLANNING)
    try:
        # The server has counted when hardly anything was open, and has to find its way among many.
        few, many = "generate_series(401, 1201) AS n", "generate_series(2000, 8000000, 400) AS n"
        for text in (RUNS, SCHEDULES, PLACES, LASTS):
            await connection.execute(text.format(id="'s' || n", numbers=few))
        await connection.execute("ANALYZE")
        for text in (RUNS, SCHEDULES, PLACES, LASTS):
            await connection.execute(text.format(id="'s' || n", numbers=many))
        for index, name in ((index, name) for index, names in LOOKED_UP.items() for name in names):
            text, names = prepared(name)
            await connection.execute(f"PREPARE {name}_change AS {text}")
            asked = f"EXPLAIN EXECUTE {name}_change ({nulls(text, names)})"
            plan = [row[0] for row in await connection.fetch(asked)]
            assert any(f"Index Scan using {index}" in line for line in plan), (name, "\n".join(plan))
            assert any(re.search(r"Index Cond: \(\(?(id|key|schedule_key) = ", line) for line in plan), (
                name,
                "\n".join(plan),
            )
            assert whole_scans(plan) == [], (name, "\n".join(plan))
    finally:
        await connection.close()


def nulls(text: str, names: tuple[str, ...]) -> str:
    """Arrays of five hundred, as texts, for the parameters of a query."""
    kinds = [re.search(rf"\${place + 1}::text::(\w+)\[\]", text) for place in range(len(names))]
    return ", ".join(f"array_fill(NULL::{kind[1]}, ARRAY[500])::text" for kind in kinds if kind)


def whole_scans(plan: list[str]) -> list[str]:
    """The lines that go through a whole table, or through the whole of an index that has all of it."""
    found = []
    for line, following in zip(plan, [*plan[1:], ""], strict=True):
        through = re.search(r"Scan (Backward )?using (\w+)", line)
        if re.search(r"Seq Scan on (due|run|schedule|unstarted_range)\b", line) or (
            through and not re.fullmatch(SMALL, through[2]) and "Index Cond" not in following
        ):
            found.append(line)
    return found


def test_every_question_is_one_that_is_asked(tmp_path: Path):
    assert SqliteStore(str(tmp_path / "horae.db")).batch <= 1000  # as many ids as one question may name
    for name, values in QUESTIONS.items():
        assert set(prepared(name)[1]) == set(values)

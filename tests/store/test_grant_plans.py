"""With many users, what each run of a graph asks about grants, accounts, requests, states and usage is answered by an index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from horae.grant_model import Account, ExecutionRecord, ExecutionStatus, Grant, Usage
from horae.store.dialect import query
from horae.store.postgres import PLANNING, PostgresStore
from horae.store.postgres.dialect import prepared
from horae.store.row_mapping import Table, to_json
from horae.store.sqlite import SQLITE
from horae.store.tables import ACCOUNT, EXECUTION, GRANT, USAGE
from tests.support.plans import literal, make_schema

MANY = 20_000
GRANTED = Grant(id="g7", user_id="u7", billing_account_id="a7", scopes=(), created_at_ms=1)
ACCOUNTED = Account(id="a7", user_id="u7", updated_at_ms=1)
REQUESTED = ExecutionRecord(
    user_id="u7", key="k7", request_hash="h", run_id="r7", holder="n", status=ExecutionStatus.RUNNING, lease_until_ms=1, created_at_ms=1
)  # fmt: skip
USED = Usage(
    run_id="r7", attempt=1, unit="1", user_id="u7", billing_account_id="a7", graph_id="g", recorded_at_ms=1
)
REQUEST: dict[str, Any] = {"user_id": "u7", "key": "k7"}

QUESTIONS: dict[str, dict[str, Any]] = {
    "grants_by_id": {"ids": ["g7", "g8"]},
    "lock_grant": {"id": "g7"},
    "grants": {"after": "g7", "limit": 100},
    "owned_grants": {"user_id": "u7", "after": "", "limit": 100},
    "count_grants": {"user_id": "u7", "limit": 1000},
    "account": {"id": "a7"},
    "account_of": {"user_id": "u7"},
    "charge": {"id": "a7", "cost": 1},
    "execution": REQUEST,
    "claim_execution": EXECUTION.parameters(REQUESTED),
    "renew_execution": REQUEST | {"holder": "n", "until_ms": 5},
    "end_execution": REQUEST | {"holder": "n", "outcome": "{}"},
    "stop_execution": REQUEST,
    "prune_executions": {"before_ms": 5, "limit": 100},
    "graph_state": {"run_id": "r7"},
    "drop_graph_state": {"run_id": "r7", "keys": ["k"]},
    "prune_graph_state": {"before_ms": 5, "limit": 100},
    "insert_patch_request": {"schedule_key": "k7", "generation": 1, "request_id": "r", "now": 1},
    "prune_patch_requests": {"before_ms": 5, "limit": 100},
    "insert_usage": USAGE.parameters(USED),
    "usage": {"ids": ["r7", "r8"]},
    "owned_usage_sums": {"user_id": "u7", "since_ms": 1, "until_ms": 900, "step_ms": 10, "limit": 100},
    "usage_sums": {"since_ms": 1, "until_ms": 90, "step_ms": 10, "limit": 100},
}


@pytest.fixture(scope="module")
def empty_file() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_schema(connection)
        yield connection


@pytest.mark.parametrize("name", QUESTIONS)
def test_sqlite_answers_by_its_indexes(empty_file: sqlite3.Connection, name: str):
    given = {key: to_json(each) if isinstance(each, list) else each for key, each in QUESTIONS[name].items()}
    plan = [row[3] for row in empty_file.execute(f"EXPLAIN QUERY PLAN {query(SQLITE, name)}", given)]
    assert [line for line in plan if re.match(r"SCAN (?!json_each|CONSTANT ROW|counted)", line)] == []


ROWS: tuple[tuple[Table[Any], Any, dict[str, str]], ...] = (
    (GRANT, GRANTED, {"id": "'g' || n", "user_id": "'u' || n"}),
    (ACCOUNT, ACCOUNTED, {"id": "'a' || n", "user_id": "'u' || n"}),
    (EXECUTION, REQUESTED, {"user_id": "'u' || n", "key": "'k' || n", "created_at_ms": "n"}),
    (USAGE, USED, {"run_id": "'r' || n", "user_id": "'u' || n", "recorded_at_ms": "n"}),
)


async def test_postgresql_answers_by_its_indexes(postgres: str):
    store = PostgresStore(postgres)
    await store.open(lambda: None)
    await store.close()
    connection = await asyncpg.connect(postgres, server_settings=PLANNING)
    try:
        for table, value, varied in ROWS:
            row: dict[str, Any] = {
                name: literal(each) for name, each in table.parameters(value).items()
            } | varied
            names, values = ", ".join(row), ", ".join(row.values())
            await connection.execute(
                f"INSERT INTO {table.name} ({names}) SELECT {values} FROM generate_series(1, {MANY}) AS n"  # noqa: S608
            )
        await connection.execute(
            f"INSERT INTO graph_state (run_id, key, value, saved_at_ms) SELECT 'r' || n, 'k', '', n FROM generate_series(1, {MANY}) AS n"  # noqa: S608
        )
        await connection.execute(
            f"INSERT INTO patch_request SELECT 'k' || n, 1, 'r', n FROM generate_series(1, {MANY}) AS n"  # noqa: S608
        )
        tables = "execution_grant, account, execution, usage_record, graph_state, patch_request"
        await connection.execute(f"ANALYZE {tables}")
        for name, given in QUESTIONS.items():
            text, names_of = prepared(name)
            await connection.execute(f"PREPARE {name}_question AS {text}")
            asked = ", ".join(literal(given[each]) for each in names_of)
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name}_question ({asked})")]
            assert [line for line in plan if "Seq Scan on" in line] == [], (name, "\n".join(plan))
    finally:
        await connection.close()

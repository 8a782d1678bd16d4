"""With ten thousand flows of ten pending events each, what is asked all the time is answered by an index."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from horae.store.dialect import migrations, query
from horae.store.postgres import PLANNING, PostgresStore
from horae.store.postgres.dialect import array_of, as_parameter, prepared
from horae.store.row_mapping import to_json
from horae.store.sqlite import SQLITE
from horae.store.tables import KINDS

FLOWS, EVENTS = 10_000, 10
LANES = "INSERT INTO flow_lane SELECT {n}, 'r', CASE WHEN {n} % 1000 = 0 THEN {n} END, 1, NULL, 'run', 0, 0, '{{}}', NULL, {no}, '[]' FROM {flows}"
PENDING = (
    "INSERT INTO flow_event (flow_id, topic, message_id, payload, status, caused, created_at_ms)"
    " SELECT {n} / 10, 'in', CAST({n} AS TEXT), '{{}}', 'pending', {no}, 1 FROM {events}"
)
ASKED: dict[str, dict[str, Any]] = {
    "flow_probe": {"revisions": ["r"]},
    "due_flows": {"revisions": ["r"], "now": 5000, "limit": 500},
    "signalled_flows": {"revisions": ["r"], "limit": 500},
    "claimed_flows": {"epochs": [7], "limit": 100},
    "pending_events": {"flow_id": 7, "topic": "in", "limit": 100},
    "lock_flows": {"ids": [1, 2, 3]},
    "count_attention": {"limit": 100},
}


@pytest.mark.contract("FLOW-28")
def test_sqlite_searches_indexes():
    connection = sqlite3.connect(":memory:")
    for statement in ";\n".join(migrations(SQLITE)).split(";\n"):
        connection.execute(statement)
    series = "(WITH RECURSIVE s(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < {0}) SELECT v FROM s)"
    connection.execute(LANES.format(n="v", no=0, flows=series.format(FLOWS)))
    connection.execute(PENDING.format(n="v", no=0, events=series.format(FLOWS * EVENTS)))
    connection.execute("ANALYZE")
    for name, values in ASKED.items():
        given = {key: to_json(each) if isinstance(each, list) else each for key, each in values.items()}
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query(SQLITE, name)}", given)]
        scans = [
            step
            for step in plan
            if step.startswith("SCAN flow_") and "flow_signal" not in step and "USING" not in step
        ]
        assert not scans, (name, plan)
    connection.close()


@pytest.fixture
async def connection(postgres: str) -> AsyncIterator[Any]:
    """A connection to an empty database of ours."""
    store = PostgresStore(postgres)
    await store.open(lambda: None)
    await store.close()
    connection = await asyncpg.connect(postgres)
    yield connection
    await connection.close()


async def plan_of(connection: Any, name: str, values: dict[str, Any]) -> str:
    text, names = prepared(name)
    rows = await connection.fetch(f"EXPLAIN {text}", *(as_parameter(values[each]) for each in names))
    return "\n".join(row[0] for row in rows)


@pytest.mark.contract("FLOW-28")
@pytest.mark.parametrize("number", [1, 100, 5000])
async def test_postgres_writes_by_keys_also_if_it_planned_to_when_the_tables_were_empty(
    connection: Any, number: int
):
    """A plan is cached: one that reads all of a small table would read all of it when it is large."""
    for setting, value in PLANNING.items():
        await connection.execute(f"SET {setting} = {value}")
    samples = {"text": "a", "bigint": 1, "boolean": False}
    batch = {name: array_of(name, [{name: samples[kind]}] * number) for name, kind in KINDS.items()} | {
        "now": 1
    }
    wanted = {
        "flow_run_id_key on flow_run": ("end_flow_run", "move_flow_run"),
        "flow_event_pkey on flow_event": (
            "reserve_events", "consume_events", "release_events", "hand_over_events", "skip_events",
        ),
        "flow_lane_pkey on flow_lane": ("update_flow_lane", "move_flow_run"),
    }  # fmt: skip
    for index, names in wanted.items():
        for name in names:
            plan = await plan_of(connection, name, batch)
            assert re.search(rf"Index Scan using {index} .*\n\s+Index Cond:", plan), (name, plan)


@pytest.mark.contract("FLOW-28")
async def test_postgres_searches_indexes(connection: Any):
    await connection.execute(LANES.format(n="n", no="FALSE", flows=f"generate_series(1, {FLOWS}) AS n"))
    await connection.execute(
        PENDING.format(n="n", no="FALSE", events=f"generate_series(1, {FLOWS * EVENTS}) AS n")
    )
    await connection.execute("ANALYZE flow_lane; ANALYZE flow_event; ANALYZE flow_signal")
    for setting, value in PLANNING.items():
        await connection.execute(f"SET {setting} = {value}")
    for name, values in ASKED.items():
        plan = await plan_of(connection, name, values)
        assert "Seq Scan on flow_lane" not in plan, (name, plan)
        assert "Seq Scan on flow_event" not in plan, (name, plan)

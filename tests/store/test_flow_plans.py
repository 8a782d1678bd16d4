"""With ten thousand flows of ten pending events each, what is asked all the time is answered by an index."""

from __future__ import annotations

import sqlite3
from typing import Any

import asyncpg
import pytest

from horae.store.mapping import to_json
from horae.store.postgres import PLANNING, PostgresStore
from horae.store.postgres.dialect import prepared
from horae.store.queries import migrations, query
from horae.store.sqlite import SQLITE

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


@pytest.mark.contract("FLOW-28")
async def test_postgres_searches_indexes(postgres: str):
    store = PostgresStore(postgres)
    await store.open(lambda: None)
    await store.close()
    connection = await asyncpg.connect(postgres)
    await connection.execute(LANES.format(n="n", no="FALSE", flows=f"generate_series(1, {FLOWS}) AS n"))
    await connection.execute(
        PENDING.format(n="n", no="FALSE", events=f"generate_series(1, {FLOWS * EVENTS}) AS n")
    )
    await connection.execute("ANALYZE flow_lane; ANALYZE flow_event; ANALYZE flow_signal")
    for setting, value in PLANNING.items():
        await connection.execute(f"SET {setting} = {value}")
    for name, values in ASKED.items():
        text, names = prepared(name)
        rows = await connection.fetch(f"EXPLAIN {text}", *(values[each] for each in names))
        plan = "\n".join(row[0] for row in rows)
        assert "Seq Scan on flow_lane" not in plan, (name, plan)
        assert "Seq Scan on flow_event" not in plan, (name, plan)
    await connection.close()

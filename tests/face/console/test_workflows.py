"""Workflows on pages: the graph in layers, the nodes of a run with their states, and graphs that are too large to draw."""

from __future__ import annotations

import re
from typing import Any

from horae.face.console.dag import MAX_DRAWN, draw
from horae.testing import TimeMachine
from tests.support.service import client_of


def test_each_node_is_right_of_all_before_it_and_no_two_overlap():
    nodes = [(name, "action") for name in "abcde"]
    edges = [
        ("a", "b", ""),
        ("a", "c", ""),
        ("b", "d", ""),
        ("c", "d", "x > 1"),
        ("a", "d", ""),
        ("gone", "e", ""),
    ]
    drawing = draw(nodes, edges, {"b": "failed"})
    assert drawing is not None
    places = {box.id: (box.x, box.y) for box in drawing.boxes}
    assert places["a"][0] < places["b"][0] == places["c"][0] < places["d"][0]
    assert len(set(places.values())) == 5
    assert [box.state for box in drawing.boxes if box.id == "b"] == ["failed"]
    assert len(drawing.lines) == 5
    assert all(x + 168 <= drawing.width and y + 44 <= drawing.height for x, y in places.values())


def test_circles_end_and_large_graphs_are_not_drawn():
    assert draw([("a", "x"), ("b", "x")], [("a", "b", ""), ("b", "a", "")], {}) is not None
    assert draw([(str(number), "x") for number in range(10_000)], [], {}) is None
    assert draw([(str(number), "x") for number in range(MAX_DRAWN)], [], {}) is not None
    assert draw([], [], {}) is None


async def test_a_run_shows_its_graph_with_the_state_of_each_node(machine: TimeMachine):
    app = machine.app
    app.action("work")(lambda: {"done": "<b>yes</b>"})
    app.use_builtin("http://127.0.0.1")
    document: dict[str, Any] = {
        "workflow_id": "report", "version": 1,
        "nodes": [
            {"id": "daily", "type": "trigger", "data": {"kind": "schedule_based", "schedule": {"cron_expr": "0 9 * * *", "timezone": "UTC"}}},
            {"id": "work", "type": "action", "data": {"action": "work"}},
        ],
        "edges": [{"source": "daily", "target": "work"}],
    }  # fmt: skip
    deployed = await app.owned_by("local").workflows.deploy(document)
    await machine.advance(hours=25)
    runs = await app.owned_by("local").runs.list(deployed.schedules[0])
    async with client_of(app) as client:
        assert "report" in (await client.get("/console/workflows")).text
        for name in ("zebra", "Apple"):
            await app.owned_by("local").schedules.create(name, "0 9 * * *", "work")
        listed = (await client.get("/console/schedules")).text
        names = re.findall(r'<a class="id"[^>]*><bdi>(.*?)</bdi>', listed)
        assert names == ["Apple", "report", "zebra"], "by the names that are shown"
        page = await client.get("/console/workflows/report?owner=local")
        assert page.status_code == 200
        assert "2 nodes, 1 edge" in page.text
        assert (await client.get("/console/workflows/none")).status_code == 404
        shown = (await client.get(f"/console/runs/{runs[0].id}?owner=local")).text
        assert "dag-succeeded" in shown
        assert "&lt;b&gt;yes&lt;/b&gt;" in shown

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


async def test_a_schedule_is_found_by_the_name_that_pages_show(machine: TimeMachine):
    app, local = machine.app, machine.app.owned_by("local")
    app.action("work")(lambda: None)
    app.use_builtin("http://127.0.0.1")
    timed = {"kind": "schedule_based", "schedule": {"cron_expr": "0 9 * * *", "timezone": "UTC"}}
    document: dict[str, Any] = {
        "workflow_id": "Release", "version": 1, "edges": [{"source": "daily", "target": "work"}],
        "nodes": [{"id": "daily", "type": "trigger", "data": timed}, {"id": "work", "type": "action", "data": {"action": "work"}}],
    }  # fmt: skip
    (schedule_id,) = (await local.workflows.deploy(document)).schedules
    await local.schedules.skip_next(schedule_id)
    await local.schedules.create("x y", "0 9 * * *", "work")
    await machine.advance(hours=49)
    async with client_of(app) as client:

        async def page(path: str, **query: str) -> str:
            answer = await client.get(f"/console/{path}", params=query)
            assert answer.status_code == 200
            return answer.text

        link = f"/console/schedules/{schedule_id}"
        assert link in await page("schedules", q="release")
        assert link in await page("go", q="release")
        for path, query in (
            ("go", {"q": "why did release not run today at 9:00"}),
            ("explain", {"q": 'why did "Release" not run today at 9:00'}),
            ("explain", {"schedule": "release", "time": "2026-03-01T09:00"}),
        ):
            shown = await page(path, **query)
            assert 'class="answer verdict-' in shown, query
            assert f'{link}"><bdi>Release</bdi>' in shown, "it is called as elsewhere"
        for question in ("why did x y run today at 9:00", "why did 'x y' run today at 9:00?"):
            assert 'href="/console/schedules/x%20y"' in await page("explain", q=question)
        runs = await page("runs", schedule="release")
        assert runs.count("<bdi>Release</bdi>") == 2, "the slot that was skipped, and the run"
        other = {"kind": "schedule_based", "schedule": {"cron_expr": "0 10 * * *", "timezone": "UTC"}}
        document["nodes"].append({"id": "later", "type": "trigger", "data": other})
        document["edges"].append({"source": "later", "target": "work"})
        await local.workflows.deploy(document | {"version": 2})
        for path, query in (
            ("runs", {"schedule": "Release"}),
            ("explain", {"q": "why did release not run at 9:00"}),
        ):
            shown = await page(path, **query)
            assert "Several schedules are called" in shown
            assert f"schedule={schedule_id}" in shown

"""Every list refuses filters that it does not know and cursors that it did not give; the lists are those of the OpenAPI document."""

from __future__ import annotations

from typing import Any

import horae
from tests.support.service import client_of

FILTERS = {"enum", "pattern", "format", "minimum"}
"""What the schema of a parameter says that not every text fits."""


def query(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        each["name"]: each.get("schema", {})
        for each in operation.get("parameters", ())
        if each["in"] == "query"
    }


async def test_unknown_filters_wrong_values_and_garbage_cursors_are_refused_by_every_route():
    async with horae.App(":memory:") as app, client_of(app) as client:
        app.action("greet")(lambda: None)
        new = {"id": "x", "spec": "@daily", "action": "greet"}
        assert (await client.post("/api/v1/schedules", json=new)).status_code == 201
        run = (await client.post("/api/v1/schedules/x/trigger")).json()["run_id"]
        paths = (await client.get("/openapi.json")).json()["paths"]
        lists = 0
        for path, operations in paths.items():
            if "get" not in operations:
                continue
            place = path.replace("{schedule_id}", "x").replace("{run_id}", run)
            known = query(operations["get"])
            wrong = {"no_such_filter": "1"}
            if "cursor" in known:
                lists += 1
                wrong["cursor"] = "garbage"
            wrong |= {name: "~?" for name, schema in known.items() if FILTERS & schema.keys()}
            for name, value in wrong.items():
                answer = await client.get(place, params={name: value})
                assert answer.status_code in {400, 422}, (path, name, answer.text)
                problem = answer.json()
                assert name in problem["detail"], (path, name, problem)
        assert lists >= 9

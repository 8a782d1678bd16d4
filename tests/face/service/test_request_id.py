"""The same request sent twice at once: one is answered 201, the other 200, and there is one schedule."""

from __future__ import annotations

import asyncio

import pytest

from horae.app import App
from tests.support.service import client_of

TOGETHER = 8


@pytest.mark.parametrize("path", ["/schedules", "/bulk/schedules"])
async def test_of_several_at_once_one_creates(database: str, path: str):
    wanted: dict[str, object] = {
        "id": "once", "spec": "0 9 * * *", "action": "ping", "request_id": "r", "trigger": True,
    }  # fmt: skip
    body = {"schedules": [wanted]} if path.startswith("/bulk") else wanted
    async with App(database) as app, App(database) as other:
        for each in (app, other):
            each.action("ping")(lambda: None)
        async with client_of(app) as one, client_of(other) as another:
            answers = await asyncio.gather(
                *([one, another][number % 2].post(f"/api/v1{path}", json=body) for number in range(TOGETHER))
            )
            runs = (await one.get("/api/v1/schedules/once/runs")).json()
        assert sorted(each.status_code for each in answers) == [200] * (TOGETHER - 1) + [201]
        first = answers[0].json()
        assert all(each.json() == first for each in answers)
        assert len(runs["items"]) == 1

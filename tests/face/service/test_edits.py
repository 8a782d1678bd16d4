"""Create or replace with PUT, change a part with PATCH: what each makes of a schedule, and under which conditions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from horae.testing import TimeMachine
from tests.support.service import client_of

PATH = "/api/v1/schedules/team%2Fs"
BODY = {"spec": {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}, "action": "a"}


@pytest.fixture
async def client(machine: TimeMachine) -> AsyncIterator[httpx.AsyncClient]:
    machine.app.action("a")(lambda context: None)
    async with client_of(machine.app) as client:
        yield client


async def test_put_creates_and_then_replaces(client: httpx.AsyncClient):
    made = await client.put(PATH, json=BODY | {"memo": {"m": 1}, "tags": ["t"]})
    assert (made.status_code, made.headers["ETag"], made.headers["Location"]) == (201, '"1"', PATH)
    assert made.json()["outcome"] == "created"
    assert (made.json()["id"], made.json()["owner"]) == ("team/s", "local")
    again = await client.put(PATH, json=BODY | {"spec": "0 10 * * *"})
    assert (again.status_code, again.headers["ETag"], again.json()["outcome"]) == (200, '"2"', "changed")
    shown = (await client.get(PATH)).json()
    assert (shown["spec"], shown["tags"], shown["memo"]) == ({"crons": ["0 10 * * *"]}, [], {"m": 1})


async def test_a_dry_run_stores_nothing_and_what_changes_nothing_keeps_the_version(client: httpx.AsyncClient):
    would_be = await client.put(PATH, json=BODY | {"dry_run": True})
    assert (would_be.status_code, would_be.json()["version"]) == (200, 1)
    assert (would_be.json()["outcome"], "Location" in would_be.headers) == ("created", False)
    assert (await client.get(PATH)).status_code == 404
    assert (await client.put(PATH, json=BODY | {"action": "none", "dry_run": True})).json()[
        "code"
    ] == "unknown_action"
    await client.put(PATH, json=BODY)
    would_be = await client.put(PATH, json=BODY | {"tags": ["t"], "version": 1, "dry_run": True})
    assert (would_be.json()["version"], would_be.json()["tags"]) == (2, ["t"])
    assert (await client.get(PATH)).json()["version"] == 1
    again = (await client.put(PATH, json=BODY)).json()
    assert (again["version"], again["outcome"]) == (1, "unchanged")


@pytest.mark.parametrize(
    ("there", "headers", "more", "status", "code"),
    [
        (False, {"If-None-Match": "*"}, {}, 201, None),
        (True, {"If-None-Match": "*"}, {}, 412, "schedule_exists"),
        (False, {"If-None-Match": '"1"'}, {}, 422, "invalid_input"),
        (True, {"If-Match": '"1"'}, {}, 200, None),
        (True, {"If-Match": '"7"'}, {}, 412, "conflict_token_mismatch"),
        (True, {"If-Match": "*"}, {}, 200, None),
        (False, {"If-Match": "*"}, {}, 412, "schedule_not_found"),
        (False, {"If-Match": '"1"'}, {}, 412, "schedule_not_found"),
        (True, {}, {"version": 1}, 200, None),
        (True, {}, {"version": 7}, 409, "conflict_token_mismatch"),
        (False, {}, {"version": 1}, 404, "schedule_not_found"),
    ],
)
async def test_put_keeps_to_its_conditions(
    client: httpx.AsyncClient,
    there: bool,
    headers: dict[str, str],
    more: dict[str, Any],
    status: int,
    code: str | None,
):
    if there:
        await client.put(PATH, json=BODY)
    answer = await client.put(PATH, json=BODY | more, headers=headers)
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert (await client.get(PATH)).status_code == (200 if there or status == 201 else 404)


async def test_put_replaces_nothing_of_another_owner(client: httpx.AsyncClient, machine: TimeMachine):
    await machine.app.owned_by("ada").schedules.create("team/s", "0 9 * * *", "a")
    answer = await client.put(f"{PATH}?owner=bob", json=BODY)
    assert (answer.status_code, answer.json()["owner"]) == (201, "bob")
    hers = await machine.app.owned_by("ada").schedules.get("team/s")
    assert (hers.owner, hers.version) == ("ada", 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"timezone": "Asia/Tokyo"}, {"crons": ["0 9 * * *"], "timezone": "Asia/Tokyo"}),
        ({"timezone": None}, {"crons": ["0 9 * * *"]}),
        ({"crons": ["0 10 * * *"]}, {"crons": ["0 10 * * *"], "timezone": "Europe/Berlin"}),
        ({"crons": None, "intervals": [{"every": "90m"}]}, {"intervals": [{"every": "1h30m"}], "timezone": "Europe/Berlin"}),
        ({"jitter": "30s"}, {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin", "jitter": "30s"}),
        ({}, {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}),
        ("0 11 * * *", {"crons": ["0 11 * * *"]}),
    ],
)  # fmt: skip
async def test_patch_merges_the_spec(client: httpx.AsyncClient, change: Any, expected: dict[str, Any]):
    await client.put(PATH, json=BODY)
    answer = await client.patch(PATH, json={"spec": change, "note": "why"})
    assert (answer.status_code, answer.json()["spec"], answer.json()["note"]) == (200, expected, "why")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"timezone": "Europe/Berlim"}, "spec"),
        ({"crons": ["0 25 * * *"]}, "spec.crons[0]"),
        ({"cron": ["0 9 * * *"]}, "spec"),
        ({"exclude": [{"calendar": "none"}]}, "spec"),
    ],
)
async def test_what_a_merge_makes_is_checked_as_a_whole(client: httpx.AsyncClient, change: Any, path: str):
    await client.put(PATH, json=BODY)
    answer = await client.patch(PATH, json={"spec": change})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"].startswith(path), answer.text
    assert (await client.get(PATH)).json()["version"] == 1


async def test_a_merged_spec_keeps_its_shared_calendars(client: httpx.AsyncClient):
    await client.put("/api/v1/calendars/days", json={"dates": ["2026-03-02"]})
    excluding = BODY["spec"] | {"exclude": [{"calendar": "days"}]}  # type: ignore[operator]
    await client.put(PATH, json=BODY | {"spec": excluding})
    await client.put("/api/v1/calendars/days", json={"dates": ["2026-03-01"]})
    answer = await client.patch(PATH, json={"spec": {"timezone": None}})
    assert answer.json()["spec"] == {"crons": ["0 9 * * *"], "exclude": [{"calendar": "days"}]}
    assert answer.json()["next_time"] == "2026-03-02T09:00:00Z"


async def test_resume_says_what_starts_and_takes_the_other_way(
    client: httpx.AsyncClient, machine: TimeMachine
):
    await client.put(PATH, json=BODY | {"spec": "0 * * * *"})
    await client.post(f"{PATH}/pause")
    await machine.advance(hours=3)
    would = (await client.post(f"{PATH}/resume", json={"dry_run": True})).json()
    assert (would["state"], would["version"], would["resumption"]["on_resume"]) == ("paused", 2, "catch_up")
    assert would["resumption"]["starts"] == {
        "count": 1, "start": "2026-03-01T01:00:00Z", "end": "2026-03-01T01:00:00Z",
    }  # fmt: skip
    answer = await client.post(f"{PATH}/resume", json={"on_resume": "skip", "note": "it is late"})
    done = answer.json()
    assert (done["state"], done["note"], answer.headers["ETag"]) == ("running", "it is late", '"3"')
    assert done["resumption"] == {
        "sentence": "3 slots do not start (2026-03-01T01:00:00Z to 2026-03-01T03:00:00Z), because the schedule was paused. "
        'With on_resume "catch_up", they are made up as the policy catch_up says.',
        "on_resume": "skip", "other": "catch_up", "starts": None, "waits": None, "later": 0,
        "unstarted": [
            {"count": 3, "start": "2026-03-01T01:00:00Z", "end": "2026-03-01T03:00:00Z", "reason": "paused"}
        ],
    }  # fmt: skip
    refused = await client.post(f"{PATH}/resume", json={"on_resume": "never"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")

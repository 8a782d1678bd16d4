"""Runs over HTTP: the search across schedules, and running a run again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from horae import Context
from horae.testing import TimeMachine
from tests.support.service import client_of

RUNS = "/api/v1/runs"


@pytest.fixture
async def client(machine: TimeMachine) -> AsyncIterator[httpx.AsyncClient]:
    """The service of an app with a failed run, and a range of slots that did not run."""

    @machine.app.action("a")
    async def work(context: Context) -> None:
        raise RuntimeError("no")

    await machine.app.schedules.create("one/1", "1 0 * * *", "a", tags=("t",), input={"x": 1})
    await machine.app.schedules.create("two", "* * * * *", "a", remaining_actions=0)
    await machine.advance(minutes=3)
    async with client_of(machine.app) as client:
        yield client


async def test_runs_and_the_slots_that_did_not_run_are_found_together(client: httpx.AsyncClient):
    page = (await client.get(RUNS)).json()
    ranges, run = page["items"]
    assert (ranges["kind"], ranges["schedule_id"], ranges["count"], ranges["reason"]) == (
        "unstarted", "two", 3, "limit_reached",
    )  # fmt: skip
    assert (run["kind"], run["schedule_id"], run["status"], run["rerun_of"]) == (
        "run",
        "one/1",
        "failed",
        None,
    )
    assert run["decided_at"] == "2026-03-01T00:01:00Z"
    assert page["next"] is None


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("status=failed,timed_out", ["run"]),
        ("status=succeeded", []),
        ("reason=limit_reached", ["unstarted"]),
        ("tag=t", ["run"]),
        ("schedule=one%2F1", ["run"]),
        ("since=2026-03-01T00:02:00Z", ["unstarted"]),
        ("until=2026-03-01T01:02:00%2B01:00", ["run"]),
        ("owner=local", []),
    ],
)
async def test_parameters_narrow_the_search(client: httpx.AsyncClient, query: str, kinds: list[str]):
    answer = await client.get(f"{RUNS}?{query}")
    assert [each["kind"] for each in answer.json()["items"]] == kinds, answer.text


async def test_pages_follow_each_other(client: httpx.AsyncClient):
    first = (await client.get(f"{RUNS}?limit=1")).json()
    second = (await client.get(f"{RUNS}?limit=1&cursor={first['next']}")).json()
    assert [each["kind"] for each in first["items"] + second["items"]] == ["unstarted", "run"]


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ("status=failde", 422, "status"),
        ("reason=", 422, "reason"),
        ("since=yesterday", 422, "since"),
        ("since=2026-03-01T00:00:00", 422, "offset"),
        ("cursor=x", 422, "cursor"),
        ("schedule=none", 404, "none"),
        ("limit=0", 400, "limit"),
    ],
)
async def test_what_cannot_be_searched_for_is_a_problem(
    client: httpx.AsyncClient, query: str, status: int, named: str
):
    answer = await client.get(f"{RUNS}?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert named in answer.json()["detail"]


async def test_a_run_is_run_again(client: httpx.AsyncClient, machine: TimeMachine):
    (run,) = (await client.get(f"{RUNS}?status=failed")).json()["items"]
    answer = await client.post(f"{RUNS}/{run['id']}/rerun", json={"input": {"x": 2}, "note": "again"})
    again = answer.json()
    assert answer.status_code == 202
    assert (again["rerun_of"], again["input"], again["note"]) == (run["id"], {"x": 2}, "again")
    assert (again["nominal"], again["author"], again["origin"]["kind"]) == (run["nominal"], "local", "rerun")
    refused = await client.post(f"{RUNS}/{again['id']}/rerun")
    assert (refused.status_code, refused.json()["code"]) == (409, "rerun_refused")
    await machine.advance(seconds=1)
    same = await client.post(f"{RUNS}/{run['id']}/rerun")
    assert same.json()["input"] == {"x": 1}

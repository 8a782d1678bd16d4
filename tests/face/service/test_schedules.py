"""Schedules over HTTP: a real server process and a real client."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from tests.face.service.requests import create, ended_runs, new_id
from tests.support.process import Server
from tests.support.wait import wait_for

SECRETLESS = {"title", "status", "detail", "code", "type", "hint", "errors", "details"}


def running(service: Server, schedule_id: str) -> list[dict[str, Any]]:
    runs = service.get(f"/schedules/{schedule_id}/runs")["items"]
    return [run for run in runs if run["status"] == "running"]


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) <= SECRETLESS
    assert problem["status"] == status
    assert problem["detail"]
    return problem


@pytest.mark.contract("SCHD-21", "SCHD-24")
def test_a_schedule_from_creation_to_deletion(service: Server):
    created = create(
        service, spec={"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift"},
        action={"name": "ping", "input": {"a": 1}}, policies={"overlap": "queue", "retry": {"attempts": 3}},
        tags=["night"], memo={"why": "because"}, search_attributes={"customer": 42}, note="new",
    )  # fmt: skip
    assert created["sentence"].startswith("At 02:30 every day")
    assert created["timezone"] == "Europe/Berlin"
    assert created["policies"]["overlap"] == "buffer_all"
    assert created["policies"]["retry"] == {
        "attempts": 3, "initial_delay": "1s", "factor": 2.0, "max_delay": "1m", "retry_on": [], "preempted": False,
    }  # fmt: skip
    assert (created["state"], created["version"], created["owner"]) == ("running", 1, "local")
    described = service.get(f"/schedules/{created['id']}")
    info = described.pop("info")
    assert described | {"warnings": []} == created
    assert (info["started"], info["pending"], info["running"], info["recent_runs"]) == (0, 0, 0, [])
    assert len(info["next_times"]) == 10
    assert info["next_times"][0] == created["next_time"]
    assert service.ask("DELETE", f"/schedules/{created['id']}").status_code == 204
    assert_problem(service.ask("GET", f"/schedules/{created['id']}"), 404, "schedule_not_found")
    for ledger in ("runs", "unstarted", "backfills"):  # it outlives the schedule
        assert service.get(f"/schedules/{created['id']}/{ledger}")["items"] == []
    assert len(service.get(f"/schedules/{created['id']}/versions")["items"]) == 1
    assert_problem(service.ask("DELETE", f"/schedules/{created['id']}"), 404, "schedule_not_found")


def test_an_action_is_run_once_on_the_clock_of_the_service(service: Server):
    key, action = new_id(), {"name": "ping", "input": {"rows": 10}}
    policies = {"retry": {"attempts": 2}}
    asked = {"action": action, "in": "0s", "key": key, "policies": policies}
    answer = service.ask("POST", "/once", asked)
    made = answer.json()
    assert (answer.status_code, answer.headers["Location"]) == (201, f"/api/v1/schedules/{key}")
    assert (made["id"], made["action"]["input"], made["policies"]["retry"]["attempts"]) == (
        key, {"rows": 10}, 2,
    )  # fmt: skip
    (run,) = wait_for(lambda: ended_runs(service, key))
    assert (run["status"], run["nominal"]) == ("succeeded", made["spec"]["times"][0])
    again = service.ask("POST", "/once", asked)
    assert (again.status_code, again.json()["spec"]) == (200, made["spec"])
    at = {"action": "ping", "at": "2099-03-08T09:00", "timezone": "Asia/Kolkata"}
    assert service.ask("POST", "/once", at).json()["next_time"] == "2099-03-08T03:30:00Z"
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({}, "in one way"), ({"in": "1h", "at": "2099-03-08T09:00:00Z"}, "in one way"),
        ({"in": "soon"}, 'in is "soon", which is not a duration'), ({"in": 10}, "in is 10, a number without a unit"),
        ({"at": "2020-01-01T00:00:00Z"}, "at is not ahead"), ({"at": "2099-13-01"}, 'at "2099-13-01" is not a time'),
        ({"in": "1h", "key": ""}, "key must be a text of 1 to 500 characters"),
    ]  # fmt: skip
    for wrong, words in mistakes:
        answer = service.ask("POST", "/once", {"action": "ping", **wrong})
        problem = assert_problem(answer, 422, "invalid_input")
        assert words in problem["detail"]


def test_an_id_may_have_any_character_that_can_be_shown(service: Server):
    for name in ("a/b", "100%", "ümläut ∞", "a?b#c&d", "%2F", "..", " ", "a+b"):
        created = create(service, id=f"{new_id()}{name}")
        path = f"/schedules/{quote(created['id'], safe='')}"
        assert service.get(path)["id"] == created["id"]
        assert service.ask("DELETE", path).status_code == 204


@pytest.mark.contract("SCHD-21")
def test_creating_twice_is_a_conflict_unless_it_is_the_same_request(service: Server):
    created = create(service, request_id="r1")
    body = {"id": created["id"], "spec": "0 9 * * *", "action": "ping"}
    assert_problem(service.ask("POST", "/schedules", body), 409, "schedule_exists")
    assert_problem(service.ask("POST", "/schedules", body | {"request_id": "r2"}), 409, "schedule_exists")
    again = service.ask("POST", "/schedules", body | {"request_id": "r1"})
    assert (again.status_code, again.json()) == (200, created)


@pytest.mark.contract("SCHD-21")
def test_many_at_the_same_time_create_one(service: Server):
    schedule_id = new_id()

    def attempt(number: int) -> int:
        body = {"id": schedule_id, "spec": "0 9 * * *", "action": "ping", "note": str(number)}
        return service.ask("POST", "/schedules", body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(attempt, range(16)))
    assert statuses == [201] + [409] * 15


@pytest.mark.contract("SCHD-21", "SCHD-18")
def test_creation_may_trigger_and_backfill_at_once(service: Server):
    created = create(
        service, trigger={"input": 7, "note": "first"},
        backfills=[{"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T23:59:59Z", "overlap": "allow_all"}],
    )  # fmt: skip
    runs = wait_for(lambda: len(found := ended_runs(service, created["id"])) == 4 and found)
    by_origin = {run["origin"]["kind"] for run in runs}
    assert by_origin == {"trigger", "backfill"}
    triggered = next(run for run in runs if run["origin"]["kind"] == "trigger")
    assert (triggered["result"]["pong"], triggered["author"], triggered["note"]) == (7, "local", "first")
    assert sorted(run["nominal"] for run in runs if run is not triggered) == [
        "2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z", "2026-01-03T09:00:00Z",
    ]  # fmt: skip
    (backfill,) = service.get(f"/schedules/{created['id']}/backfills")["items"]
    assert (backfill["status"], backfill["made"], backfill["total"]) == ("done", 3, 3)


@pytest.mark.contract("SCHD-22")
def test_versions_and_etags_keep_changes_from_overwriting_each_other(service: Server):
    created = create(service)
    path = f"/schedules/{created['id']}"
    body = {"spec": "0 10 * * *", "action": "ping"}
    changed = service.ask("PUT", path, body, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["version"], changed.headers["ETag"]) == (200, 2, '"2"')
    problem = assert_problem(
        service.ask("PUT", path, body, headers={"If-Match": '"1"'}), 412, "conflict_token_mismatch"
    )
    assert problem["details"] == {"scheduleId": created["id"], "given": 1, "current": 2}
    assert_problem(service.ask("PUT", path, body | {"version": 1}), 409, "conflict_token_mismatch")
    assert_problem(service.ask("PATCH", path, {"note": "x", "version": 1}), 409, "conflict_token_mismatch")
    assert_problem(
        service.ask("POST", f"{path}/patch", {"pause": "x", "version": 1}), 409, "conflict_token_mismatch"
    )
    assert_problem(service.ask("DELETE", path, headers={"If-Match": '"1"'}), 412, "conflict_token_mismatch")
    assert service.get(path)["version"] == 2
    other = body | {"note": "x"}
    assert service.ask("PUT", path, other).json()["version"] == 3  # without one it is unconditional
    assert service.ask("PUT", path, body, headers={"If-Match": "*"}).json()["version"] == 4
    assert service.ask("PUT", path, body).json()["version"] == 4  # what changes nothing moves it not
    service.ask("POST", f"{path}/trigger", {})
    assert service.get(path)["version"] == 4  # and neither does a trigger
    assert_problem(service.ask("PUT", path, body, headers={"If-Match": "four"}), 422, "invalid_input")


@pytest.mark.contract("SCHD-22")
def test_of_many_changes_with_one_version_one_wins(service: Server):
    created = create(service)

    def attempt(hour: int) -> int:
        body = {"spec": f"0 {hour} * * *", "version": 1}
        return service.ask("PATCH", f"/schedules/{created['id']}", body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(attempt, range(12)))
    assert statuses == [200] + [409] * 11
    assert service.get(f"/schedules/{created['id']}")["version"] == 2


@pytest.mark.contract("SCHD-23")
def test_replacing_replaces_all_and_merging_only_what_is_named(service: Server):
    created = create(
        service, policies={"overlap": "allow_all", "max_concurrent": 3}, tags=["a"], memo={"m": 1},
        search_attributes={"s": "x"}, managed_by="a file", remaining_actions=5, note="old", description="for the board",
    )  # fmt: skip
    path = f"/schedules/{created['id']}"
    merged = service.ask(
        "PATCH", path, {"policies": {"max_concurrent": None, "retry": {"attempts": 2}}, "tags": ["b"]}
    )
    after = merged.json()
    assert after["policies"]["overlap"] == "allow_all"
    assert (after["policies"]["max_concurrent"], after["policies"]["retry"]["attempts"]) == (None, 2)
    assert after["description"] == "for the board"
    assert (after["tags"], after["memo"], after["note"], after["remaining_actions"]) == (
        ["b"],
        {"m": 1},
        "old",
        5,
    )
    replaced = service.ask("PUT", path, {"spec": "0 8 * * *", "action": "ping"}).json()
    assert replaced["policies"]["overlap"] == "skip"
    assert (replaced["tags"], replaced["note"], replaced["remaining_actions"]) == ([], "", None)
    assert replaced["description"] == ""
    assert (replaced["memo"], replaced["search_attributes"]) == ({"m": 1}, {"s": "x"})  # absent is unchanged
    assert replaced["managed_by"] == "a file"
    cleared = service.ask("PATCH", path, {"memo": {}, "search_attributes": {}}).json()
    assert (cleared["memo"], cleared["search_attributes"]) == ({}, {})
    named = {"name": "ping", "id_format": "{id}.%Y"}
    assert service.ask("PATCH", path, {"action": named}).json()["action"]["id_format"] == "{id}.%Y"
    whole = service.ask("PATCH", path, {"action": "ping"}).json()  # an action that is given is given whole
    assert whole["action"]["id_format"] == "{id}-%Y-%m-%dT%H:%M:%SZ"
    versions = service.get(f"{path}/versions")["items"]
    assert [each["version"] for each in versions] == [2, 1]
    assert versions[0]["spec"] == {"crons": ["0 9 * * *"]}
    problem = assert_problem(
        service.ask("PATCH", path, {"policies": {"overlap": "maybe"}}), 422, "invalid_input"
    )
    assert problem["errors"][0]["path"] == "policies.overlap"


@pytest.mark.contract("SCHD-21", "SCHD-13")
def test_pause_and_resume_with_a_note_until_a_date_and_skipping(service: Server):
    created = create(service)
    path = f"/schedules/{created['id']}"
    paused = service.ask(
        "POST", f"{path}/pause", {"note": "broken", "until": "2099-01-01T00:00:00+01:00"}
    ).json()
    assert (paused["state"], paused["note"], paused["paused_until"]) == (
        "paused",
        "broken",
        "2098-12-31T23:00:00Z",
    )
    assert paused["next_time"] is None
    times = service.get(path)["info"]["next_times"]  # what comes when the pause is over
    assert len(times) == 10
    assert all(each > "2098-12-31T23:00:00Z" for each in times)
    resumed = service.ask("POST", f"{path}/resume", {"note": "repaired"}).json()
    assert (resumed["state"], resumed["note"], resumed["paused_until"]) == ("running", "repaired", None)
    assert service.ask("POST", f"{path}/skip", {"number": 2}).json()["skip_next"] == 2
    assert service.ask("POST", f"{path}/pause").json()["state"] == "paused"  # a body may be left out
    assert_problem(service.ask("POST", f"{path}/pause", {"until": "2099-01-01T00:00:00"}), 422, "naive_time")
    assert_problem(service.ask("POST", f"{path}/skip", {"number": -1}), 422, "invalid_input")


@pytest.mark.contract("SCHD-21")
def test_a_patch_does_all_or_nothing(service: Server):
    created = create(service, policies={"backfill_limit": 2})
    path = f"/schedules/{created['id']}"
    done = service.ask("POST", f"{path}/patch", {"trigger": {"note": "n"}, "pause": "p"})
    assert done.json()["schedule"]["state"] == "paused"
    assert done.json()["run_id"]
    too_long = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-09T00:00:00Z"}
    before = len(service.get(f"{path}/runs")["items"])
    refused = service.ask("POST", f"{path}/patch", {"trigger": {}, "resume": "r", "backfills": [too_long]})
    assert_problem(refused, 422, "backfill_limit")
    assert service.get(path)["state"] == "paused"
    assert len(service.get(f"{path}/runs")["items"]) == before
    assert_problem(service.ask("POST", f"{path}/patch", {"pause": "a", "resume": "b"}), 422, "invalid_input")


@pytest.mark.contract("SCHD-18", "SCHD-21")
def test_a_trigger_names_its_run_and_two_are_two(service: Server):
    created = create(service, policies={"overlap": "allow_all"})
    path = f"/schedules/{created['id']}"
    ids = {service.ask("POST", f"{path}/trigger", {"input": n}).json()["run_id"] for n in range(2)}
    assert len(ids) == 2
    runs = wait_for(lambda: len(found := ended_runs(service, created["id"])) == 2 and found)
    assert {run["id"] for run in runs} == ids
    assert {run["result"]["pong"] for run in runs} == {0, 1}
    assert_problem(service.ask("POST", f"{path}/trigger", {"overlap": "sometimes"}), 400, "invalid_request")


@pytest.mark.contract("SCHD-19", "SCHD-21")
def test_a_backfill_can_be_tried_dry_watched_and_cancelled(service: Server):
    created = create(service, action="slow", spec="* * * * *", policies={"overlap": "buffer_all"})
    path = f"/schedules/{created['id']}/backfills"
    body = {
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-02-01T00:00:00Z",
    }  # more than are made before it is cancelled
    dry = service.ask("POST", path, body | {"dry_run": True})
    assert (dry.status_code, dry.json()) == (
        200, {"slots": 44_641, "first": "2026-01-01T00:00:00Z", "last": "2026-02-01T00:00:00Z"},
    )  # fmt: skip
    started = service.ask("POST", path, body)
    assert started.status_code == 202
    backfill_path = f"/backfills/{quote(started.json()['id'], safe='')}"
    assert wait_for(lambda: service.get(backfill_path)["made"] > 0)
    cancelled = service.ask("POST", f"{backfill_path}/cancel").json()
    assert cancelled["status"] == "cancelled"
    assert cancelled["ended_at"] is not None
    assert_problem(
        service.ask("POST", path, {"start": body["end"], "end": body["start"]}), 422, "invalid_input"
    )
    assert_problem(service.ask("GET", "/backfills/none"), 404, "backfill_not_found")


@pytest.mark.contract("SCHD-21")
def test_matching_times_of_a_range(service: Server):
    created = create(service, spec={"crons": ["0 9 * * *"], "timezone": "America/New_York"})
    path = f"/schedules/{created['id']}/times"
    found = service.get(
        path, params={"start": "2026-03-07T14:00:00Z", "end": "2026-03-09T13:00:00Z", "limit": 1000}
    )
    assert found == {
        "items": [
            {"nominal": "2026-03-08T13:00:00Z", "fire": "2026-03-08T13:00:00Z", "local": "2026-03-08T09:00:00-04:00"},
            {"nominal": "2026-03-09T13:00:00Z", "fire": "2026-03-09T13:00:00Z", "local": "2026-03-09T09:00:00-04:00"},
        ],
        "ended": None,
    }  # fmt: skip
    once = create(service, spec={"times": ["2000-01-01T00:00:00Z"]})
    assert "no such date" in service.get(f"/schedules/{once['id']}/times")["ended"]


@pytest.mark.contract("SCHD-21")
def test_listing_filters_pages_and_counts(service: Server):
    prefix = new_id("list-")
    for number in range(7):
        create(
            service, id=f"{prefix}-{number}", paused=number % 2 == 1, tags=["odd"] if number % 2 else ["even", prefix],
            search_attributes={"number": number, "region": "eu", "big": number > 4},
            managed_by="" if number else "the file jobs.yaml",
        )  # fmt: skip

    def numbers(**only: Any) -> list[int]:
        found: list[int] = []
        cursor: dict[str, Any] = {}
        while True:
            params = {"prefix": prefix, "limit": 2, **only, **cursor}
            page = service.get("/schedules", params=params)
            found += [int(each["id"].rpartition("-")[2]) for each in page["items"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        count = service.get("/bulk/count", params={"prefix": prefix, **only})
        assert count == {"count": len(found)}
        return found

    assert numbers() == list(range(7))
    assert numbers(state="paused") == [1, 3, 5]
    assert numbers(state="running") == [0, 2, 4, 6]
    assert numbers(state="completed") == []
    assert numbers(tag="odd") == [1, 3, 5]
    assert numbers(search="number:4") == [4]
    assert numbers(search="big:true") == [5, 6]
    assert numbers(search="region:eu", state="paused", tag="odd") == [1, 3, 5]
    assert numbers(action="ping", owner="local", attention="false") == list(range(7))
    assert numbers(managed_by="the file jobs.yaml", orphaned="false") == [0]
    assert numbers(owner="somebody") == []
    assert_problem(service.ask("GET", "/schedules?state=asleep"), 422, "invalid_input")
    assert_problem(service.ask("GET", "/schedules?search=number"), 422, "invalid_input")
    assert_problem(service.ask("GET", "/schedules?limit=0"), 400, "invalid_request")
    assert_problem(service.ask("GET", "/schedules?limit=1001"), 400, "invalid_request")


@pytest.mark.contract("SCHD-13", "SCHD-21")
def test_many_are_paused_and_resumed_by_filter(service: Server):
    tag = new_id("tag")
    for _ in range(3):
        create(service, tags=[tag])
    done = service.ask("POST", "/bulk/pause", {"filter": {"tag": tag}, "note": "all of them"})
    assert done.json() == {"changed": 3}
    paused = service.get("/schedules", params={"tag": tag, "state": "paused"})["items"]
    assert [each["note"] for each in paused] == ["all of them"] * 3
    assert service.ask("POST", "/bulk/resume", {"filter": {"tag": tag}}).json() == {"changed": 3}
    assert service.get("/bulk/count", params={"tag": tag, "state": "running"}) == {"count": 3}


def test_a_thousand_are_created_at_once_or_none(service: Server):
    prefix = new_id("bulk-")
    body = {
        "schedules": [{"id": f"{prefix}-{n}", "spec": "0 9 * * *", "action": "ping"} for n in range(1000)]
    }
    answer = service.ask("POST", "/bulk/schedules", body)
    assert answer.status_code == 201
    assert [each["version"] for each in answer.json()["items"]] == [1] * 1000
    assert_problem(service.ask("POST", "/bulk/schedules", body), 409, "schedule_exists")
    more = {"id": f"{prefix}-new", "spec": "0 99 * * *", "action": "ping"}
    good = {"id": f"{prefix}-good", "spec": "0 9 * * *", "action": "ping"}
    assert_problem(
        service.ask("POST", "/bulk/schedules", {"schedules": [good, more]}), 422, "invalid_cron_expression"
    )
    assert service.get("/bulk/count", params={"prefix": f"{prefix}-good"}) == {"count": 0}
    service.ask("POST", "/bulk/pause", {"filter": {"prefix": prefix}})


@pytest.mark.contract("SCHD-24")
def test_describing_tells_what_became_of_it(service: Server):
    created = create(service, action="fail", trigger=True)
    run = wait_for(lambda: ended_runs(service, created["id"]))[0]
    described = service.get(f"/schedules/{created['id']}")
    assert described["info"]["started"] == 1
    assert described["info"]["last_failure"] == "ValueError: attempt 1 went wrong"
    assert described["info"]["recent_runs"] == [run]
    assert (run["status"], run["reason"], run["sentence"]) == ("failed", "failed", "its action failed")
    assert run["action_id"].startswith(f"{created['id']}-2")
    shown = service.get(f"/runs/{run['id']}")
    (attempt,) = shown.pop("attempts")
    assert attempt["failure"] == run["failure"]
    assert shown.pop("checkpoints") == []
    assert shown == run
    good = create(service, trigger=True)
    wait_for(lambda: ended_runs(service, good["id"]))
    assert "key" in service.get(f"/schedules/{good['id']}")["info"]["last_result"]


@pytest.mark.contract("SCHD-16")
def test_a_run_shows_its_attempts(service: Server):
    created = create(
        service, action="fail", policies={"retry": {"attempts": 2, "initial_delay": "10ms"}}, trigger=True
    )
    run = wait_for(lambda: ended_runs(service, created["id"]))[0]
    attempts = service.get(f"/runs/{run['id']}")["attempts"]
    assert [(each["attempt"], each["reason"], each["failure"]) for each in attempts] == [
        (1, "failed", "ValueError: attempt 1 went wrong"),
        (2, "failed", "ValueError: attempt 2 went wrong"),
    ]
    for each in attempts:
        assert each["traceback"].startswith("Traceback (most recent call last):\n")
        assert each["traceback"].endswith(f"{each['failure']}\n")
    assert run["failure"] == "ValueError: attempt 2 went wrong"


@pytest.mark.contract("SCHD-17")
def test_a_run_is_cancelled_or_terminated(service: Server):
    for how, status in (("cancel", "cancelled"), ("terminate", "terminated")):
        created = create(service, action="slow", trigger=True)
        run = wait_for(partial(running, service, created["id"]))[0]
        assert service.ask("POST", f"/runs/{run['id']}/{how}").json()["stop"] == how
        ended = wait_for(partial(ended_runs, service, created["id"]))[0]
        assert ended["status"] == status
    assert_problem(service.ask("POST", "/runs/none/cancel"), 404, "run_not_found")


@pytest.mark.contract("SCHD-25")
def test_a_finished_schedule_is_kept_as_completed(service: Server):
    created = create(service, spec={"times": ["2000-01-01T00:00:00Z"]})
    wait_for(lambda: service.get(f"/schedules/{created['id']}")["state"] == "completed")
    assert created["id"] in {each["id"] for each in service.get("/schedules?state=completed")["items"]}
    empty = create(service, spec={})
    assert service.get(f"/schedules/{empty['id']}")["state"] == "running"  # it waits for triggers


@pytest.mark.contract("SCHD-05")
def test_a_shared_calendar_changes_the_schedules_that_exclude_it(service: Server):
    name = new_id("holidays")
    put = service.ask("PUT", f"/calendars/{name}", {"dates": ["2099-01-02"]})
    assert (put.status_code, put.json()["schedules"]) == (200, 0)
    created = create(service, spec={"crons": ["0 9 * * *"], "exclude": [{"calendar": name}]})
    params = {"start": "2099-01-01T00:00:00Z", "limit": 2}

    def days() -> list[str]:
        items = service.get(f"/schedules/{created['id']}/times", params=params)["items"]
        return [each["nominal"][:10] for each in items]

    assert days() == ["2099-01-01", "2099-01-03"]
    assert service.ask("PUT", f"/calendars/{name}", {"dates": ["2099-01-01"]}).json()["schedules"] == 1
    assert days() == ["2099-01-02", "2099-01-03"]
    assert service.ask("PUT", f"/calendars/{name}", {"dates": ["2099-01-01"]}).json()["schedules"] == 0
    assert service.get(f"/schedules/{created['id']}")["version"] == 2
    assert_problem(service.ask("DELETE", f"/calendars/{name}"), 409, "calendar_in_use")
    service.ask("DELETE", f"/schedules/{created['id']}")
    assert service.ask("DELETE", f"/calendars/{name}").status_code == 204
    assert_problem(service.ask("GET", f"/calendars/{name}"), 404, "calendar_not_found")
    unknown = {
        "id": new_id(),
        "spec": {"crons": ["0 9 * * *"], "exclude": [{"calendar": name}]},
        "action": "ping",
    }
    assert_problem(service.ask("POST", "/schedules", unknown), 422, "unknown_calendar")
    assert_problem(service.ask("PUT", f"/calendars/{name}", {"dates": ["2099-02-30"]}), 422, "invalid_spec")


@pytest.mark.contract("SCHD-21", "SCHD-28")
def test_versions_and_backfills_come_in_pages(service: Server):
    path = f"/schedules/{create(service)['id']}"
    for minute in range(5):
        service.ask("PATCH", path, {"spec": {"crons": [f"{minute + 1} 9 * * *"]}})
        week = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-07T00:00:00Z", "note": str(minute)}
        assert service.ask("POST", f"{path}/backfills", week).status_code == 202

    def walked(what: str, field: str) -> list[Any]:
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        while True:
            page = service.get(f"{path}/{what}", params={"limit": 2, **cursor})
            assert len(page["items"]) <= 2
            found += [each[field] for each in page["items"]]
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}

    assert walked("versions", "version") == [5, 4, 3, 2, 1]
    assert walked("backfills", "note") == ["4", "3", "2", "1", "0"]
    assert walked("unstarted", "count") == []
    for what, cursor in (
        ("versions", "7"),
        ("versions", "1.x"),
        ("unstarted", "-1"),
        ("unstarted", "9" * 30),
    ):
        answer = service.ask("GET", f"{path}/{what}", params={"cursor": cursor})
        assert_problem(answer, 422, "invalid_input")


@pytest.mark.contract("SCHD-28")
def test_any_time_of_a_schedule_is_explained(service: Server):
    created = create(
        service, spec={
            "crons": ["30 2 * * *"], "timezone": "America/New_York", "exclude": [{"month": "12", "day_of_month": "25", "hour": "*", "minute": "*"}],
            "end_at": "2099-12-31T00:00:00Z",
        },
    )  # fmt: skip
    path = f"/schedules/{created['id']}/explain"

    def verdict(time: str) -> str:
        found = service.get(path, params={"time": time})
        assert found["sentence"]
        return str(found["verdict"])

    assert verdict("2090-06-01T02:30:00") == "will_fire"
    assert verdict("2090-06-01T06:30:00Z") == "will_fire"
    assert verdict("2090-06-01T02:31:00") == "not_scheduled"
    assert verdict("2090-12-25T02:30:00") == "excluded"
    assert verdict("2027-03-14T02:30:00") == "clock_gap"
    assert verdict("2100-06-01T02:30:00") == "out_of_window"
    assert verdict("2020-06-01T02:30:00") == "before_creation"
    service.ask("POST", f"/schedules/{created['id']}/pause", {"note": "x"})
    assert verdict("2090-06-01T02:30:00") == "paused"
    assert_problem(service.ask("GET", path, params={"time": "yesterday"}), 422, "invalid_input")
    assert_problem(service.ask("GET", path), 400, "invalid_request")


@pytest.mark.contract("SCHD-29")
def test_a_change_is_previewed_and_the_load_ahead_shown(service: Server):
    created = create(service, spec="0 9 * * *")
    preview = service.ask("POST", f"/schedules/{created['id']}/preview", {"spec": "0 9,10 * * *", "days": 10})
    found = preview.json()
    assert (found["adds"], found["removes"], found["kept"]) == (10, 0, 10)
    assert len(found["added"]) == 10
    assert service.get(f"/schedules/{created['id']}")["version"] == 1
    meaning = service.ask("POST", "/preview", {"spec": "0 9 * * 1-5", "limit": 3}).json()
    assert meaning["sentence"] == "At 09:00 on Monday to Friday, UTC time"
    assert len(meaning["times"]) == 3
    for _ in range(3):
        create(service, spec="* * * * *", tags=["load"])
    load = service.get("/forecast", params={"minutes": 5, "jitter": "30s"})
    assert load["peak"]["starts"] >= 3
    assert load["total"] >= sum(each["starts"] for each in load["minutes"][:3])
    service.ask("POST", "/bulk/pause", {"filter": {"tag": "load"}})
    assert_problem(service.ask("GET", "/forecast?minutes=0"), 422, "invalid_input")


def test_the_service_knows_what_it_can_run(service: Server):
    assert {"ping", "fail", "http", "workflow"} <= set(service.get("/actions")["items"])
    (node,) = service.get("/nodes")["items"]
    assert node["alive"]
    assert "ping" in node["actions"]

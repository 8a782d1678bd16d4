"""Usual requests to a service under test."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

from tests.support.process import Server


def new_id(prefix: str = "s") -> str:
    return f"{prefix}-{uuid4().hex[:12]}"


def create(service: Server, **fields: Any) -> dict[str, Any]:
    body = {"id": new_id(), "spec": "0 9 * * *", "action": "ping", **fields}
    answer = service.ask("POST", "/schedules", body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    assert answer.headers["ETag"] == f'"{created["version"]}"'
    assert answer.headers["Location"] == f"/api/v1/schedules/{quote(created['id'], safe='')}"
    return created


def ended_runs(service: Server, schedule_id: str) -> list[dict[str, Any]]:
    runs = service.get(f"/schedules/{schedule_id}/runs")["items"]
    return [run for run in runs if run["status"] not in {"pending", "starting", "running", "retrying"}]

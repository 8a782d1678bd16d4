"""Schedules and runs of the service under test."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.support.process import Server
from tests.support.wait import wait_for

CRONTAB = "15 3 * * * /bin/true\n30 4 * * * /bin/false\n@reboot /bin/date\n"
"""A crontab: the service knows the command of its first line, not that of the second, and cannot take over the third."""


def create(
    server: Server, schedule_id: str, action: Any = "ping", spec: Any = "0 0 1 1 *", **more: Any
) -> None:
    """Create a schedule; by default one that never fires while a test runs."""
    answer = server.ask("POST", "/schedules", {"id": schedule_id, "spec": spec, "action": action, **more})
    assert answer.status_code == 201, answer.text


def run_of(server: Server, schedule_id: str, status: str) -> dict[str, Any]:
    """The latest run of a schedule, once it has a status."""

    def found() -> dict[str, Any] | None:
        runs = server.get(f"/schedules/{quote(schedule_id, safe='')}/runs")["items"]
        return runs[0] if runs and runs[0]["status"] == status else None

    run: dict[str, Any] = wait_for(found)
    return run

"""What the service keeps and answers is bounded, for every caller and request."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.process import Server

NEVER = "0 0 29 2 *"
LARGE = "ä" * 30_000  # 60,000 bytes


@pytest.mark.contract("SCHD-21")
def test_a_list_of_large_things_comes_in_pages_that_have_an_end(service: Server):
    names = [f"large{number:03}" for number in range(90)]
    for begin in range(0, len(names), 15):
        wanted = [
            {"id": each, "spec": NEVER, "action": "ping", "memo": {"m": LARGE}}
            for each in names[begin : begin + 15]
        ]
        assert service.ask("POST", "/bulk/schedules", {"schedules": wanted}).status_code == 201
    long = {"calendars": [{"second": "1," * 35_000 + "1"}]}  # about 70,000 bytes
    for number in range(65):
        assert service.ask("PUT", f"/calendars/c{number:02}", long).status_code == 200
    for number in range(18):
        wanted_run = {"input": LARGE * 5, "note": str(number)}
        assert service.ask("POST", "/schedules/large000/trigger", wanted_run).status_code == 202
    assert [each["id"] for each in read_through(service, "/schedules?prefix=large&")] == names
    runs = read_through(service, "/schedules/large000/runs?")
    assert [each["note"] for each in runs] == [str(number) for number in reversed(range(18))]
    calendars = read_through(service, "/calendars?")
    assert [each["name"] for each in calendars] == [f"c{number:02}" for number in range(65)]


def read_through(service: Server, path: str) -> list[Any]:
    """All items of a list, page by page; there is more than one, and none is much larger than 4 MiB."""
    items: list[Any] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        answer = service.ask("GET", f"{path}limit=1000" + (f"&cursor={quote(cursor)}" if cursor else ""))
        assert answer.status_code == 200
        assert len(answer.content) < 5 * 1024 * 1024
        page = answer.json()
        items += page["items"]
        cursor, pages = page["next"], pages + 1
    assert pages > 1
    return items

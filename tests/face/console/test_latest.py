"""What the list of schedules says of each one's latest slot, on the virtual clock."""

from __future__ import annotations

import re
from typing import Any

import pytest

from horae.store.port import Transaction
from horae.testing import TimeMachine
from tests.support.service import client_of


def row_of(page: str, schedule_id: str) -> str:
    """The row of a schedule, as text with its tags."""
    rows: list[str] = re.findall(r"<tr id=.*?</tr>", page, re.DOTALL)
    (row,) = [each for each in rows if f">{schedule_id}<" in each]
    return row


async def test_the_list_of_schedules_says_what_became_of_each_latest_slot(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []
    read = Transaction.latest_outcomes

    async def counted(self: Transaction, keys: Any) -> Any:
        asked.append(len(keys))
        return await read(self, keys)

    monkeypatch.setattr(Transaction, "latest_outcomes", counted)

    @machine.app.action
    def ping() -> None: ...

    @machine.app.action
    def broken() -> None:
        raise ValueError

    schedules = machine.app.owned_by("local").schedules
    await schedules.create("good", "* * * * *", "ping")
    await schedules.create("bad", "* * * * *", "broken")
    await schedules.create("later", "0 0 1 1 *", "ping")
    await schedules.create("turned", "* * * * *", "ping")
    await machine.advance(minutes=3)
    await schedules.pause("turned", "")
    await machine.advance(minutes=3)
    await schedules.resume("turned", "", on_resume="skip")
    async with client_of(machine.app) as client:
        page = (await client.get("/console/schedules")).text
        assert asked == [4], "one question for all rows"
        (run,) = await machine.app.owned_by("local").runs.list("good", 1)
        assert f'href="/console/runs/{run.id}"' in row_of(page, "good")
        assert "tone-succeeded" in row_of(page, "good")
        assert "tone-failed" in row_of(page, "bad")
        assert "none yet" in row_of(page, "later")
        (newest,) = await machine.app.owned_by("local").runs.unstarted_ranges("turned", 1)
        assert f"tone-{newest.status}" in row_of(page, "turned")
        assert "/console/runs/" not in row_of(page, "turned")
        await machine.advance(minutes=1)
        again = (await client.get("/console/schedules")).text
        assert "tone-succeeded" in row_of(again, "turned"), "a run after the slots that did not start"

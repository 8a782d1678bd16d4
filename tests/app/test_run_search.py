"""The search of the ledger across schedules: what it finds, in which order, for whom, and at what cost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from horae import Context, Policies, Run, Status
from horae.app import ledger_search
from horae.app.page import cursor_of
from horae.errors import HoraeError, InvalidInputError, NaiveTimeError, ScheduleNotFoundError
from horae.model import UnstartedRange
from horae.testing import TimeMachine
from tests.support.machine import START, at


def moment(entry: Run | UnstartedRange) -> datetime:
    return entry.decided_at


def shown(entry: Run | UnstartedRange) -> str:
    """A run as its schedule and minute, a range as its schedule, minutes and count."""
    if isinstance(entry, Run):
        return f"{entry.schedule_id} {entry.nominal:%H:%M} {entry.status}"
    return f"{entry.schedule_id} {entry.start:%H:%M}-{entry.end:%H:%M} {entry.count} {entry.reason}"


@pytest.fixture
async def machine(machine: TimeMachine) -> TimeMachine:
    """Ten minutes of three schedules: one succeeds, one fails, one takes three minutes and skips what overlaps."""
    app = machine.app

    @app.action("ok")
    async def ok(context: Context) -> None: ...

    @app.action("bad")
    async def bad(context: Context) -> None:
        raise RuntimeError("no")

    @app.action("slow")
    async def slow(context: Context) -> None:
        await machine.sleep(seconds=150)

    await app.owned_by("ada").schedules.create("good", "*/2 * * * *", "ok", tags=("team",))
    await app.owned_by("ada").schedules.create("bad", "*/5 * * * *", "bad", tags=("team", "red"))
    await app.owned_by("bob").schedules.create("slow", "* * * * *", "slow", policies=Policies())
    await machine.advance(minutes=9.5)
    return machine


async def test_runs_and_ranges_of_all_schedules_come_newest_first(machine: TimeMachine):
    found = await machine.app.runs.search()
    assert sorted(map(moment, found), reverse=True) == [moment(each) for each in found]
    assert found.next is None
    assert sorted(map(shown, found)) == [
        "bad 00:05 failed",
        *(f"good 00:0{minute} succeeded" for minute in (2, 4, 6, 8)),
        "slow 00:01 succeeded", "slow 00:02-00:03 2 overlap",
        "slow 00:04 succeeded", "slow 00:05-00:06 2 overlap",
        "slow 00:07 succeeded", "slow 00:08-00:09 2 overlap",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"status": "failed"}, ["bad 00:05 failed"]),
        ({"status": ["failed", "skipped"], "since": at(8)}, ["slow 00:08-00:09 2 overlap"]),
        ({"reason": "overlap", "until": at(4)}, ["slow 00:02-00:03 2 overlap"]),
        ({"status": "succeeded", "tag": "team", "since": at(4), "until": at(6)}, ["good 00:04 succeeded"]),
        ({"status": ["failed", "skipped"], "without_reasons": ["overlap"]}, ["bad 00:05 failed"]),
        ({"status": ["failed", "skipped"], "without_reasons": ["failed", "late"], "since": at(8)}, ["slow 00:08-00:09 2 overlap"]),
        ({"tag": "red"}, ["bad 00:05 failed"]),
        ({"tag": "nobody"}, []),
        ({"schedule_id": "slow", "since": "2026-03-01T00:07:00Z"}, ["slow 00:08-00:09 2 overlap", "slow 00:07 succeeded"]),
        ({"schedule_id": "good", "limit": 1}, ["good 00:08 succeeded"]),
        ({"since": at(60)}, []),
    ],
    ids=str,
)  # fmt: skip
async def test_every_filter_narrows_it(machine: TimeMachine, given: dict[str, Any], expected: list[str]):
    assert [shown(each) for each in await machine.app.runs.search(**given)] == expected


async def test_pages_fit_together_while_more_comes_in(machine: TimeMachine):
    whole = [shown(each) for each in await machine.app.runs.search(until=at(8))]
    seen, cursor = [], None
    while True:
        page = await machine.app.runs.search(until=at(8), limit=2, cursor=cursor)
        assert len(page) <= 2
        seen += [shown(each) for each in page]
        cursor = page.next
        if cursor is None:
            break
        await machine.advance(minutes=2)
    assert seen == whole


async def test_owners_find_what_they_have(machine: TimeMachine):
    ada, bob = machine.app.owned_by("ada"), machine.app.owned_by("bob")
    assert {each.schedule_id for each in await ada.runs.search()} == {"good", "bad"}
    assert {each.schedule_id for each in await bob.runs.search()} == {"slow"}
    assert await bob.runs.search(tag="team") == []
    with pytest.raises(ScheduleNotFoundError):
        await bob.runs.search(schedule_id="good")
    # A schedule of another owner with the same id does not open the first one's ledger; the ledger of a deleted schedule stays its owner's.
    await ada.schedules.delete("good")
    await bob.schedules.create("good", "*/2 * * * *", "ok")
    await machine.advance(minutes=1)
    assert {each.schedule_id for each in await ada.runs.search()} == {"good", "bad"}
    assert "good 00:10 succeeded" not in [shown(each) for each in await ada.runs.search(schedule_id="good")]
    assert [shown(each) for each in await bob.runs.search(schedule_id="good")] == ["good 00:10 succeeded"]


async def test_a_page_examines_a_bounded_part_of_the_ledger(
    machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ledger_search, "MAX_EXAMINED", 3)
    pages: list[list[str]] = []
    cursor = None
    while not pages or cursor is not None:
        page = await machine.app.runs.search(status="failed", cursor=cursor)
        pages.append([shown(each) for each in page])
        cursor = page.next
    assert [each for page in pages for each in page] == ["bad 00:05 failed"]
    assert len(pages) == 4  # eleven entries, three at a time


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ({"status": "failde"}, InvalidInputError, "failed"),
        ({"reason": "because"}, InvalidInputError, "overlap"),
        ({"cursor": "garbage"}, InvalidInputError, "cursor"),
        ({"cursor": cursor_of(1, 2)}, InvalidInputError, "cursor"),
        ({"since": START.replace(tzinfo=None)}, NaiveTimeError, "zone"),
        ({"since": "yesterday"}, InvalidInputError, "since"),
        ({"since": at(5), "until": at(5)}, InvalidInputError, "until"),
        ({"schedule_id": "none"}, ScheduleNotFoundError, "none"),
    ],
    ids=str,
)
async def test_what_cannot_be_searched_for_is_refused(
    machine: TimeMachine, given: dict[str, Any], error: type[HoraeError], named: str
):
    with pytest.raises(error, match=named):
        await machine.app.runs.search(**given)


async def test_a_long_ledger_is_searched_by_halves(machine: TimeMachine):
    async with machine.app.transaction() as transaction:
        found = [await transaction.run_number_at(int(at(minute).timestamp() * 1000)) for minute in range(12)]
        runs = await transaction.runs_numbered(range(1, 9))
    decided = [run.decided_at for run in reversed(runs)]
    assert found == [1 + sum(each < at(minute) for each in decided) for minute in range(12)]
    assert all(run.status is not Status.PENDING for run in runs)

"""What an app keeps and answers has an end: what would be more is refused and leaves no trace, or comes with the next page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from horae import App, Config, Context, Filter, NewSchedule, OnResume, Overlap, Policies
from horae.app import BackfillRequest, Trigger, page
from horae.app.page import MAX_BYTES, Page, cursor_of
from horae.errors import InvalidInputError, LimitExceededError
from horae.model import Reason, ScheduleKey, Status, UnstartedRange, Version, schedule_key
from horae.testing import TimeMachine
from tests.support.flows import Script

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


async def nothing(context: Context) -> Any:
    return context.input


async def test_one_user_has_so_many_calendars_at_most(database: str):
    async with App(database, config=Config(calendars_per_user=2)) as app:
        ada, bob = app.owned_by("ada"), app.owned_by("bob")
        for calendars in (app.calendars, ada.calendars):  # those for all count against no user
            await calendars.put("one", {"dates": ["2026-12-24"]})
            await calendars.put("two", {"dates": ["2026-12-25"]})
            with pytest.raises(LimitExceededError) as error:
                await calendars.put("three", {"dates": ["2026-12-26"]})
            assert error.value.details == {"limit": "calendars_per_user", "most": 2}
        await ada.calendars.put("two", {"dates": ["2026-12-31"]})  # what is there may change
        await bob.calendars.put("three", {"dates": ["2026-12-26"]})
        assert [each.name for each in await ada.calendars.list()] == ["one", "one", "two", "two"]
        await ada.calendars.delete("one")
        await ada.calendars.put("three", {"dates": ["2026-12-26"]})


@pytest.mark.contract("SCHD-18", "SCHD-32")
async def test_so_many_manual_starts_of_a_schedule_wait_at_most(database: str):
    """Whatever their policy: nothing drives this app, so none of them starts."""
    app = App(database, config=Config(max_buffer_size=3))
    app.functions.register("x", nothing)
    async with app:
        policies = Policies(overlap=Overlap.BUFFER_ALL, max_buffer_size=1)
        await app.schedules.create_many(
            NewSchedule(id=each, spec="0 9 * * *", action="x", policies=policies, trigger=Trigger())
            for each in ("s", "t")
        )
        await app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
        first = await app.schedules.trigger("s", overlap=Overlap.SKIP)
        before = await app.schedules.get("s")
        for attempt in (
            app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL),
            app.schedules.patch("s", trigger=Trigger(), pause="too much"),
        ):
            with pytest.raises(LimitExceededError) as error:
                await attempt
            assert error.value.details == {"limit": "max_buffer_size", "most": 3}
        assert len(await app.runs.list("s")) == 3
        assert await app.schedules.get("s") == before
        await app.schedules.trigger("t")  # another has room of its own
        await app.runs.cancel(first)
        await app.schedules.trigger("s")


@pytest.mark.contract("SCHD-10", "SCHD-13")
async def test_what_waits_by_itself_or_runs_takes_no_room_of_manual_starts():
    async with TimeMachine(START, Config(max_buffer_size=2)) as machine:

        async def slow(_: Context) -> None:
            await machine.sleep(seconds=3600)

        machine.app.action("slow")(slow)
        schedules = machine.app.schedules
        await schedules.create("s", "* * * * *", "slow", policies=Policies(overlap=Overlap.BUFFER_ALL))
        await machine.advance(minutes=5)
        description = await schedules.describe("s")
        assert (description.pending, description.running) == (2, 1)  # as many as may wait by themselves
        await schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
        await machine.advance(seconds=1)
        assert (await schedules.describe("s")).running == 2
        await schedules.trigger("s")
        await schedules.trigger("s")
        with pytest.raises(LimitExceededError):
            await schedules.trigger("s")


LARGE = "ä" * 30_000  # 60,000 bytes


@pytest.mark.contract("SCHD-21")
async def test_a_page_ends_when_it_is_large_and_nothing_is_lost_between_pages(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    app = App(database)
    app.functions.register("x", nothing)
    async with app:
        ada = app.owned_by("ada")
        names = [f"s{number:03}" for number in range(100)]
        await ada.schedules.create_many(
            NewSchedule(id=each, spec="0 9 * * *", action="x", memo={"m": LARGE}, tags=("t",))
            for each in names
        )
        await ada.schedules.create("small", "0 9 * * *", "x")
        for schedules, only in ((app.schedules, Filter(tag="t")), (ada.schedules, Filter(prefix="s0"))):
            first = await schedules.list(only, limit=1000)
            assert [each.id for each in first] == names[:70]  # 4 MiB, and the end of the last
            rest = await schedules.list(only, cursor=first.next, limit=1000)
            assert [each.id for each in rest] == names[70:]
            assert rest.next is None
        assert [each.id for each in await app.schedules.list(limit=3)] == names[:3]
        assert (await app.schedules.list(cursor=cursor_of("ada", "s099"))).next is None

        for number in range(9):
            await app.schedules.trigger("small", input=LARGE * 10, note=str(number))
        first_runs = await ada.runs.list("small")
        assert [each.note for each in first_runs] == list("8765432")
        more_runs = await ada.runs.list("small", cursor=first_runs.next)
        assert ([each.note for each in more_runs], more_runs.next) == (list("10"), None)

        monkeypatch.setattr(page, "MAX_BYTES", page.MAX_BYTES // 10)  # long calendars take long to read
        long = {"calendars": [{"second": "1," * 3500 + "1"}]}  # about 7,000 bytes
        names = [f"c{number:02}" for number in range(65)]
        for each in names:
            await app.calendars.put(each, long)
        first_days = await ada.calendars.list()
        assert 55 < len(first_days) < 65
        more_days = await ada.calendars.list(cursor=first_days.next)
        assert [each.name for each in (*first_days, *more_days)] == names
        assert more_days.next is None


WEEK = BackfillRequest(start=START, end=START + timedelta(days=7))


@pytest.mark.contract("SCHD-19")
async def test_so_many_backfills_of_a_schedule_are_open_at_most(database: str):
    """Nothing drives this app, so none of them gets done."""
    app = App(database, config=Config(open_backfills=2))
    app.functions.register("x", nothing)
    async with app:
        for each in ("s", "t"):
            await app.schedules.create(each, "0 9 * * *", "x")
        first = await app.backfills.start("s", WEEK.start, WEEK.end)
        await app.schedules.patch("s", backfills=[WEEK])
        before = await app.schedules.get("s")
        for attempt in (
            app.backfills.start("s", WEEK.start, WEEK.end),
            app.schedules.patch("s", backfills=[WEEK], pause="too much"),
            app.schedules.patch("t", backfills=[WEEK] * 3),
            app.schedules.create("u", "0 9 * * *", "x", backfills=(WEEK,) * 3),
        ):
            with pytest.raises(LimitExceededError, match="wait until one is done, or cancel one") as error:
                await attempt
            assert error.value.details == {"limit": "open_backfills", "most": 2}
        assert [len(await app.backfills.list(each)) for each in "st"] == [2, 0]
        assert await app.schedules.get("s") == before
        assert not await app.schedules.exists("u")
        await app.backfills.cancel(first.id)
        await app.backfills.start("s", WEEK.start, WEEK.end)


async def walk(page: Callable[..., Awaitable[Page[Any]]]) -> list[Any]:
    """All items of a list, page by page; at no page's end anything is lost or comes twice."""
    found: list[Any] = []
    cursor: str | None = None
    while True:
        one = await page(cursor=cursor)
        found += one
        if (cursor := one.next) is None:
            return found


@pytest.mark.contract("SCHD-21", "SCHD-28")
async def test_versions_backfills_and_slots_that_did_not_run_come_in_pages(database: str):
    app = App(database)
    app.functions.register("x", nothing)
    async with app:
        ada = app.owned_by("ada")
        policies = Policies(on_resume=OnResume.SKIP)
        for hour in (
            "1",
            "2",
        ):  # the ledger of the first of this name stays, and that of the second follows it
            await ada.schedules.create("s", f"0 {hour} * * *", "x", policies=policies)
            for minute in range(3):
                await ada.schedules.update("s", f"{minute + 1} {hour} * * *")
                await ada.backfills.start("s", WEEK.start, WEEK.end, note=f"{hour}.{minute}")
            if hour == "1":
                await ada.schedules.delete("s")
        for there in (app.all_owners, ada):
            for limit in (1, 2, 3, 100):
                found = await walk(partial(there.schedules.versions, "s", limit))
                assert found == await there.schedules.versions("s", 100)
                assert len(found) == 7
                notes = await walk(partial(there.backfills.list, "s", limit))
                assert notes == await there.backfills.list("s", 100)
                assert len(notes) == 6

        ranges = [
            UnstartedRange(
                schedule_key=schedule_key("ada", "s"), generation=2, start_ms=at * 1000, end_ms=at * 1000, count=1, status=Status.SKIPPED,
                reason=Reason.PAUSED, decided_at_ms=at,
            )
            for at in range(5)
        ]  # fmt: skip
        async with app.transaction() as transaction:
            await transaction.insert_unstarted_ranges(ranges)
        for limit in (1, 2, 5, 100):
            unstarted = await walk(partial(ada.runs.unstarted_ranges, "s", limit))
            assert [each.start_ms // 1000 for each in unstarted] == [4, 3, 2, 1, 0]


@pytest.mark.contract("SCHD-21")
async def test_a_page_of_large_backfills_and_versions_ends_early(database: str):
    app = App(database)
    app.functions.register("x", nothing)
    async with app:
        await app.schedules.create("s", "0 9 * * *", "x")
        for number in range(9):
            await app.backfills.start("s", WEEK.start, WEEK.end, input=LARGE * 10, note=str(number))
        first = await app.backfills.list("s")
        assert [each.note for each in first] == list("8765432")
        rest = await app.backfills.list("s", cursor=first.next)
        assert ([each.note for each in rest], rest.next) == (list("10"), None)
        spec = (await app.schedules.get("s")).spec
        async with app.transaction() as transaction:
            await transaction.insert_versions(
                Version(
                    schedule_key=ScheduleKey("s"), generation=1, version=number, spec=spec + " " * 600_000, policies=Policies(),
                    since_ms=0, until_ms=number, created_at_ms=0,
                )
                for number in range(9)
            )  # fmt: skip
        large = await app.schedules.versions("s")
        assert ([each.version for each in large], large.next) == ([8, 7, 6, 5, 4, 3, 2], cursor_of(1, 2))


async def test_a_page_of_a_flow_ends_when_it_is_large(database: str):
    async with App(database) as app:
        await app.flows.deploy(Script().flow)
        large = "x" * 200_000
        await app.flows.publish_many("f", [("in", f"{number:02}", large) for number in range(50)])
        seen: list[str] = []
        cursor: str | None = None
        while cursor is not None or not seen:
            page = await app.flows.events("f", limit=1000, cursor=cursor)
            assert sum(len(each.payload) for each in page) <= MAX_BYTES + len(large)
            seen += [each.id for each in page]
            cursor = page.next
        assert seen == [f"{number:02}" for number in reversed(range(50))]
        with pytest.raises(LimitExceededError) as refused:
            await app.flows.publish_many("f", [("in", "m", None)] * 10_001)
        assert refused.value.hint == "publish them in several calls"  # there is no such setting


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_of_less_than_one_item_is_refused(database: str, limit: int):
    async with App(database) as app:
        app.functions.register("x", nothing)
        schedule = await app.schedules.create("s", {}, "x")
        run_id = await app.schedules.trigger("s")
        for ask in (
            app.runs.attempts(run_id, limit),
            app.runs.history(run_id, limit),
            app.schedules.recent_runs([schedule], limit),
            app.schedules.unreadable(limit),
        ):
            with pytest.raises(InvalidInputError, match="limit must be at least 1"):
                await ask

"""What becomes of slots, as the registrar shows it: windows, overlap, catch-up, jitter, pauses."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from horae import Config, Context
from horae.registrar import LedgerRow, Registrar
from horae.testing import TimeMachine
from tests.face.registrar.inputs import GOOD

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOURLY = GOOD | {"schedule_id": "s", "cron_expr": "0 * * * *", "timezone": "UTC"}
MINUTELY = HOURLY | {"cron_expr": "* * * * *"}


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 1, 5, hour, minute, second, tzinfo=UTC)


class Kitchen:
    """A machine whose workflow ``report`` takes some seconds, and remembers when it began."""

    def __init__(self, machine: TimeMachine) -> None:
        self.machine = machine
        self.registrar = Registrar(machine.app)
        self.seconds = 0.0
        self.begun: list[tuple[datetime, datetime]] = []
        """When which slot began."""
        machine.app.action("report")(self._report)

    async def _report(self, context: Context) -> None:
        self.begun.append((context.nominal, self.machine.now))
        if self.seconds:
            await self.machine.sleep(seconds=self.seconds)

    async def upsert(self, given: dict[str, Any] = HOURLY, **more: Any) -> None:
        await self.registrar.upsert_schedule(given | more)

    def outage(self, **span: float) -> None:
        """Time passes without a node."""
        self.machine.clock.move_to(self.machine.now + timedelta(**span))

    @property
    def ticks(self) -> list[datetime]:
        return [nominal for nominal, _ in self.begun]

    async def rows(self, limit: int = 100) -> list[LedgerRow]:
        """The ledger, oldest first."""
        return (await self.registrar.runs("s", limit))[::-1]


@pytest.fixture
async def kitchen() -> AsyncIterator[Kitchen]:
    async with TimeMachine(START) as machine:
        yield Kitchen(machine)


@pytest.mark.contract("CRON-04")
async def test_the_window_includes_both_its_ends(kitchen: Kitchen):
    await kitchen.upsert(start_at="2026-01-05T10:00:00Z", end_at="2026-01-05T12:00:00Z")
    await kitchen.machine.advance(days=2)
    assert kitchen.ticks == [at(10), at(11), at(12)]
    assert (await kitchen.registrar.get_schedule("s")).next_run_at is None


@pytest.mark.contract("CRON-04")
async def test_a_window_that_begins_between_slots(kitchen: Kitchen):
    await kitchen.upsert(start_at="2026-01-05T10:00:00.500Z", end_at="2026-01-05T11:59:59Z")
    await kitchen.machine.advance(days=2)
    assert kitchen.ticks == [at(11)]


@pytest.mark.contract("CRON-06", "CRON-17")
async def test_a_slot_is_one_row_with_its_key(kitchen: Kitchen):
    await kitchen.upsert()
    await kitchen.machine.advance(hours=1, seconds=1)
    (row,) = await kitchen.rows()
    key = sha256(f"s:{int(at(9).timestamp())}".encode()).hexdigest()
    assert (row.idempotency_key, row.schedule_id, row.run_at) == (key, "s", at(9))
    assert (row.status, row.reason, row.created_at, row.updated_at) == ("SUCCESS", None, at(9), at(9))
    assert row.run_id == (await kitchen.machine.app.runs.list("s"))[0].id


@pytest.mark.contract("CRON-13")
async def test_statuses_of_a_run_from_start_to_end(kitchen: Kitchen):
    kitchen.seconds = 90
    await kitchen.upsert(MINUTELY, overlap_policy="queue")
    await kitchen.machine.advance(minutes=2)
    assert [row.status for row in await kitchen.rows()] == ["STARTED", "ENQUEUED"]
    await kitchen.machine.advance(seconds=31)
    assert [row.status for row in await kitchen.rows()] == ["SUCCESS", "STARTED"]


@pytest.mark.contract("CRON-13")
async def test_a_run_ends_after_an_hour(kitchen: Kitchen):
    kitchen.seconds = 10 * 60 * 60
    await kitchen.upsert(cron_expr="0 9,11 * * *")
    await kitchen.machine.advance(hours=2, minutes=1)
    (row,) = await kitchen.rows()
    assert (row.status, row.updated_at) == ("FAILED", at(10))
    assert row.reason is not None
    assert row.reason.startswith("run_timeout: ")
    await kitchen.machine.advance(hours=1)
    assert kitchen.ticks == [at(9), at(11)]


@pytest.mark.contract("CRON-07")
async def test_allow_fires_beside_others(kitchen: Kitchen):
    kitchen.seconds = 150
    await kitchen.upsert(MINUTELY, overlap_policy="allow")
    await kitchen.machine.advance(minutes=3)
    assert [row.status for row in await kitchen.rows()] == ["STARTED"] * 3


@pytest.mark.contract("CRON-07", "CRON-17")
async def test_skip_records_what_it_skips(kitchen: Kitchen):
    kitchen.seconds = 150
    await kitchen.upsert(MINUTELY, overlap_policy="skip")
    await kitchen.machine.advance(minutes=4)
    rows = await kitchen.rows()
    assert [row.run_at for row in rows] == [at(8, 1), at(8, 2), at(8, 3), at(8, 4)]
    assert [row.status for row in rows] == ["SUCCESS", "SKIPPED", "SKIPPED", "STARTED"]
    assert {row.reason for row in rows[1:3]} == {"overlap: another run of the schedule was still running"}
    assert [row.run_id is None for row in rows] == [False, True, True, False]
    keys = [sha256(f"s:{int(row.run_at.timestamp())}".encode()).hexdigest() for row in rows]
    assert [row.idempotency_key for row in rows] == keys


@pytest.mark.contract("CRON-07")
async def test_queue_runs_all_in_order(kitchen: Kitchen):
    kitchen.seconds = 150
    await kitchen.upsert(MINUTELY, overlap_policy="queue", end_at="2026-01-05T08:05:00Z")
    await kitchen.machine.advance(hours=1)
    assert kitchen.ticks == [at(8, minute) for minute in range(1, 6)]
    assert {row.status for row in await kitchen.rows()} == {"SUCCESS"}


@pytest.mark.contract("CRON-07")
async def test_a_full_queue_loses_no_slot():
    async with TimeMachine(START, Config(max_buffer_size=2)) as machine:
        kitchen = Kitchen(machine)
        kitchen.seconds = 150
        await kitchen.upsert(MINUTELY, overlap_policy="queue", end_at="2026-01-05T08:30:00Z")
        await machine.advance(hours=3)
        assert kitchen.ticks == [at(8, minute) for minute in range(1, 31)]


@pytest.mark.contract("CRON-08")
async def test_none_drops_what_is_missed_and_says_so(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY)
    kitchen.outage(minutes=10, seconds=20)
    await kitchen.machine.advance(seconds=1)
    assert kitchen.ticks == [at(8, 10)]  # within the misfire grace of a minute, and so on time
    rows = await kitchen.rows()
    assert [row.run_at for row in rows] == [at(8, minute) for minute in range(1, 11)]
    assert [row.status for row in rows] == [*["SKIPPED"] * 9, "SUCCESS"]
    assert rows[0].reason == "late: it was later than the catch-up window allows"
    assert rows[0].updated_at == at(8, 10, 20)


@pytest.mark.contract("CRON-08")
async def test_fire_immediately_fires_all_oldest_first(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY, catchup_policy="fire_immediately", overlap_policy="queue")
    kitchen.outage(minutes=250, seconds=20)  # more than are taken in one pass
    await kitchen.machine.advance(seconds=1)
    assert kitchen.ticks == [at(8) + timedelta(minutes=minute) for minute in range(1, 251)]
    assert {began for _, began in kitchen.begun} == {at(12, 10, 20)}


@pytest.mark.contract("CRON-08")
async def test_spread_distributes_what_is_missed_and_nothing_else(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY, catchup_policy="spread", overlap_policy="allow")
    kitchen.outage(minutes=11, seconds=30)
    now = kitchen.machine.now
    await kitchen.machine.advance(minutes=1)
    began = dict(kitchen.begun)
    missed = [at(8, minute) for minute in range(1, 11)]
    assert [began[tick] - now for tick in missed] == [timedelta(seconds=6 * n) for n in range(10)]
    assert (began[at(8, 11)], began[at(8, 12)]) == (now, at(8, 12))
    assert len(began) == 12
    rows = {row.run_at: row for row in await kitchen.rows()}
    assert rows[at(8, 3)].idempotency_key == sha256(f"s:{int(at(8, 3).timestamp())}".encode()).hexdigest()


@pytest.mark.contract("CRON-08")
async def test_catch_up_selects_and_then_overlap_judges(kitchen: Kitchen):
    kitchen.seconds = 30
    await kitchen.upsert(MINUTELY, catchup_policy="fire_immediately", overlap_policy="skip")
    kitchen.outage(minutes=5, seconds=10)
    await kitchen.machine.advance(seconds=1)
    assert kitchen.ticks == [at(8, 1)]
    assert [row.status for row in await kitchen.rows()] == ["STARTED", *["SKIPPED"] * 4]


@pytest.mark.contract("CRON-09")
async def test_jitter_moves_the_fire_time_and_nothing_else(kitchen: Kitchen):
    await kitchen.upsert(jitter_ms=600_000)
    preview = (await kitchen.registrar.get_schedule("s")).preview
    await kitchen.machine.advance(hours=5, minutes=30)
    assert kitchen.ticks == [at(hour) for hour in range(9, 14)]
    offsets = [began - nominal for nominal, began in kitchen.begun]
    assert tuple(began for _, began in kitchen.begun) == preview
    assert all(abs(offset) <= timedelta(minutes=10) for offset in offsets)
    assert min(offsets) < timedelta(0) < max(offsets)
    rows = await kitchen.rows()
    assert [row.run_at for row in rows] == kitchen.ticks
    assert [row.created_at for row in rows] == list(preview)


@pytest.mark.contract("CRON-09", "CRON-01")
async def test_the_preview_has_what_is_to_come_and_nothing_else(kitchen: Kitchen):
    """Also a slot whose planned time has passed, and not one that fired ahead of it."""
    await kitchen.upsert(jitter_ms=1_800_000, end_at="2026-01-05T20:00:00Z")
    all_of_them: list[datetime] = []
    while preview := (await kitchen.registrar.get_schedule("s")).preview:
        assert list(preview) == sorted(preview)
        assert preview[0] >= kitchen.machine.now
        all_of_them = [*[each for each in all_of_them if each not in preview], *preview]
        await kitchen.machine.advance(minutes=7)
    assert all_of_them == [began for _, began in kitchen.begun]
    assert len(all_of_them) == 12


@pytest.mark.parametrize("jitter", [1, 999, 1500])
@pytest.mark.contract("CRON-09")
async def test_jitter_by_the_millisecond(kitchen: Kitchen, jitter: int):
    await kitchen.upsert(MINUTELY, jitter_ms=jitter)
    assert (await kitchen.registrar.get_schedule("s")).jitter_ms == jitter
    await kitchen.machine.advance(hours=1)
    offsets = {(began - nominal) / timedelta(milliseconds=1) for nominal, began in kitchen.begun}
    assert all(abs(offset) <= jitter for offset in offsets)
    assert min(offsets) < -jitter / 2 < jitter / 2 < max(offsets)


@pytest.mark.contract("CRON-09", "CRON-04")
async def test_jitter_is_never_before_the_window_nor_past_half_the_gap(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY, jitter_ms=3_600_000, start_at="2026-01-05T10:00:00Z")
    await kitchen.machine.advance(hours=3)
    assert kitchen.begun[0][0] == at(10)
    assert kitchen.begun[0][1] >= at(10)
    assert all(abs(began - nominal) <= timedelta(seconds=30) for nominal, began in kitchen.begun)
    assert kitchen.ticks == sorted(kitchen.ticks)


@pytest.mark.contract("CRON-10")
async def test_a_pause_under_none_resumes_with_the_next_future_slot(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY)
    await kitchen.machine.advance(minutes=1)
    await kitchen.registrar.pause_schedule("s", True)
    await kitchen.machine.advance(minutes=3, seconds=10)  # the last slot is within the grace of a resume
    await kitchen.registrar.pause_schedule("s", False)
    await kitchen.machine.advance(minutes=1)
    assert kitchen.ticks == [at(8, 1), at(8, 5)]
    rows = await kitchen.rows()
    assert [row.status for row in rows] == ["SUCCESS", "SKIPPED", "SKIPPED", "SKIPPED", "SUCCESS"]
    assert {row.reason for row in rows[1:4]} == {"paused: the schedule was paused"}


@pytest.mark.parametrize("policy", ["fire_immediately", "spread"])
@pytest.mark.contract("CRON-10")
async def test_a_pause_under_the_others_is_caught_up_with(kitchen: Kitchen, policy: str):
    await kitchen.upsert(MINUTELY, catchup_policy=policy, overlap_policy="allow")
    await kitchen.registrar.pause_schedule("s", True)
    await kitchen.machine.advance(minutes=4, seconds=10)
    assert kitchen.begun == []
    await kitchen.registrar.pause_schedule("s", False)
    await kitchen.machine.advance(minutes=1)
    assert sorted(kitchen.ticks) == [at(8, minute) for minute in range(1, 6)]


@pytest.mark.contract("CRON-10")
async def test_a_pause_stops_what_is_about_to_fire(kitchen: Kitchen):
    kitchen.seconds = 90
    await kitchen.upsert(MINUTELY, overlap_policy="queue", jitter_ms=0)
    await kitchen.machine.advance(minutes=2)  # the second slot waits behind the first
    await kitchen.registrar.pause_schedule("s", True)
    await kitchen.machine.advance(minutes=5)
    assert kitchen.ticks == [at(8, 1)]
    assert [row.status for row in await kitchen.rows()] == ["SUCCESS", "SKIPPED"]


@pytest.mark.contract("CRON-10")
async def test_a_pause_stops_a_slot_that_jitter_holds_back(kitchen: Kitchen):
    await kitchen.upsert(jitter_ms=1_200_000)
    fires = (await kitchen.registrar.get_schedule("s")).preview[0]
    await kitchen.machine.advance(seconds=(fires - START).total_seconds() - 1)
    await kitchen.registrar.pause_schedule("s", True)
    await kitchen.machine.advance(hours=1)
    assert kitchen.begun == []


@pytest.mark.contract("CRON-10")
async def test_a_deleted_schedule_fires_no_more(kitchen: Kitchen):
    await kitchen.upsert(MINUTELY)
    await kitchen.machine.advance(minutes=2)
    await kitchen.registrar.delete_schedule("s")
    await kitchen.machine.advance(minutes=5)
    assert kitchen.ticks == [at(8, 1), at(8, 2)]
    assert len(await kitchen.rows()) == 2
    await kitchen.upsert(MINUTELY)  # another schedule of the same id
    await kitchen.machine.advance(minutes=1)
    assert [row.run_at for row in await kitchen.rows()] == [at(8, 1), at(8, 2), at(8, 8)]


@pytest.mark.contract("CRON-06")
async def test_clock_changes(kitchen: Kitchen):
    """A gap has no slot, an hour that comes twice has two."""
    await kitchen.upsert(HOURLY, cron_expr="30 2 * * *", timezone="Europe/Berlin")
    await kitchen.machine.advance(days=365)
    days = [tick.date() for tick in kitchen.ticks]
    assert len(days) == 365
    assert datetime(2026, 3, 29).date() not in days
    assert days.count(datetime(2026, 10, 25).date()) == 2

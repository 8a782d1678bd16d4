"""The ledger as the registrar shows it: runs, and the slots of unstarted ranges, in one order."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae import Context, Overlap, Spec
from horae.face.registrar.views import ledger
from horae.model import AUTOMATIC, Origin, Reason, Run, ScheduleKey, Status, UnstartedRange
from horae.registrar import Registrar
from horae.testing import TimeMachine
from tests.face.registrar.inputs import GOOD

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
SECONDLY = Spec.cron("* * * * * *")
MINUTELY = GOOD | {"schedule_id": "s", "cron_expr": "* * * * *", "timezone": "UTC"}


def unstarted(first: int, last: int, step: int = 1, reason: Reason = Reason.LATE) -> UnstartedRange:
    return UnstartedRange(
        schedule_key=ScheduleKey("s"), generation=1, start_ms=first * 1000, end_ms=last * 1000, count=(last - first) // step + 1,
        status=Status.MISSED, reason=reason, decided_at_ms=(last + 5) * 1000,
    )  # fmt: skip


def run(nominal: int, *, origin: Origin = AUTOMATIC, fire_at: int | None = None) -> Run:
    return Run(
        id=f"{nominal}:{origin}", schedule_key=ScheduleKey("s"), generation=1, nominal_ms=nominal * 1000, origin=origin, overlap=Overlap.SKIP,
        status=Status.SUCCEEDED, fire_ms=nominal * 1000 if fire_at is None else fire_at, start_at_ms=nominal * 1000,
        ended_at_ms=nominal * 1000 + 7,
    )  # fmt: skip


def nominals(runs: list[Run], ranges: list[UnstartedRange], limit: int, *specs: Spec) -> list[int]:
    rows = ledger(runs, ranges, specs or [SECONDLY], limit)
    return [int(row.run_at.timestamp()) for row in rows]


@pytest.mark.contract("CRON-17")
def test_a_range_of_a_million_costs_what_is_shown(monkeypatch: pytest.MonkeyPatch):
    calls = 0
    previous = Spec.previous_instant

    def counted(spec: Spec, instant: int) -> int | None:
        nonlocal calls
        calls += 1
        return previous(spec, instant)

    monkeypatch.setattr(Spec, "previous_instant", counted)
    assert nominals([run(2_000_000_000)], [unstarted(10**9, 10**9 + 10**6)], 4) == [
        2_000_000_000,
        10**9 + 10**6,
        10**9 + 10**6 - 1,
        10**9 + 10**6 - 2,
    ]
    assert calls < 10


@given(
    st.lists(st.sampled_from(["run", "passed", "passed", "nothing"]), min_size=1, max_size=40),
    st.integers(1, 50),
)
@pytest.mark.contract("CRON-17")
def test_runs_and_ranges_are_merged_in_order(kinds: list[str], limit: int):
    base = 1_767_600_000
    runs: list[Run] = []
    ranges: list[UnstartedRange] = []
    for n, kind in enumerate(kinds):
        if kind == "run":
            runs.insert(0, run(base + n))
        elif kind == "passed" and n and kinds[n - 1] == "passed":
            ranges[0] = unstarted(ranges[0].start_ms // 1000, base + n)
        elif kind == "passed":
            ranges.insert(0, unstarted(base + n, base + n))
    expected = [base + n for n, kind in enumerate(kinds) if kind != "nothing"][::-1][:limit]
    assert nominals(runs[:limit], ranges[:limit], limit) == expected


@pytest.mark.contract("CRON-17")
def test_what_was_started_by_hand_stands_where_it_was_started():
    backfilled = run(100, origin=Origin.parse("backfill:1"), fire_at=300_000)
    rows = ledger([backfilled, run(200)], [unstarted(201, 202)], [SECONDLY], 10)
    assert [int(row.run_at.timestamp()) for row in rows] == [100, 202, 201, 200]
    assert rows[0].idempotency_key == "100:backfill:1"


@pytest.mark.contract("CRON-17")
def test_a_range_is_of_the_spec_that_has_its_slots():
    minutely, fives = Spec.cron("* * * * *"), Spec.cron("*/5 * * * *")
    assert nominals([], [unstarted(600, 1200, 300)], 10, minutely, fives) == [1200, 900, 600]
    assert nominals([], [unstarted(600, 840, 60)], 3, fives, minutely) == [840, 780, 720]
    # What it was is forgotten: its ends are known.
    assert nominals([], [unstarted(600, 1200, 300)], 10, minutely) == [1200, 600]
    assert nominals([], [unstarted(600, 600)], 10, Spec.cron("30 2 * * *")) == [600]


@pytest.mark.contract("CRON-17")
async def test_a_long_outage_is_shown_slot_by_slot():
    async with TimeMachine(START) as machine:
        machine.app.action("report")(_nothing)
        registrar = Registrar(machine.app)
        await registrar.upsert_schedule(MINUTELY)
        machine.clock.move_to(START + timedelta(days=700, seconds=10))
        await machine.advance(seconds=1)
        assert len(await machine.app.runs.unstarted_ranges("s")) == 1
        rows = await registrar.runs("s", 1000)
        assert len(rows) == 1000
        assert [row.run_at for row in rows] == [START + timedelta(days=700, minutes=-n) for n in range(1000)]
        assert [row.status for row in rows[:3]] == ["SUCCESS", "SKIPPED", "SKIPPED"]
        assert len(await registrar.runs("s")) == 20
        assert len({row.idempotency_key for row in rows}) == 1000


@pytest.mark.contract("CRON-17", "CRON-10")
async def test_edits_and_a_deletion_leave_the_ledger_readable():
    async with TimeMachine(START) as machine:
        machine.app.action("report")(_nothing)
        registrar = Registrar(machine.app)
        await registrar.upsert_schedule(MINUTELY)
        machine.clock.move_to(START + timedelta(minutes=10, seconds=10))
        await machine.advance(seconds=1)
        await registrar.upsert_schedule(MINUTELY | {"cron_expr": "*/5 * * * *"})
        machine.clock.move_to(START + timedelta(minutes=30, seconds=10))
        await machine.advance(seconds=1)
        expected = [*range(1, 11), 15, 20, 25, 30]
        for _ in range(2):
            rows = (await registrar.runs("s", 100))[::-1]
            assert [(row.run_at - START) // timedelta(minutes=1) for row in rows] == expected
            if await registrar._find("s") is not None:
                await registrar.delete_schedule("s")


async def _nothing(context: Context) -> None:
    pass

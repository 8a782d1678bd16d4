"""The setting ``backfill_slots``: a range with more slots is refused for every caller, and nothing is stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horae import Config, Context, Spec
from horae.app import BackfillRequest, Trigger
from horae.errors import LimitExceededError, ScheduleNotFoundError
from horae.testing import TimeMachine

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
MOST = 10
CONFIG = Config(backfill_slots=MOST)

FIRST = datetime(2020, 1, 1, tzinfo=UTC)

SPECS: list[dict[str, Any]] = [
    {"crons": ["* * * * *"]},
    # Together one each minute: half of them both name, and those count once.
    {"crons": ["*/2 * * * *"], "intervals": [{"every": "1m"}], "timezone": "Australia/Lord_Howe"},
    {"crons": ["0 12 1 * *"], "rrules": ["FREQ=YEARLY"]},
]


async def nothing(context: Context) -> Any:
    return context.input


@pytest.fixture
def machine(machine: TimeMachine) -> TimeMachine:
    machine.app.functions.register("x", nothing)
    return machine


@pytest.mark.parametrize("spec", SPECS, ids=["one source", "several sources", "few a year"])
async def test_a_range_has_so_many_slots_at_most(machine: TimeMachine, spec: dict[str, Any]):
    app = machine.app
    await app.schedules.create("s", spec, "x")
    schedule = await app.schedules.get("s")
    *_, last, beyond = Spec.parse(spec).between(FIRST - timedelta(seconds=1), START, MOST + 1)
    too_much = BackfillRequest(start=FIRST, end=beyond)
    for refused in (
        app.backfills.preview("s", FIRST, beyond),
        app.backfills.start("s", FIRST, beyond),
        app.backfills.start("s", FIRST, FIRST.replace(year=2125)),
        app.schedules.patch("s", trigger=Trigger(), pause="p", backfills=[too_much]),
        app.schedules.create("t", spec, "x", backfills=(too_much,)),
    ):
        with pytest.raises(LimitExceededError, match=f"too many slots.*backfill_slots is {MOST}") as error:
            await refused
        assert error.value.details == {"limit": "backfill_slots", "most": MOST}
        assert "HORAE_BACKFILL_SLOTS" in str(error.value.hint)
    assert await app.backfills.list("s") == []
    assert await app.runs.list("s") == []
    assert await app.schedules.get("s") == schedule
    with pytest.raises(ScheduleNotFoundError):
        await app.schedules.get("t")
    assert (await app.backfills.preview("s", FIRST, last)).slots == MOST
    assert (await app.backfills.start("s", FIRST, last)).total == MOST

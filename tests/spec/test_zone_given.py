"""A zone is given by its name or as a ``tzinfo``, wherever Python gives one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from horae import Scheduler, Spec
from horae.errors import UnknownTimezoneError
from horae.flows import Flow
from horae.spec import PosixCron, load_zone
from horae.testing import TimeMachine
from horae.workflow.builder import WorkflowBuilder

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = "0 9 * * *"
NAMED = Spec.cron(DAILY, timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (BERLIN, "Europe/Berlin"),
        (ZoneInfo("UTC"), "UTC"),
        (UTC, "UTC"),
        (timezone(timedelta(hours=5, minutes=30)), "+05:30"),
        (timezone(-timedelta(hours=3)), "-03:00"),
        (timezone(timedelta(hours=1), "UTC"), "+01:00"),
    ],
)
def test_a_zone_is_known_by_its_name(given: tzinfo, name: str):
    assert load_zone(given).name == name


def test_other_zones_and_other_things_are_refused():
    nameless: Any = tzinfo
    wrong: list[Any] = [nameless(), 7]
    for each in wrong:
        with pytest.raises(UnknownTimezoneError) as refused:
            Spec.cron(DAILY, timezone=each)
        assert refused.value.hint == "a zone is named by a string, such as Europe/Berlin"


async def test_specs_schedules_and_single_runs_take_one(machine: TimeMachine):
    app = machine.app
    assert Spec.cron(DAILY, timezone=BERLIN) == NAMED
    assert Spec.cron(DAILY, timezone=BERLIN, gap="shift") == Spec.cron(
        DAILY, timezone="Europe/Berlin", gap="shift"
    )
    assert Spec.parse({"crons": [DAILY], "timezone": BERLIN}) == NAMED

    @app.schedule(DAILY, timezone=BERLIN)
    @app.schedule(at=datetime(2099, 7, 1, 9), timezone=BERLIN, id="at")
    def report() -> None: ...

    made = await app.schedules.create("made", {"crons": [DAILY], "timezone": BERLIN}, "report")
    assert Spec.parse(made.spec) == NAMED
    updated = await app.schedules.update("made", {"crons": ["0 8 * * *"], "timezone": BERLIN})
    assert Spec.parse(updated.spec).zone.name == "Europe/Berlin"
    put = await app.schedules.put("made", {"crons": [DAILY], "timezone": BERLIN}, "report")
    assert Spec.parse(put.schedule.spec) == NAMED
    await app.once("report", at="2099-07-01T09:00", timezone=BERLIN, key="single")
    await app.program.store()
    assert Spec.parse((await app.schedules.get("report")).spec) == NAMED
    for each in ("at", "single"):
        (time, *_) = (await app.schedules.describe(each)).next_times
        assert time == datetime(2099, 7, 1, 7, tzinfo=UTC)


def test_tasks_flows_and_workflows_take_one():
    assert PosixCron(DAILY, BERLIN).spec == NAMED
    assert Scheduler(timezone=BERLIN, database=":memory:") is not None
    flow = Flow("f")

    @flow.producer(publishes=["x"], cron=DAILY, timezone=BERLIN)
    async def read(ctx: Any, state: None) -> None: ...

    assert flow.handlers[0].definition.timezone == "Europe/Berlin"
    builder = WorkflowBuilder("w", 1)
    builder.schedule(DAILY, BERLIN)
    assert "Europe/Berlin" in str(builder._nodes)

"""Every slot has an answer to "why did it (not) run?", and every other second one to "why not then?"."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horae.app import App
from horae.app.why import Why
from horae.config import Config
from horae.engine.attempt_results import record
from horae.errors import InvalidInputError, NotStartedError, ScheduleNotFoundError
from horae.executor.attempt_context import Context
from horae.model import (
    AUTOMATIC,
    AttemptEnd,
    AttemptResult,
    CatchUp,
    CatchUpPolicy,
    Limits,
    OnResume,
    Overlap,
    Policies,
    Retention,
    RetryPolicy,
    Run,
    Schedule,
    ScheduleKey,
    Status,
    UnstartedRange,
)
from horae.policy.explain import Explanation, Verdict
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.machine import START, at

FIRST = int(START.timestamp())
NEW_YORK = "America/New_York"


def why(machine: TimeMachine, owner: str | None = None) -> Why:
    return machine.app.why if owner is None else machine.app.owned_by(owner).why


@pytest.fixture
def machine(machine: TimeMachine) -> TimeMachine:
    @machine.app.action("instant")
    async def instant(context: Context) -> None:
        """Does nothing, and takes no time."""

    @machine.app.action("slow")
    async def slow(context: Context) -> None:
        await machine.sleep(seconds=150)

    @machine.app.action("broken")
    async def broken(context: Context) -> None:
        raise RuntimeError("no")

    return machine


async def ask(machine: TimeMachine, when: datetime | str, schedule_id: str = "s") -> tuple[str, str]:
    found = await why(machine).explain(schedule_id, when)
    return str(found.verdict), found.sentence


@pytest.mark.contract("SCHD-28")
async def test_an_edit_on_a_clock_set_back_holds_for_what_was_not_decided_before(machine: TimeMachine):
    await machine.app.schedules.create("s", "*/2 * * * *", "instant")
    await machine.advance(minutes=10)
    machine.clock.set_back(minutes=5)
    await machine.app.schedules.update("s", "1-59/2 * * * *")
    await machine.advance(minutes=10)
    verdicts = [(await ask(machine, at(minute)))[0] for minute in range(1, 15)]
    assert verdicts == ["not_scheduled", "fired"] * 5 + ["fired", "not_scheduled"] * 2


@pytest.mark.contract("SCHD-28")
async def test_what_ran_says_how_late_and_how_it_ended(machine: TimeMachine):
    await machine.app.schedules.create("s", "* * * * *", "instant")
    await machine.app.schedules.create("b", "* * * * *", "broken")
    await machine.advance(minutes=1)
    machine.clock.move_to(at(2) + timedelta(seconds=75))
    await machine.advance(seconds=0)
    assert await ask(machine, at(1)) == ("fired", "2026-03-01T00:01:00Z started on time and succeeded.")
    found = await why(machine).explain("s", at(2))
    assert found.sentence == "2026-03-01T00:02:00Z started 1m15s late and succeeded."
    (run, *_) = [each for each in await machine.app.runs.list("s") if each.nominal_ms // 1000 == FIRST + 120]
    assert (found.late_ms, found.run_id, found.status) == (75_000, run.id, Status.SUCCEEDED)
    assert (found.before_ms, found.after_ms) == ((FIRST + 60) * 1000, (FIRST + 180) * 1000)
    assert (found.by, found.version, found.fire_ms) == ('cron "* * * * *"', 1, run.fire_ms)
    assert [each.id for each in found.runs] == [run.id]
    assert await ask(machine, at(1), "b") == (
        "failed", "2026-03-01T00:01:00Z started on time and failed: its action failed.",
    )  # fmt: skip


@pytest.mark.contract("SCHD-28")
async def test_lateness_is_that_of_the_first_start(machine: TimeMachine):
    app = machine.app
    refusals = 2

    @app.action("refuses")
    async def refuses(context: Context) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise NotStartedError("not now")
        await machine.sleep(seconds=1)
        raise RuntimeError("no")

    retry = Policies(retry=RetryPolicy(attempts=3, initial_delay="1m", factor=1))
    await app.schedules.create("b", "0 1 * * *", "broken", policies=retry)
    await app.schedules.create("r", "0 1 * * *", "refuses", policies=retry)
    machine.clock.move_to(at(60) + timedelta(seconds=5))
    await machine.advance(seconds=0)
    assert (await ask(machine, at(60), "b"))[
        1
    ] == "2026-03-01T01:00:00Z started 5s late and waits for attempt 2."
    assert await ask(machine, at(60), "r") == (
        "waiting", "2026-03-01T01:00:00Z could not be started yet and waits for attempt 2.",
    )  # fmt: skip
    await machine.advance(minutes=5)
    found = await why(machine).explain("b", at(60))
    assert found.sentence == "2026-03-01T01:00:00Z started 5s late and failed: its action failed."
    assert (found.late_ms, [each.started_at_ms for each in found.runs]) == (5000, [(FIRST + 3605) * 1000])
    # An attempt whose action cannot begin is no start: the third one is the first that was.
    assert (await why(machine).explain("r", at(60))).late_ms == 8000
    attempts = await app.runs.attempts((await app.runs.list("r"))[0].id)
    assert [each.started_at_ms and each.started_at_ms - FIRST * 1000 for each in attempts] == [
        None, None, 3_608_000, 3_669_000, 3_730_000,
    ]  # fmt: skip


@pytest.mark.contract("SCHD-28")
async def test_what_never_began_did_not_start(machine: TimeMachine):
    @machine.app.action("refuses")
    async def refuses(context: Context) -> None:
        raise NotStartedError("not now", permanent=True)

    await machine.app.schedules.create("s", "0 1 * * *", "refuses")
    await machine.advance(hours=2)
    found = await why(machine).explain("s", at(60))
    assert (
        found.sentence
        == "2026-03-01T01:00:00Z was dropped before it started: its action could not be started."
    )
    assert (found.late_ms, found.decided_at_ms) == (None, (FIRST + 3600) * 1000)


@pytest.mark.contract("SCHD-28")
async def test_a_takeover_keeps_the_first_start(machine: TimeMachine):
    app = machine.app
    await app.schedules.create("s", "0 1 * * *", "slow")
    machine.clock.move_to(at(60) + timedelta(seconds=5))
    await machine.advance(seconds=0)
    (run,) = await app.runs.list("s")
    async with app.transaction() as transaction:  # as another node does that finds this one dead
        await record(transaction, [AttemptResult(run=run, ending=AttemptEnd.CRASHED)], app.now(), Limits())
    await machine.advance(minutes=10)
    found = await why(machine).explain("s", at(60))
    assert found.sentence == "2026-03-01T01:00:00Z started 5s late and succeeded."
    assert (found.late_ms, (await app.runs.get(run.id)).attempt) == (5000, 2)


@pytest.mark.contract("SCHD-28")
async def test_what_waits_runs_or_was_skipped(machine: TimeMachine):
    policies = Policies(overlap=Overlap.BUFFER_ONE)
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.app.schedules.create("n", "* * * * *", "slow")
    await machine.advance(minutes=3)
    assert await ask(machine, at(1)) == ("running", "2026-03-01T00:01:00Z started on time and is running.")
    assert await ask(machine, at(2)) == ("waiting", "2026-03-01T00:02:00Z is due and waits for its turn.")
    found = await why(machine).explain("n", at(2))
    assert found.verdict is Verdict.SKIPPED
    assert found.sentence == (
        "2026-03-01T00:02:00Z was skipped, one of 2 from 2026-03-01T00:02:00Z to 2026-03-01T00:03:00Z:"
        " another run of the schedule was still running."
    )
    assert found.range is not None
    assert (found.range.start_ms // 1000, found.range.end_ms // 1000, found.range.count) == (
        FIRST + 120,
        FIRST + 180,
        2,
    )
    assert found.decided_at_ms == (FIRST + 180) * 1000


@pytest.mark.contract("SCHD-28")
async def test_a_year_of_downtime_is_explained_slot_by_slot(machine: TimeMachine):
    policies = Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST, window="1h"))
    await machine.app.schedules.create("s", "* * * * *", "instant", policies=policies)
    machine.clock.move_to(START + timedelta(days=365))
    await machine.advance(seconds=0)
    assert (await ask(machine, START + timedelta(days=100)))[0] == "missed"
    late = await why(machine).explain("s", START + timedelta(days=100))
    assert (late.reason, late.range.count if late.range else 0) == ("late", 365 * 1440 - 61)
    assert (await why(machine).explain("s", START + timedelta(days=365, minutes=-5))).reason == "superseded"
    assert (await ask(machine, START + timedelta(days=365)))[0] == "fired"


@pytest.mark.contract("SCHD-28")
async def test_what_is_ahead(machine: TimeMachine):
    schedules = machine.app.schedules
    await schedules.create(
        "s", {"crons": ["* * * * *"], "exclude": [{"minute": "9", "hour": "*"}]}, "instant"
    )
    await schedules.create("j", {"crons": ["* * * * *"], "jitter": "50s"}, "instant", remaining_actions=5)
    await schedules.create("z", "* * * * *", "instant", remaining_actions=0)
    assert await ask(machine, at(5)) == ("will_fire", "2026-03-01T00:05:00Z will fire.")
    jittered = await why(machine).explain("j", at(5))
    assert jittered.fire_ms == int(
        Spec.parse({"crons": ["* * * * *"], "jitter": "50s"}).fire_time(at(5), "j").timestamp() * 1000
    )
    assert "its time with jitter, if one of the 5 remaining starts is still left then." in jittered.sentence
    assert await ask(machine, at(5), "z") == (
        "limit_reached", "2026-03-01T00:05:00Z will not fire: the schedule has no starts left.",
    )  # fmt: skip
    assert await ask(machine, at(9)) == (
        "excluded", '2026-03-01T00:09:00Z is excluded by exclusion "at minute 9 of every hour".',
    )  # fmt: skip
    await schedules.skip_next("s", 2)
    assert [(await ask(machine, at(m)))[0] for m in (1, 2, 3)] == ["skip_next", "skip_next", "will_fire"]
    await schedules.pause("s", "lunch", until=at(4.5))
    assert [(await ask(machine, at(m)))[0] for m in (4, 5)] == ["paused", "will_fire"]
    assert (await ask(machine, at(4)))[1] == (
        '2026-03-01T00:04:00Z falls in a pause ("lunch"): when the schedule resumes at 2026-03-01T00:04:30Z,'
        " it is made up like a late slot."
    )
    machine.clock.move_to(at(3))
    assert (await ask(machine, at(2), "j"))[0] in {"undecided", "will_fire"}
    assert (await ask(machine, at(1), "j"))[1].startswith("2026-03-01T00:01:00Z has been due for ")


@pytest.mark.contract("SCHD-28")
async def test_a_pause_that_skips_says_so_before_and_after(machine: TimeMachine):
    policies = Policies(on_resume=OnResume.SKIP)
    await machine.app.schedules.create("s", "* * * * *", "instant", policies=policies)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=5)
    assert (await ask(machine, at(3)))[1] == (
        "2026-03-01T00:03:00Z falls in a pause: when the schedule is resumed, it is skipped."
    )
    await machine.app.schedules.resume("s")
    await machine.advance(minutes=1)
    verdict, sentence = await ask(machine, at(3))
    assert verdict == "skipped"
    assert sentence.endswith(": the schedule was paused.")
    assert (await ask(machine, at(6)))[0] == "fired"


@pytest.mark.contract("SCHD-28")
async def test_the_spec_that_was_in_force_then_answers(machine: TimeMachine):
    schedules = machine.app.schedules
    await schedules.create("s", "*/2 * * * *", "instant")
    await machine.advance(minutes=3)
    await schedules.pause("s")
    await schedules.resume("s")
    await machine.advance(minutes=2)
    await schedules.update("s", "1-59/2 * * * *")
    await machine.advance(minutes=5)
    expected = {0: "before_creation", 1: "not_scheduled", 2: "fired", 4: "fired", 5: "not_scheduled",
                6: "not_scheduled", 7: "fired", 8: "not_scheduled", 9: "fired", 11: "will_fire"}  # fmt: skip
    assert {m: (await ask(machine, at(m)))[0] for m in expected} == expected
    tokens = [(await why(machine).explain("s", at(m))).version for m in (2, 7)]
    assert tokens == [3, 4]


@pytest.mark.contract("SCHD-28")
async def test_a_deleted_schedule_is_explained_by_its_ledger(machine: TimeMachine):
    schedules = machine.app.schedules
    await schedules.create("s", "*/2 * * * *", "instant", owner="ada")
    await machine.advance(minutes=5)
    await schedules.delete("s")
    await machine.advance(minutes=5)
    expected = {0: "before_creation", 1: "not_scheduled", 2: "fired", 6: "deleted", 99: "deleted"}
    assert {m: (await ask(machine, at(m)))[0] for m in expected} == expected
    assert (await why(machine, "ada").explain("s", at(2))).verdict is Verdict.FIRED
    await schedules.create("s", "*/5 * * * *", "instant", owner="bob")
    await machine.advance(minutes=5)
    expected = {
        1: "before_creation",
        2: "before_creation",
        6: "before_creation",
        15: "fired",
        16: "not_scheduled",
    }
    assert {m: (await ask(machine, at(m)))[0] for m in expected} == expected
    assert (await why(machine, "ada").explain("s", at(2))).verdict is Verdict.FIRED
    found = await why(machine, "bob").explain("s", at(2))
    assert (found.verdict, found.runs) == (Verdict.BEFORE_CREATION, ())
    with pytest.raises(ScheduleNotFoundError):
        await ask(machine, at(1), "none")


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize("days", [0, 60])
async def test_a_deleted_schedule_that_was_edited_was_not_there_before_its_creation(
    machine: TimeMachine, days: int
):
    schedules = machine.app.schedules
    await machine.advance(minutes=5)
    await schedules.create("s", "*/2 * * * *", "instant")
    await schedules.pause("s")
    await schedules.resume("s")
    await machine.advance(minutes=5)
    await schedules.update("s", "*/3 * * * *")
    await machine.advance(minutes=5)
    await schedules.delete("s")
    machine.clock.move_to(at(15) + timedelta(days=days))
    expected = {-90_000: "before_creation", 2: "before_creation", 4: "before_creation", 5: "before_creation",
                6: "fired", 7: "not_scheduled", 12: "fired", 16: "deleted"}  # fmt: skip
    assert {m: (await ask(machine, at(m)))[0] for m in expected} == expected
    assert (await ask(machine, at(2)))[1] == (
        "2026-03-01T00:02:00Z is before the schedule was created, at 2026-03-01T00:05:00Z."
    )


@pytest.mark.contract("SCHD-28")
async def test_backfills_and_triggers_at_a_time_are_told_too(machine: TimeMachine):
    schedules = machine.app.schedules
    await schedules.create("s", "*/2 * * * *", "slow")
    await machine.advance(minutes=4.5)
    await machine.app.backfills.start("s", at(-2), at(4), overlap=Overlap.ALLOW_ALL)
    await schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
    await machine.advance(minutes=10)
    verdict, sentence = await ask(machine, at(4))
    assert verdict == "skipped"
    assert sentence.endswith("; it was backfilled too, and is succeeded.")
    assert (await ask(machine, at(-2)))[0] == "before_creation"
    triggered = await why(machine).explain("s", at(4.5))
    assert triggered.verdict is Verdict.NOT_SCHEDULED
    assert triggered.sentence.endswith("; it was triggered too, and is succeeded.")
    assert [each.origin.kind for each in triggered.runs] == ["trigger"]


CHANGES = [
    (NEW_YORK, "30 2 * * *", datetime(2026, 3, 8, 5, tzinfo=UTC), "2026-03-08T02:30:00"),
    ("Europe/London", "30 1 * * *", datetime(2026, 3, 28, 23, tzinfo=UTC), "2026-03-29T01:30:00"),
    ("Australia/Lord_Howe", "15 2 * * *", datetime(2026, 10, 3, 13, tzinfo=UTC), "2026-10-04T02:15:00"),
    ("America/Santiago", "0 0 * * *", datetime(2026, 9, 6, 2, tzinfo=UTC), "2026-09-06T00:00:00"),
]


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(("zone", "cron", "start", "local"), CHANGES)
@pytest.mark.parametrize("change", [{}, {"gap": "shift"}, {"clock_change": "debian"}])
async def test_a_clock_that_goes_forward(
    zone: str, cron: str, start: datetime, local: str, change: dict[str, str]
):
    async with TimeMachine(start) as machine:

        @machine.app.action("instant")
        async def instant(context: Context) -> None:
            """Does nothing, and takes no time."""

        await machine.app.schedules.create("s", {"crons": [cron], "timezone": zone, **change}, "instant")
        for _ in range(2):  # as it will be, and as it was
            found = await why(machine).explain("s", local)
            assert (found.verdict, found.nominal_ms, found.local) == (Verdict.CLOCK_GAP, None, local)
            assert found.sentence.startswith(
                f"{local.replace('T', ' ')} in {zone} does not exist: clocks went forward"
            )
            assert (found.moved_to_ms is None) == (not change)
            await machine.advance(hours=6)
        if found.moved_to_ms is not None:
            moved = await why(machine).explain("s", datetime.fromtimestamp(found.moved_to_ms // 1000, UTC))
            assert moved.verdict is Verdict.FIRED
        assert len(await machine.app.runs.list("s")) == (1 if change else 0)


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(
    ("fold", "verdicts"),
    [("both", ["fired", "fired"]), ("first", ["fired", "clock_fold"]), ("last", ["clock_fold", "fired"])],
)
async def test_a_clock_that_goes_back(fold: str, verdicts: list[str]):
    async with TimeMachine(datetime(2026, 11, 1, 4, tzinfo=UTC)) as machine:

        @machine.app.action("instant")
        async def instant(context: Context) -> None:
            """Does nothing, and takes no time."""

        spec = {"crons": ["30 1 * * *"], "timezone": NEW_YORK, "fold": fold}
        await machine.app.schedules.create("s", spec, "instant")
        await machine.advance(hours=4)
        times = ["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"]
        assert [(await ask(machine, each))[0] for each in times] == verdicts
        assert (await ask(machine, "2026-11-01T01:30:00"))[0] == "fired"
        second = datetime(2026, 11, 1, 1, 30, fold=1)
        assert (await ask(machine, second))[0] == verdicts[1]
        if fold == "first":
            assert (await ask(machine, times[1]))[1] == (
                "2026-11-01 01:30:00 in America/New_York (2026-11-01T06:30:00Z) occurs twice that day;"
                " only the first of the two fires, 2026-11-01T05:30:00Z."
            )


@pytest.mark.contract("SCHD-28")
async def test_the_window_and_the_very_second(machine: TimeMachine):
    spec = {"crons": ["* * * * *"], "start_at": "2026-03-01T00:02:00Z", "end_at": "2026-03-01T00:03:00Z"}
    await machine.app.schedules.create("s", spec, "instant")
    assert await ask(machine, at(1)) == (
        "out_of_window", "2026-03-01T00:01:00Z is before the schedule's start_at, 2026-03-01T00:02:00Z.",
    )  # fmt: skip
    assert await ask(machine, at(4)) == (
        "out_of_window", "2026-03-01T00:04:00Z is after the schedule's end_at, 2026-03-01T00:03:00Z.",
    )  # fmt: skip
    assert await ask(machine, "2026-03-01T00:02:00.999Z") == await ask(machine, at(2))
    assert await ask(machine, "2026-03-01T00:02:01Z") == (
        "not_scheduled",
        "2026-03-01T00:02:01Z is not a time of the schedule; the nearest are 2026-03-01T00:02:00Z before and 2026-03-01T00:03:00Z after it.",
    )
    for wrong in ("tomorrow", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00"):
        with pytest.raises(InvalidInputError, match="time"):
            await ask(machine, wrong)


@pytest.mark.contract("SCHD-28")
async def test_what_the_ledger_no_longer_keeps_is_unknown(machine: TimeMachine):
    keep = Policies(retention=Retention(age="1m", count=1))
    await machine.app.schedules.create("s", "* * * * *", "instant", policies=keep)
    await machine.advance(minutes=3)
    await machine.app.schedules.update("s", "*/2 * * * *")
    await machine.advance(hours=6)
    assert await ask(machine, at(2)) == (
        "unknown", "2026-03-01T00:02:00Z is older than what the ledger keeps of the schedule.",
    )  # fmt: skip
    assert (await ask(machine, at(2.5)))[0] == "unknown"  # the ledger no longer has that spec
    assert (await ask(machine, at(6)))[0] == "unknown"
    assert (await ask(machine, at(7)))[0] == "not_scheduled"
    assert (await ask(machine, START + timedelta(hours=6, minutes=2)))[0] == "fired"


@pytest.mark.contract("SCHD-28")
async def test_what_is_known_goes_as_far_back_as_the_setting_for_retention():
    """A version that the setting let the ledger forget must not be taken for the one that followed it."""
    hour = 60 * 60 * 1000
    async with TimeMachine(START, Config(retention_age_ms=hour)) as machine:
        machine.app.action("instant")(lambda context: None)
        await machine.app.schedules.create("s", "*/2 * * * *", "instant", owner="ada")
        await machine.advance(minutes=3)
        await machine.app.schedules.update("s", "1-59/2 * * * *")
        await machine.advance(hours=2)
        await machine.app.schedules.update("s", "* * * * *")
        for operations in (machine.app, machine.app.owned_by("ada")):
            found = [(await operations.why.explain("s", at(minute))).verdict for minute in (1, 2, 121)]
            assert found == ["unknown", "unknown", "fired"]


# What a random history is made of. Seconds stand for minutes, so that all of them can be asked about.


@dataclass(frozen=True)
class Plan:
    """A spec, and what it means: these seconds of each minute, not in these minutes, from one until another."""

    seconds: frozenset[int]
    closed: frozenset[int]
    first: int
    last: int
    jitter: int

    @property
    def document(self) -> dict[str, Any]:
        exclude = [{"minute": str(m), "hour": "*", "second": "*"} for m in sorted(self.closed)]
        document: dict[str, Any] = {
            "crons": [f"{','.join(map(str, sorted(self.seconds)))} * * * * *"], "exclude": exclude,
            "start_at": f"{datetime.fromtimestamp(FIRST + self.first, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "end_at": f"{datetime.fromtimestamp(FIRST + self.last, UTC):%Y-%m-%dT%H:%M:%SZ}",
        }  # fmt: skip
        return document | ({"jitter": f"{self.jitter}s"} if self.jitter else {})

    def verdict(self, second: int) -> str:
        """``slot``, or why there is none."""
        if not FIRST + self.first <= second <= FIRST + self.last:
            return "out_of_window"
        if second % 60 not in self.seconds:
            return "not_scheduled"
        return "excluded" if second // 60 % 60 in self.closed else "slot"


plans = st.builds(
    Plan,
    st.frozensets(st.integers(0, 59), min_size=1, max_size=4),
    st.frozensets(st.integers(0, 4), max_size=2),
    st.sampled_from([-100, 0, 45]),
    st.sampled_from([200, 10_000]),
    st.sampled_from([0, 0, 0, 7]),
)
policies = st.builds(
    Policies,
    overlap=st.sampled_from(Overlap),
    catch_up=st.builds(
        CatchUpPolicy, mode=st.sampled_from(CatchUp), window=st.sampled_from([None, "20s"]), grace=st.just("2s")
    ),
    on_resume=st.sampled_from(OnResume),
    coalesce=st.booleans(),
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("advance"), st.integers(1, 60)),
    st.tuples(st.just("advance"), st.integers(1, 60)),
    st.tuples(st.just("sleep"), st.integers(1, 60)),
    st.tuples(st.just("pause"), st.sampled_from([None, 30])),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("edit"), plans),
    st.tuples(st.just("skip"), st.integers(1, 3)),
    st.tuples(st.just("limit"), st.sampled_from([None, 0, 1, 3])),
    st.tuples(st.just("trigger"), st.none()),
    st.tuples(st.just("backfill"), st.integers(0, 60)),
    st.tuples(st.just("delete"), st.none()),
)


@dataclass
class History:
    """A schedule that things happen to; who writes down which plan holds from which second on."""

    machine: TimeMachine
    plan: Plan
    policies: Policies
    reign: list[tuple[int, Plan | str]] = field(default_factory=lambda: [(0, "before_creation")])
    alive: bool = False

    @property
    def second(self) -> int:
        return int(self.machine.now.timestamp())

    async def create(self) -> None:
        await self.machine.app.schedules.create("s", self.plan.document, "work", policies=self.policies)
        self.alive = True
        if self.reign[-1][1] == "deleted":  # what lies between is before the creation of what is there now
            self.reign[-1] = (self.reign[-1][0], "before_creation")
        self.reign.append((self.second, self.plan))

    async def happen(self, what: str, how: Any) -> None:
        if what == "advance":
            await self.machine.advance(seconds=how)
        elif what == "sleep":
            self.machine.clock.move_to(self.machine.now + timedelta(seconds=how))
        elif not self.alive:
            await self.create()
        elif what == "edit":
            await self.machine.app.schedules.update("s", how.document)
            self.plan = how
            self.reign.append((self.second, how))
        elif what == "delete":
            await self.machine.app.schedules.delete("s")
            self.alive = False
            self.reign.append((self.second, "deleted"))
        else:
            await self.change(what, how)

    async def change(self, what: str, how: Any) -> None:
        schedules, now = self.machine.app.schedules, self.machine.now
        if what == "pause":
            await schedules.pause("s", until=None if how is None else now + timedelta(seconds=how))
        elif what == "resume":
            await schedules.resume("s")
        elif what == "skip":
            await schedules.skip_next("s", how)
        elif what == "limit":
            await schedules.update("s", remaining_actions=how)
        elif what == "trigger":
            await schedules.trigger("s")
        else:
            await self.machine.app.backfills.start("s", now - timedelta(seconds=how), now)

    def forgotten(self, second: int) -> Plan | None:
        """The first plan of the schedule created next, if it is gone: a version does not keep when it was created."""
        later = [plan for since, plan in self.reign if since >= second]
        gone = any(isinstance(each, str) for each in later[1:])
        return later[0] if gone and isinstance(later[0], Plan) else None

    def in_force(self, second: int) -> Plan | str:
        return [plan for since, plan in self.reign if since < second][-1]


def read(
    history: History, second: int, runs: list[Run], ranges: list[UnstartedRange], now: Schedule | None
) -> set[str]:
    """The verdicts that the ledger allows, by reading all of it."""
    plan = history.in_force(second)
    own = [run for run in runs if run.nominal_ms // 1000 == second and run.origin == AUTOMATIC]
    if own:
        return {STATUS.get(own[0].status, str(own[0].status))}
    if plan == "before_creation" and (first := history.forgotten(second)) is not None:
        return {plan, "unknown", first.verdict(second)} - {"slot"}
    if isinstance(plan, str):
        return {plan}
    if plan.verdict(second) != "slot":
        return {plan.verdict(second)}
    unstarted = [each for each in ranges if each.start_ms // 1000 <= second <= each.end_ms // 1000]
    if unstarted:
        assert len(unstarted) == 1
        return {str(unstarted[0].status)}
    assert now is not None, "a slot of a schedule that is gone has a record"
    assert second > now.cursor_ms // 1000, "a slot that was decided has a record"
    return ahead(history, second, runs, now)


def ahead(history: History, second: int, runs: list[Run], now: Schedule) -> set[str]:
    """The verdicts that a slot may have which is not decided yet."""
    present = history.machine.app.now()
    fire_at = Spec.parse(now.spec).fire_time(datetime.fromtimestamp(second, UTC), "s").timestamp() * 1000
    state = now.state
    if state.paused and (state.paused_until_ms is None or state.paused_until_ms > fire_at):
        return {"paused"}
    if state.remaining_actions == 0:
        return {"limit_reached"}
    if fire_at <= present:
        return {"undecided"}
    slots = [
        each for each in range(now.cursor_ms // 1000 + 1, second + 1) if history.plan.verdict(each) == "slot"
    ]
    unsure = slots[0] * 1000 <= present or state.paused or state.carried
    if unsure and (state.skip_next or state.remaining_actions is not None):
        # Whether what is due uses these up depends on the policies for lateness, pauses and overlap.
        return {"skip_next", "will_fire", "limit_reached"}
    if len(slots) <= state.skip_next:
        return {"skip_next"}
    if state.remaining_actions is None:
        return {"will_fire"}
    waiting = [run for run in runs if (run.status, run.origin) == (Status.PENDING, AUTOMATIC)]
    beyond = len(slots) - state.skip_next + len(waiting) > state.remaining_actions
    return {"limit_reached" if beyond else "will_fire"}


STATUS = {
    Status.SUCCEEDED: "fired",
    Status.PENDING: "waiting",
    Status.RETRYING: "waiting",
    Status.STARTING: "waiting",
}


async def live(plan: Plan, how: Policies, story: list[tuple[str, Any]], seconds: int) -> None:
    async with TimeMachine(START + timedelta(seconds=30)) as machine:

        @machine.app.action("work")
        async def work(context: Context) -> None:
            await machine.sleep(seconds=seconds)
            if int(context.nominal.timestamp()) % 7 == 0:
                raise RuntimeError("a bad number")

        history = History(machine, plan, how)
        await history.create()
        for what, value in story:
            await history.happen(what, value)
        runs = await machine.app.runs.list("s", 1000)
        ranges = await machine.app.runs.unstarted_ranges("s", 1000)
        async with machine.app.transaction() as transaction:
            present = next(iter(await transaction.read_schedules([ScheduleKey("s")])), None)
        asked = why(machine)
        for second in range(FIRST, history.second + 90):
            found: Explanation = await asked.explain("s", datetime.fromtimestamp(second, UTC))
            assert found.verdict in read(history, second, runs, ranges, present), found
            assert found.nominal_ms == second * 1000
            assert {each.id for each in found.runs} == {
                run.id for run in runs if run.nominal_ms // 1000 == second
            }


@pytest.mark.contract("SCHD-28")
@settings(max_examples=settings().max_examples // 3)
@given(plans, policies, st.lists(steps, min_size=2, max_size=8), st.sampled_from([0, 1, 25]))
def test_every_second_of_a_random_history_is_explained_as_the_ledger_reads(
    plan: Plan, how: Policies, story: list[tuple[str, Any]], seconds: int
):
    asyncio.run(live(plan, how, story, seconds))


# Previews and load


@pytest.mark.contract("SCHD-29")
async def test_a_change_is_previewed(machine: TimeMachine):
    await machine.app.schedules.create("s", "0 9 * * *", "instant", owner="ada")
    found = await why(machine).preview("s", "0 8,9 1-30 * *")
    assert found.sentence == "The change adds 30 fire times in the next 30 days."
    assert (found.adds, found.removes, found.kept, found.truncated) == (30, 0, 30, False)
    assert found.added[0].nominal_ms // 1000 == FIRST + 8 * 3600
    found = await why(machine).preview("s", {"crons": ["0 10 * * *"], "jitter": "5m"}, days=2, limit=1)
    assert found.sentence == "The change adds 2 and removes 2 fire times in the next 2 days."
    assert (len(found.added), len(found.removed), found.truncated) == (1, 1, True)
    assert 0 <= found.added[0].fire_ms - found.added[0].nominal_ms < 300_000
    same = await why(machine).preview("s", {"crons": ["0 9 * * *"], "jitter": "5m"}, days=1)
    assert same.sentence == (
        "The change neither adds nor removes fire times in the next day; another jitter moves the others."
    )
    dense = await why(machine).preview("s", "* * * * * *", days=30)
    assert dense.truncated
    assert dense.sentence.endswith(", looked at until 2026-03-02T03:46:40Z.")
    with pytest.raises(ScheduleNotFoundError):
        await why(machine, "bob").preview("s", "0 8 * * *")
    with pytest.raises(ScheduleNotFoundError):
        await why(machine).preview("none", "0 8 * * *")
    with pytest.raises(InvalidInputError, match="days"):
        await why(machine).preview("s", "0 8 * * *", days=0)


@pytest.mark.contract("SCHD-29")
@given(plans, plans, st.integers(0, 200))
def test_a_preview_is_the_difference_of_the_fire_times(old: Plan, new: Plan, offset: int):
    async def check() -> None:
        async with TimeMachine(START + timedelta(seconds=offset)) as machine:
            machine.app.action("instant")(lambda context: asyncio.sleep(0))
            await machine.app.schedules.create("s", old.document, "instant")
            found = await why(machine).preview("s", new.document, days=1, limit=10_000)
            window = range(FIRST + offset + 1, FIRST + 10_001)
            before, after = ({s for s in window if plan.verdict(s) == "slot"} for plan in (old, new))
            assert {each.nominal_ms // 1000 for each in found.added} == after - before
            assert {each.nominal_ms // 1000 for each in found.removed} == before - after
            assert (found.adds, found.removes, found.kept) == (
                len(after - before), len(before - after), len(after & before),
            )  # fmt: skip

    asyncio.run(check())


@pytest.mark.contract("SCHD-29")
async def test_the_load_ahead_has_peaks_that_jitter_flattens(machine: TimeMachine):
    schedules = machine.app.schedules
    for number in range(600):
        await schedules.create(f"s{number:03}", "0 * * * *", "instant", owner="ada" if number % 2 else "bob")
    await schedules.create("own", {"crons": ["30 * * * *"], "jitter": "10m"}, "instant")
    await schedules.create("paused", "* * * * *", "instant", paused=True)
    await schedules.create("spent", "* * * * *", "instant", remaining_actions=0)
    await schedules.create("three", "* * * * *", "instant", remaining_actions=3)
    await schedules.skip_next("three", 2)
    forecast = await why(machine).forecast(minutes=120, jitter="30m")
    three = [FIRST + 180, FIRST + 240, FIRST + 300]
    own = [int(Spec.parse({"crons": ["30 * * * *"], "jitter": "10m"}).fire_time(at(m), "own").timestamp()) // 60 * 60
           for m in (30, 90)]  # fmt: skip
    expected = {FIRST + 3600: 600, **dict.fromkeys(own, 1), **dict.fromkeys(three, 1)}
    assert {each.minute_ms // 1000: each.starts for each in forecast.minutes if each.starts} == expected
    assert forecast.total == 605
    assert not forecast.truncated
    assert forecast.peak is not None
    assert (forecast.peak.minute_ms // 1000, forecast.peak.starts) == (FIRST + 3600, 600)
    assert forecast.peak_with_jitter is not None
    assert 20 <= (forecast.peak_with_jitter.with_jitter or 0) < 60  # 600 over half an hour
    assert sum(each.with_jitter or 0 for each in forecast.minutes) == 605
    assert (await why(machine, "ada").forecast(minutes=120)).total == 300
    plain = await why(machine).forecast(minutes=120)
    assert (plain.total, plain.peak_with_jitter, plain.schedules) == (605, None, 603)
    cut = await why(machine).forecast(minutes=120, limit=10)
    assert (cut.truncated, cut.schedules) == (True, 10)
    assert not (await why(machine).forecast(minutes=120, limit=603)).truncated
    for wrong in ({"minutes": 0}, {"jitter": "0s"}, {"jitter": "2d"}, {"jitter": "often"}, {"limit": 0}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            await why(machine).forecast(**wrong)


@pytest.mark.contract("SCHD-29")
async def test_the_load_of_one_minute_is_what_then_starts(machine: TimeMachine):
    started: list[datetime] = []

    @machine.app.action("counted")
    async def counted(context: Context) -> None:
        started.append(machine.now)

    for number, jitter in enumerate([None, "20s", {"span": "90s", "centred": True}, "3m"]):
        spec = {"crons": ["*/2 * * * *"], **({} if jitter is None else {"jitter": jitter})}
        await machine.app.schedules.create(f"s{number}", spec, "counted")
    await machine.advance(seconds=90)
    started.clear()
    forecast = await why(machine).forecast(minutes=30)
    await machine.advance(minutes=28.5)
    counts: dict[int, int] = {}
    for each in started:
        minute = int(each.timestamp()) // 60 * 60
        counts[minute] = counts.get(minute, 0) + 1
    first = FIRST + 60
    assert {
        m.minute_ms // 1000: m.starts for m in forecast.minutes if m.minute_ms // 1000 < first + 28 * 60
    } == {minute: number for minute, number in counts.items() if minute < first + 28 * 60}


@pytest.mark.contract("SCHD-28")
async def test_stores_on_disk_answer_alike(database: str):
    async with App(database) as app:
        app.action("instant")(lambda context: asyncio.sleep(0))
        await app.schedules.create("s", "0 12 * * *", "instant", owner="ada")
        await app.schedules.update("s", "0 13 * * *")
        await app.schedules.trigger("s")
        asked = app.owned_by("ada").why
        ahead = datetime.fromtimestamp(app.now() / 1000, UTC) + timedelta(days=2)
        for hour, verdict in ((12, "not_scheduled"), (13, "will_fire")):
            found = await asked.explain("s", ahead.replace(hour=hour, minute=0, second=0))
            assert found.verdict == verdict
        (run,) = await app.runs.list("s")
        found = await asked.explain("s", datetime.fromtimestamp(run.nominal_ms // 1000, UTC))
        assert [each.id for each in found.runs] == [run.id]
        assert (await asked.preview("s", "0 12 * * *", days=1)).adds == 1
        assert (await asked.forecast(minutes=1440, jitter="1m")).total == 1
        await app.schedules.delete("s")
        assert (await app.why.explain("s", ahead)).verdict is Verdict.DELETED


@pytest.mark.contract("SCHD-15", "SCHD-24", "SCHD-28")
async def test_what_is_explained_and_shown_goes_as_far_as_the_limit_does(machine: TimeMachine):
    """Of four starts left one goes to what waits; the next slot is to be skipped."""

    @machine.app.action
    async def long(context: Context) -> None:
        await machine.sleep(seconds=600)

    policies = Policies(overlap=Overlap.BUFFER_ALL)
    await machine.app.schedules.create("s", "* * * * *", "long", policies=policies, remaining_actions=5)
    await machine.advance(minutes=2, seconds=1)
    await machine.app.schedules.skip_next("s")
    described = await machine.app.schedules.describe("s")
    assert described.next_times == (at(4), at(5), at(6))
    found = [await machine.app.why.explain("s", at(minute)) for minute in range(1, 9)]
    assert [each.verdict for each in found] == [
        "running", "waiting", "skip_next", "will_fire", "will_fire", "will_fire", "limit_reached", "limit_reached",
    ]  # fmt: skip
    assert found[6].sentence == (
        "2026-03-01T00:07:00Z will not fire: the 4 remaining starts go to earlier slots."
    )


@pytest.mark.contract("SCHD-24")
async def test_a_paused_schedule_shows_what_comes_if_it_is_resumed(machine: TimeMachine):
    await machine.app.schedules.create("s", "* * * * *", "instant", paused=True)
    await machine.advance(minutes=5)
    described = await machine.app.schedules.describe("s")
    assert described.next_times == tuple(at(minute) for minute in range(6, 16))
    assert described.next_times == tuple(
        each.fire for each in (await machine.app.schedules.times("s", limit=10)).items
    )

"""The verdicts and sentences of explanations, and which spec was in force: pure functions of what is known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from horae.model import (
    AUTOMATIC,
    Action,
    Origin,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    UnstartedRange,
    Version,
)
from horae.policy.explain import (
    Explanation,
    Facts,
    InForce,
    Verdict,
    explain,
    holds,
    in_force,
    run_ids_at,
)
from horae.policy.forecast import ForecastBuilder
from horae.policy.ledger_changes import run_id
from horae.spec import Spec
from horae.spec.why import why_instant
from tests.spec.oracle import instant
from tests.support.cases import each_of

NOON = instant("2026-03-01T12:00:00Z")
SPEC = Spec.cron("0 12 * * *")
_replace = msgspec.structs.replace


def schedule(**more: Any) -> Schedule:
    made = Schedule(
        id="s", generation=2, spec=SPEC.text, action=Action(name="a"), policies=Policies(), state=State(), version=9,
        cursor_ms=(NOON - 1) * 1000, created_at_ms=(NOON - 5000) * 1000, updated_at_ms=(NOON - 100) * 1000,
    )  # fmt: skip
    return _replace(made, **more)


def version(
    version: int = 4, since: int = -300, until: int = -100, generation: int = 2, created: int = -5000
) -> Version:
    return Version(
        schedule_key=ScheduleKey("s"), generation=generation, version=version, spec=SPEC.text, policies=Policies(),
        since_ms=(NOON + since) * 1000, until_ms=(NOON + until) * 1000, created_at_ms=(NOON + created) * 1000,
    )  # fmt: skip


def run(status: Status, **more: Any) -> Run:
    made = Run(
        id="r", schedule_key=ScheduleKey("s"), generation=2, nominal_ms=NOON * 1000, origin=AUTOMATIC, overlap=Overlap.SKIP, status=status,
        fire_ms=NOON * 1000, start_at_ms=NOON * 1000, started_at_ms=NOON * 1000 + 250, ended_at_ms=NOON * 1000 + 900,
    )  # fmt: skip
    return _replace(made, **more)


def told(*runs: Run, **more: Any) -> Explanation:
    facts = Facts(
        schedule_id="s", schedule=schedule(), in_force=InForce(spec=SPEC.text, version=9, generation=2, current=True),
        spec=SPEC, standing=why_instant(SPEC, NOON), runs=runs,
    )  # fmt: skip
    return explain(_replace(facts, **more), NOON * 1000 + 5000)


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize("status", Status)
def test_every_status_of_a_run_has_a_verdict_and_a_sentence(status: Status):
    found = told(run(status))
    assert found.verdict == {
        "pending": "waiting",
        "retrying": "waiting",
        "starting": "waiting",
        "succeeded": "fired",
    }.get(status, status)
    assert found.sentence.startswith("2026-03-01T12:00:00Z ")
    assert found.sentence.endswith(".")
    assert (found.status, found.late_ms, found.run_id) == (status, 250, "r")


@pytest.mark.contract("SCHD-28")
@each_of("reason", Reason)
def test_every_reason_is_told(reason: Reason):
    unstarted = UnstartedRange(
        schedule_key=ScheduleKey("s"), generation=2, start_ms=NOON * 1000, end_ms=NOON * 1000, count=1, status=Status.SKIPPED, reason=reason,
        decided_at_ms=7,
    )  # fmt: skip
    found = told(unstarted=unstarted)
    assert (found.verdict, found.reason, found.decided_at_ms) == (Verdict.SKIPPED, reason, 7)
    assert found.sentence.startswith("2026-03-01T12:00:00Z was skipped: ")
    assert told(run(Status.FAILED, reason=reason)).sentence.startswith(
        "2026-03-01T12:00:00Z started 250ms late and failed: "
    )


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (run(Status.STARTING, started_at_ms=None, ended_at_ms=None), "was released and waits for a node that can run it"),
        (run(Status.RETRYING, attempt=2), "started 250ms late and waits for attempt 3"),
        (run(Status.RETRYING, attempt=2, started_at_ms=None), "could not be started yet and waits for attempt 3"),
        (run(Status.PENDING, started_at_ms=None, ended_at_ms=None), "is due and waits for its turn"),
        (run(Status.TIMED_OUT, started_at_ms=None, reason="start_timeout"),
         "timed out before it started: it waited longer than its start timeout"),
        (run(Status.FAILED, reason="spoiled"), "started 250ms late and failed: spoiled"),
        (run(Status.SUCCEEDED, started_at_ms=NOON * 1000 + 90_000), "started 1m30s late and succeeded"),
        (run(Status.SUCCEEDED, started_at_ms=NOON * 1000 - 5), "started on time and succeeded"),
    ],
)  # fmt: skip
def test_what_a_run_is_waiting_for_and_how_it_ended(made: Run, sentence: str):
    assert told(made).sentence == f"2026-03-01T12:00:00Z {sentence}."


def test_the_slot_itself_goes_before_backfills_and_triggers():
    others = (
        run(Status.TIMED_OUT, id="b", origin=Origin.parse("backfill:1")),
        run(Status.SUCCEEDED),
        run(Status.RUNNING, id="t", origin=Origin.parse("trigger:2")),
    )
    found = told(*others)
    assert (found.verdict, found.run_id) == (Verdict.FIRED, "r")
    assert [each.id for each in found.runs] == ["b", "r", "t"]
    assert found.sentence.endswith(
        "; it was backfilled too, and is timed out; it was triggered too, and is running."
    )


def place(nominal: int, now: Schedule | None, found: Version | None, before: Version | None) -> str:
    answer = in_force((NOON + nominal) * 1000, now, found, before, kept_since=(NOON - 1000) * 1000)
    return str(answer.verdict or answer.version)


@pytest.mark.contract("SCHD-28")
@each_of(
    ("nominal", "now", "found", "before", "expected"),
    [
        (0, schedule(), None, None, "9"),
        (-5000, schedule(), None, None, "before_creation"),
        (-4999, schedule(), None, None, "9"),
        (-50, schedule(state=State(spec_since_ms=(NOON - 50) * 1000)), None, None, "unknown"),  # that version was removed
        (-49, schedule(state=State(spec_since_ms=(NOON - 50) * 1000)), None, None, "9"),
        (-200, schedule(), version(), None, "4"),
        (-400, schedule(), version(), None, "4"),  # since a pause; versions that ended later are all kept
        (-2000, schedule(), version(), None, "unknown"),  # another may have been in force, and was removed
        (-2000, schedule(), version(), version(2, -2500, -2400), "4"),
        (-5001, schedule(), version(), None, "before_creation"),
        (-300, None, version(1, created=-300), None, "before_creation"),
        (-299, None, version(1, created=-300), None, "1"),
        (-5000, None, version(), None, "before_creation"),  # edited, and then deleted
        (-5000, None, version(), version(2, -6000, -5500, generation=1), "before_creation"),
        (-900, None, version(created=-800), None, "before_creation"),
        (-2000, None, version(), None, "unknown"),
        (0, None, None, version(), "deleted"),
        (-2000, schedule(), version(7, -1500, -1200, generation=1), None, "unknown"),
        (-1400, schedule(), version(7, -1500, -1200, generation=1), None, "7"),
        (-1600, schedule(), version(7, -1500, -1200, generation=1), version(2, -2000, -1900, generation=1), "7"),
    ],
)  # fmt: skip
def test_which_spec_was_in_force(
    nominal: int, now: Schedule | None, found: Version | None, before: Version | None, expected: str
):
    assert place(nominal, now, found, before) == expected


def test_a_decided_slot_without_a_record_is_too_old():
    assert told(schedule=schedule(cursor_ms=NOON * 1000)).verdict is Verdict.UNKNOWN
    assert told(schedule=None).verdict is Verdict.UNKNOWN
    earlier = InForce(spec=SPEC.text, version=3, generation=2)
    assert told(schedule=schedule(cursor_ms=NOON * 1000), in_force=earlier).verdict is Verdict.UNKNOWN


@pytest.mark.contract("SCHD-28")
def test_a_slot_that_is_not_decided_is_explained_by_the_schedule_as_it_stands_now():
    """Also if its policies have changed since its nominal time."""
    assert told(in_force=InForce(spec=SPEC.text, version=3, generation=2)).verdict is Verdict.UNDECIDED


def test_a_range_has_the_slots_that_its_own_spec_names():
    unstarted = UnstartedRange(
        schedule_key=ScheduleKey("s"), generation=1, start_ms=NOON * 1000, end_ms=(NOON + 172_800) * 1000, count=3, status=Status.MISSED,
        reason=Reason.LATE, decided_at_ms=7,
    )  # fmt: skip
    assert [holds(unstarted, (NOON + each) * 1000, SPEC) for each in (0, 1, 86_400, 172_799, 172_800)] == [
        True, False, True, False, True,
    ]  # fmt: skip
    assert holds(unstarted, (NOON + 172_800) * 1000, Spec.cron("0 1 * * *"))


def test_the_ids_of_a_nominal_time_begin_alike():
    for origin in (AUTOMATIC, Origin.parse("trigger:7"), Origin.parse("backfill:abc")):
        assert run_id(ScheduleKey("s"), 3, NOON * 1000, origin).startswith(run_ids_at(NOON * 1000))
    assert not run_id(ScheduleKey("s"), 3, (NOON + 1) * 1000, AUTOMATIC).startswith(run_ids_at(NOON * 1000))


@pytest.mark.contract("SCHD-29")
def test_a_forecast_is_bounded_and_says_so():
    forecast = ForecastBuilder(NOON * 1000, 60, most=50)
    every_minute = schedule(spec=Spec.cron("* * * * *").text)
    forecast.add([every_minute])
    assert forecast.is_full
    forecast.add([schedule()])
    load = forecast.result()
    assert (load.truncated, load.schedules, load.total) == (True, 1, 50)
    many = ForecastBuilder(NOON * 1000, 60, most=100)
    many.add([every_minute] * 100_000)  # one spec, one count
    assert (many.result().total, many.result().truncated) == (59 * 100_000, False)
    spoiled = ForecastBuilder(NOON * 1000, 60)
    spoiled.add([schedule(spec="unreadable"), schedule(spec=Spec.cron("30 * * * *").text)])
    assert spoiled.result().total == 1
    empty = ForecastBuilder(NOON * 1000, 60, jitter_ms=5000).result()
    assert (empty.peak, empty.peak_with_jitter, empty.total, empty.minutes) == (None, None, 0, ())

"""What the end of an attempt means: every ending, under every policy, leads to a status that may follow."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import (
    AUTOMATIC,
    AttemptEnd,
    AttemptResult,
    Limits,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Run,
    ScheduleKey,
    Status,
    Timeouts,
)
from horae.policy.lifecycle import ENDED, TRANSITIONS
from horae.policy.outcome import judge_end, overdue, report_by
from tests.support.cases import each_of

NOW = 1_772_366_400_000
LIMITS = Limits()
TWICE = Policies(retry=RetryPolicy(attempts=2, initial_delay="5s"), start_attempts=2)
ONCE = Policies(at_most_once=True, start_attempts=1)

RUN = Run(
    id="r", schedule_key=ScheduleKey("s"), generation=1, nominal_ms=NOW, origin=AUTOMATIC, overlap=Overlap.SKIP,
    status=Status.RUNNING, fire_ms=NOW, start_at_ms=NOW, attempt=1, epoch=7, started_at_ms=NOW,
)  # fmt: skip


def ended(ending: str, run: dict[str, Any] | None = None, **more: Any) -> AttemptResult:
    return AttemptResult(run=msgspec.structs.replace(RUN, **(run or {})), ending=AttemptEnd(ending), **more)


ENDINGS: list[tuple[AttemptResult, Policies | None, str, str, int | None]] = [
    (ended("returned", result="1"), TWICE, "succeeded", "", None),
    (ended("returned", result="1"), None, "succeeded", "", None),
    (ended("raised"), TWICE, "retrying", "failed", 5000),
    (ended("raised", {"failures": 1}), TWICE, "failed", "failed", None),
    (ended("raised"), Policies(), "failed", "failed", None),
    (ended("raised"), None, "failed", "failed", None),
    (ended("timed_out"), TWICE, "retrying", "run_timeout", 5000),
    (ended("timed_out", {"failures": 1}), TWICE, "timed_out", "run_timeout", None),
    (ended("timed_out", reason=Reason.HEARTBEAT_TIMEOUT), ONCE, "timed_out", "heartbeat_timeout", None),
    (ended("refused"), TWICE, "retrying", "not_started", 1000),
    (ended("refused", {"refusals": 1}), TWICE, "dropped", "not_started", None),
    (ended("refused", permanent=True), TWICE, "dropped", "not_started", None),
    (ended("refused"), None, "dropped", "not_started", None),
    (ended("stopped", {"stop": "cancel"}), TWICE, "cancelled", "cancelled", None),
    (ended("stopped", {"stop": "cancel"}, reason=Reason.REPLACED), TWICE, "cancelled", "replaced", None),
    (ended("stopped", {"stop": "terminate"}, reason=Reason.TERMINATED), TWICE, "terminated", "terminated", None),
    (ended("stopped", reason=Reason.SHUTDOWN), TWICE, "retrying", "shutdown", 0),
    (ended("stopped", reason=Reason.SHUTDOWN), ONCE, "failed", "shutdown", None),
    (ended("stopped", reason=Reason.SHUTDOWN), None, "failed", "shutdown", None),
    (ended("crashed"), TWICE, "retrying", "crashed", 0),
    (ended("crashed"), ONCE, "failed", "crashed", None),
    (ended("crashed"), None, "failed", "crashed", None),
    (ended("crashed", {"crashes": 8}), TWICE, "retrying", "crashed", 0),
    (ended("crashed", {"crashes": 9}), TWICE, "failed", "crashed", None),
    (ended("crashed", {"stop": "cancel"}), TWICE, "terminated", "crashed", None),
    (ended("unlaunched"), TWICE, "retrying", "", 0),
    (ended("not_admitted", reason=Reason.NOT_ALLOWED), TWICE, "skipped", "not_allowed", None),
    (ended("not_admitted", reason=Reason.DELETED), None, "skipped", "deleted", None),
    (ended("not_admitted", {"stop": "cancel"}, reason=Reason.NOT_ALLOWED), ONCE, "skipped", "not_allowed", None),
    (ended("accepted"), TWICE, "running", "", None),
    (ended("accepted"), None, "running", "", None),
    (ended("accepted", {"stop": "cancel"}), TWICE, "running", "", None),
    (ended("accepted", {"stop": "terminate"}), TWICE, "terminated", "terminated", None),
]  # fmt: skip


def test_every_ending_is_in_the_table():
    assert {each.ending for each, *_ in ENDINGS} == set(AttemptEnd)


@pytest.mark.contract("SCHD-16", "SCHD-17")
@each_of(("end", "policies", "status", "reason", "delay"), ENDINGS)
def test_what_an_ending_means(
    end: AttemptResult, policies: Policies | None, status: str, reason: str, delay: int | None
):
    outcome = judge_end(end, policies, NOW, LIMITS)
    assert (outcome.status, outcome.reason) == (status, reason)
    assert outcome.start_at_ms == (None if delay is None else NOW + delay)


ANY_POLICIES = st.one_of(
    st.none(),
    st.builds(
        Policies,
        retry=st.builds(RetryPolicy, attempts=st.one_of(st.none(), st.integers(1, 4))),
        start_attempts=st.integers(1, 12),
        at_most_once=st.booleans(),
    ),
)
ANY_END = st.builds(
    ended,
    st.sampled_from([str(each) for each in AttemptEnd]),
    st.fixed_dictionaries(
        {
            "failures": st.integers(0, 4),
            "refusals": st.integers(0, 12),
            "crashes": st.integers(0, 12),
            "stop": st.sampled_from(["", "cancel", "terminate"]),
        }
    ),
    reason=st.one_of(
        st.none(), st.sampled_from([Reason.SHUTDOWN, Reason.CRASHED, Reason.REPLACED, Reason.RUN_TIMEOUT])
    ),
    permanent=st.booleans(),
)


@pytest.mark.contract("SCHD-16", "GRNT-07", "GRNT-15")
@given(ANY_END, ANY_POLICIES)
def test_an_outcome_follows_from_running_and_belongs_to_its_claim(
    end: AttemptResult, policies: Policies | None
):
    outcome = judge_end(end, policies, NOW, LIMITS)
    assert (outcome.status is Status.RUNNING) is (outcome.report_by_ms is not None)
    if outcome.status is Status.RUNNING:  # an external worker continues it
        assert end.ending is AttemptEnd.ACCEPTED
        return
    assert outcome.status in TRANSITIONS[Status.RUNNING]
    assert (outcome.run_id, outcome.epoch, outcome.attempt) == (end.run.id, end.run.epoch, end.run.attempt)
    # It waits for another attempt, from a known time on, or it is over.
    assert (outcome.status is Status.RETRYING) is (outcome.start_at_ms is not None)
    assert (outcome.status in ENDED) is (outcome.start_at_ms is None)
    assert outcome.start_at_ms is None or outcome.start_at_ms >= NOW
    # Each way to fail is counted by itself, so that none uses up the attempts of another.
    counted = (
        outcome.failures - end.run.failures,
        outcome.refusals - end.run.refusals,
        outcome.crashes - end.run.crashes,
    )
    assert sum(counted) == (
        end.ending in {AttemptEnd.RAISED, AttemptEnd.TIMED_OUT, AttemptEnd.REFUSED, AttemptEnd.CRASHED}
    )


@pytest.mark.contract("SCHD-17")
@pytest.mark.parametrize("stop", ["cancel", "terminate"])
@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("returned", None),
        ("stopped", None),
        ("crashed", None),
        ("raised", None),
        ("timed_out", Reason.RUN_TIMEOUT),
        ("refused", None),
        ("unlaunched", None),
        ("stopped", Reason.SHUTDOWN),
        ("stopped", Reason.CRASHED),
    ],
)
def test_what_was_asked_to_stop_is_never_attempted_again(ending: str, reason: Reason | None, stop: str):
    outcome = judge_end(ended(ending, {"stop": stop}, reason=reason), TWICE, NOW, LIMITS)
    assert outcome.status in ENDED


HOUR = 60 * 60 * 1000


@pytest.mark.contract("CRON-13", "SCHD-17")
@pytest.mark.parametrize(
    ("timeouts", "stop", "later", "by"),
    [
        (Timeouts(), "", 0, HOUR),
        (Timeouts(run="5s"), "", 0, 5000),
        (Timeouts(run="5s"), "", 4000, 5000),
        (Timeouts(heartbeat="1s"), "", 4000, 5000),
        (Timeouts(run="5s", heartbeat="3s"), "", 4000, 5000),
        (Timeouts(run="50s", cancel="2s"), "cancel", 4000, 6000),
        (Timeouts(run="5s", cancel="2s"), "cancel", 4000, 5000),
    ],
)
def test_until_when_something_must_be_heard(timeouts: Timeouts, stop: str, later: int, by: int):
    run = msgspec.structs.replace(RUN, stop=stop)
    assert report_by(run, timeouts, NOW + later) == NOW + by
    end = judge_end(ended("accepted", {"stop": stop}), Policies(timeouts=timeouts), NOW + later, LIMITS)
    assert end.report_by_ms == NOW + by


@pytest.mark.contract("CRON-13", "SCHD-17")
@pytest.mark.parametrize(
    ("timeouts", "stop", "by", "status", "reason"),
    [
        (Timeouts(), "", HOUR, "timed_out", "run_timeout"),
        (Timeouts(run="1h", heartbeat="5ms"), "", HOUR, "timed_out", "run_timeout"),
        (Timeouts(run="1h", heartbeat="5ms"), "", HOUR - 1, "timed_out", "heartbeat_timeout"),
        (Timeouts(run="2h"), "", HOUR, "timed_out", "run_timeout"),
        (Timeouts(), "cancel", 5, "cancelled", "cancelled"),
    ],
)
def test_what_silence_means(timeouts: Timeouts, stop: str, by: int, status: str, reason: str):
    end = overdue(msgspec.structs.replace(RUN, stop=stop), NOW + by, timeouts)
    outcome = judge_end(end, Policies(), NOW + by, LIMITS)
    assert (outcome.status, outcome.reason) == (status, reason)


@pytest.mark.contract("GRNT-14")
@pytest.mark.parametrize("ending", [each for each in AttemptEnd if each is not AttemptEnd.ACCEPTED])
def test_nothing_waits_for_a_schedule_that_is_gone(ending: AttemptEnd):
    for reason in (None, Reason.SHUTDOWN, Reason.CRASHED):
        assert judge_end(ended(ending, reason=reason), None, NOW, LIMITS).status in ENDED

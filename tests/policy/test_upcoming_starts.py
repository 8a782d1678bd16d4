"""The slots ahead that will start: what is shown is what the engine then decides."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import (
    AUTOMATIC,
    Action,
    CatchUpPolicy,
    OnResume,
    Overlap,
    Policies,
    Run,
    Schedule,
    State,
    Status,
)
from horae.policy.catch_up import Slot
from horae.policy.decide import decide
from horae.policy.ledger_changes import new_run
from horae.policy.pause import resume
from horae.policy.upcoming_starts import next_slot, upcoming
from horae.spec import Spec

T = 1_772_366_400  # a Sunday noon
MINUTELY = Spec.cron("* * * * *")
ALLOW = Policies(overlap=Overlap.ALLOW_ALL)
_replace = msgspec.structs.replace
SPECS = st.sampled_from(
    [
        Spec.parse(document)
        for document in (
            {"crons": ["* * * * *"]},
            {"crons": ["*/7 * * * *"], "jitter": "5m"},
            {"intervals": [{"every": "90s"}], "jitter": {"span": "10m", "centred": True}},
            {"times": ["2026-03-01T12:05:00Z", "2026-03-01T12:06:00Z", "2026-03-01T12:50:00Z"]},
            {},
        )
    ]
)


def schedule_of(state: State, policies: Policies = ALLOW, spec: Spec = MINUTELY, cursor: int = T) -> Schedule:
    return Schedule(
        id="s", generation=1, spec=spec.text, action=Action(name="work"), policies=policies, state=state, version=1,
        cursor_ms=cursor * 1000, created_at_ms=cursor * 1000, updated_at_ms=cursor * 1000,
    )  # fmt: skip


def minutes(nominals: list[int]) -> list[int]:
    return [(each // 1000 - T) // 60 for each in nominals]


@pytest.mark.contract("SCHD-15", "SCHD-24")
@pytest.mark.parametrize(
    ("state", "waiting", "expected"),
    [
        (State(), 0, [1, 2, 3, 4, 5]),
        (State(remaining_actions=0), 0, []),
        (State(remaining_actions=2), 0, [1, 2]),
        (State(remaining_actions=9), 0, [1, 2, 3, 4, 5]),
        (State(remaining_actions=4), 1, [1, 2, 3]),  # what waits goes before
        (State(remaining_actions=1), 3, []),
        (State(skip_next=2), 0, [3, 4, 5, 6, 7]),
        (State(skip_next=2, remaining_actions=3), 0, [3, 4, 5]),
        (State(skip_next=1_000_000), 0, [1_000_001 + n for n in range(5)]),
        (State(paused=True), 0, [1, 2, 3, 4, 5]),
        (State(paused=True, remaining_actions=2), 0, [1, 2]),
        (State(paused=True, paused_until_ms=(T + 600) * 1000), 0, [11, 12, 13, 14, 15]),
    ],
)
def test_the_slots_ahead_go_as_far_as_the_limit_does(state: State, waiting: int, expected: list[int]):
    schedule = schedule_of(state)
    assert minutes(upcoming(schedule, MINUTELY, T * 1000 + 500, 5, waiting)) == expected
    bounded = upcoming(schedule, MINUTELY, T * 1000 + 500, 5, waiting, until_ms=(T + 180) * 1000)
    assert minutes(bounded) == [each for each in expected if each <= 3]


@pytest.mark.contract("SCHD-15", "SCHD-24")
@pytest.mark.parametrize(
    ("on_resume", "overlap", "expected"),
    [
        ("catch_up", Overlap.ALLOW_ALL, [11, 12]),  # three are caught up with, of five
        ("catch_up", Overlap.SKIP, [11, 12, 13, 14]),  # the first of them is, and the others find it running
        ("catch_up", Overlap.BUFFER_ONE, [11, 12, 13]),
        ("skip", Overlap.ALLOW_ALL, [11, 12, 13, 14, 15]),
    ],
)
def test_what_fell_due_in_a_pause_uses_up_the_limit_first(
    on_resume: str, overlap: Overlap, expected: list[int]
):
    policies = Policies(
        overlap=overlap, on_resume=OnResume(on_resume), catch_up=CatchUpPolicy(window="2m30s")
    )
    schedule = schedule_of(State(paused=True, remaining_actions=5), policies)
    assert minutes(upcoming(schedule, MINUTELY, (T + 630) * 1000, 10)) == expected


@pytest.mark.contract("SCHD-24")
def test_a_slot_between_its_nominal_and_its_fire_time_is_ahead():
    spec = Spec.parse({"crons": ["0 * * * *"], "jitter": "59m"})
    schedule = schedule_of(State(), spec=spec, cursor=T - 1)
    assert upcoming(schedule, spec, T * 1000 + 1, 1) == [T * 1000]


@pytest.mark.contract("CRON-01")
@pytest.mark.parametrize(
    ("state", "expected"),
    [(State(), 1), (State(skip_next=2), 3), (State(paused=True), None), (State(remaining_actions=0), None)],
)
def test_the_next_slot(state: State, expected: int | None):
    found = next_slot(schedule_of(state), MINUTELY)
    assert found == (None if expected is None else (T + 60 * expected) * 1000)


@pytest.mark.contract("SCHD-15", "SCHD-24")
@given(
    SPECS,
    st.sampled_from([None, 0, 1, 3, 6]),
    st.sampled_from([0, 0, 1, 4]),
    st.sampled_from(OnResume),
    st.booleans(),
    st.integers(0, 3600_000),
)
def test_what_is_shown_is_what_then_starts(
    spec: Spec, remaining_actions: int | None, skip: int, on_resume: OnResume, paused: bool, ahead: int
):
    """Resumed now, if it is paused, and decided at each of its wake times."""
    policies = Policies(overlap=Overlap.ALLOW_ALL, on_resume=on_resume)
    schedule = schedule_of(
        State(paused=paused, remaining_actions=remaining_actions, skip_next=skip), policies, spec
    )
    now = T * 1000 + ahead
    shown = upcoming(schedule, spec, now, 10)
    if paused:
        resumed = resume(schedule, spec, now)
        schedule = _replace(schedule, state=resumed.state, cursor_ms=resumed.cursor_ms)
    assert (
        started(schedule, spec, now, len(shown) + 1)[: len(shown) + (remaining_actions is not None)] == shown
    )


def started(schedule: Schedule, spec: Spec, now: int, number: int) -> list[int]:
    """The first slots that start after now, with every run ending at once."""
    found: list[int] = []
    waiting: list[Run] = []
    at: int | None = now
    while at is not None and len(found) < number and at < now + 86_400_000:
        moment, decision = at, decide(schedule, spec, waiting, at)
        runs = [run for run in (*decision.new, *decision.changed) if run.status is Status.STARTING]
        found += [run.nominal_ms for run in runs if run.fire_ms > now]
        touched = {run.id for run in decision.changed}
        waiting = [
            run for run in (*waiting, *decision.new) if run.status is Status.PENDING and run.id not in touched
        ]
        schedule = _replace(schedule, state=decision.state, cursor_ms=decision.cursor_ms)
        at = (
            decision.next_at_ms if decision.next_at_ms is None or decision.next_at_ms > moment else moment + 1
        )
        if schedule.state.remaining_actions == 0 and runs:  # its end leads to a decision, and it is finished
            break
    return found


def test_a_start_that_waits_is_not_among_the_slots_ahead():
    schedule = schedule_of(State(remaining_actions=2), cursor=T + 60)
    waiting = new_run(schedule, Slot((T + 60) * 1000, 0, 0), AUTOMATIC, Overlap.ALLOW_ALL, 0)
    assert waiting.nominal_ms not in upcoming(schedule, MINUTELY, (T + 61) * 1000, 5, 1)

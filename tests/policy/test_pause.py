"""Pause: when one is over, and what it leaves behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import OnResume, Policies, Reason, State
from horae.policy.pause import is_over, resume
from tests.policy.examples import MINUTELY, T, schedule_of

NOON = T * 1000


@pytest.mark.contract("SCHD-13")
@pytest.mark.parametrize(
    ("state", "over"),
    [
        (State(), False),
        (State(paused=True), False),
        (State(paused=True, paused_until_ms=NOON + 1), False),
        (State(paused=True, paused_until_ms=NOON), True),
        (State(paused=True, paused_until_ms=NOON - 1), True),
        (State(paused=False, paused_until_ms=NOON - 1), False),
    ],
)
def test_a_pause_is_over_when_its_end_has_come(state: State, over: bool):
    assert is_over(state, NOON) is over


@pytest.mark.contract("SCHD-13")
@given(st.sampled_from(OnResume), st.booleans(), st.integers(-3600, 7200))
def test_resuming_catches_up_with_everything_or_leaves_everything_behind(
    on_resume: OnResume, paused: bool, seconds: int
):
    schedule = schedule_of(policies=Policies(on_resume=on_resume), state=State(paused=paused, note="before"))
    resumed = resume(schedule, MINUTELY, (T + seconds) * 1000, "go on")
    skips = paused and on_resume is OnResume.SKIP
    assert resumed.state == State(note="go on", skip_waiting=skips)
    left = sum(each.count for each in resumed.unstarted)
    if on_resume is OnResume.SKIP and paused:
        assert left == MINUTELY.count(T, max(T + seconds, T))
        assert resumed.cursor_ms // 1000 == (T + left * 60)
        assert {each.reason for each in resumed.unstarted} <= {Reason.PAUSED}
    else:
        assert (left, resumed.cursor_ms // 1000) == (0, schedule.cursor_ms // 1000)


@pytest.mark.contract("SCHD-13")
def test_resuming_keeps_the_rest_of_the_state():
    state = State(paused=True, paused_until_ms=NOON, skip_next=2, remaining_actions=3)
    assert resume(schedule_of(state=state), MINUTELY, NOON).state == State(skip_next=2, remaining_actions=3)

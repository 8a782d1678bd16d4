"""A loop that does not answer is blamed on what was seen to block it, and on nothing else."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from horae.policy.loop_stall import (
    TOLD_EVERY_S,
    Blamed,
    Cause,
    Silence,
    Stall,
    advice,
    cause_of,
    stall_text,
    was_told,
)
from tests.support.cases import each_of

RUN = Blamed(task="t", schedule="daily", action="report", run="r1", attempt=2)
FLOW = Blamed(task="t", action="charge", run="r1", attempt=1)


def silence(seconds: float, **known: float | bool) -> Silence:
    facts = {"unwatched": 0.0, "worked": 0.0, "process_worked": 0.0, "same_step": True} | known
    return msgspec.convert({"seconds": seconds, **facts}, Silence)


@each_of(
    "seen, cause",
    [
        (silence(0.99), None),
        (silence(1.0), Cause.STEP),
        (silence(3.0, same_step=False), Cause.STEPS),
        (silence(3.0, worked=3.0, process_worked=3.0), Cause.STEP),  # it works in Python: other threads ran
        (silence(3.0, unwatched=0.4, worked=0.4), Cause.STEP),
        (silence(3.0, unwatched=0.4, same_step=False), Cause.STEPS),
        (silence(3.0, unwatched=2.9, worked=2.9, process_worked=2.9), Cause.HELD),
        (silence(3.0, unwatched=2.9, worked=2.9, same_step=False), Cause.HELD),
        (silence(3.0, unwatched=2.9, worked=0.1, process_worked=2.9), Cause.THREAD),
        (silence(3.0, unwatched=2.9, worked=0.1, process_worked=0.2), Cause.PROCESS),
        (silence(3.0, unwatched=2.9, worked=0.4, process_worked=0.4), Cause.PROCESS),  # before it stood still
        (silence(0.9, unwatched=0.9, worked=0.9), None),
    ],
)
def test_the_cause_is_what_can_be_known(seen: Silence, cause: Cause | None):
    assert cause_of(seen, 1.0) == cause


@given(seconds=st.floats(0, 100), unwatched=st.floats(0, 100), worked=st.floats(0, 0.4), same=st.booleans())
def test_what_did_not_work_and_was_not_seen_is_never_blamed(
    seconds: float, unwatched: float, worked: float, same: bool
):
    found = cause_of(
        silence(seconds, unwatched=unwatched, worked=worked, process_worked=worked, same_step=same), 1.0
    )
    assert (found is None) == (seconds < 1)
    if unwatched >= 0.5:
        assert found in {None, Cause.PROCESS}


@each_of(
    "cause, blamed, text, key",
    [
        (Cause.STEP, RUN, 'was blocked for 3.0 s by action "report" of schedule "daily", attempt 2 of the run r1', "action report"),
        (Cause.HELD, RUN, 'was blocked for 3.0 s by action "report" of schedule "daily"', "action report"),
        (Cause.STEP, FLOW, 'was blocked for 3.0 s by the flow run "charge", attempt 1', "action charge"),
        (Cause.STEP, Blamed(task="Task-7"), 'was blocked for 3.0 s by the task "Task-7"', "step"),
        (Cause.HELD, None, "was blocked for 3.0 s", "held"),
        (Cause.STEPS, RUN, "was busy for 3.0 s with many steps", "steps"),
        (Cause.THREAD, RUN, "was blocked for 3.0 s by another thread", "thread"),
        (Cause.PROCESS, RUN, "the process stood still for 3.0 s", "process"),
    ],
)  # fmt: skip
def test_an_action_is_named_only_if_it_is_to_blame(cause: Cause, blamed: Blamed | None, text: str, key: str):
    stall = Stall(cause=cause, seconds=3.0, blamed=blamed)
    told = stall_text(stall)
    assert text in told
    assert ("report" in told) == (stall.action == "report")
    assert stall.key == key


def test_the_advice_fits_the_cause():
    assert "`def` instead of `async def`" in advice(Cause.STEP)
    assert "asyncio.to_thread" in advice(Cause.STEP)
    assert all("asyncio.to_thread" not in advice(each) for each in Cause if each is not Cause.STEP)


def test_an_action_is_told_once_an_hour():
    told = {"action report": 100.0}
    assert was_told("action report", 100.0 + TOLD_EVERY_S - 1, told)
    assert not was_told("action report", 100.0 + TOLD_EVERY_S, told)
    assert not was_told("action other", 100.0, told)
    assert not was_told("action report", 0.0, {})

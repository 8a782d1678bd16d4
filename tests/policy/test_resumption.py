"""Resumption: what is said to start, to wait and not to start is what the next decision does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from horae.model import (
    AUTOMATIC,
    Action,
    CatchUp,
    CatchUpPolicy,
    Limits,
    OnResume,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    State,
    Status,
)
from horae.policy.catch_up import Slot
from horae.policy.ledger_changes import new_run
from horae.policy.resumption import Slots, SlotsNotStarted, resumption
from horae.spec import Spec

T = 1_772_366_400_000
MINUTELY = Spec.cron("* * * * *")
NOW = T + 5 * 60_000 + 30_000
"""Five slots fell due in the pause."""


def minute(number: int) -> int:
    return T + number * 60_000


def paused(policies: Policies, **state: Any) -> Schedule:
    return Schedule(
        id="s", generation=1, spec=MINUTELY.text, action=Action(name="a"), policies=policies,
        state=State(paused=True, **state), version=1, cursor_ms=T, created_at_ms=T, updated_at_ms=T,
    )  # fmt: skip


def waiting(schedule: Schedule) -> Run:
    """A start that waited when the pause began."""
    return new_run(schedule, Slot(T, T, T), AUTOMATIC, schedule.policies.overlap, T)


ALL = CatchUpPolicy(mode=CatchUp.ALL)
FIVE = Slots(5, minute(1), minute(5))


@pytest.mark.parametrize(
    ("policies", "way", "starts", "waits", "unstarted", "later"),
    [
        (Policies(overlap=Overlap.ALLOW_ALL), None, FIVE, None, [], 0),
        (Policies(overlap=Overlap.BUFFER_ALL), None, Slots(1, minute(1), minute(1)), Slots(4, minute(2), minute(5)), [], 0),
        (Policies(), None, Slots(1, minute(1), minute(1)), None, [SlotsNotStarted(4, minute(2), minute(5), Reason.OVERLAP)], 0),
        (Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST)), None, Slots(1, minute(5), minute(5)), None,
            [SlotsNotStarted(4, minute(1), minute(4), Reason.SUPERSEDED)], 0),
        (Policies(), OnResume.SKIP, None, None, [SlotsNotStarted(5, minute(1), minute(5), Reason.PAUSED)], 0),
        (Policies(on_resume=OnResume.SKIP), None, None, None, [SlotsNotStarted(5, minute(1), minute(5), Reason.PAUSED)], 0),
        (Policies(on_resume=OnResume.SKIP, overlap=Overlap.ALLOW_ALL), OnResume.CATCH_UP, FIVE, None, [], 0),
        (Policies(overlap=Overlap.ALLOW_ALL, catch_up=CatchUpPolicy(window="2m")), None, Slots(2, minute(4), minute(5)), None,
            [SlotsNotStarted(3, minute(1), minute(3), Reason.LATE)], 0),
    ],
)  # fmt: skip
def test_slots_of_the_pause_start_wait_or_do_not_start(
    policies: Policies,
    way: OnResume | None,
    starts: Slots | None,
    waits: Slots | None,
    unstarted: list[SlotsNotStarted],
    later: int,
):
    found = resumption(paused(policies), MINUTELY, [], NOW, Limits(), way=way)
    assert (found.starts, found.waits, list(found.unstarted), found.later) == (
        starts, waits, unstarted, later,
    )  # fmt: skip
    assert {found.on_resume, found.other} == set(OnResume)
    assert f'With on_resume "{found.other}"' in found.sentence


def test_more_than_one_decision_takes_are_counted_as_later():
    found = resumption(
        paused(Policies(overlap=Overlap.ALLOW_ALL)), MINUTELY, [], NOW, Limits(catch_up_per_pass=2)
    )
    assert (found.starts, found.later) == (Slots(2, minute(1), minute(2)), 3)
    assert "; 3 more are decided after these." in found.sentence


def test_starts_that_waited_when_the_pause_began_are_among_them():
    schedule = paused(Policies(overlap=Overlap.BUFFER_ALL))
    run = waiting(schedule)
    found = resumption(schedule, MINUTELY, [run], NOW, Limits())
    assert (found.starts, found.waits) == (Slots(1, T, T), FIVE)
    skipped = resumption(schedule, MINUTELY, [run], NOW, Limits(), way=OnResume.SKIP)
    assert skipped.unstarted == (SlotsNotStarted(6, T, minute(5), Reason.PAUSED),)
    running = msgspec.structs.replace(run, status=Status.RUNNING, attempt=1, epoch=1)
    assert resumption(schedule, MINUTELY, [running], NOW, Limits()).waits == FIVE


def test_sentences():
    schedule = paused(Policies())
    assert resumption(schedule, MINUTELY, [], NOW, Limits()).sentence == (
        "1 slot starts now (2026-03-01T12:01:00Z); 4 slots do not start (2026-03-01T12:02:00Z to 2026-03-01T12:05:00Z), because "
        'another run of the schedule was still running. With on_resume "skip", none of them starts.'
    )
    assert resumption(schedule, MINUTELY, [], T + 1000, Limits()).sentence == "No slot fell due in the pause."
    going = msgspec.structs.replace(schedule, state=State())
    assert resumption(going, MINUTELY, [], NOW, Limits()).sentence == "It was not paused."

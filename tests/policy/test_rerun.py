"""Rerun: what may be run again, and what the new run is."""

from __future__ import annotations

import msgspec
import pytest

from horae.model import (
    AUTOMATIC,
    OPEN,
    UNREADABLE,
    Action,
    Overlap,
    Policies,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
)
from horae.policy.lifecycle import ENDED
from horae.policy.rerun import rerun_refusal, run_again

_replace = msgspec.structs.replace
SCHEDULE = Schedule(
    id="s", generation=2, spec="{}", action=Action(name="new", input="now"), policies=Policies(), state=State(),
    version=1, cursor_ms=0, created_at_ms=0, updated_at_ms=0, owner="ada",
)  # fmt: skip
RUN = Run(
    id="r", schedule_key=ScheduleKey("s"), generation=2, nominal_ms=60_000, origin=AUTOMATIC, overlap=Overlap.SKIP, status=Status.FAILED,
    fire_ms=60_000, start_at_ms=60_000, action="old", input="then", reason="failed", attempt=3, failure="no",
)  # fmt: skip


@pytest.mark.parametrize("status", sorted(ENDED))
def test_every_ended_run_can_be_run_again(status: Status):
    assert rerun_refusal(_replace(RUN, status=status), SCHEDULE) is None


@pytest.mark.parametrize(
    ("run", "schedule", "reason"),
    [
        *((_replace(RUN, status=status), SCHEDULE, "has not ended") for status in OPEN),
        (_replace(RUN, reason=UNREADABLE), SCHEDULE, "cannot be read"),
        (RUN, None, "was deleted"),
        (_replace(RUN, generation=1), SCHEDULE, "another one has its id"),
    ],
)
def test_what_cannot_be_run_again_has_a_reason(run: Run, schedule: Schedule | None, reason: str):
    assert reason in str(rerun_refusal(run, schedule))


def test_it_is_a_new_run_of_the_same_slot():
    again = run_again(RUN, SCHEDULE, 7, Overlap.ALLOW_ALL, 90_500)
    assert (again.nominal_ms, again.fire_ms, again.decided_at_ms) == (60_000, 90_500, 90_500)
    assert (again.action, again.input, again.overlap) == ("new", "then", Overlap.ALLOW_ALL)
    assert (again.status, again.attempt, again.failure) == (Status.PENDING, 0, None)
    assert (str(again.origin), again.rerun_of, RUN.rerun_of) == ("rerun:r.7", "r", None)
    assert again.id != run_again(RUN, SCHEDULE, 8, Overlap.ALLOW_ALL, 90_500).id
    assert not again.is_automatic

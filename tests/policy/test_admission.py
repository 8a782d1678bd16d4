"""Admission: a claimed run happens unless its schedule is gone or its executor objects; a denial gives back what it was charged."""

from __future__ import annotations

import msgspec
import pytest

from horae.model import AUTOMATIC, Attempt, Denial, Origin, Overlap, Reason, Run, ScheduleKey, State, Status
from horae.policy.admission import admit, give_back, has_begun

RUN = Run(
    id="r", schedule_key=ScheduleKey("s"), generation=2, nominal_ms=1000, origin=AUTOMATIC, overlap=Overlap.SKIP, status=Status.RUNNING,
    fire_ms=1000, start_at_ms=1000, attempt=1, epoch=7, started_at_ms=1000,
)  # fmt: skip
OBJECTION = Denial(Reason.NOT_ALLOWED, "the host is not among the allowed ones")
_replace = msgspec.structs.replace


def attempt(started_at: int | None) -> Attempt:
    return Attempt(
        run_id="r", attempt=1, epoch=7, reason="", failure=None, started_at_ms=started_at, ended_at_ms=1000
    )


def test_a_run_is_admitted_if_nothing_speaks_against_it():
    assert admit() is None


@pytest.mark.contract("GRNT-14")
@pytest.mark.parametrize("objection", [None, OBJECTION])
def test_the_run_of_a_deleted_schedule_is_not_admitted(objection: Denial | None):
    denial = admit(deleted=True, by_executor=objection)
    assert denial is not None
    assert denial.reason is Reason.DELETED


def test_what_the_executor_objects_to_is_the_answer():
    assert admit(by_executor=OBJECTION) == OBJECTION


@pytest.mark.contract("SCHD-26")
@pytest.mark.parametrize(
    ("origin", "left", "then"),
    [
        (AUTOMATIC, 0, 1),
        (AUTOMATIC, 4, 5),
        (AUTOMATIC, None, None),
        (Origin.parse("trigger:7"), 4, 4),
        (Origin.parse("backfill:7"), 0, 0),
    ],
)
def test_only_automatic_starts_were_charged(origin: Origin, left: int | None, then: int | None):
    state = State(remaining_actions=left, note="n")
    assert give_back(state, _replace(RUN, origin=origin)) == State(remaining_actions=then, note="n")


def test_an_attempt_that_never_began_is_none():
    assert not has_begun([])
    assert not has_begun([attempt(None), attempt(None)])
    assert has_begun([attempt(None), attempt(5)])

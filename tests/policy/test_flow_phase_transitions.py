"""Phases, failures, retries and choices of flows, as tables and properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.flow_model import (
    FailureKind,
    FlowDefinition,
    FlowStatus,
    HandlerDefinition,
    HandlerKind,
    Lane,
    Mark,
    Mutation,
    MutationStatus,
    Phase,
    Recovery,
    Task,
    Trouble,
)
from horae.policy.flow_failure_handling import (
    MAX_FIXES,
    after_failure,
    after_fix,
    after_reconciliation,
    backoff_ms,
    needs_person,
    retried,
)
from horae.policy.flow_next_handler import (
    begun,
    choose,
    clamped,
    committed,
    deployed,
    next_time,
    published,
    queued,
    wake_time,
)
from horae.policy.flow_phase_transitions import (
    AFTER,
    BEFORE,
    FAILURES,
    ORDER,
    RUNNING_PHASES,
    TRANSITIONS,
    diagram,
    failure_table,
    is_forward,
    judge,
    may_be_skipped,
)

S, R, F, P = FlowStatus, Recovery, FailureKind, Phase

BEFORE_MUTATE = {
    F.TRANSIENT: S.TRANSIENT, F.NOT_APPLIED: S.TRANSIENT, F.LOGIC: S.LOGIC, F.VIOLATION: S.LOGIC, F.APPROVAL: S.APPROVAL,
    F.UNCLASSIFIED: S.LOGIC, F.TIMEOUT: S.TRANSIENT, F.INTERNAL: S.INTERNAL, F.CRASH: S.CRASHED,
}  # fmt: skip
IN_MUTATE = {
    F.TRANSIENT: (S.RECONCILIATION, R.RECONCILE), F.NOT_APPLIED: (S.TRANSIENT, R.AFRESH), F.LOGIC: (S.LOGIC, R.AFRESH),
    F.VIOLATION: (S.LOGIC, R.RECONCILE), F.APPROVAL: (S.APPROVAL, R.AFRESH), F.UNCLASSIFIED: (S.RECONCILIATION, R.RECONCILE),
    F.TIMEOUT: (S.RECONCILIATION, R.RECONCILE), F.INTERNAL: (S.INTERNAL, R.RECONCILE), F.CRASH: (S.CRASHED, R.RECONCILE),
}  # fmt: skip


@pytest.mark.contract("FLOW-18", "FLOW-19")
@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("phase", RUNNING_PHASES)
def test_every_failure_in_every_phase(phase: Phase, kind: FailureKind):
    if phase is P.MUTATING:
        assert judge(phase, kind, None) == IN_MUTATE[kind]
        return
    applied = MutationStatus.APPLIED if phase in AFTER else None
    assert judge(phase, kind, applied) == (BEFORE_MUTATE[kind], R.EMIT if phase in AFTER else R.AFRESH)
    assert judge(phase, kind, MutationStatus.NONE).recovery is R.AFRESH


def test_the_table_has_every_pair():
    assert set(FAILURES) == {(phase, kind) for phase in RUNNING_PHASES for kind in FailureKind}
    assert set(RUNNING_PHASES) | {P.COMMITTED} == set(Phase) == set(ORDER) == set(TRANSITIONS)


@pytest.mark.contract("FLOW-16")
def test_phases_only_move_forward():
    for before in Phase:
        for after in Phase:
            if is_forward(before, after):
                assert ORDER.index(before) < ORDER.index(after)
    assert is_forward(P.PREPARING, P.COMMITTED)
    assert is_forward(P.PREPARED, P.EMITTING)
    assert not is_forward(P.EXECUTING, P.PREPARED)
    assert not is_forward(P.EMITTING, P.MUTATING)
    assert {status.value for status in FlowStatus} == {
        "active", "paused:transient", "paused:approval", "paused:reconciliation", "failed:logic", "failed:internal",
        "committed", "crashed",
    }  # fmt: skip


def test_the_diagram_and_the_table_are_made_from_the_tables():
    assert "    prepared --> mutating" in diagram().splitlines()
    assert diagram().count("-->") == 3 + sum(map(len, TRANSITIONS.values()))
    assert len(failure_table().splitlines()) == 2 + len(FailureKind)


@pytest.mark.contract("FLOW-05")
def test_what_was_not_mutated_can_be_skipped():
    assert all(may_be_skipped(phase, None) for phase in (None, *BEFORE))
    assert not may_be_skipped(P.MUTATING, None)
    assert not may_be_skipped(P.EMITTING, MutationStatus.APPLIED)
    assert may_be_skipped(P.EMITTING, MutationStatus.NONE)


def trouble(status: FlowStatus, recovery: Recovery = R.AFRESH, **more: object) -> Trouble:
    return Trouble(run_id="r", handler="h", status=status, recovery=recovery, since_ms=0, **more)  # type: ignore[arg-type]


def after(
    status: FlowStatus, before: Trouble | None = None, *, recovery: Recovery = R.AFRESH, fixer: bool = False,
    reconciles: bool = False,
) -> Trouble:  # fmt: skip
    failed = trouble(status, recovery)
    return after_failure(before, failed, 1000, has_fixer=fixer, reconciles=reconciles, max_crashes=10)


@pytest.mark.contract("FLOW-20")
def test_backoff_doubles_to_ten_minutes_and_ends_after_five_retries():
    assert [backoff_ms(number) // 1000 for number in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]
    found: Trouble | None = None
    waits = []
    for _ in range(6):
        found = after(S.TRANSIENT, found)
        waits.append(found.retry_at_ms)
    assert waits == [11_000, 21_000, 41_000, 81_000, 161_000, None]
    assert found is not None
    assert found.exhausted
    assert needs_person(found)


@pytest.mark.contract("FLOW-21")
def test_two_fixes_and_then_the_third_failure_escalates():
    found = after(S.LOGIC, fixer=True)
    for _ in range(MAX_FIXES):
        assert found.fixing
        assert found.retry_at_ms == 1000
        found = after(S.LOGIC, after_fix(found, 1000, fixed=True), fixer=True)
    assert found.exhausted
    assert not found.fixing
    assert needs_person(found)
    assert needs_person(after(S.LOGIC))
    assert needs_person(after_fix(after(S.LOGIC, fixer=True), 5, fixed=False))


@pytest.mark.contract("FLOW-22")
def test_reconciliation_is_tried_at_once_then_by_the_curve_five_times():
    found = after(S.RECONCILIATION, recovery=R.RECONCILE, reconciles=True)
    times = [found.retry_at_ms]
    while found.retry_at_ms is not None:
        found = after_reconciliation(found, 1000, "unknown")
        times.append(found.retry_at_ms)
    assert times == [1000, 11_000, 21_000, 41_000, 81_000, None]
    assert found.exhausted
    assert needs_person(after(S.RECONCILIATION, recovery=R.RECONCILE))
    known = after_reconciliation(found, 9, Mutation(MutationStatus.APPLIED, 7))
    assert (known.recovery, known.retry_at_ms) == (R.EMIT, 9)
    assert known.mutation == '{"status":"applied","result":7}'
    assert after_reconciliation(found, 9, "not_applied").recovery is R.AFRESH


def test_a_person_who_asks_again_gets_all_tries_anew():
    worn = trouble(S.TRANSIENT, transients=6, exhausted=True)
    assert retried(worn, 5).retry_at_ms == 5
    assert retried(worn, 5).transients == 0
    assert retried(trouble(S.RECONCILIATION, R.RECONCILE), 5, reconciles=False).retry_at_ms is None


def test_crashes_are_tried_again_at_once_but_not_for_ever():
    found: Trouble | None = None
    for _ in range(10):
        found = after(S.CRASHED, found)
        assert found.retry_at_ms == 1000
    assert needs_person(after(S.CRASHED, found))


C, PR = HandlerKind.CONSUMER, HandlerKind.PRODUCER
FLOW = FlowDefinition(
    name="f",
    handlers=(
        HandlerDefinition(name="poll", kind=PR, publishes=("a",), every="5m"),
        HandlerDefinition(name="daily", kind=PR, publishes=("a",), cron="0 9 * * *"),
        HandlerDefinition(name="z", kind=C, subscribes=("a",)),
        HandlerDefinition(name="b", kind=C, subscribes=("b",)),
    ),
)


def lane(**marks: Mark) -> Lane:
    return Lane(flow_id=1, revision="1", marks=marks)


@pytest.mark.contract("FLOW-25")
def test_consumers_come_first_then_the_oldest_event_then_the_name():
    due = lane(poll=Mark(at_ms=5), z=Mark(new=True), b=Mark(new=True))
    assert choose(due, FLOW, 10, {"a": 3, "b": 7}).handler == "z"
    assert choose(due, FLOW, 10, {"a": 8, "b": 7}).handler == "b"
    assert choose(due, FLOW, 10, {"a": 7, "b": 7}).handler == "b"
    assert choose(due, FLOW, 10, {"a": 7}).handler == "z"
    woken = lane(z=Mark(new=True), b=Mark(at_ms=2))
    assert choose(woken, FLOW, 10, {"a": 3}).handler == "b"
    assert choose(lane(poll=Mark(at_ms=5), daily=Mark(at_ms=4)), FLOW, 10, {}).handler == "daily"
    assert choose(lane(poll=Mark(queued=True), b=Mark(at_ms=11)), FLOW, 10, {}).handler == "poll"


@pytest.mark.contract("FLOW-24", "FLOW-26")
def test_nothing_runs_beside_a_run_a_pause_or_a_failure():
    due = lane(z=Mark(new=True))
    change = msgspec.structs.replace
    assert choose(change(due, run_id="r"), FLOW, 10, {}) == choose(change(due, paused=True), FLOW, 10, {})
    assert choose(change(due, paused=True), FLOW, 10, {}).handler is None
    assert choose(change(due, trouble=trouble(S.APPROVAL)), FLOW, 10, {}).handler is None
    waiting = change(due, trouble=trouble(S.TRANSIENT, retry_at_ms=20))
    assert choose(waiting, FLOW, 10, {}).next_at_ms == 20
    again = choose(waiting, FLOW, 20, {})
    assert (again.handler, again.task) == ("h", Task.RUN)
    unsure = change(due, trouble=trouble(S.RECONCILIATION, R.RECONCILE, retry_at_ms=1))
    assert choose(unsure, FLOW, 10, {}).task is Task.RECONCILE
    broken = change(due, trouble=trouble(S.LOGIC, retry_at_ms=1, fixing=True))
    assert choose(broken, FLOW, 10, {}).task is Task.FIX


@pytest.mark.contract("FLOW-10", "FLOW-11")
def test_a_look_clears_the_mark_at_its_start_and_reserving_sets_it():
    looking = begun(lane(z=Mark(new=True)), "z")
    assert not looking.marks["z"].new
    during = published(looking, FLOW, ["a"])
    assert during.marks["z"].new
    assert not during.marks.get("b", Mark()).new
    assert committed(during, FLOW, "z", 5, wake_at_ms=None, reserved=False).marks["z"].new
    assert committed(looking, FLOW, "z", 5, wake_at_ms=None, reserved=True).marks["z"].new
    assert committed(looking, FLOW, "z", 5, wake_at_ms=None, reserved=False).marks["z"] == Mark()


@pytest.mark.contract("FLOW-07")
def test_a_producers_next_time_counts_from_the_commit():
    poll, daily = FLOW.handlers[:2]
    assert next_time(poll, 1000) == 301_000
    nine = int(datetime(2026, 1, 1, 9, tzinfo=UTC).timestamp() * 1000)
    assert next_time(daily, nine - 1) == nine
    assert next_time(daily, nine) == nine + 86_400_000
    assert committed(lane(), FLOW, "poll", 1000, wake_at_ms=None, reserved=False).marks["poll"] == Mark(
        at_ms=301_000
    )


@pytest.mark.contract("FLOW-07", "FLOW-10")
def test_a_deploy_makes_new_producers_due_and_lets_consumers_look():
    first = deployed(lane(), None, FLOW, 100)
    assert first.marks == {
        "poll": Mark(at_ms=100), "daily": Mark(at_ms=100), "z": Mark(new=True), "b": Mark(new=True),
    }  # fmt: skip
    ran = lane(poll=Mark(at_ms=777), daily=Mark(at_ms=888), z=Mark(at_ms=9))
    changed = FlowDefinition(
        name="f",
        handlers=(
            HandlerDefinition(name="poll", kind=PR, publishes=("a",), every="5m", timeout_ms=5),
            HandlerDefinition(name="daily", kind=PR, publishes=("a",), cron="0 10 * * *"),
            *FLOW.handlers[2:],
        ),
    )
    again = deployed(ran, FLOW, changed, 100)
    assert again.marks["poll"] == Mark(at_ms=777)
    assert again.marks["daily"] == Mark(at_ms=100)
    assert again.marks["z"] == Mark(new=True, at_ms=9)


@pytest.mark.contract("FLOW-09")
def test_run_now_queues_all_producers():
    asked = queued(lane(poll=Mark(at_ms=500)), FLOW)
    assert asked.marks == {"poll": Mark(at_ms=500, queued=True), "daily": Mark(queued=True)}


@pytest.mark.contract("FLOW-12")
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, (None, False)), ("", (None, True)), ("soon", (None, True)), (5, (None, True)), ([], (None, True)),
        (datetime(2026, 1, 1), (None, True)), ("2026-01-01T00:00:00", (None, True)),
        (datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC), (7000, False)), ("1970-01-01T00:00:07Z", (7000, False)),
        ("1970-01-01T02:00:07+02:00", (7000, False)),
    ],
)  # fmt: skip
def test_a_wake_time_is_a_time_or_as_if_omitted(given: object, found: tuple[int | None, bool]):
    at_ms, problem = wake_time(given)
    assert (at_ms, bool(problem)) == found


@pytest.mark.contract("FLOW-12")
@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(0, 10**13))
def test_a_wake_time_is_clamped(wanted: datetime, now: int):
    at_ms, _ = wake_time(wanted.replace(tzinfo=UTC))
    found = clamped(at_ms, now, least_ms=30_000, most_ms=86_400_000)
    assert found is not None
    assert now + 30_000 <= found <= now + 86_400_000
    assert clamped(None, now, least_ms=1, most_ms=2) is None
    assert timedelta(milliseconds=found - now) >= timedelta(seconds=30)

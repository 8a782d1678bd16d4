"""The decision for one schedule: whatever is open and whatever the policies, it adds up and comes to rest."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from horae.model import (
    AUTOMATIC,
    OPEN,
    Action,
    Backfill,
    BackfillStatus,
    CatchUp,
    CatchUpPolicy,
    Counts,
    Limits,
    OnResume,
    Origin,
    OriginKind,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    Timeouts,
    WhenFull,
)
from horae.policy.catch_up import Slot
from horae.policy.decide import DEFAULT_LIMITS, _DecisionBuilder, _is_plain, _usual, decide
from horae.policy.face_defaults import TEMPORAL
from horae.policy.ledger_changes import Decision, action_id, new_run, run_id
from horae.policy.lifecycle import ENDED
from horae.policy.pause import resume
from horae.spec import Spec
from tests.policy.examples import MINUTELY, T, schedule_of

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "policy.json").read_text("utf-8")
)
LIMITS = Limits(catch_up_per_pass=7, max_buffer_size=5, backfills_per_pass=3)
_replace = msgspec.structs.replace


def run_of(schedule: Schedule, minute: int, status: Status = Status.PENDING, **more: Any) -> Run:
    """A run of the slot so many minutes after the beginning."""
    nominal_ms = (T + 60 * minute) * 1000
    slot = Slot(nominal_ms, nominal_ms, nominal_ms)
    origin = more.pop("origin", AUTOMATIC)
    begun = {"attempt": 1, "epoch": 1} if status is Status.RUNNING else {}
    run = new_run(schedule, slot, origin, schedule.policies.overlap, nominal_ms)
    return _replace(run, status=status, **(begun | more))


def backfill_of(first: int, last: int, number: int = 1, overlap: Overlap = Overlap.BUFFER_ALL) -> Backfill:
    return Backfill(
        id=f"s:{number}", schedule_key=ScheduleKey("s"), generation=1, start_ms=first * 1000, end_ms=last * 1000, overlap=overlap, cursor_ms=(first - 1) * 1000,
        total=MINUTELY.count(first - 1, last), created_at_ms=T * 1000,
    )  # fmt: skip


SPECS = st.sampled_from(
    [
        Spec.parse(document)
        for document in (
            {"crons": ["* * * * *"]},
            {"crons": ["*/7 * * * *"], "jitter": "5m"},
            {"intervals": [{"every": "90s"}], "jitter": {"span": "10m", "centred": True}},
            {"times": ["2026-03-01T12:05:00Z", "2026-03-01T12:06:00Z", "2026-03-01T12:50:00Z"]},
            {"crons": ["*/10 * * * *"], "exclude": [{"hour": "13", "minute": "*"}]},
            {},
        )
    ]
)
POLICIES = st.builds(
    Policies,
    overlap=st.sampled_from(Overlap),
    max_concurrent=st.sampled_from([None, 1, 2, 3]),
    catch_up=st.builds(
        CatchUpPolicy,
        mode=st.sampled_from(CatchUp),
        window=st.sampled_from([None, "0s", "1m", "10m"]),
        grace=st.sampled_from(["0s", "10s", "1m"]),
    ),
    backfill_limit=st.sampled_from([None, 0, 1, 5]),
    on_resume=st.sampled_from(OnResume),
    retry=st.builds(RetryPolicy, preempted=st.booleans()),
    max_buffer_size=st.sampled_from([None, 1, 4]),
    when_full=st.sampled_from(WhenFull),
    expire_waiting=st.booleans(),
    timeouts=st.builds(Timeouts, start=st.sampled_from([None, None, "1m30s"])),
    finished_ttl=st.sampled_from([None, "1m"]),
)
STATES = st.builds(
    State,
    paused=st.booleans(),
    paused_until_ms=st.sampled_from([None, (T + 300) * 1000, (T + 7200) * 1000]),
    skip_next=st.sampled_from([0, 0, 2]),
    remaining_actions=st.sampled_from([None, None, 0, 1, 3]),
    buffer_full=st.sampled_from([False, False, True]),
)
AHEAD = st.integers(0, 90 * 60 * 1000)


@st.composite
def open_runs(draw: st.DrawFn, schedule: Schedule) -> list[Run]:
    """Runs of earlier slots: waiting, released, running, or waiting for another attempt."""
    runs = []
    for number in range(draw(st.integers(0, 5))):
        status = draw(st.sampled_from(OPEN))
        more: dict[str, Any] = {"overlap": draw(st.sampled_from(Overlap))}
        if draw(st.booleans()):
            more["origin"] = Origin(OriginKind.TRIGGER, str(number))
        if status is Status.RETRYING:  # it may have some time to go
            more |= {"attempt": 1, "start_at_ms": (T + draw(st.integers(-60, 3600))) * 1000}
        runs.append(run_of(schedule, number - 10, status, **more))
    return runs


@st.composite
def situations(draw: st.DrawFn) -> tuple[Schedule, Spec, list[Run], list[Backfill], int]:
    spec = draw(SPECS)
    schedule = schedule_of(spec, draw(POLICIES), draw(STATES))
    backfills = [backfill_of(T - 3600, T - 60 * draw(st.integers(0, 60)))] if draw(st.booleans()) else []
    return schedule, spec, draw(open_runs(schedule)), backfills, T * 1000 + draw(AHEAD)


PLAIN_STATES = st.builds(
    State,
    note=st.sampled_from(["", "a note"]),
    attention=st.sampled_from(["", "look"]),
    spec_since_ms=st.sampled_from([0, T * 1000]),
)


@pytest.mark.contract("SCHD-26")
@given(SPECS, POLICIES, PLAIN_STATES, AHEAD)
def test_the_fast_way_says_what_the_general_way_says(
    spec: Spec, policies: Policies, state: State, ahead: int
):
    schedule, now = schedule_of(spec, policies, state), T * 1000 + ahead
    assert _is_plain(state)
    for limits in (DEFAULT_LIMITS, LIMITS):
        fast = _usual(schedule, spec, now, limits)
        assert fast is None or fast == _DecisionBuilder(schedule, spec, [], now, limits).decide([])


@given(STATES, SPECS, AHEAD)
def test_what_is_decided_the_fast_way_is_decided_the_general_way(state: State, spec: Spec, ahead: int):
    """Whatever the state: those that bear on what is due go the general way."""
    schedule, now = schedule_of(spec, state=state), T * 1000 + ahead
    assert decide(schedule, spec, [], now) == _DecisionBuilder(
        schedule, spec, [], now, DEFAULT_LIMITS
    ).decide([])


@given(SPECS, POLICIES, st.integers(0, 9999))
def test_the_fast_way_is_taken_when_one_slot_is_on_time(spec: Spec, policies: Policies, late: int):
    """Else the test before would prove little."""
    following = spec.next_instant(T)
    assume(following is not None and spec.elements.jitter is None and policies.timeouts.start is None)
    assert following is not None
    schedule = schedule_of(spec, _replace(policies, catch_up=CatchUpPolicy()))
    assert _usual(schedule, spec, following * 1000 + late, LIMITS) is not None


def outcomes(decision: Decision) -> Counter[str]:
    """What became of the automatic slots that this decision found."""
    found = Counter[str]()
    for run in decision.new:
        if run.origin == AUTOMATIC:
            found[run.status] += 1
    for unstarted in decision.unstarted:
        found[unstarted.status] += unstarted.count
    return found


@pytest.mark.contract("SCHD-10", "SCHD-12", "SCHD-26", "SCHD-28")
@given(situations())
def test_every_slot_found_has_one_outcome(
    situation: tuple[Schedule, Spec, list[Run], list[Backfill], int],
):
    """Started, waiting, skipped, missed, dropped and timed out add up to what was found; each has its reason."""
    schedule, spec, runs, backfills, now = situation
    decision = decide(schedule, spec, runs, now, backfills=backfills, limits=LIMITS)
    assert decision.cursor_ms // 1000 >= schedule.cursor_ms // 1000
    assert outcomes(decision).total() == spec.count(schedule.cursor_ms // 1000, decision.cursor_ms // 1000)
    nominals = [run.nominal_ms // 1000 for run in decision.new if run.origin == AUTOMATIC]
    for unstarted in decision.unstarted:
        assert (
            schedule.cursor_ms // 1000
            < unstarted.start_ms // 1000
            <= unstarted.end_ms // 1000
            <= decision.cursor_ms // 1000
        )
        nominals += spec.instants(unstarted.start_ms // 1000 - 1, unstarted.end_ms // 1000, 10_000)
    assert Counter(nominals) == Counter(
        spec.instants(schedule.cursor_ms // 1000, decision.cursor_ms // 1000, 10_000)
    )
    written = [run.id for run in (*decision.new, *decision.changed)]
    assert len(written) == len(set(written))
    for run in (*decision.new, *decision.changed):
        assert (run.status in ENDED) is (run.ended_at_ms == now)
        assert (run.status in ENDED) is (run.reason != "")


@pytest.mark.contract("SCHD-10", "SCHD-11", "SCHD-15")
@given(situations())
def test_a_decision_keeps_to_the_limits(
    situation: tuple[Schedule, Spec, list[Run], list[Backfill], int],
):
    schedule, spec, runs, backfills, now = situation
    decision = decide(schedule, spec, runs, now, backfills=backfills, limits=LIMITS)
    policies = schedule.policies
    changed = {run.id: run for run in decision.changed}
    after = [changed.get(run.id, run) for run in runs] + list(decision.new)
    released = [run for run in (*decision.new, *decision.changed) if run.status is Status.STARTING]
    first = [run for run in released if run.attempt == 0]
    going_on = [run for run in after if run.status not in ENDED and run.status is not Status.PENDING]
    if policies.max_concurrent is not None and first:
        assert len(going_on) <= policies.max_concurrent
    serial = [run for run in first if run.overlap is not Overlap.ALLOW_ALL]
    if policies.max_concurrent is None and serial:
        assert len([run for run in going_on if run.overlap is not Overlap.ALLOW_ALL]) == 1
    automatic = [run for run in first if run.origin == AUTOMATIC]
    was = {run.id: run.status for run in runs}
    taken_back = [
        run for run in decision.changed if (was[run.id], run.status) == (Status.STARTING, Status.PENDING)
    ]
    assert decision.state.paused or not taken_back
    if schedule.state.remaining_actions is not None:
        assert len(automatic) <= schedule.state.remaining_actions
        assert decision.state.remaining_actions == schedule.state.remaining_actions - len(automatic) + len(
            taken_back
        )
    if decision.state.paused:
        assert automatic == []
    waiting = [run for run in decision.new if run.status is Status.PENDING and run.origin == AUTOMATIC]
    assert (
        len(waiting) <= LIMITS.max_buffer_size
        if policies.max_buffer_size is None
        else policies.max_buffer_size
    )


@pytest.mark.contract("SCHD-10")
@given(situations())
def test_manual_starts_are_never_dropped(
    situation: tuple[Schedule, Spec, list[Run], list[Backfill], int],
):
    schedule, spec, runs, backfills, now = situation
    decision = decide(schedule, spec, runs, now, backfills=backfills, limits=LIMITS)
    manual = [run for run in (*decision.new, *decision.changed) if run.origin != AUTOMATIC]
    allowed = {Reason.OVERLAP, Reason.REPLACED, Reason.START_TIMEOUT, Reason.PREEMPTED}
    assert {run.reason for run in manual if run.status in ENDED} <= allowed


def apply(schedule: Schedule, runs: list[Run], decision: Decision) -> tuple[Schedule, list[Run]]:
    """The schedule and its open runs after a decision, as the store would have them; nothing is claimed."""
    changed = {run.id: run for run in decision.changed}
    after = [*(changed.get(run.id, run) for run in runs), *decision.new]
    schedule = _replace(schedule, state=decision.state, cursor_ms=decision.cursor_ms)
    return schedule, [run for run in after if run.status not in ENDED]


@pytest.mark.contract("SCHD-26")
@given(situations())
def test_deciding_comes_to_rest(situation: tuple[Schedule, Spec, list[Run], list[Backfill], int]):
    """A schedule that asks to be decided again at once has a new decision each time."""
    schedule, spec, runs, backfills, now = situation
    for _ in range(60):
        decision = decide(schedule, spec, runs, now, backfills=backfills, limits=LIMITS)
        schedule, runs = apply(schedule, runs, decision)
        changed = {each.id: each for each in decision.backfills}
        backfills = [changed.get(each.id, each) for each in backfills]
        backfills = [each for each in backfills if each.status is BackfillStatus.OPEN]
        if decision.remove or decision.next_at_ms is None or decision.next_at_ms > now:
            break
    else:
        raise AssertionError("it goes on for ever")


@pytest.mark.contract("SCHD-15")
def test_starts_beyond_the_limit_wait_like_the_others():
    schedule = schedule_of(
        policies=Policies(overlap=Overlap.BUFFER_ALL), state=State(remaining_actions=1), cursor=T + 180
    )
    runs = [run_of(schedule, 1, Status.RUNNING), run_of(schedule, 2), run_of(schedule, 3)]
    now = (T + 190) * 1000
    decision = decide(schedule, MINUTELY, runs, now)
    assert decision.next_at_ms == (T + 240) * 1000


@pytest.mark.contract("SCHD-12", "SCHD-13")
@pytest.mark.parametrize(
    ("on_resume", "status", "reason", "counts"),
    [
        (OnResume.CATCH_UP, Status.MISSED, Reason.LATE, Counts(unstarted={Reason.LATE: 1})),
        (OnResume.SKIP, Status.SKIPPED, Reason.PAUSED, Counts(unstarted={Reason.PAUSED: 1})),
    ],
)
def test_a_start_that_is_too_late_and_paused_ends_once(
    on_resume: OnResume, status: Status, reason: Reason, counts: Counts
):
    """It is too late when it would be released, and nothing is released in a pause."""
    policies = Policies(catch_up=CatchUpPolicy(window="0s"), on_resume=on_resume)
    schedule = schedule_of(policies=policies, state=State(paused=True), cursor=T + 120)
    waiting, now = run_of(schedule, 1), (T + 130) * 1000
    paused = decide(schedule, MINUTELY, [waiting], now)
    schedule, runs = apply(schedule, [waiting], paused)
    assert bool(runs) is (on_resume is OnResume.CATCH_UP)
    resumed = decide(_replace(schedule, state=State()), MINUTELY, runs, now)
    ended = [*paused.changed, *resumed.changed]
    assert [(run.status, run.reason) for run in ended] == [(status, reason)]
    assert counts in (paused.counts, resumed.counts)


@pytest.mark.contract("SCHD-12")
def test_a_start_that_has_expired_keeps_the_place_of_buffer_one_until_it_would_be_released():
    policies = Policies(overlap=Overlap.BUFFER_ONE, catch_up=CatchUpPolicy(window="0s"))
    schedule = schedule_of(policies=policies, cursor=T + 120)
    running, waiting = run_of(schedule, 1, Status.RUNNING), run_of(schedule, 2)
    while_running = decide(schedule, MINUTELY, [running, waiting], (T + 180) * 1000)
    assert while_running.changed == while_running.new == ()
    assert [(each.start_ms // 1000, each.reason) for each in while_running.unstarted] == [
        (T + 180, Reason.OVERLAP)
    ]
    released = decide(_replace(schedule, cursor_ms=(T + 180) * 1000), MINUTELY, [waiting], (T + 190) * 1000)
    assert [(run.status, run.reason) for run in released.changed] == [(Status.MISSED, Reason.LATE)]


@pytest.mark.contract("SCHD-12")
def test_what_has_expired_leaves_its_turn_to_the_next():
    policies = Policies(overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(window="0s"))
    schedule = schedule_of(policies=policies, state=State(remaining_actions=1), cursor=T + 180)
    runs = [run_of(schedule, minute) for minute in (1, 2, 3)]
    now = (T + 190) * 1000
    schedule, runs = apply(schedule, runs, decide(schedule, MINUTELY, runs, now))
    schedule, runs = apply(schedule, runs, decide(schedule, MINUTELY, runs, now))
    schedule, runs = apply(schedule, runs, decide(schedule, MINUTELY, runs, now))
    assert [(run.nominal_ms // 1000, run.status) for run in runs] == [(T + 180, Status.STARTING)]
    assert schedule.state.remaining_actions == 0  # those that were missed are free


@pytest.mark.contract("SCHD-13", "SCHD-15", "CRON-10")
@pytest.mark.parametrize("remaining_actions", [None, 0, 2])
def test_a_start_that_was_released_and_not_claimed_waits_again_in_a_pause(remaining_actions: int | None):
    """It counts as a start again when it is released again, and overlaps nothing until then."""
    schedule = schedule_of(state=State(paused=True, remaining_actions=remaining_actions), cursor=T + 60)
    released, trigger = (
        run_of(schedule, 1, Status.STARTING),
        run_of(schedule, 2, origin=Origin.parse("trigger:1")),
    )
    paused = decide(schedule, MINUTELY, [released, trigger], (T + 125) * 1000)
    assert {run.id: run.status for run in paused.changed} == {
        released.id: Status.PENDING, trigger.id: Status.STARTING,
    }  # fmt: skip
    assert paused.state.remaining_actions == (None if remaining_actions is None else remaining_actions + 1)
    assert paused.counts.started == 0  # one more, one less
    schedule, runs = apply(schedule, [released], paused)
    resumed = decide(
        _replace(schedule, state=_replace(schedule.state, paused=False), cursor_ms=(T + 120) * 1000),
        MINUTELY, [run for run in runs if run.origin == AUTOMATIC], (T + 130) * 1000,
    )  # fmt: skip
    assert [(run.id, run.status) for run in resumed.changed] == [(released.id, Status.STARTING)]
    assert resumed.state.remaining_actions == remaining_actions


@pytest.mark.contract("SCHD-13")
def test_a_pause_that_skips_and_ends_before_a_decision_skips_what_waited():
    policies = Policies(overlap=Overlap.BUFFER_ALL, on_resume=OnResume.SKIP)
    schedule = schedule_of(policies=policies, state=State(paused=True), cursor=T + 60)
    running, waiting = run_of(schedule, 0, Status.RUNNING), run_of(schedule, 1)
    resumed = resume(schedule, MINUTELY, (T + 90) * 1000)
    schedule = _replace(schedule, state=resumed.state, cursor_ms=resumed.cursor_ms)
    decision = decide(schedule, MINUTELY, [running, waiting], (T + 120) * 1000)
    assert [(run.id, run.status, run.reason) for run in decision.changed] == [
        (waiting.id, Status.SKIPPED, Reason.PAUSED)
    ]
    assert [run.nominal_ms // 1000 for run in decision.new] == [T + 120]  # what comes after the pause waits
    assert decision.state == State()


@pytest.mark.contract("SCHD-15")
def test_a_start_that_was_released_before_the_limit_was_reached_goes_ahead():
    """It has been counted; what still waits has not, and is gone."""
    schedule = schedule_of(
        policies=Policies(overlap=Overlap.BUFFER_ALL), state=State(remaining_actions=0), cursor=T + 120
    )
    released, waiting = run_of(schedule, 1, Status.STARTING), run_of(schedule, 2)
    decision = decide(schedule, MINUTELY, [released, waiting], (T + 130) * 1000)
    assert [(run.id, run.status, run.reason) for run in decision.changed] == [
        (waiting.id, Status.SKIPPED, Reason.LIMIT_REACHED)
    ]


@pytest.mark.contract("SCHD-12", "CRON-06")
@given(situations(), st.integers(1, 7200 * 1000))
def test_a_clock_that_goes_back_fires_nothing_twice(
    situation: tuple[Schedule, Spec, list[Run], list[Backfill], int], back: int
):
    schedule, spec, runs, _, now = situation
    first = decide(schedule, spec, runs, now, limits=LIMITS)
    schedule, runs = apply(schedule, runs, first)
    again = decide(schedule, spec, runs, now - back, limits=LIMITS)
    assert again.cursor_ms // 1000 >= first.cursor_ms // 1000
    assert {run.id for run in again.new}.isdisjoint(run.id for run in first.new)
    released = {run.id for run in (*first.new, *first.changed) if run.status is Status.STARTING}
    assert released.isdisjoint(run.id for run in again.changed if run.status is Status.STARTING)


@pytest.mark.contract("SCHD-26")
@given(SPECS, st.sampled_from(Overlap), st.lists(st.integers(0, 1000), max_size=6), AHEAD)
def test_how_often_decisions_are_made_changes_nothing(
    spec: Spec, overlap: Overlap, looks: list[int], ahead: int
):
    """Deciding more often than at the named wake times decides the same, at the same times."""

    def play(moments: list[int]) -> list[tuple[int, str, int]]:
        schedule = schedule_of(spec, Policies(overlap=overlap))
        runs: list[Run] = []
        said: list[tuple[int, str, int]] = []
        extra, now, end = list(moments), T * 1000, T * 1000 + ahead
        while now <= end:
            decision = decide(schedule, spec, runs, now)
            said += [
                (run.nominal_ms // 1000, str(run.status), now) for run in (*decision.new, *decision.changed)
            ]
            said += [(each.start_ms // 1000, str(each.reason), now) for each in decision.unstarted]
            schedule, runs = apply(schedule, runs, decision)
            following = [at for at in extra if at > now]
            if decision.next_at_ms is not None:
                following.append(decision.next_at_ms)
            if not following:
                break
            now = min(following)
        return said

    assert play([T * 1000 + ahead * look // 1000 for look in looks]) == play([])


@pytest.mark.contract("SCHD-10", "SCHD-19")
@pytest.mark.parametrize(
    "vector", [each for each in VECTORS["misc"] if "buffer_room" in each], ids=lambda v: v["source"][-20:]
)
def test_vectors_of_a_full_buffer(vector: dict[str, Any]):
    """Automatic starts beyond the buffer are dropped; those of a backfill come later."""
    number, room = vector["actions_in_range"], vector["buffer_room"]
    schedule = schedule_of(policies=Policies(overlap=Overlap.BUFFER_ALL))
    if vector["manual"]:
        schedule = _replace(schedule, cursor_ms=(T + 3600) * 1000)
        backfills = [backfill_of(T + 60, T + 60 * number)]
        running = [run_of(schedule, 0, Status.RUNNING)]
        limits = Limits(max_buffer_size=2 * room)  # a backfill has half of it
        decision = decide(schedule, MINUTELY, running, (T + 3600) * 1000, backfills=backfills, limits=limits)
        assert [each.made for each in decision.backfills] == [vector["buffered"]]
        assert decision.backfills[0].status is BackfillStatus.OPEN
    else:
        running = [run_of(schedule, 0, Status.RUNNING)]
        now = (T + 60 * number) * 1000
        decision = decide(schedule, MINUTELY, running, now, limits=Limits(max_buffer_size=room))
    assert sum(run.status is Status.PENDING for run in decision.new) == vector["buffered"]
    assert decision.counts.dropped == vector["dropped"]
    assert {each.reason for each in decision.unstarted} == (
        {Reason.BUFFER_FULL} if vector["dropped"] else set()
    )


@pytest.mark.contract("SCHD-13")
def test_vector_of_a_pause_that_discards_automatic_starts_and_keeps_manual_ones():
    (vector,) = [each for each in VECTORS["misc"] if "paused" in each]
    # As its server does it; with ``catch_up`` the automatic ones stay waiting.
    schedule = schedule_of(policies=TEMPORAL, state=State(paused=vector["paused"]))
    origins = {"auto": AUTOMATIC, "manual": Origin.parse("trigger:1")}
    waiting = [run_of(schedule, n, origin=origins[each]) for n, each in enumerate(vector["buffer"])]
    decision = decide(schedule, MINUTELY, waiting, (T + 60) * 1000)
    names = {origin: name for name, origin in origins.items()}
    became = {names[run.origin]: run.status for run in decision.changed}
    assert [name for name, status in became.items() if status is Status.STARTING] == vector["started"]
    assert [name for name, status in became.items() if status is Status.SKIPPED] == vector["discarded"]


@pytest.mark.contract("SCHD-18", "SCHD-19", "GRNT-07")
def test_the_id_of_a_run_is_a_uuid_that_follows_from_its_slot():
    """The original's request id hashes namespace, token and times; the contract asks for a UUID per slot and origin.

    So the vector gives what such an id must tell apart, and not its text.
    """
    (vector,) = VECTORS["ids"]
    nominal_ms = vector["nominal_ms"]
    backfill = Origin(OriginKind.BACKFILL, vector["backfill_id"])
    slot = (vector["schedule_id"], 1, nominal_ms, backfill)
    others = [
        (vector["schedule_id"], 2, nominal_ms, backfill),
        (vector["schedule_id"], 1, nominal_ms + 1000, backfill),
        (vector["schedule_id"], 1, nominal_ms, AUTOMATIC),
        (vector["schedule_id"], 1, nominal_ms, Origin.parse("trigger:1")),
        (vector["schedule_id"][:-1], 1, nominal_ms, backfill),
    ]
    ids = [run_id(*each) for each in (slot, slot, *others)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 1 + len(others)
    for each in ids:
        assert str(uuid.UUID(each)) == each
        assert (uuid.UUID(each).version, uuid.UUID(each).variant) == (8, uuid.RFC_4122)


@pytest.mark.contract("SCHD-20")
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action(name="work"), "s-2026-03-01T12:00:00Z"),
        (Action(name="work", id="base"), "base-2026-03-01T12:00:00Z"),
        (Action(name="work", id="100%d"), "100%d-2026-03-01T12:00:00Z"),
        (Action(name="work", id_format="{id}/%Y%m%d%H%M%S"), "s/20260301120000"),
        (Action(name="work", id="base", id_format="%s!{id}"), f"{T}!base"),
        (Action(name="work", id_format="always the same"), "always the same"),
    ],
)
def test_action_ids_are_known_ahead(action: Action, expected: str):
    assert action_id(action, "s", T * 1000) == expected


def test_action_ids_are_the_same_in_every_zone_of_a_machine(monkeypatch: pytest.MonkeyPatch):
    try:
        for zone in ("Asia/Kolkata", "America/New_York"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert (
                action_id(Action(name="work", id_format=f"%s %%s %-s %H {zone}"), "s", T * 1000)
                == f"{T} %s {T} 12 {zone}"
            )
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.contract("CRON-07")
def test_what_stayed_due_while_the_buffer_was_full_is_not_late():
    """Judged late or on time when it fell due; the cursor waited."""
    policies = Policies(
        overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(mode=CatchUp.NONE), max_buffer_size=2,
        when_full=WhenFull.WAIT, expire_waiting=False,
    )  # fmt: skip
    schedule = schedule_of(policies=policies, state=State(buffer_full=True))
    decision = decide(schedule, MINUTELY, [run_of(schedule, 0, Status.RUNNING)], (T + 600) * 1000)
    assert [run.nominal_ms // 1000 for run in decision.new] == [T + 60, T + 120]
    assert (decision.unstarted, decision.cursor_ms // 1000, decision.state.buffer_full) == ((), T + 179, True)


@pytest.mark.contract("CRON-07", "GRNT-11")
def test_what_stayed_due_needs_no_consent():
    policies = Policies(
        overlap=Overlap.BUFFER_ALL,
        max_buffer_size=2,
        when_full=WhenFull.WAIT,
        expire_waiting=False,
        backfill_limit=0,
    )
    schedule = schedule_of(policies=policies, state=State(buffer_full=True))
    decision = decide(schedule, MINUTELY, [run_of(schedule, 0, Status.RUNNING)], (T + 600) * 1000)
    assert decision.unstarted == ()

"""Edits at any moment: no slot is lost that the new spec names too, and none comes that it names only afterwards."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import Action, CatchUpPolicy, Overlap, Policies, Reason, Run, Schedule, State, Status
from horae.policy.catch_up import Unstarted, fire_instant
from horae.policy.decide import decide
from horae.policy.spec_change import MAX_CARRIED, Edited, change_jitter, change_spec
from horae.policy.undecided_spec import undecided
from horae.policy.upcoming_starts import fire_times
from horae.spec import Spec

T = 1_772_366_400  # a Sunday noon
HOUR = 3600
_replace = msgspec.structs.replace
SPECS = [
    Spec.parse(document)
    for document in (
        {"crons": ["*/10 * * * *"]},
        {"crons": ["*/10 * * * *"], "jitter": "9m"},
        {"crons": ["*/20 * * * *"], "jitter": "19m"},
        {"crons": ["*/15 * * * *"], "jitter": {"span": "7m", "centred": True}},
        {"crons": ["*/5 * * * *"]},
        {"crons": ["*/10 * * * *"], "exclude": [{"hour": "12", "minute": "20-40"}], "jitter": "5m"},
        {"times": ["2026-03-01T12:20:00Z", "2026-03-01T13:00:00Z"], "jitter": "30m"},
        {},
    )
]
EDITS = st.lists(st.tuples(st.integers(0, 2 * HOUR * 1000), st.sampled_from(range(len(SPECS)))), max_size=5)


def schedule_of(spec: Spec, policies: Policies, cursor: int = T) -> Schedule:
    return Schedule(
        id="s", generation=1, spec=spec.text, action=Action(name="work"), policies=policies, state=State(), version=1,
        cursor_ms=cursor * 1000, created_at_ms=cursor * 1000, updated_at_ms=cursor * 1000,
    )  # fmt: skip


def edited(schedule: Schedule, spec: Spec, now: int) -> tuple[Schedule, Edited]:
    """A schedule after an edit."""
    old = Spec.parse(schedule.spec)
    plain = [Spec.parse(_replace(each.document, jitter=None)) for each in (old, spec)]
    change = change_jitter if plain[0] == plain[1] else change_spec
    found = change(schedule, old, spec, now)
    state = _replace(schedule.state, spec_since_ms=found.since_ms, carried=found.carried)
    return _replace(schedule, spec=spec.text, state=state, cursor_ms=found.cursor_ms), found


class Told(NamedTuple):
    started: list[Run]
    unstarted: list[tuple[int, int, int, str]]


def tell(first: Spec, edits: list[tuple[int, int]], policies: Policies, looks: list[int] | None) -> Told:
    """The life of a schedule, decided at each of its wake times, or at some moments only; in the end all is decided."""
    schedule, now, end = schedule_of(first, policies), T * 1000, (T + 3 * HOUR) * 1000
    events = [(T * 1000 + at, SPECS[number]) for at, number in sorted(edits)]
    told, next_at = Told([], []), now if looks is None else end
    extra = [T * 1000 + at for at in looks or []]
    while now <= end:
        while events and events[0][0] <= now:
            schedule, change = edited(schedule, events.pop(0)[1], now)
            told.unstarted.extend(
                (each.start_ms // 1000, each.end_ms // 1000, each.count, each.reason)
                for each in change.unstarted
            )
            next_at = now if looks is None else next_at
        if next_at <= now or any(at == now for at in extra):
            decision = decide(schedule, Spec.parse(schedule.spec), [], now)
            told.started.extend(run for run in decision.new if run.status is Status.STARTING)
            told.unstarted.extend(
                (each.start_ms // 1000, each.end_ms // 1000, each.count, each.reason)
                for each in decision.unstarted
            )
            schedule = _replace(schedule, state=decision.state, cursor_ms=decision.cursor_ms)
            if looks is None or now == end:
                next_at = end if decision.next_at_ms is None else decision.next_at_ms
        coming = [next_at, *(at for at in extra if at > now), *(at for at, _ in events[:1])]
        now = max(min(coming), now + (now == end))
    return told


def expected(first: Spec, edits: list[tuple[int, int]]) -> tuple[set[int], set[int]]:
    """The slots by every second's own spec: those that all later specs have too, and the others."""
    eras = [(T, first), *((T + at // 1000, SPECS[number]) for at, number in sorted(edits))]
    kept, others = set[int](), set[int]()
    for place, (since, spec) in enumerate(eras):
        later = eras[place + 1 :]
        for nominal in spec.instants(since, later[0][0] if later else T + 3 * HOUR, 10_000):
            named = all(each.next_instant(nominal - 1) == nominal for _, each in later)
            (kept if named else others).add(nominal)
    return kept, others


@pytest.mark.contract("SCHD-07", "SCHD-23")
@given(st.sampled_from(SPECS), EDITS, st.lists(st.integers(0, 3 * HOUR * 1000), max_size=4))
def test_random_edits_lose_no_slot_that_both_specs_have(
    first: Spec, edits: list[tuple[int, int]], looks: list[int]
):
    """However seldom a decision is made; and each slot is decided once."""
    told = tell(first, edits, Policies(overlap=Overlap.ALLOW_ALL), looks)
    started = {run.nominal_ms // 1000 for run in told.started}
    assert len(started) == len(told.started)
    kept, others = expected(first, edits)
    assert {nominal for nominal in kept if nominal <= T + 2 * HOUR} <= started
    centred = [spec for spec in (first, *SPECS) if spec.elements.jitter and spec.elements.jitter.centred]
    early = {n for spec in centred for n in spec.instants(T, T + 3 * HOUR, 1000)}  # may fire before an edit
    assert started <= kept | others | early
    ends = {nominal for low, high, _, _ in told.unstarted for nominal in (low, high)}
    assert not started & ends
    assert {reason for *_, reason in told.unstarted} <= {Reason.EDITED}


@pytest.mark.contract("SCHD-07", "SCHD-12")
@given(st.sampled_from(SPECS), EDITS)
def test_an_edit_makes_no_slot_late(first: Spec, edits: list[tuple[int, int]]):
    """With a window of zero and no grace: decided in time, everything starts at its fire time or at the edit's."""
    policies = Policies(overlap=Overlap.ALLOW_ALL, catch_up=CatchUpPolicy(window="0s", grace="0s"))
    told = tell(first, edits, policies, None)
    moments = {T * 1000 + at for at, _ in edits}
    late = [each for each in told.unstarted if each[3] != Reason.EDITED]
    if (
        first.elements.jitter is None or not first.elements.jitter.centred
    ):  # those may fire before they were created
        assert late == []
    fires = {fire_instant(spec, run.nominal_ms, "s") for spec in [first, *SPECS] for run in told.started}
    assert all(run.fire_ms in fires | moments for run in told.started)


def test_a_slot_between_its_nominal_and_its_fire_time_stays_due_with_the_new_jitter():
    old = Spec.parse({"crons": ["0 * * * *"], "jitter": "59m"})
    now = T * 1000 + 1000
    schedule = schedule_of(old, Policies(catch_up=CatchUpPolicy(window="0s", grace="0s")), T - 1)
    assert fire_instant(old, T * 1000, "s") > now
    for new in (
        {"crons": ["0,30 * * * *"]},
        {"crons": ["0 * * * *"]},
        {"crons": ["0 * * * *"], "jitter": "5m"},
    ):
        spec = Spec.parse(new)
        changed, _ = edited(schedule, spec, now)
        fires = fire_instant(undecided(changed, spec), T * 1000, "s")
        assert fires == max(fire_instant(spec, T * 1000, "s"), now)
        decision = decide(changed, spec, [], fires)
        assert [(run.nominal_ms // 1000, run.status, run.fire_ms) for run in decision.new] == [
            (T, Status.STARTING, fires)
        ]
        assert (decision.state.carried, decision.cursor_ms // 1000 >= T) == ((), True)
        assert fires in {now, *fire_times(changed, spec, now - 1, 1)}


def test_what_only_the_new_spec_named_before_the_edit_never_comes():
    old, new = Spec.cron("0 * * * *"), Spec.cron("*/10 * * * *")
    schedule = schedule_of(old, Policies(overlap=Overlap.ALLOW_ALL), T - 1)
    now = (T + 2 * HOUR + 60) * 1000
    changed, found = edited(schedule, new, now)
    assert (found.unstarted, [each.nominal_ms // 1000 for each in found.carried]) == (
        (),
        [T, T + HOUR, T + 2 * HOUR],
    )
    decision = decide(changed, new, [], now)
    assert [run.nominal_ms // 1000 for run in decision.new] == [T, T + HOUR, T + 2 * HOUR]
    assert (decision.cursor_ms // 1000, decision.next_at_ms) == (now // 1000, (T + 2 * HOUR + 600) * 1000)


def test_an_edit_leaves_so_many_due_and_no_more():
    old, new = Spec.cron("* * * * *"), Spec.parse({"intervals": [{"every": "60s"}, {"every": "7h"}]})
    schedule = schedule_of(old, Policies(), T)
    _, found = edited(schedule, new, (T + 60 * 5000) * 1000)
    assert len(found.carried) == MAX_CARRIED
    assert found.unstarted == (Unstarted((T + 60) * 1000, (T + 60 * 4000) * 1000, 4000, Reason.EDITED),)

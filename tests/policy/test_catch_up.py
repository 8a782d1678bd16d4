"""Catch-up: what is due, what is made up, what is missed; and that it all adds up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import CatchUp, CatchUpPolicy, Reason
from horae.policy.catch_up import Due, find_due, fire_instant, skip_due
from horae.policy.slot_times import count_slots
from horae.spec import Spec
from horae.spec.duration import duration_text, milliseconds

MINUTELY = Spec.cron("* * * * *")
T = 1_772_366_400  # a Sunday noon
HOUR = 3600


def found(due: Due) -> int:
    return len(due.slots) + sum(unstarted.count for unstarted in due.unstarted)


SPECS = st.sampled_from(
    [
        {"crons": ["* * * * *"]},
        {"crons": ["*/7 * * * *"], "jitter": "5m"},
        {"intervals": [{"every": "90s"}], "jitter": {"span": "10m", "centred": True}},
        {"crons": ["0 9 * * *"], "timezone": "America/New_York"},
        {"times": ["2026-03-01T12:05:00Z", "2026-03-01T12:50:00Z"]},
        {"crons": ["*/10 * * * *"], "exclude": [{"hour": "13", "minute": "*"}]},
    ]
)
POLICIES = st.builds(
    CatchUpPolicy,
    mode=st.sampled_from(list(CatchUp)),
    window=st.one_of(st.none(), st.integers(0, 3 * HOUR * 1000).map(duration_text)),
    grace=st.sampled_from(["0s", "10s", "1m"]),
)


@pytest.mark.contract("SCHD-12", "CRON-08")
@given(SPECS, POLICIES, st.lists(st.integers(1, 4 * HOUR * 1000), min_size=1, max_size=6))
def test_every_nominal_time_is_accounted_for_once(
    document: dict[str, Any], policy: CatchUpPolicy, steps: list[int]
):
    """Whenever and however often decisions are made, selected and unstarted slots add up to all slots."""
    spec, cursor, now = Spec.parse(document), T * 1000, T * 1000
    total = 0
    for step in steps:
        now += step
        while True:
            due = find_due(spec, "a", cursor, now, policy)
            total += found(due)
            assert due.cursor_ms >= cursor
            assert count_slots(spec, cursor, due.cursor_ms) == found(due)
            assert all(slot.fire_ms <= now for slot in due.slots)
            assert list(due.slots) == sorted(due.slots, key=lambda slot: slot.nominal_ms // 1000)
            cursor = due.cursor_ms
            if due.next_fire is None or due.next_fire > now:
                break
            assert len(due.slots) == 100
    assert total == spec.count(T, cursor // 1000)


@pytest.mark.contract("SCHD-12", "CRON-08")
@given(SPECS, st.integers(1, 8 * HOUR * 1000), st.lists(st.integers(0, 1000), max_size=5))
def test_how_often_decisions_are_made_changes_nothing_while_all_is_on_time(
    document: dict[str, Any], ahead: int, looks: list[int]
):
    spec, policy = Spec.parse(document), CatchUpPolicy()
    at_once: list[int] = []
    cursor = T * 1000
    while (due := find_due(spec, "a", cursor, T * 1000 + ahead, policy)).slots:
        at_once += [slot.nominal_ms // 1000 for slot in due.slots]
        cursor = due.cursor_ms
    bit_by_bit: list[int] = []
    cursor = T * 1000
    for now in [*sorted(T * 1000 + ahead * look // 1000 for look in looks), T * 1000 + ahead]:
        while (due := find_due(spec, "a", cursor, now, policy)).slots:
            bit_by_bit += [slot.nominal_ms // 1000 for slot in due.slots]
            cursor = due.cursor_ms
    assert bit_by_bit == at_once


@pytest.mark.contract("SCHD-12")
@pytest.mark.parametrize(
    ("mode", "window", "started", "missed"),
    [
        ("all", None, 60, 0),
        ("all", "0s", 1, 59),
        ("all", "5s", 1, 59),  # on time still means within ten seconds
        ("all", "10m", 11, 49),  # ten minutes late is within the window; strictly more is not
        ("all", "9m59s999ms", 10, 50),
        ("latest", None, 1, 59),
        ("latest", "10m", 1, 59),
        ("none", None, 1, 59),
        ("spread", None, 60, 0),
    ],
)
def test_an_hour_of_downtime(mode: str, window: str | None, started: int, missed: int):
    policy = CatchUpPolicy(mode=CatchUp(mode), window=window)
    due = find_due(MINUTELY, "a", T * 1000, (T + HOUR) * 1000, policy)
    assert (len(due.slots), sum(unstarted.count for unstarted in due.unstarted)) == (started, missed)
    assert due.cursor_ms // 1000 == T + HOUR
    assert due.next_fire == (T + HOUR + 60) * 1000


@pytest.mark.contract("SCHD-12", "CRON-08")
@pytest.mark.parametrize(("mode", "window"), [("all", "0s"), ("all", "9999ms"), ("none", None)])
def test_all_that_is_late_within_the_grace_is_on_time(mode: str, window: str | None):
    """Also if several are, and whatever the window: a slot a second, and no decision for twenty."""
    policy = CatchUpPolicy(mode=CatchUp(mode), window=window)
    due = find_due(Spec.cron("* * * * * *"), "a", T * 1000, (T + 20) * 1000, policy)
    assert [slot.nominal_ms // 1000 for slot in due.slots] == list(range(T + 10, T + 21))
    assert [(each.start_ms // 1000, each.end_ms // 1000, each.reason) for each in due.unstarted] == [
        (T + 1, T + 9, Reason.LATE)
    ]


@pytest.mark.contract("GRNT-11")
@given(SPECS, POLICIES, st.integers(0, 300), st.integers(1, 8 * HOUR * 1000))
def test_of_late_slots_the_latest_are_made_up_as_far_as_there_is_consent(
    document: dict[str, Any], policy: CatchUpPolicy, consent: int, ahead: int
):
    spec, now = Spec.parse(document), T * 1000 + ahead
    free, bound = (
        find_due(spec, "a", T * 1000, now, policy, limit=10_000, consent=each) for each in (None, consent)
    )
    late = [slot.nominal_ms // 1000 for slot in free.slots if now - slot.fire_ms > milliseconds(policy.grace)]
    refused = late[: max(len(late) - consent, 0)]
    assert [slot.nominal_ms // 1000 for slot in bound.slots] == [
        slot.nominal_ms // 1000 for slot in free.slots
    ][len(refused) :]
    assert bound.unstarted[: len(free.unstarted)] == free.unstarted
    assert [
        (each.start_ms // 1000, each.end_ms // 1000, each.count, each.reason)
        for each in bound.unstarted[len(free.unstarted) :]
    ] == [(refused[0], refused[-1], len(refused), Reason.NO_CONSENT) for _ in refused[:1]]


@pytest.mark.contract("SCHD-08")
@pytest.mark.parametrize("days", [1, 366])
@pytest.mark.parametrize("consent", [200_000, 10**12])
def test_a_large_backfill_limit_is_not_searched_slot_by_slot(
    monkeypatch: pytest.MonkeyPatch, days: int, consent: int
):
    """Not a timer but a count of searches: it neither goes back before the cursor nor through a year of minutes."""
    looked = 0
    previous = Spec.previous_instant

    def counted(self: Spec, instant: int) -> int | None:
        nonlocal looked
        looked += 1
        assert looked < 100
        return previous(self, instant)

    monkeypatch.setattr(Spec, "previous_instant", counted)
    due = find_due(MINUTELY, "a", T * 1000, (T + days * 24 * HOUR) * 1000, CatchUpPolicy(), consent=consent)
    late = days * 1440 - 1
    assert sum(each.count for each in due.unstarted) == max(late - consent, 0)
    assert len(due.slots) == 100


@pytest.mark.contract("SCHD-12")
def test_a_year_of_downtime_is_one_range():
    due = find_due(MINUTELY, "a", T * 1000, (T + 366 * 24 * HOUR) * 1000, CatchUpPolicy(mode=CatchUp.LATEST))
    assert [unstarted.count for unstarted in due.unstarted] == [366 * 1440 - 1]
    assert due.unstarted[0].reason is Reason.SUPERSEDED
    assert (due.unstarted[0].start_ms // 1000, due.unstarted[0].end_ms // 1000) == (
        T + 60,
        T + 366 * 24 * HOUR - 60,
    )


@pytest.mark.contract("SCHD-12", "CRON-08")
def test_a_long_outage_ends_in_no_storm():
    due = find_due(MINUTELY, "a", T * 1000, (T + 10 * HOUR) * 1000, CatchUpPolicy())
    assert len(due.slots) == 100
    assert due.next_fire == (T + 101 * 60) * 1000  # already past: the next pass continues from there


@pytest.mark.contract("CRON-08")
def test_spread_moves_starts_and_never_nominal_times():
    policy = CatchUpPolicy(mode=CatchUp.SPREAD, grace="1m", spread="1m")
    now = (T + HOUR) * 1000
    due = find_due(MINUTELY, "a", T * 1000, now, policy)
    late, on_time = due.slots[:-2], due.slots[-2:]
    starts = [slot.start_at_ms - now for slot in late]
    assert [slot.nominal_ms // 1000 for slot in due.slots] == [T + 60 * n for n in range(1, 61)]
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] < 60_000
    assert {later - earlier for earlier, later in pairwise(starts)} <= {1034, 1035}
    assert all(slot.start_at_ms == slot.fire_ms for slot in on_time)


@pytest.mark.contract("SCHD-12")
def test_lateness_is_measured_from_the_fire_time():
    """A slot that jitter moved by five minutes is not late before its fire time has passed."""
    spec = Spec.parse({"crons": ["0 * * * *"], "jitter": "30m"})
    fire = fire_instant(spec, (T + HOUR) * 1000, "a")
    policy = CatchUpPolicy(window="0s")
    assert find_due(spec, "a", T * 1000, fire - 1, policy) == Due((), (), T * 1000, fire)
    assert len(find_due(spec, "a", T * 1000, fire + 10_000, policy).slots) == 1
    assert len(find_due(spec, "a", T * 1000, fire + 10_001, policy).unstarted) == 1


@pytest.mark.contract("SCHD-13", "SCHD-15")
def test_passing_over_takes_everything_up_to_now():
    due = skip_due(MINUTELY, "a", T * 1000, (T + HOUR) * 1000, Reason.PAUSED)
    assert due.slots == ()
    assert due.unstarted[0].count == 60
    assert due.next_fire == (T + HOUR + 60) * 1000
    assert skip_due(MINUTELY, "a", T * 1000, T * 1000 + 59_999, Reason.PAUSED).unstarted == ()


def test_a_clock_that_went_back_finds_nothing():
    assert find_due(MINUTELY, "a", T * 1000, (T - HOUR) * 1000, CatchUpPolicy()) == Due(
        (), (), T * 1000, (T + 60) * 1000
    )
    assert skip_due(MINUTELY, "a", T * 1000, (T - HOUR) * 1000, Reason.PAUSED).cursor_ms // 1000 == T

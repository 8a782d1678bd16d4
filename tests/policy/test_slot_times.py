"""The border between the seconds of specs and milliseconds: what one names is what the other names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from horae.policy.slot_times import (
    END_MS,
    all_but,
    count_slots,
    is_slot,
    next_slot_ms,
    previous_slot_ms,
    slots_ms,
)
from horae.spec import Spec
from tests.policy.examples import T

EVERY_7S = Spec.parse({"intervals": [{"every": "7s"}]})
MOMENTS = st.integers(T * 1000, (T + 600) * 1000)


@given(MOMENTS, MOMENTS)
def test_bounds_of_any_millisecond_name_the_same_slots(one: int, other: int):
    after, until = sorted((one, other))
    expected = [n * 1000 for n in EVERY_7S.instants(T - 1, T + 600, 1000) if after < n * 1000 <= until]
    assert slots_ms(EVERY_7S, after, until, 1000) == expected
    assert count_slots(EVERY_7S, after, until) == len(expected)
    following, before = next_slot_ms(EVERY_7S, after), previous_slot_ms(EVERY_7S, until)
    assert following is not None
    assert before is not None
    assert following > after
    assert before <= until
    if expected:
        assert (following, before) == (expected[0], expected[-1])
    assert [is_slot(EVERY_7S, each) for each in (following - 1, following, following + 1)] == [
        False,
        True,
        False,
    ]


@given(MOMENTS, st.integers(0, 100))
def test_all_but_the_latest_ends_at_the_slot_before_them(until: int, number: int):
    found = slots_ms(EVERY_7S, T * 1000, until, 1000)
    if found:
        left = found[: max(len(found) - number, 0)]
        assert all_but(EVERY_7S, T * 1000, found[-1], number) == (left[-1] if left else None)


def test_no_slot_is_after_the_end():
    assert next_slot_ms(EVERY_7S, END_MS) is None
    assert previous_slot_ms(EVERY_7S, END_MS) is not None

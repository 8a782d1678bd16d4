"""Backfill: a range is covered once, in order, however much capacity is free on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import Backfill, BackfillStatus, Limits, Overlap, ScheduleKey
from horae.policy.backfill import advance, capacity
from horae.policy.slot_times import slots_ms
from horae.spec import Spec

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "policy.json").read_text("utf-8")
)
T = 1_772_366_400
NOW = (T + 86_400) * 1000
SPECS = [
    Spec.parse(document)
    for document in (
        {"crons": ["* * * * *"]},
        {"intervals": [{"every": "7s"}], "jitter": "5s"},
        {"crons": ["*/10 * * * *"], "exclude": [{"hour": "13", "minute": "*"}]},
        {"crons": ["* * * * *"], "start_at": "2026-03-01T12:10:00Z", "end_at": "2026-03-01T12:20:00Z"},
        {},
    )
]


def backfill_of(spec: Spec, first: int, last: int, number: int = 1) -> Backfill:
    return Backfill(
        id=f"s:{number}", schedule_key=ScheduleKey("s"), generation=1, start_ms=first * 1000, end_ms=last * 1000, overlap=Overlap.BUFFER_ALL,
        cursor_ms=(first - 1) * 1000, total=spec.count(first - 1, last), created_at_ms=NOW,
    )  # fmt: skip


@pytest.mark.contract("SCHD-19")
@pytest.mark.parametrize("vector", VECTORS["backfill_capacity"], ids=lambda v: f"{v['capacity']}")
def test_vectors_of_capacity(vector: dict[str, Any]):
    found = capacity(
        vector["buffered"],
        vector["retained"],
        vector["max_buffer"],
        vector["generator_reserve"],
        vector["backfillers"],
    )
    assert found == vector["capacity"]


@pytest.mark.contract("SCHD-19")
@pytest.mark.parametrize(("buffered", "expected"), [(0, 500), (5, 500), (10, 500), (11, 499)])
def test_fewer_that_wait_than_there_were_before_give_no_more_than_half_of_the_buffer(
    buffered: int, expected: int
):
    assert capacity(buffered, 10, 1000, 0, 1) == expected


@pytest.mark.contract("SCHD-19")
@given(st.integers(0, 2000), st.integers(1, 2000), st.integers(0, 200), st.integers(1, 20))
def test_backfills_leave_half_of_the_buffer_and_what_automatic_starts_need(
    buffered: int, most: int, reserve: int, backfills: int
):
    each = capacity(buffered, 0, most, reserve, backfills)
    assert each >= 0
    assert each == 0 or buffered + reserve + each * backfills <= most // 2


@pytest.mark.contract("SCHD-19")
@given(
    st.sampled_from(SPECS),
    st.integers(-600, 600),
    st.integers(0, 3000),
    st.lists(st.integers(0, 20), min_size=1, max_size=30),
    st.integers(1, 12),
)
def test_a_range_is_covered_exactly_once_for_any_room(
    spec: Spec, begin: int, length: int, waiting: list[int], per_pass: int
):
    """Both ends included, ascending; a pass without free capacity leaves it where it was."""
    backfill = backfill_of(spec, T + begin, T + begin + length)
    limits = Limits(max_buffer_size=20, backfills_per_pass=per_pass)
    made: list[int] = []
    while backfill.status is BackfillStatus.OPEN:
        (step,) = advance([backfill], spec, NOW, limits, waiting=waiting[0], reserve=0)
        assert len(step.nominals_ms) <= min(per_pass, max(10 - waiting[0], 0))
        made += step.nominals_ms
        assert step.backfill.made == len(made)
        backfill = step.backfill
        waiting = waiting[1:] or [0]
    assert made == slots_ms(spec, backfill.start_ms - 1, backfill.end_ms, 100_000)
    assert (backfill.made, backfill.ended_at_ms) == (backfill.total, NOW)


@pytest.mark.contract("SCHD-19")
def test_automatic_starts_go_first():
    spec = SPECS[0]
    backfill = backfill_of(spec, T, T + 3600)
    limits = Limits(max_buffer_size=20, backfills_per_pass=100)
    rooms = [
        len(advance([backfill], spec, NOW, limits, waiting=waiting, reserve=reserve)[0].nominals_ms)
        for waiting, reserve in [(0, 0), (3, 0), (0, 4), (3, 4), (10, 0), (0, 10), (1000, 1000)]
    ]
    assert rooms == [10, 7, 6, 3, 0, 0, 0]


@pytest.mark.contract("SCHD-19")
def test_several_at_once_share_the_room_and_the_first_get_what_is_left_over():
    spec = SPECS[0]
    backfills = [backfill_of(spec, T, T + 3600, number) for number in (1, 2, 3)]
    steps = advance(backfills, spec, NOW, Limits(max_buffer_size=20), waiting=0, reserve=0)
    assert [len(step.nominals_ms) for step in steps] == [4, 3, 3]
    assert [step.backfill.id for step in steps] == ["s:1", "s:2", "s:3"]


@pytest.mark.contract("SCHD-19")
@pytest.mark.parametrize(
    ("most", "backfills"), [(10, 6), (1, 1), (1000, 501)], ids=["six", "smallest buffer", "defaults"]
)
def test_with_nothing_in_the_way_something_is_made_up(most: int, backfills: int):
    spec = SPECS[0]
    open_ones = [backfill_of(spec, T, T + 3600, number) for number in range(backfills)]
    steps = advance(open_ones, spec, NOW, Limits(max_buffer_size=most), waiting=0, reserve=0)
    assert any(step.nominals_ms for step in steps)

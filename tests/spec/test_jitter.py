"""Jitter: bounded, in order, the same everywhere, and spread out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.spec import Spec, slot_key
from tests.spec.strategies import Case, unix_crons

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZERO = timedelta(0)


def fired(spec: Spec, schedule: str, count: int) -> tuple[list[datetime], list[datetime]]:
    nominal = spec.between(NOW, NOW + timedelta(days=366 * 40), count)
    return nominal, [spec.fire_time(time, schedule) for time in nominal]


@pytest.mark.contract("SCHD-07")
@given(unix_crons(), st.integers(1, 86400), st.text(max_size=20))
def test_jitter_after_stays_below_the_span_and_the_next_time(case: Case, span: int, schedule: str):
    spec = Spec.parse({"crons": [case[0]], "jitter": f"{span}s", "timezone": "America/New_York"})
    nominal, fire = fired(spec, schedule, 20)
    for time, moved in zip(nominal, fire, strict=True):
        following = spec.next_after(time)
        assert ZERO <= moved - time < timedelta(seconds=span)
        assert following is None or moved < following
    assert fire == sorted(set(fire))
    assert fire == [spec.fire_time(time, schedule) for time in nominal]


@pytest.mark.contract("CRON-09", "SCHD-07")
@given(unix_crons(), st.integers(1, 86400), st.text(max_size=20))
def test_centred_jitter_stays_within_the_span_and_half_the_gaps(case: Case, span: int, schedule: str):
    spec = Spec.parse({"crons": [case[0]], "jitter": {"span": f"{span}s", "centred": True}})
    nominal, fire = fired(spec, schedule, 20)
    for time, moved in zip(nominal, fire, strict=True):
        assert abs(moved - time) <= timedelta(seconds=span)
        if (following := spec.next_after(time)) is not None:
            assert moved - time <= (following - time) / 2
        if (before := spec.previous(time - timedelta(seconds=1))) is not None:
            assert time - moved <= (time - before) / 2
    assert fire == sorted(fire)


@pytest.mark.contract("CRON-09")
@given(st.text(max_size=20))
def test_centred_jitter_is_never_before_the_start(schedule: str):
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    document = {"crons": ["0 9 * * *"], "jitter": {"span": "6h", "centred": True}}
    spec = Spec.parse(document | {"start_at": start.isoformat()})
    assert spec.fire_time(start, schedule) >= start
    spec = Spec.parse(document | {"start_at": (start - timedelta(hours=1)).isoformat()})
    assert spec.fire_time(start, schedule) >= start - timedelta(hours=1)


@pytest.mark.contract("SCHD-07")
def test_jitter_keeps_clear_of_excluded_times_too():
    """The gap is that to the next raw time, so that lifting an exclusion moves no other slot."""
    document = {"crons": ["*/10 * * * *"], "jitter": "24h"}
    narrowed = document | {"exclude": [{"minute": "10,20,30,40,50", "hour": "*"}]}
    for minute in (0, 60, 120):
        time = NOW + timedelta(minutes=minute)
        moved = Spec.parse(narrowed).fire_time(time, "a")
        assert moved == Spec.parse(document).fire_time(time, "a")
        assert moved < time + timedelta(minutes=10)


@pytest.mark.contract("SCHD-07", "CRON-09")
def test_jitter_differs_by_schedule_and_time_and_fills_its_range():
    spec = Spec.parse({"crons": ["0 9 * * *"], "jitter": "10m"})
    nominal = spec.next_after(NOW)
    assert nominal is not None
    offsets = [(spec.fire_time(nominal, str(n)) - nominal).total_seconds() for n in range(2000)]
    assert len(set(offsets)) > 1900
    assert min(offsets) < 10
    assert max(offsets) > 590
    assert 270 < sum(offsets) / len(offsets) < 330
    centred = Spec.parse({"crons": ["0 9 * * *"], "jitter": {"span": "10m", "centred": True}})
    offsets = [(centred.fire_time(nominal, str(n)) - nominal).total_seconds() for n in range(2000)]
    assert min(offsets) < -580
    assert max(offsets) > 580
    assert -30 < sum(offsets) / len(offsets) < 30


@pytest.mark.contract("CRON-09")
def test_the_offset_is_derived_from_the_slots_key():
    assert slot_key("backup", 1_772_355_600) == sha256(b"backup:1772355600").hexdigest()


@pytest.mark.contract("SCHD-07")
def test_without_jitter_a_slot_fires_at_its_nominal_time():
    assert Spec.cron("0 9 * * *").fire_time(NOW, "a") == NOW
    single = Spec.parse({"times": ["2026-03-02T09:00:00Z"], "jitter": "1h"})
    nominal, fire = fired(single, "a", 5)
    assert ZERO <= fire[0] - nominal[0] < timedelta(hours=1)

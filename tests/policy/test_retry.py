"""Retry: how often, how long after, and after which errors."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import Policies, RetryPolicy
from horae.policy.retry import backoff, retry_at, start_again_at

NOW = 1_772_366_400_000
SPANS = st.integers(0, 400 * 24 * 3600 * 1000)
FACTORS = st.floats(1, 100, allow_nan=False)


@pytest.mark.contract("SCHD-16")
def test_starts_are_tried_after_one_second_doubling_to_a_minute_and_ten_times_in_all():
    again = [start_again_at(Policies().start_attempts, refusals, NOW) for refusals in range(1, 11)]
    delays = [None if at is None else (at - NOW) // 1000 for at in again]
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60, None]


@pytest.mark.contract("SCHD-16")
@given(SPANS, FACTORS, SPANS, st.integers(1, 200))
def test_a_delay_grows_and_never_beyond_the_longest(first: int, factor: float, longest: int, times: int):
    delays = [backoff(first, factor, longest, each) for each in range(1, times + 1)]
    assert delays[0] == min(first, longest)
    assert all(earlier <= later for earlier, later in pairwise(delays))
    assert all(0 <= delay <= longest for delay in delays)


@pytest.mark.contract("SCHD-16")
@given(st.integers(1, 10_000), st.integers(2, 50))
def test_a_delay_is_the_first_times_the_factor(first: int, times: int):
    assert backoff(first, 2, first * 2 ** (times - 1), times) == first * 2 ** (times - 1)
    assert backoff(first, 1, 1_000_000, times) == first


@pytest.mark.contract("SCHD-16")
def test_a_run_that_is_retried_for_ever_waits_no_longer_than_the_longest():
    policy = RetryPolicy(attempts=None, initial_delay="1ms", factor=1.5, max_delay="1m")
    assert retry_at(policy, 1_000_000_000, ("ValueError",), NOW) == NOW + 60_000


@pytest.mark.contract("SCHD-16")
@pytest.mark.parametrize("factor", [1.0, 1e308, float("inf")])
def test_whatever_the_factor_a_delay_is_between_the_first_and_the_longest(factor: float):
    delays = [
        (backoff(0, factor, 60_000, times), backoff(7, factor, 60_000, times)) for times in (1, 2, 3, 10**9)
    ]
    grown = 7 if factor == 1 else 60_000
    assert delays == [(0, 7), (0, grown), (0, grown), (0, grown)]


@pytest.mark.contract("SCHD-16")
@given(st.integers(1, 50), st.integers(1, 60))
def test_there_are_as_many_attempts_as_the_policy_says(attempts: int, failures: int):
    again = retry_at(RetryPolicy(attempts=attempts), failures, ("ValueError",), NOW)
    assert (again is None) is (failures >= attempts)
    assert again is None or again > NOW


@pytest.mark.contract("SCHD-16")
@pytest.mark.parametrize(
    ("named", "raised", "again"),
    [
        ((), ("ValueError", "Exception"), True),
        (("ValueError",), ("ValueError", "Exception"), True),
        (("OSError",), ("TimeoutError", "OSError", "Exception"), True),  # a class that it derives from
        (("OSError", "ValueError"), ("ValueError",), True),
        (("OSError",), ("ValueError", "Exception"), False),
        (("Value",), ("ValueError",), False),
    ],
)
def test_only_some_errors_are_worth_another_attempt(
    named: tuple[str, ...], raised: tuple[str, ...], again: bool
):
    policy = RetryPolicy(attempts=3, retry_on=named)
    assert (retry_at(policy, 1, raised, NOW) is not None) is again

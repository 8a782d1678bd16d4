"""Policies that make no sense are refused, with the name of the field."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from horae.errors import InvalidInputError
from horae.model import CatchUpPolicy, Policies, Retention, RetryPolicy, Timeouts
from horae.policy.validate import BOUNDS, check_policies
from tests.support.cases import each_of


def test_the_defaults_make_sense():
    check_policies(Policies())


@pytest.mark.contract("SCHD-11", "SCHD-12", "SCHD-16", "SCHD-17")
@each_of(
    ("policies", "field"),
    [
        (Policies(max_concurrent=0), "max_concurrent"),
        (Policies(max_buffer_size=0), "max_buffer_size"),
        (Policies(backfill_limit=-1), "backfill_limit"),
        (Policies(backfill_limit=2**63), "backfill_limit"),
        (Policies(start_attempts=0), "start_attempts"),
        (Policies(retry=RetryPolicy(attempts=0)), "retry.attempts"),
        (Policies(retry=RetryPolicy(factor=0.5)), "retry.factor"),
        (Policies(retry=RetryPolicy(factor=float("nan"))), "retry.factor"),
        (Policies(retry=RetryPolicy(initial_delay="366d1ms")), "retry.initial_delay"),
        (Policies(retry=RetryPolicy(max_delay="366d1ms")), "retry.max_delay"),
        (Policies(timeouts=Timeouts(start="0s")), "timeouts.start"),
        (Policies(timeouts=Timeouts(run="0s")), "timeouts.run"),
        (Policies(timeouts=Timeouts(heartbeat="0s")), "timeouts.heartbeat"),
        (Policies(retention=Retention(age="0s")), "retention.age"),
        (Policies(retention=Retention(count=-1)), "retention.count"),
        (Policies(finished_ttl="0s"), "finished_ttl"),
        (Policies(retention=Retention(count=2**53)), "retention.count"),
    ],
)
def test_what_cannot_be_is_refused_by_name(policies: Policies, field: str):
    with pytest.raises(InvalidInputError) as error:
        check_policies(policies)
    assert error.value.details["field"] == f"policies.{field}"


@pytest.mark.parametrize(
    "policies",
    [
        Policies(backfill_limit=0),
        Policies(retry=RetryPolicy(attempts=None, initial_delay="0s", factor=1)),
        Policies(catch_up=CatchUpPolicy(window="0s", grace="0s", spread="0s")),
        Policies(timeouts=Timeouts(start="1ms", run="1ms", heartbeat="1ms", cancel="0s")),
        Policies(retention=Retention(age="1ms", count=0), finished_ttl=None),
    ],
)
def test_the_least_that_can_be_is_taken(policies: Policies):
    check_policies(policies)


def test_the_most_that_can_be_is_taken():
    most = "36600d"
    timeouts = Timeouts(start=most, run=most, heartbeat=most, cancel=most)
    retention = Retention(age=most, count=2**53 - 1)
    catch_up = CatchUpPolicy(window=most, grace=most, spread=most)
    check_policies(Policies(catch_up=catch_up, timeouts=timeouts, retention=retention, finished_ttl=most))


def test_a_bound_is_said_as_a_duration():
    with pytest.raises(InvalidInputError, match=r"retry\.max_delay must be at most 366d, and is 400d"):
        check_policies(Policies(retry=RetryPolicy(max_delay=timedelta(days=400))))
    with pytest.raises(InvalidInputError, match=r"timeouts\.run must be at least 1ms, and is 0s"):
        check_policies(Policies(timeouts=Timeouts(run=timedelta(0))))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (kind, field)
        for kind, fields in {
            Policies: ["finished_ttl"],
            RetryPolicy: ["initial_delay", "max_delay"],
            CatchUpPolicy: ["window", "grace", "spread"],
            Timeouts: ["start", "run", "heartbeat", "cancel"],
            Retention: ["age"],
        }.items()
        for field in fields
    ],
)
def test_every_duration_takes_a_text_or_a_timedelta_and_no_number(kind: type[msgspec.Struct], field: str):
    assert getattr(kind(**{field: "PT90S"}), field) == "1m30s"
    assert getattr(kind(**{field: timedelta(seconds=90)}), field) == "1m30s"
    for number in (90, 90.0, -1, True):
        with pytest.raises(InvalidInputError) as refused:
            kind(**{field: number})
        assert refused.value.details["field"] == field
    with pytest.raises(InvalidInputError, match=f"{field} must be from 0s to 36600d"):
        kind(**{field: "36600d1ms"})


def test_every_bound_is_of_a_policy():
    for kind, bounds in BOUNDS.items():
        assert set(bounds) <= set(kind.__struct_fields__)

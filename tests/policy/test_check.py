"""Policies that make no sense are refused, with the name of the field."""

from __future__ import annotations

import pytest

from horae.errors import InvalidInputError
from horae.model import CatchUpPolicy, Policies, Retention, RetryPolicy, Timeouts
from horae.policy.check import CENTURY, LONGEST, check_policies


def test_the_defaults_make_sense():
    check_policies(Policies())


@pytest.mark.contract("SCHD-11", "SCHD-12", "SCHD-16", "SCHD-17")
@pytest.mark.parametrize(
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
        (Policies(retry=RetryPolicy(initial_delay=-1)), "retry.initial_delay"),
        (Policies(retry=RetryPolicy(initial_delay=LONGEST + 1)), "retry.initial_delay"),
        (Policies(retry=RetryPolicy(max_delay=LONGEST + 1)), "retry.max_delay"),
        (Policies(catch_up=CatchUpPolicy(window=-1)), "catch_up.window"),
        (Policies(catch_up=CatchUpPolicy(grace=-1)), "catch_up.grace"),
        (Policies(catch_up=CatchUpPolicy(spread=-1)), "catch_up.spread"),
        (Policies(timeouts=Timeouts(start=0)), "timeouts.start"),
        (Policies(timeouts=Timeouts(run=0)), "timeouts.run"),
        (Policies(timeouts=Timeouts(heartbeat=0)), "timeouts.heartbeat"),
        (Policies(timeouts=Timeouts(cancel=-1)), "timeouts.cancel"),
        (Policies(retention=Retention(age=0)), "retention.age"),
        (Policies(retention=Retention(count=-1)), "retention.count"),
        (Policies(finished_ttl=0), "finished_ttl"),
        (Policies(finished_ttl=CENTURY + 1), "finished_ttl"),
        (Policies(catch_up=CatchUpPolicy(spread=CENTURY + 1)), "catch_up.spread"),
        (Policies(timeouts=Timeouts(start=CENTURY + 1)), "timeouts.start"),
        (Policies(timeouts=Timeouts(run=CENTURY + 1)), "timeouts.run"),
        (Policies(timeouts=Timeouts(heartbeat=CENTURY + 1)), "timeouts.heartbeat"),
        (Policies(timeouts=Timeouts(cancel=CENTURY + 1)), "timeouts.cancel"),
        (Policies(retention=Retention(age=CENTURY + 1)), "retention.age"),
        (Policies(retention=Retention(count=CENTURY + 1)), "retention.count"),
    ],
)
def test_what_cannot_be_is_refused_by_name(policies: Policies, field: str):
    with pytest.raises(InvalidInputError) as error:
        check_policies(policies)
    assert error.value.details["field"] == field


@pytest.mark.parametrize(
    "policies",
    [
        Policies(backfill_limit=0),
        Policies(retry=RetryPolicy(attempts=None, initial_delay=0, factor=1)),
        Policies(catch_up=CatchUpPolicy(window=0, grace=0, spread=0)),
        Policies(timeouts=Timeouts(start=1, run=1, heartbeat=1, cancel=0)),
        Policies(retention=Retention(age=1, count=0), finished_ttl=None),
    ],
)
def test_the_least_that_can_be_is_taken(policies: Policies):
    check_policies(policies)


def test_the_most_that_can_be_is_taken():
    timeouts = Timeouts(start=CENTURY, run=CENTURY, heartbeat=CENTURY, cancel=CENTURY)
    retention = Retention(age=CENTURY, count=CENTURY)
    catch_up = CatchUpPolicy(
        window=2**63 - 1, grace=2**63 - 1, spread=CENTURY
    )  # the first two are only compared
    check_policies(Policies(catch_up=catch_up, timeouts=timeouts, retention=retention, finished_ttl=CENTURY))


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        (Policies(finished_ttl=CENTURY + 1), "it is in milliseconds, a hundred years at most"),
        (Policies(retry=RetryPolicy(initial_delay=LONGEST + 1)), "it is in milliseconds, a year at most"),
        (Policies(retention=Retention(count=CENTURY + 1)), None),
    ],
)
def test_a_span_that_is_too_long_is_told_its_unit(policies: Policies, said: str | None):
    with pytest.raises(InvalidInputError) as raised:
        check_policies(policies)
    assert raised.value.hint == said

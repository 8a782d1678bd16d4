"""The policies that each face stores with its schedules, and the words in which it shows a run's status."""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from horae.model import (
    CatchUp,
    CatchUpPolicy,
    OnResume,
    Overlap,
    Policies,
    Reason,
    RetryPolicy,
    Status,
    Timeouts,
    WhenFull,
)
from horae.spec.duration import MAX_MS, duration_text

SCHEDULES = Policies()
"""Horae's own face: all missed slots are made up, and a finished schedule is kept for a week."""

TEMPORAL = Policies(catch_up=CatchUpPolicy(window="365d"), on_resume=OnResume.SKIP)
"""The Temporal face: the defaults of Temporal's server."""

PROGRAM = Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST), on_resume=OnResume.SKIP, finished_ttl=None)
"""Schedules that a program defines beside its functions: after a downtime the latest missed slot, after a pause the next one."""

GRANTS = Policies(
    catch_up=CatchUpPolicy(mode=CatchUp.NONE),
    on_resume=OnResume.SKIP,
    backfill_limit=0,
    start_attempts=3,
    timeouts=Timeouts(run="1h"),
    finished_ttl=None,
)
"""Schedules that act for an absent user under a grant: nothing is made up without consent, and a graph that never ends blocks no slot for ever."""


@lru_cache(maxsize=256)
def declarative(retry_delay_ms: int) -> Policies:
    """Tasks of the declarative scheduler: one make-up run at most, a fixed retry that a new slot preempts.

    Without a delay the retry follows after a second, so that a task that always fails does not run in a tight loop.
    """
    delay = duration_text(min(retry_delay_ms or 1000, MAX_MS))
    return Policies(
        overlap=Overlap.BUFFER_ONE,
        coalesce=True,
        catch_up=CatchUpPolicy(mode=CatchUp.LATEST),
        retry=RetryPolicy(attempts=None, initial_delay=delay, factor=1, max_delay=delay, preempted=True),
        start_attempts=1,
        finished_ttl=None,
    )


def registrar(overlap: Overlap, catch_up: CatchUp, grace_ms: int, lookahead_ms: int) -> Policies:
    """Schedules of the registrar: a full queue loses no slot, and lateness is judged when a slot falls due.

    A run times out after an hour, so that ``skip`` and ``queue`` never block for ever.
    """
    return Policies(
        overlap=overlap,
        catch_up=CatchUpPolicy(
            mode=catch_up, grace=duration_text(grace_ms), spread=duration_text(lookahead_ms)
        ),
        on_resume=OnResume.SKIP if catch_up is CatchUp.NONE else OnResume.CATCH_UP,
        start_attempts=3,
        when_full=WhenFull.WAIT,
        expire_waiting=False,
        timeouts=Timeouts(run="1h"),
        finished_ttl=None,
    )


def registrar_shows(status: Status, reason: str) -> str:
    """A run's status in the words of the registrar."""
    return _shown(status, reason)[0]


def grants_show(status: Status, reason: str = "") -> str:
    """A run's status in the words of granted schedules."""
    return _shown(status, reason)[1]


def _shown(status: Status, reason: str) -> tuple[str, str]:
    """A run's status in the words of the registrar, and in those of granted schedules.

    A run whose action could not be started has failed; other dropped runs were skipped.
    """
    match status:
        case Status.PENDING | Status.RETRYING | Status.STARTING:
            return "ENQUEUED", "pending"
        case Status.RUNNING:
            return "STARTED", "running"
        case Status.SUCCEEDED:
            return "SUCCESS", "success"
        case Status.CANCELLED | Status.TERMINATED:
            return "FAILED", "cancelled"
        case Status.DROPPED if reason != Reason.NOT_STARTED:
            return "SKIPPED", "skipped"
        case Status.FAILED | Status.TIMED_OUT | Status.DROPPED:
            return "FAILED", "error"
        case Status.SKIPPED | Status.MISSED:
            return "SKIPPED", "skipped"
        case _:
            assert_never(status)

"""Runs an action once: a schedule with one time."""

from __future__ import annotations

import contextlib
from datetime import datetime
from uuid import uuid4

import msgspec

from horae.app.field_checks import check_id
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_creation import Creation, Creator
from horae.app.schedule_draft import NewSchedule
from horae.app.schedule_options import time_of_once
from horae.app.schedules import Schedules
from horae.errors import ScheduleNotFoundError
from horae.executor.registry import ActionLike
from horae.policies import Policies
from horae.spec.duration import Duration


class SingleRun(msgspec.Struct, frozen=True, kw_only=True):
    """A single run of an action, after a span or at a time. ``key`` is the id of its schedule, and makes the request idempotent."""

    action: ActionLike
    input: object = None
    in_: Duration | None = None
    at: datetime | str | None = None
    timezone: str | None = None
    key: str | None = None
    policies: Policies = Policies()


async def create_single_run(scope: OwnerScope, run: SingleRun) -> Creation:
    """Create the schedule of a single run, or find the one that the same key created."""
    request = "" if run.key is None else f"once:{run.key}"
    if run.key is not None:
        check_id(run.key, "key")
        with contextlib.suppress(ScheduleNotFoundError):
            there = await Schedules(scope).get(run.key)
            if there.request_id == request:  # its time may be over, which is no fault of a repeated request
                return Creation(schedules=(there,), repeated=True)
    now = scope.now()
    new = NewSchedule(
        id=str(uuid4()) if run.key is None else run.key, spec=time_of_once(run.in_, run.at, run.timezone, now),
        action=run.action, input=run.input, policies=run.policies, request_id=request,
    )  # fmt: skip
    # Its only time may be over when it is stored: it fires all the same, because it is ahead of `now`.
    return await Creator(scope).create([new], now=now)

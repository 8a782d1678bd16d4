"""All operations in one scope."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec

from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.decorator_options import policies_of, time_of_once
from horae.app.field_checks import check_id
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope
from horae.app.reconcile import Tasks
from horae.app.runs import Runs
from horae.app.schedule_creation import Creation, Creator
from horae.app.schedule_draft import NewSchedule
from horae.app.schedule_warnings import input_warnings, schedule_warnings, warn_of_input
from horae.app.schedules import Schedules
from horae.app.usage import UsageSums
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.errors import ScheduleNotFoundError
from horae.executor.action_registry import ActionLike
from horae.model import Schedule
from horae.policies import Policies, PolicyFields
from horae.spec.duration import Duration
from horae.spec.zone import ZoneLike


class SingleRun(msgspec.Struct, frozen=True, kw_only=True):
    """A single run of an action, after a span or at a time. ``key`` is the id of its schedule, and makes the request idempotent."""

    action: ActionLike
    input: object = None
    in_: Duration | None = None
    at: datetime | str | None = None
    timezone: ZoneLike | None = None
    key: str | None = None
    policies: Policies = Policies()


@checks_arguments
class ScopedOperations:
    """The operations on schedules, runs, backfills, calendars, grants and flows: of all owners, or of one owner."""

    def __init__(self, scope: OwnerScope) -> None:
        self.owner = scope.owner
        self.schedules = Schedules(scope)
        self.runs = Runs(scope)
        self.backfills = Backfills(scope)
        self.calendars = Calendars(scope)
        self.grants = Grants(scope)
        self.usage = UsageSums(scope)
        self.workflows = Workflows(scope)
        self.why = Why(scope)
        self.tasks = Tasks(scope)
        self.flows = Flows(scope)
        self.evaluate = scope.evaluate
        """Evaluates specs with a function without side effects, in a thread if it takes long."""
        self.now = scope.now
        self._executors = scope.executors
        self._own = scope if scope.owner is not None else scope.for_owner("")
        """The scope in which schedules are created: without an owner, that of things without one."""

    def warnings_of(self, schedule: Schedule) -> list[str]:
        """What the owner of a stored schedule should know; usually nothing."""
        return [*schedule_warnings(schedule, self.now()), *self.warnings_of_inputs(schedule)]

    def warnings_of_inputs(self, schedule: Schedule, *given: object) -> list[str]:
        """Why a function of this program cannot be called with the schedule's input, or with those that are given instead."""
        found = (input_warnings(self._executors, schedule, each) for each in given or [msgspec.UNSET])
        return [sentence for each in found for sentence in each]

    async def once(
        self,
        action: ActionLike,
        *,
        in_: Duration | None = None,
        at: datetime | str | None = None,
        timezone: ZoneLike | None = None,
        input: Any = None,  # noqa: A002, ANN401 - any JSON
        key: str | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        policies: Policies | PolicyFields | None = None,
    ) -> Schedule:
        """Run an action once, after a span or at a time: a schedule with one time.

        ``key`` is the schedule's id, and makes the call idempotent: the same key again creates nothing and returns the existing schedule.
        """
        wanted = policies_of(Policies(), policies, retries=retries, timeout=timeout)
        run = SingleRun(
            action=action, input=input, in_=in_, at=at, timezone=timezone, key=key, policies=wanted
        )
        created = await self.create_single_run(run)
        (schedule,) = created.schedules
        if not created.repeated:
            warn_of_input(self._executors, schedule)
        return schedule

    async def create_single_run(self, run: SingleRun) -> Creation:
        """Like :meth:`once`, and says whether the same key created the schedule before."""
        request = "" if run.key is None else f"once:{run.key}"
        if run.key is not None:
            check_id(run.key, "key")
            with contextlib.suppress(ScheduleNotFoundError):
                existing = await Schedules(self._own).get(run.key)
                if (
                    existing.request_id == request
                ):  # its time may be over, which is no fault of a repeated request
                    return Creation(schedules=(existing,), repeated=True)
        now = self.now()
        new = NewSchedule(
            id=str(uuid4()) if run.key is None else run.key, spec=time_of_once(run.in_, run.at, run.timezone, now),
            action=run.action, input=run.input, policies=run.policies, request_id=request,
        )  # fmt: skip
        # Its only time may be over when it is stored: it fires all the same, because it is ahead of `now`.
        return await Creator(self._own).create([new], now=now)

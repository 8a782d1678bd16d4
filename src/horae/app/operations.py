"""All operations in one scope."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from horae.app.argument_checks import checks_arguments
from horae.app.backfills import Backfills
from horae.app.calendars import Calendars
from horae.app.flows import Flows
from horae.app.grants import Grants
from horae.app.owner_scope import OwnerScope
from horae.app.reconcile import Tasks
from horae.app.runs import Runs
from horae.app.schedule_creation import Creation
from horae.app.schedule_options import policies_of
from horae.app.schedules import Schedules
from horae.app.single_run import SingleRun, create_single_run
from horae.app.usage import UsageSums
from horae.app.why import Why
from horae.app.workflows import Workflows
from horae.executor.registry import ActionLike
from horae.model import Schedule
from horae.policies import Policies, PolicyFields
from horae.spec.duration import Duration


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
        self._own = scope if scope.owner is not None else scope.for_owner("")
        """The scope of the owner of what is created here."""

    async def once(
        self,
        action: ActionLike,
        *,
        in_: Duration | None = None,
        at: datetime | str | None = None,
        timezone: str | None = None,
        input: Any = None,  # noqa: A002, ANN401 - any JSON
        key: str | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        policies: Policies | PolicyFields | None = None,
    ) -> Schedule:
        """Run an action once, after a span or at a time: a schedule with one time.

        ``key`` is its id, and makes the call idempotent: the same key again creates nothing, and returns the schedule that is there.
        """
        wanted = policies_of(Policies(), policies, retries=retries, timeout=timeout)
        run = SingleRun(
            action=action, input=input, in_=in_, at=at, timezone=timezone, key=key, policies=wanted
        )
        return (await self.create_single_run(run)).schedules[0]

    async def create_single_run(self, run: SingleRun) -> Creation:
        """The same as :meth:`once`, and whether the same request created the schedule before."""
        return await create_single_run(self._own, run)

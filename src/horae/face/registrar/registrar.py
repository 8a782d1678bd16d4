"""The registrar: schedules for workflows, on the same schedules as the other faces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from horae.app import App, NewSchedule
from horae.app.workflow_schedules import ScheduleInput, edit_of, new_schedule, read_input
from horae.errors import (
    InvalidInputError,
    PermissionDeniedError,
    ScheduleExistsError,
    ScheduleNotFoundError,
)
from horae.face.registrar.views import (
    LedgerRow,
    Registered,
    Upserted,
    ledger,
    next_run_at,
    registered,
    specs_of,
)
from horae.model import OPERATOR, Schedule
from horae.workflow.ports import DagExecutor, RunLauncher, WorkflowStore

MAX_RUNS = 1000


class Registrar:
    """Registers schedules for workflows, and shows them.

    With an ``owner``, only their schedules are visible. Slots start workflows through the ``launcher``. Without one, a workflow is
    loaded from the ``store`` and given to the ``executor``. Without these, Horae runs the workflow that is deployed in the app's database,
    or else the action of this program whose name is the workflow's id.
    """

    def __init__(
        self,
        app: App,
        launcher: RunLauncher | None = None,
        owner: str | None = None,
        *,
        store: WorkflowStore | None = None,
        executor: DagExecutor | None = None,
        scopes: Collection[str] = (),
    ) -> None:
        self._app = app
        self._owner = owner
        self._scopes = frozenset({OPERATOR}) if owner is None else frozenset(scopes)
        mine = app if owner is None else app.owned_by(owner, self._scopes)
        self._schedules = mine.schedules
        self._runs = mine.runs
        self._evaluate = mine.evaluate
        runner = app.workflow_executor
        runner.launcher = launcher or runner.launcher
        runner.store = store or runner.store
        runner.dag_executor = executor or runner.dag_executor

    async def upsert_schedule(
        self, given: ScheduleInput | Mapping[str, Any], *, trigger_id: str | None = None
    ) -> Upserted:
        """Register a schedule, or change the one with its id. It stays paused if it is paused, and keeps its next time unless the
        expression, the zone or the window changed. ``trigger_id`` names the workflow's trigger that it comes from.
        """
        read = read_input(given)
        if self._owner is not None and read.user_id != self._owner:
            raise PermissionDeniedError(f'The user_id is "{read.user_id}", and not "{self._owner}"')
        new = new_schedule(read, self._app.config, trigger_id)
        try:
            schedule = await self._put(new, read)
        except ScheduleExistsError:  # another caller created it just now
            schedule = await self._put(new, read)
        return await self._evaluate(
            lambda: Upserted(schedule_id=schedule.id, next_run_at=next_run_at(schedule))
        )

    async def _put(self, new: NewSchedule, read: ScheduleInput) -> Schedule:
        schedules = self._app.owned_by(read.user_id, self._scopes).schedules
        try:
            return await schedules.edit(new.id, lambda old: edit_of(old, new, read, self._app.config))
        except ScheduleNotFoundError:
            return (await schedules.create_many([new]))[0]

    async def _find(self, schedule_id: str) -> Schedule | None:
        try:
            return await self._schedules.get(schedule_id)
        except ScheduleNotFoundError:
            return None

    async def pause_schedule(self, schedule_id: str, paused: bool) -> None:  # noqa: FBT001 - the call has it so
        """Pause a schedule at once, or resume it: from the next slot under ``none``, else by its catch-up policy."""
        if paused:
            await self._schedules.pause(schedule_id)
        else:
            await self._schedules.resume(schedule_id)

    async def delete_schedule(self, schedule_id: str) -> None:
        """Remove a schedule; its ledger stays."""
        await self._schedules.delete(schedule_id)

    async def get_schedule(self, schedule_id: str) -> Registered:
        """A schedule with every field, and its next fire times."""
        schedule, now = await self._schedules.get(schedule_id), self._app.now()
        return await self._evaluate(lambda: registered(schedule, now))

    async def runs(self, schedule_id: str, limit: int = 20) -> list[LedgerRow]:
        """The outcomes of the latest slots, newest first; also of a deleted schedule."""
        if not 1 <= limit <= MAX_RUNS:
            raise InvalidInputError("limit", f"must be from 1 to {MAX_RUNS}, and is {limit}")
        schedule = await self._find(schedule_id)
        runs = await self._runs.list(schedule_id, limit)
        unstarted = await self._runs.unstarted_ranges(schedule_id, limit)
        if schedule is None and not runs and not unstarted:
            raise ScheduleNotFoundError(schedule_id)
        versions = await self._schedules.versions(schedule_id, MAX_RUNS) if unstarted else []
        return await self._evaluate(lambda: ledger(runs, unstarted, specs_of(schedule, versions), limit))

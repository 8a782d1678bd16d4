"""The workflows of an app: deploy, read, launch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from horae.app.bulk import BATCH
from horae.app.field_checks import check_text, moment_ms, stored_json
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import Page, cursor_of, page_limit, place_of
from horae.app.schedule_creation import insert_drafted
from horae.app.schedule_draft import NewSchedule, draft
from horae.app.schedule_edits import apply_edit
from horae.app.schedules import remove_schedule
from horae.app.workflow_schedules import ScheduleInput, edit_of, new_schedule, read_input
from horae.engine.workflow_attempt import fired_triggers
from horae.engine.workflow_executor import WORKFLOW, WorkflowInput, may_run, workflow_of
from horae.errors import (
    HoraeError,
    InvalidInputError,
    InvalidWorkflowError,
    LimitExceededError,
    WorkflowConflictError,
    WorkflowNotFoundError,
)
from horae.model import (
    OPEN,
    Action,
    CatchUp,
    Instant,
    Origin,
    OriginKind,
    Overlap,
    Run,
    Schedule,
    StoredWorkflow,
    owner_and_id,
    schedule_key,
)
from horae.policy.catch_up import Slot
from horae.policy.face_defaults import registrar
from horae.policy.ledger_changes import new_run, run_id
from horae.policy.workflow_states import PlacedNode, node_states
from horae.store.port import BEGINNING, LAST, Transaction
from horae.workflow.builder import WorkflowBuilder
from horae.workflow.document import Workflow
from horae.workflow.node_checkpoint import PREFIX, NodeRecord
from horae.workflow.regions import Fault, Plan
from horae.workflow.validate import Given, document_text, read_workflow, schedule_of, stored_plan

MAX_KEY_LENGTH = 500


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow that is deployed."""

    workflow_id: str
    version: int
    created: bool
    """Whether this call deployed it; false if the same document was deployed before."""
    schedules: tuple[str, ...]
    """The ids of the schedules of its triggers, in the order of the triggers."""


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow in a list."""

    workflow_id: str
    owner: str
    version: int
    deployed_at_ms: int

    deployed_at = Instant[datetime]()


class _Trigger(msgspec.Struct, frozen=True):
    """A trigger with a schedule: its input, and the schedule to store."""

    read: ScheduleInput
    new: NewSchedule


def launch_schedule(workflow_id: str, user: str) -> str:
    """The id of the schedule that keeps the launched runs of a workflow: those that no schedule asked for."""
    name = msgspec.json.encode([workflow_id, user])
    return f"launch-{hashlib.sha256(name).hexdigest()[:32]}"


@checks_arguments
class Workflows:
    """The workflows of an app: versions that never change once they are deployed."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    @property
    def _owner(self) -> str:
        return self._scope.owner or ""

    async def deploy(self, workflow: Given | WorkflowBuilder) -> Deployed:
        """Store a version of a workflow and the schedules of its triggers, in one transaction; the schedules of removed triggers are
        deleted. Deploying the same again changes nothing. Schedules follow the highest version.
        """
        plan = await self.check(workflow)
        if isinstance(workflow, WorkflowBuilder):
            for name, function in workflow.functions.items():
                self._scope.executors.register(name, function)
            self._scope.wake()
        return await self._scope.change(partial(self._deploy, plan, self._triggers(plan)))

    async def check(self, workflow: Given | WorkflowBuilder) -> Plan:
        """Check a document as :meth:`deploy` does, without storing it; raises ``InvalidWorkflowError`` with every fault."""
        config, executors = self._scope.config, self._scope.executors
        own = workflow.functions if isinstance(workflow, WorkflowBuilder) else {}
        document = workflow.build(config) if isinstance(workflow, WorkflowBuilder) else workflow
        announced = {
            action for node in await self._scope.store.nodes() if node.alive for action in node.actions
        }

        def refusal(address: str) -> str | None:
            if address not in own:
                executors.permissions.check(address, self._owner, ())  # it is not checked again when it runs
            reason = executors.refusal_for_node(address)
            elsewhere = address in announced and executors.open_to_nodes(address)
            return None if reason is None or address in own or elsewhere else reason

        plan = read_workflow(document, config, refusal)
        self._triggers(plan)
        return plan

    async def free_version(self, plan: Plan) -> int:
        """The version under which a plan can be deployed: its own, or the next if its own is deployed with another document."""
        workflow = plan.workflow
        async with self._scope.store.reading() as transaction:
            deployed = await transaction.workflow(self._owner, workflow.workflow_id, workflow.version)
            if (
                deployed is None
                or deployed.owner != self._owner
                or deployed.document == document_text(workflow)
            ):
                return workflow.version
            latest = await transaction.workflow(self._owner, workflow.workflow_id)
        return (latest or deployed).version + 1

    def _triggers(self, plan: Plan) -> dict[str, _Trigger]:
        """The triggers of a workflow that have schedules, by schedule id."""
        triggers: dict[str, _Trigger] = {}
        faults: list[Fault] = []
        for node in plan.workflow.nodes:
            schedule = schedule_of(node)
            if schedule is None:
                continue
            fields = msgspec.structs.asdict(schedule)
            given = fields.pop("input")
            head = {
                "workflow_id": plan.workflow.workflow_id,
                "version": plan.workflow.version,
                "user_id": self._owner,
            }
            try:
                read = read_input({**head, **fields}, any_user=True)
                label = f"{WORKFLOW}:{plan.workflow.workflow_id}"
                new = new_schedule(read, self._scope.config, node.id, managed_by=label, given=given)
            except HoraeError as error:
                faults.append(Fault(f"node {node.id}", f"has an invalid schedule: {error.message}"))
            else:
                triggers[new.id] = _Trigger(read, new)
        if faults:
            raise InvalidWorkflowError(faults)
        return triggers

    async def _deploy(self, plan: Plan, triggers: Mapping[str, _Trigger], work: UnitOfWork) -> Deployed:
        workflow, owner, transaction = plan.workflow, self._owner, work.transaction
        stored = StoredWorkflow(
            owner=owner, workflow_id=workflow.workflow_id, version=workflow.version,
            document=document_text(workflow), deployed_at_ms=work.now,
        )  # fmt: skip
        await transaction.lock_workflow(owner, workflow.workflow_id)
        created = await transaction.insert_workflow(stored)
        if created:
            await self._check_room(transaction)
            latest = await transaction.workflow(owner, workflow.workflow_id)
            if latest is not None and latest.version == workflow.version:
                await self._put_schedules(work, workflow, triggers)
        else:
            deployed = await transaction.workflow(owner, workflow.workflow_id, workflow.version)
            if deployed is None or deployed.document != stored.document:
                raise WorkflowConflictError(workflow.workflow_id, workflow.version)
        await transaction.notify()
        return Deployed(
            workflow_id=workflow.workflow_id, version=workflow.version, created=created, schedules=tuple(triggers)
        )  # fmt: skip

    async def _check_room(self, transaction: Transaction) -> None:
        most = self._scope.config.workflows_per_user
        if await transaction.count_workflows(self._owner, most + 1) > most:
            who = f'the user "{self._owner}" has' if self._owner else "all users together have"
            raise LimitExceededError("workflows_per_user", most, f"{who} too many versions of workflows")

    async def _put_schedules(
        self, work: UnitOfWork, workflow: Workflow, triggers: Mapping[str, _Trigger]
    ) -> None:
        """Create or edit the schedules of triggers, and delete those of triggers that the workflow no longer has."""
        stored = await self._locked_schedules(work, workflow, triggers)
        for old in stored:
            if (trigger := triggers.get(old.id)) is None:
                await remove_schedule(work, old)
            else:
                edit = edit_of(old, trigger.new, trigger.read, self._scope.config)
                await apply_edit(work, old, edit, trigger.new.spec)
        known = {each.id for each in stored}
        missing = [trigger.new for schedule_id, trigger in triggers.items() if schedule_id not in known]
        if missing:
            scope, read = self._scope, self._scope.executors.read
            questions = [
                (
                    ("draft", each.id, each.spec.text),
                    partial(draft, each, read(each.action), scope, work.now, {}),
                )
                for each in missing
            ]
            generations = await work.transaction.next_generations([each.key for each in missing])
            await insert_drafted(work, work.answers.ask_all(questions), generations, {})

    async def _locked_schedules(
        self, work: UnitOfWork, workflow: Workflow, triggers: Mapping[str, _Trigger]
    ) -> Sequence[Schedule]:
        """The owner's schedules of a workflow, and those that have the ids of its triggers; locked together, in the order of their ids."""
        label, after = f"{WORKFLOW}:{workflow.workflow_id}", BEGINNING
        wanted = {schedule_key(self._owner, each) for each in triggers}
        while keys := await work.transaction.managed_keys(label, after, BATCH):
            wanted.update(each for each in keys if owner_and_id(each)[0] == self._owner)
            after = keys[-1]
        return await work.transaction.schedules(wanted)

    async def get(self, workflow_id: str, version: int | None = None) -> StoredWorkflow:
        """A version of a workflow, or the latest: the owner's, or else the shared one.

        In the scope of all owners: the shared one, or else that of the only owner who has it.
        """
        async with self._scope.store.reading() as transaction:
            found = await transaction.workflow(self._owner, workflow_id, version)
            if found is None and self._scope.owner is None:
                owner = await self._only_owner(transaction, workflow_id)
                found = await transaction.workflow(owner, workflow_id, version)
        if found is None:
            raise WorkflowNotFoundError(workflow_id, version)
        return found

    async def _only_owner(self, transaction: Transaction, workflow_id: str) -> str:
        """The owner of a workflow that only one owner has; if several have it, the caller must name one."""
        owners: list[str] = []
        after = (workflow_id, "", LAST)
        while rows := await transaction.workflows(None, after, 1):
            if rows[0][0] != workflow_id:
                break
            owners.append(rows[0][1])
            if len(owners) > 1:
                reason = f'must be named: {" and ".join(owners)} have a workflow "{workflow_id}"'
                raise InvalidInputError("owner", reason)
            after = (workflow_id, owners[0], LAST)
        return owners[0] if owners else ""

    async def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[WorkflowVersion]:
        """Versions of workflows by id, owner and version: the owner's and the shared ones."""
        limit = page_limit(limit)
        after = ("", "", -1) if cursor is None else place_of(cursor, tuple[str, str, int])
        async with self._scope.store.reading() as transaction:
            found = await transaction.workflows(self._scope.owner, after, limit + 1)
        items = [
            WorkflowVersion(workflow_id=workflow_id, owner=owner, version=version, deployed_at_ms=at)
            for workflow_id, owner, version, at in found[:limit]
        ]
        more = len(found) > limit
        return Page(items, cursor_of(*found[limit - 1][:3]) if more else None)

    async def versions(self, workflow_id: str, owner: str, limit: int = 100) -> Sequence[int]:
        """The versions of an owner's workflow that the caller may see, lowest first."""
        async with self._scope.store.reading() as transaction:
            found = await transaction.workflows(
                self._scope.owner, (workflow_id, owner, -1), page_limit(limit)
            )
        return [version for name, whose, version, _ in found if (name, whose) == (workflow_id, owner)]

    async def nodes(self, run_id: str) -> Sequence[PlacedNode]:
        """The nodes of a workflow's run, each with its state and saved record; none if the run is not of a workflow."""
        async with self._scope.store.reading() as transaction:
            run = await self._scope.run(transaction, run_id)
            wanted = workflow_of(Action(kind=WORKFLOW, input=run.input)) if run.action == WORKFLOW else None
            if wanted is None or not may_run(run.owner, wanted):
                return ()
            stored = await transaction.workflow(wanted.user_id, wanted.workflow_id, wanted.version)
            checkpoints = await transaction.checkpoints([run_id])
        if stored is None:
            return ()
        plan = stored_plan(stored.document)
        records = {
            each.key.removeprefix(PREFIX): msgspec.json.decode(each.value, type=NodeRecord)
            for each in checkpoints
            if each.key.startswith(PREFIX)
        }
        return node_states(plan, records, fired_triggers(plan, wanted.trigger), running=run.status in OPEN)

    async def start(
        self,
        workflow_id: str,
        version: int,
        user_id: str,
        scheduled_for: datetime,
        idempotency_key: str,
    ) -> bool:
        """Start a workflow that no schedule asked for, once per key; ``False`` if this version does not exist.

        This is the ``start`` of a ``RunLauncher``. The run is in the ledger of :meth:`launch`.
        """
        if not 1 <= len(idempotency_key) <= MAX_KEY_LENGTH:
            raise InvalidInputError("idempotency_key", f"must be a text of 1 to {MAX_KEY_LENGTH} characters")
        try:
            await self.launch(
                workflow_id, version, key=idempotency_key, scheduled_for=scheduled_for, user=user_id
            )
        except WorkflowNotFoundError:
            return False
        return True

    async def launch(
        self,
        workflow_id: str,
        version: int | None = None,
        *,
        input: Any = None,  # noqa: A002, ANN401 - the word that users know; any JSON
        key: str | None = None,
        scheduled_for: datetime | None = None,
        user: str | None = None,
    ) -> Run:
        """Run a workflow now, by default its latest version. The same ``key`` again starts nothing and returns the existing run."""
        user = self._owner if user is None else user
        given = stored_json(input)
        check_text("key", key or "")
        nominal_ms = None if scheduled_for is None else _nominal_ms(scheduled_for)
        async with self._scope.store.reading() as transaction:
            found = await transaction.workflow(user, workflow_id, version)
        if found is None or self._scope.owner not in {None, user}:
            raise WorkflowNotFoundError(workflow_id, version)
        started = WorkflowInput(
            workflow_id=found.workflow_id, version=found.version, user_id=user, key=key, input=given
        )
        scope = self._scope.for_owner(user) if user else self._scope
        return await scope.change(partial(self._launch, started, nominal_ms))

    async def _launch(self, started: WorkflowInput, nominal_ms: int | None, work: UnitOfWork) -> Run:
        transaction, now, key = work.transaction, work.now, started.key
        schedule = await self._launches(work, started.workflow_id, started.user_id)
        number = str(await transaction.next_number()) if key is None else f"key:{key}"
        origin = Origin(OriginKind.TRIGGER, number)
        slot = Slot((now if nominal_ms is None else nominal_ms) // 1000 * 1000, now, now)
        run = new_run(schedule, slot, origin, Overlap.ALLOW_ALL, now)
        if key is not None:  # whatever time it is for, a key is started once
            run = msgspec.structs.replace(run, id=run_id(schedule.key, schedule.generation, 0, origin))
            if existing := await transaction.runs_by_id([run.id]):
                return existing[0]
        run = msgspec.structs.replace(run, input=msgspec.to_builtins(started))
        await transaction.insert_runs([run])
        await transaction.mark_due([schedule.key], now)
        await transaction.notify()
        return run

    async def _launches(self, work: UnitOfWork, workflow_id: str, user: str) -> Schedule:
        """The schedule, without times, that keeps the launched runs of a workflow; locked, or new."""
        config, executors = work.scope.config, work.scope.executors
        schedule_id, grace_ms = launch_schedule(workflow_id, user), max(config.tick_ms, config.lookahead_ms)
        key = schedule_key(user, schedule_id)
        if existing := await work.transaction.schedules([key]):
            return existing[0]
        generations = await work.transaction.next_generations([key])  # waits for another launch that makes it
        if existing := await work.transaction.schedules([key]):
            return existing[0]
        nothing = WorkflowInput(workflow_id=workflow_id, version=0, user_id=user)
        new = NewSchedule(
            id=schedule_id, spec={}, action=Action(kind=WORKFLOW, input=msgspec.to_builtins(nothing)), owner=user,
            policies=registrar(Overlap.ALLOW_ALL, CatchUp.NONE, grace_ms, config.lookahead_ms),
            description=f"Runs of the workflow {workflow_id} that no schedule asked for", tags=(WORKFLOW,),
            request_id=schedule_id,
        )  # fmt: skip
        drafted = draft(new, executors.read(new.action), work.scope, work.now, {})
        (created,) = await insert_drafted(work, [drafted], generations, {})
        return created


def _nominal_ms(scheduled_for: datetime) -> int:
    if scheduled_for.utcoffset() is None:
        raise InvalidInputError("scheduled_for", "has no offset", hint="such as 2026-11-17T09:00:00Z")
    return moment_ms("scheduled_for", scheduled_for)

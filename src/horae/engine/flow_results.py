"""Records how attempts of flows ended: commits, failures, reconciliations, fixes, crashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from horae.config import Config
from horae.engine.flow_attempt import Fixed, Reconciled, RunEnd, read_mutation, read_prepared, text_of
from horae.engine.flow_deploy import redeployed, with_pending
from horae.engine.flow_host import FlowHost
from horae.errors import HoraeError
from horae.flow.definition import Flow
from horae.flow.failures import Failure
from horae.flow_model import (
    FailureKind,
    FlowEvent,
    FlowInput,
    FlowRun,
    FlowStatus,
    Lane,
    Phase,
    PreparedRecord,
    Recovery,
    StoredFlow,
    Task,
    Trouble,
    flow_run_id,
)
from horae.model import AttemptEnd, AttemptResult
from horae.policy.flow_failure_handling import (
    Answer,
    after_failure,
    after_fix,
    after_reconciliation,
    needs_person,
)
from horae.policy.flow_next_handler import clamped, committed, published
from horae.policy.flow_phase_transitions import judge
from horae.store.flow_queries import FlowRecords
from horae.store.port import Transaction
from horae.store.tables import FlowState

_replace = msgspec.structs.replace
_NOT_CALLED = {AttemptEnd.STOPPED, AttemptEnd.UNLAUNCHED, AttemptEnd.NOT_ADMITTED}
"""Ends of attempts that say nothing about their handlers, nor that their process died."""


class ReservationsGoneError(Exception):
    """A run should consume events that it has not reserved: the transaction is rolled back and repeated with a check of each
    reservation.
    """


class FlowResults:
    """Applies results to the lanes of their flows, and collects what to write."""

    def __init__(
        self, transaction: Transaction, host: FlowHost, config: Config, now: int, *, verify: bool
    ) -> None:
        self.records = FlowRecords(transaction)
        self.lanes: dict[int, Lane] = {}
        """The lanes that are locked, as they will be written."""
        self.flows: dict[int, StoredFlow] = {}
        self.kept_states: dict[tuple[int, str], str] = {}
        self.peeks: dict[tuple[int, str], int] = {}
        self._transaction = transaction
        self._host = host
        self._config = config
        self.now = now
        self._verify = verify
        self._ended: list[FlowRun] = []
        self._begun: list[FlowRun] = []
        self._published: list[FlowEvent] = []
        self._inputs: list[FlowInput] = []
        self._causes: list[tuple[FlowEvent, FlowInput]] = []
        self._inherited: list[tuple[FlowEvent, int]] = []
        self._consumed: list[tuple[str, Sequence[int]]] = []
        self._released: list[tuple[str, Sequence[int]]] = []
        self._handed_over: list[tuple[str, str, Sequence[int]]] = []

    async def record(self, results: Sequence[AttemptResult]) -> None:
        """Lock the lanes of results, apply those whose claims hold, and write all but the lanes."""
        wanted = {int(each.run.schedule_id) for each in results}
        self.lanes = {each.flow_id: each for each in await self.records.lock(wanted)}
        held = [each for each in results if self._holds(each)]
        await self.load_flows(self.lanes.values())
        if self._verify:
            await self._fail_lost_reservations(held)
        closer = [each.run.id for each in held if not _is_commit(each)]
        runs = await self.records.runs_by_id(closer) if closer else {}
        for each in held:
            await self._apply(each, runs)
        await self._write()
        if logs := [each.log for each in held if each.log is not None]:
            await self._transaction.write_logs(logs)

    def _holds(self, result: AttemptResult) -> bool:
        lane, run = self.lanes.get(int(result.run.schedule_id)), result.run
        claim = (run.id, run.epoch, run.attempt)
        return lane is not None and (lane.run_id, lane.epoch, lane.attempt) == claim

    async def load_flows(self, lanes: Iterable[Lane]) -> None:
        """Load the definitions of flows, from this process or from the database."""
        unknown = []
        for lane in lanes:
            hosted = self._host.find(lane.flow_id, lane.revision)
            if hosted is not None:
                self.flows[lane.flow_id] = hosted.stored
            elif lane.flow_id not in self.flows:
                unknown.append(lane.flow_id)
        if unknown:
            self.flows |= await self.records.flows_by_id(unknown)

    async def _fail_lost_reservations(self, held: Sequence[AttemptResult]) -> None:
        """Turn commits into failures if their events were skipped after they were reserved or read."""
        ends = [each.value for each in held if _is_commit(each)]
        numbers = [number for end in ends if end.prepared is not None for number in end.prepared.numbers]
        events = await self.records.events_by_number(numbers)
        for end in ends:
            taken = () if end.prepared is None else end.prepared.numbers
            if not all(_is_its_own(events.get(number), end.run.id) for number in taken):
                end.failure = Failure(FailureKind.NOT_APPLIED, "an event that it reserves was skipped")
                end.phase = Phase.EMITTING

    # What each kind of result means

    async def _apply(self, result: AttemptResult, runs: Mapping[str, FlowRun]) -> None:
        flow_id = int(result.run.schedule_id)
        lane = self.lanes[flow_id]
        freed, trouble = _replace(lane, run_id=None, epoch=0), lane.trouble
        if lane.task is not Task.RUN and (trouble is None or result.ending in _NOT_CALLED):
            self.lanes[flow_id] = freed  # it is due as before
        elif lane.task is Task.RECONCILE and trouble is not None:
            self._reconciled(freed, trouble, result, runs[result.run.id])
        elif lane.task is Task.FIX and trouble is not None:
            await self._fixed(freed, trouble, result)
        elif _is_commit(result):
            self._commit(freed, result.value)
        else:
            await self._fail(freed, result, runs[result.run.id])

    def _commit(self, lane: Lane, end: RunEnd) -> None:
        flow, run, now = self.flows[lane.flow_id], end.run, self.now
        prepared = end.prepared or PreparedRecord()
        config = self._config
        wake_at_ms = clamped(
            prepared.wake_at_ms, now, least_ms=config.flow_wake_least_ms, most_ms=config.flow_wake_most_ms
        )
        lane = committed(
            lane, flow.definition, run.handler, now, wake_at_ms=wake_at_ms, reserved=bool(prepared.numbers)
        )
        lane = published(lane, flow.definition, {each.topic for each in end.published})
        self.lanes[lane.flow_id] = _replace(lane, trouble=None)
        self._ended.append(
            _replace(
                run, phase=Phase.COMMITTED, status=FlowStatus.COMMITTED, updated_at_ms=now, ended_at_ms=now,
                prepared=None if end.prepared is None or end.journaled else text_of(prepared),
                mutation=None if end.mutation is None else text_of(end.mutation), title=prepared.title if prepared.numbers or end.published else "",
                events=len(prepared.numbers), published=len(end.published),
            )
        )  # fmt: skip
        if prepared.numbers:
            self._consumed.append((run.id, prepared.numbers))
        if end.state is not None:
            self.kept_states[lane.flow_id, run.handler] = end.state
        self.peeks[lane.flow_id, run.handler] = end.largest_peek
        self._publish(end)

    def _publish(self, end: RunEnd) -> None:
        run, now = end.run, self.now
        inputs = {
            each: FlowInput(
                flow_id=run.flow_id, source=each.source, type=each.type, input_id=each.id, title=each.title, created_at_ms=now
            )
            for each in end.inputs
        }  # fmt: skip
        self._inputs += inputs.values()
        for each in end.published:
            caused = each.cause is not None or bool(end.caused)
            event = FlowEvent(
                flow_id=run.flow_id, topic=each.topic, message_id=each.message_id, payload=each.payload, caused=caused,
                created_at_ms=now,
            )  # fmt: skip
            self._published.append(event)
            if each.cause is not None:
                self._causes.append((event, inputs[each.cause]))
            self._inherited += [(event, number) for number in end.caused]

    async def _fail(self, lane: Lane, result: AttemptResult, stored: FlowRun) -> None:
        """Handle a run that did not commit: its phase determines how the next one begins."""
        end = result.value if isinstance(result.value, RunEnd) else None
        if end is not None:
            assert end.failure is not None  # noqa: S101 - else it is a commit
            phase, kind, issue = end.phase, end.failure.kind, end.failure.issue
            prepared, mutation, journaled = end.prepared, end.mutation, end.journaled
        else:
            phase, (kind, issue) = stored.phase, _failure_of(result)
            prepared, mutation = read_prepared(stored), read_mutation(stored.mutation)
            journaled = stored.prepared is not None
        verdict = judge(phase, kind, None if mutation is None else mutation.status)
        numbers = prepared.numbers if prepared is not None and journaled else ()
        record = text_of(prepared) if prepared is not None and not journaled else None
        self._ended.append(
            _replace(
                stored, phase=phase, status=verdict.status, error=issue, failure_kind=kind.value, updated_at_ms=self.now,
                ended_at_ms=self.now, prepared=record, mutation=None if mutation is None else text_of(mutation),
                events=stored.events if prepared is None else len(prepared.numbers),
                title=stored.title if prepared is None else prepared.title,
            )
        )  # fmt: skip
        if verdict.recovery is Recovery.AFRESH:
            self._released.append((stored.id, numbers))
        trouble = Trouble(
            run_id=stored.id, handler=stored.handler, status=verdict.status, recovery=verdict.recovery, since_ms=self.now,
            issue=issue,
        )  # fmt: skip
        if kind is FailureKind.CRASH:  # consumers with pending events run once more
            lane = await with_pending(self.records, lane, self.flows[lane.flow_id].definition)
        trouble = self._after(lane, trouble)
        if verdict.status is FlowStatus.CRASHED and verdict.recovery is Recovery.RECONCILE:
            lane, trouble = self._recovery_run(lane, trouble, stored, prepared or PreparedRecord())
        self._set_trouble(lane, trouble)

    def _recovery_run(
        self, lane: Lane, trouble: Trouble, crashed: FlowRun, prepared: PreparedRecord
    ) -> tuple[Lane, Trouble]:
        """The run that recovers one whose process died in ``mutate``: it waits in reconciliation, with the reservations."""
        flow = self.flows[lane.flow_id]
        run = _replace(
            crashed, id=flow_run_id(lane.flow_id, flow.owner, flow.name, lane.runs), retry_of=crashed.id,
            phase=Phase.MUTATING, status=FlowStatus.RECONCILIATION, created_at_ms=self.now, updated_at_ms=self.now,
            error=trouble.issue, failure_kind=FailureKind.CRASH.value, ended_at_ms=None, revision=lane.revision,
        )  # fmt: skip
        self._begun.append(run)
        self._handed_over.append((crashed.id, run.id, prepared.numbers))
        waiting = self._after(
            lane, _replace(trouble, run_id=run.id, status=FlowStatus.RECONCILIATION), before=trouble
        )
        return _replace(lane, runs=lane.runs + 1), waiting

    def _after(self, lane: Lane, trouble: Trouble, before: Trouble | None = None) -> Trouble:
        handler = self.flows[lane.flow_id].definition.handler(trouble.handler)
        return after_failure(
            before or lane.trouble, trouble, self.now, has_fixer=self._host.fixer is not None,
            reconciles=handler is not None and handler.reconciles, max_crashes=self._config.max_crashes,
        )  # fmt: skip

    def _reconciled(self, lane: Lane, trouble: Trouble, result: AttemptResult, run: FlowRun) -> None:
        answer: Answer = "unknown"
        if isinstance(result.value, Reconciled):
            answer = result.value.answer
            if result.value.issue:
                trouble = _replace(trouble, issue=result.value.issue)
        after = after_reconciliation(trouble, self.now, answer)
        if after.recovery is Recovery.AFRESH:
            self._released.append((run.id, read_prepared(run).numbers))
        self._set_trouble(lane, after)

    async def _fixed(self, lane: Lane, trouble: Trouble, result: AttemptResult) -> None:
        new = result.value.flow if isinstance(result.value, Fixed) else None
        deployed = None if new is None else await self._take_version(lane, trouble, new)
        trouble = after_fix(trouble, self.now, fixed=deployed is not None)
        self._set_trouble(lane if deployed is None else deployed, trouble)

    async def _take_version(self, lane: Lane, trouble: Trouble, new: Flow) -> Lane | None:
        """Deploy the version that a fixer returned; ``None`` if it cannot be deployed, which counts as no fix."""
        flow = self.flows[lane.flow_id]
        try:
            definition, revision = new.check(), new.revision
        except HoraeError:
            return None
        if new.name != flow.name or definition.handler(trouble.handler) is None:
            return None
        fixed = _replace(flow, definition=definition, revision=revision, updated_at_ms=self.now)
        lane = redeployed(lane, flow.definition, fixed, self.now)
        await self.records.update_flow(fixed)
        self.flows[lane.flow_id] = fixed
        self._transaction.on_commit += (lambda: self._host.host(new, fixed),)
        return lane

    def _set_trouble(self, lane: Lane, trouble: Trouble) -> None:
        self.lanes[lane.flow_id] = _replace(lane, trouble=trouble)
        if needs_person(trouble):
            flow = self.flows[lane.flow_id]
            self._transaction.on_commit += (lambda: self._host.tell_attention(flow, trouble),)

    async def _write(self) -> None:
        """Write everything but the lanes, so that the following decision sees it."""
        records = self.records
        states = (
            FlowState(flow_id=flow_id, handler=handler, state=state)
            for (flow_id, handler), state in self.kept_states.items()
        )
        if not await records.end_runs(self._ended, self._consumed, states, self.now):
            raise ReservationsGoneError
        await records.insert_runs(self._begun)
        await records.release(self._released)
        await records.hand_over(self._handed_over)
        await records.publish(self._published)
        await records.register_inputs(self._inputs)
        await records.cause(self._causes)
        await records.inherit_causes(self._inherited)


def _is_commit(result: AttemptResult) -> bool:
    return isinstance(result.value, RunEnd) and result.value.failure is None


def _is_its_own(event: FlowEvent | None, run_id: str) -> bool:
    return event is not None and (
        event.status == "pending" or (event.status == "reserved" and event.run_id == run_id)
    )


def _failure_of(result: AttemptResult) -> tuple[FailureKind, str]:
    """Why an attempt ended without a result."""
    if result.ending is AttemptEnd.TIMED_OUT:
        return FailureKind.TIMEOUT, result.failure or "the handler did not return in time"
    if result.ending in {AttemptEnd.CRASHED, *_NOT_CALLED}:
        return FailureKind.CRASH, result.failure or "its process ended before it"
    return FailureKind.INTERNAL, result.failure or "a fault of the host"

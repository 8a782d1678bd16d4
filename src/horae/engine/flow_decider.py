"""The decider of flows: records how runs ended, chooses what each flow does next, and claims it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from horae.engine.decider import Batch, Decider, NodeServices
from horae.engine.flow_attempt import Fixed, HandlerRun, read_prepared, reconcile
from horae.engine.flow_host import FlowHost, HostedFlow
from horae.engine.flow_phase_writer import FlowJournal
from horae.engine.flow_results import FlowResults, ReservationsGoneError
from horae.engine.worker import Launch
from horae.executor.attempt_context import RunningAttempt
from horae.flow.definition import Handler
from horae.flow.phase_permissions import DEFAULT_PEEK
from horae.flow_model import (
    FlowEvent,
    FlowRun,
    FlowStatus,
    HandlerKind,
    Lane,
    Phase,
    Recovery,
    Task,
    flow_run_id,
)
from horae.model import AUTOMATIC, AttemptResult, Overlap, Run, ScheduleKey, Status, Timeouts
from horae.policy.flow_failure_handling import without_handler
from horae.policy.flow_next_handler import begun, choose, due_handlers, published
from horae.store.flow_queries import FlowRecords, Probe
from horae.store.port import Store, Transaction

MAX_KNOWN_STATES = 10_000
"""For how many flows a node caches the state of their handlers."""
PRUNED_TOGETHER = 100
PRUNED_ROWS = 500
"""A round of pruning deletes up to ``PRUNED_ROWS`` rows of each kind from each of ``PRUNED_TOGETHER`` flows."""
_replace = msgspec.structs.replace


class Claimed(NamedTuple):
    """A flow that this node works on: its lane, its run, and the claim in the form that the worker takes."""

    hosted: HostedFlow
    handler: Handler
    lane: Lane
    run: FlowRun
    claim: Run


class FlowDecider(Decider):
    """Decides flows in batches: one transaction records ended runs and claims the next ones."""

    name = "flows"

    def __init__(self, node: NodeServices, host: FlowHost) -> None:
        super().__init__(node)
        self.host = host
        self._journal = FlowJournal(node.store, node.membership, node.clock, host)
        self._now = node.worker.shared_now
        self._verify = False  # whether each reservation is checked, because some were gone
        self._states: OrderedDict[int, tuple[int, dict[str, str]]] = OrderedDict()
        """The state of handlers by flow, with the number of runs it is from: another node may have run the flow since."""
        self._next_at_ms: int | None = None  # when the next flow is due, as far as this node knows
        self._prune_after = 0
        self._peeks: dict[tuple[int, str], int] = {}
        """How many events handlers read."""

    # The seam

    async def run_batches(self, now: int) -> int | None:
        if self.host.is_empty and not self.node.worker.has_results(self.name):
            self._unclaimed = False
            return None
        with self._forgetting_states():
            try:
                return await super().run_batches(now)
            except ReservationsGoneError:
                self._states.clear()
                self._verify = True
            try:
                return await super().run_batches(now)
            finally:
                self._verify = False

    async def record_and_decide(self, batch: Batch, results: Sequence[AttemptResult]) -> int | None:
        work = self._results(batch.transaction, batch.now)
        if results:
            await self._record(work, results)
        if self.node.membership.superseded:
            await self._leave(work)
            return None
        return await self._decide(batch, work)

    async def decide(self, batch: Batch) -> int | None:
        return await self._decide(batch, self._results(batch.transaction, batch.now))

    async def record(self, transaction: Transaction, results: Sequence[AttemptResult], now: int) -> object:
        try:
            work = self._results(transaction, now)
            await self._record(work, results)
            await self._leave(work)
        except ReservationsGoneError:
            self._verify = True
            raise
        return None

    async def record_results(self, now: int) -> None:
        with self._forgetting_states():
            try:
                await super().record_results(now)
            except ReservationsGoneError:
                self._states.clear()
                await super().record_results(now)
            finally:
                self._verify = False

    async def claimed(self, transaction: Transaction, epochs: Sequence[int], limit: int) -> Sequence[Run]:
        return [_claim_of(lane) for lane in await FlowRecords(transaction).claimed(epochs, limit)]

    async def prepare(self, transaction: Transaction, runs: Sequence[Run]) -> Sequence[Launch]:
        """Launch the attempts that a commit with a lost answer has claimed."""
        records = FlowRecords(transaction)
        lanes = await records.lanes([int(run.schedule_id) for run in runs])
        stored = await records.runs_by_id([run.id for run in runs])
        claimed = []
        for run in runs:
            lane, flow_run = lanes[int(run.schedule_id)], stored[run.id]
            hosted = self.host.find(lane.flow_id, lane.revision)
            handler = None if hosted is None else hosted.flow.handler(flow_run.handler)
            begins = (
                flow_run.phase in {Phase.EXECUTING, Phase.PREPARING, Phase.EMITTING}
                or lane.task is not Task.RUN
            )
            if hosted is None or handler is None or not begins:
                self.node.worker.refuse(self.name, run)
            else:
                claimed.append(Claimed(hosted, handler, lane, flow_run, run))
        return await self._launches(records, claimed)

    async def prune(self, now: int) -> int:
        """Delete old events and runs of some flows, a page of them each round."""
        config = self.node.config
        async with self.node.store.transaction() as transaction:
            records = FlowRecords(transaction)
            ids = await records.flow_ids(self._prune_after, PRUNED_TOGETHER)
            before = now - config.flow_retention_age_ms
            removed = await records.prune(ids, before, config.flow_retention_count, PRUNED_ROWS)
        if removed < PRUNED_ROWS:  # else the same flows have more
            self._prune_after = ids[-1] if len(ids) == PRUNED_TOGETHER else 0
        return removed

    # Deciding

    def _results(self, transaction: Transaction, now: int) -> FlowResults:
        return FlowResults(transaction, self.host, self.node.config, now, verify=self._verify)

    async def _record(self, work: FlowResults, results: Sequence[AttemptResult]) -> None:
        """Record results, and cache the state of their handlers and how many events they read."""
        await work.record(results)
        for (flow_id, handler), state in work.kept_states.items():
            if flow_id in self._states:
                runs, states = self._states[flow_id]
                self._states[flow_id] = (runs, {**states, handler: state})
        self._peeks.update(work.peeks)
        if len(self._peeks) > MAX_KNOWN_STATES:
            self._peeks.clear()

    @contextmanager
    def _forgetting_states(self) -> Iterator[None]:
        """Drop the cached state of handlers if it may not have been committed."""
        try:
            yield
        except BaseException:
            self._states.clear()
            raise

    async def _leave(self, work: FlowResults) -> None:
        """Write the lanes of recorded results, and leave them due for the next decision."""
        await work.records.write_lanes(
            _replace(lane, next_at_ms=None if lane.run_id else work.now) for lane in work.lanes.values()
        )

    async def _decide(self, batch: Batch, work: FlowResults) -> int | None:
        records, now, lanes = work.records, batch.now, work.lanes
        revisions, limit = self.host.revisions, self.node.store.batch
        probe = Probe(self._next_at_ms, signalled=False)
        if self.changed:
            probe = await records.probe(revisions)
            self._next_at_ms = probe.next_at_ms
        if probe.signalled:
            for lane in await records.signalled(revisions, limit):
                lanes.setdefault(lane.flow_id, lane)
            await self._take_signals(work)
        due: list[Lane] = []
        if probe.next_at_ms is not None and probe.next_at_ms <= now:
            due = await records.due(revisions, now, limit)
            for lane in due:
                lanes.setdefault(lane.flow_id, lane)
        if not lanes:
            return probe.next_at_ms
        await work.load_flows(lanes.values())
        claimed = await self._claim(batch, work)
        new = (each.run for each in claimed if each.run.status is FlowStatus.ACTIVE)
        await records.write_lanes(lanes.values(), new)
        batch.launches = await self._launches(records, claimed)
        batch.decided = len(lanes) - batch.unclaimed
        batch.more = len(due) == limit and batch.free_capacity > 0
        if probe.next_at_ms is not None and probe.next_at_ms <= now:
            probe = await records.probe(revisions)
        later = [probe.next_at_ms, *(lane.next_at_ms for lane in lanes.values())]
        # What waits for capacity is decided when a run ends.
        least = now if batch.free_capacity > 0 else now + 1
        self._next_at_ms = min((each for each in later if each is not None and each >= least), default=None)
        return self._next_at_ms

    async def _take_signals(self, work: FlowResults) -> None:
        """Mark the consumers of events that were published from outside, in the locked flows."""
        await work.load_flows(work.lanes.values())
        for flow_id, topics in (await work.records.take_signals(work.lanes)).items():
            lane = work.lanes[flow_id]
            work.lanes[flow_id] = published(lane, work.flows[flow_id].definition, topics)

    async def _claim(self, batch: Batch, work: FlowResults) -> list[Claimed]:
        """Choose what each locked flow does and claim it; set when to decide each lane next."""
        claimed: list[Claimed] = []
        for flow_id, lane in work.lanes.items():
            if lane.trouble and work.flows[flow_id].definition.handler(lane.trouble.handler) is None:
                work.lanes[flow_id] = _replace(lane, trouble=without_handler(lane.trouble))
        earlier = await self._earlier_runs(work)
        handed_over = []
        for flow_id, lane in work.lanes.items():
            if lane.run_id is not None:
                work.lanes[flow_id] = _replace(lane, next_at_ms=None)
                continue
            flow = work.flows[flow_id]
            choice = choose(lane, flow.definition, batch.now, await self._oldest(work, lane, batch.now))
            if choice.handler is None:
                work.lanes[flow_id] = _replace(lane, next_at_ms=choice.next_at_ms)
                continue
            hosted = self.host.find(flow_id, lane.revision)
            handler = None if hosted is None else hosted.flow.handler(choice.handler)
            if hosted is None or handler is None or batch.free_capacity <= 0:
                work.lanes[flow_id] = _replace(lane, next_at_ms=batch.now)
                batch.unclaimed += 1
                continue
            claim = _begin(batch, lane, hosted, handler, task=choice.task, earlier=earlier)
            if claim.run.phase is Phase.EMITTING and claim.run.retry_of is not None:
                handed_over.append((claim.run.retry_of, claim.run.id, read_prepared(claim.run).numbers))
            work.lanes[flow_id] = claim.lane
            claimed.append(claim)
        await work.records.hand_over(handed_over)
        return claimed

    async def _earlier_runs(self, work: FlowResults) -> dict[str, FlowRun]:
        """The failed runs that are retried or reconciled now, by id."""
        ids = [lane.trouble.run_id for lane in work.lanes.values() if lane.run_id is None and lane.trouble]
        return await work.records.runs_by_id(ids) if ids else {}

    async def _oldest(self, work: FlowResults, lane: Lane, now: int) -> dict[str, int]:
        """When the oldest pending event of each topic was published; read only if several consumers are due."""
        if lane.trouble is not None or lane.paused:
            return {}
        due = due_handlers(lane, work.flows[lane.flow_id].definition, now)
        consumers = [each for each in due if each.kind is HandlerKind.CONSUMER]
        if len(consumers) < 2:
            return {}
        topics = {topic for each in consumers for topic in each.subscribes}
        return await work.records.oldest_pending(lane.flow_id, topics)

    # Launching

    async def _launches(self, records: FlowRecords, claimed: Sequence[Claimed]) -> list[Launch]:
        """The launches of claimed attempts, with their states and the pending events that they will read."""
        running = [each for each in claimed if each.lane.task is Task.RUN]
        states = await self._known_states(records, running)
        peeked = await self._prefetch(records, running)
        return [self._launch_of(each, states, peeked) for each in claimed]

    def _launch_of(
        self,
        each: Claimed,
        states: dict[tuple[int, str], str],
        peeked: dict[tuple[int, str], list[FlowEvent]],
    ) -> Launch:
        hosted, handler, lane, run, claim = each
        flow_id, name = lane.flow_id, hosted.stored.name
        timeout_ms = handler.definition.timeout_ms or self.node.config.flow_timeout_ms
        events = Events(self.node.store, self.host, flow_id, peeked)
        call: object
        match lane.task:
            case Task.RUN:
                call = HandlerRun(
                    name, handler, run, claim.epoch, states.get((flow_id, run.handler)), events=events,
                    journal=self._journal, now=self._now,
                )  # fmt: skip
            case Task.RECONCILE:
                call = partial(reconcile, name, handler, run, events=events, now=self._now)
            case Task.FIX:
                call = partial(_fix, self.host, hosted, run)
        return Launch(run=claim, timeouts=_timeouts(timeout_ms), call=call)

    async def _known_states(
        self, records: FlowRecords, claimed: Sequence[Claimed]
    ) -> dict[tuple[int, str], str]:
        """The state of the handlers of claimed runs; read only if it is not cached."""
        known: dict[tuple[int, str], str] = {}
        unknown = []
        for each in claimed:
            flow_id = each.lane.flow_id
            runs, states = self._states.get(flow_id, (-1, {}))
            if runs == each.lane.runs - 1:
                known |= {(flow_id, handler): state for handler, state in states.items()}
                self._states[flow_id] = (each.lane.runs, states)
            else:
                unknown.append(each.lane)
        if unknown:
            read = await records.states([lane.flow_id for lane in unknown])
            for lane in unknown:
                states_of_flow = {
                    handler: state for (flow_id, handler), state in read.items() if flow_id == lane.flow_id
                }
                self._states[lane.flow_id] = (lane.runs, states_of_flow)
            known |= read
        while len(self._states) > MAX_KNOWN_STATES:
            self._states.popitem(last=False)
        return known

    async def _prefetch(
        self, records: FlowRecords, claimed: Sequence[Claimed]
    ) -> dict[tuple[int, str], list[FlowEvent]]:
        """The pending events that claimed consumers will read: one statement for consumers that read the same number."""
        wanted: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        for each in claimed:
            if each.run.phase is Phase.PREPARING:
                limit = self._peeks.get((each.lane.flow_id, each.run.handler), DEFAULT_PEEK)
                if limit:
                    wanted[limit] += [
                        (each.lane.flow_id, topic) for topic in each.handler.definition.subscribes
                    ]
        peeked: dict[tuple[int, str], list[FlowEvent]] = {}
        for limit, topics in wanted.items():
            events = await records.prefetch(topics, limit)
            peeked |= {topic: Prefetched(events.get(topic, ()), limit) for topic in topics}
        return peeked


class Prefetched(list[FlowEvent]):
    """The first pending events of a topic, up to a limit, as of the claim of a run."""

    def __init__(self, events: Iterable[FlowEvent], limit: int) -> None:
        super().__init__(events)
        self.limit = limit

    def first(self, limit: int) -> list[FlowEvent] | None:
        """The first pending events; ``None`` if more must be read to know them."""
        return self[:limit] if limit <= len(self) or len(self) < self.limit else None


class Events:
    """The events that a run's context reads: those read with the claim, and all others from the database."""

    def __init__(
        self,
        store: Store,
        host: FlowHost,
        flow_id: int,
        prefetched: dict[tuple[int, str], list[FlowEvent]],
    ) -> None:
        self._store = store
        self._host = host
        self._flow_id = flow_id
        self._prefetched = prefetched

    async def pending(self, topic: str, limit: int) -> Sequence[FlowEvent]:
        """Pending events of a topic, oldest first."""
        known = self._prefetched.get((self._flow_id, topic))
        if isinstance(known, Prefetched) and (found := known.first(limit)) is not None:
            return found
        with self._host.using_store():
            async with self._store.reading() as transaction:
                return await FlowRecords(transaction).pending(self._flow_id, topic, limit)

    async def by_message(self, topic: str, message_ids: Sequence[str]) -> Sequence[FlowEvent]:
        """The events of a topic with the given message ids."""
        with self._host.using_store():
            async with self._store.reading() as transaction:
                return await FlowRecords(transaction).events_by_message(self._flow_id, topic, message_ids)


async def _fix(host: FlowHost, hosted: HostedFlow, run: FlowRun, attempt: RunningAttempt) -> Fixed:  # noqa: ARG001 - all calls get it
    """Call the fixer."""
    if host.fixer is None:
        return Fixed(None)
    try:
        return Fixed(await host.fixer.fix(hosted.flow, run))
    except Exception as error:
        return Fixed(None, f"{type(error).__name__}: {error}")


def _begin(
    batch: Batch,
    lane: Lane,
    hosted: HostedFlow,
    handler: Handler,
    *,
    task: Task,
    earlier: dict[str, FlowRun],
) -> Claimed:
    """Claim a flow: for a new run, or to reconcile or fix the one that failed."""
    now, trouble, stored = batch.now, lane.trouble, hosted.stored
    if task is Task.RUN:
        run = _new_run(lane, hosted, handler, earlier, now)
        lane = _replace(begun(lane, handler.name), runs=lane.runs + 1)
    else:
        assert trouble is not None  # noqa: S101 - nothing else is reconciled or fixed
        run = earlier[trouble.run_id]
    lane = _replace(
        lane, run_id=run.id, task=task, epoch=batch.epoch, attempt=lane.attempt + 1, next_at_ms=None
    )
    claim = batch.take(_replace(_claim_of(lane, f"{stored.name}/{handler.name}"), attempt=lane.attempt - 1))
    return Claimed(hosted, handler, lane, run, claim)


def _new_run(
    lane: Lane, hosted: HostedFlow, handler: Handler, earlier: dict[str, FlowRun], now: int
) -> FlowRun:
    stored, trouble = hosted.stored, lane.trouble
    producer = handler.definition.kind is HandlerKind.PRODUCER
    run = FlowRun(
        id=flow_run_id(lane.flow_id, stored.owner, stored.name, lane.runs), flow_id=lane.flow_id, handler=handler.name,
        kind=handler.definition.kind, phase=Phase.EXECUTING if producer else Phase.PREPARING, status=FlowStatus.ACTIVE,
        created_at_ms=now, updated_at_ms=now, revision=lane.revision,
        retry_of=None if trouble is None else trouble.run_id,
    )  # fmt: skip
    if trouble is None or trouble.recovery is not Recovery.EMIT:
        return run
    before = earlier[trouble.run_id]
    return _replace(
        run, phase=Phase.EMITTING, prepared=before.prepared, mutation=trouble.mutation or before.mutation,
        events=before.events, title=before.title,
    )  # fmt: skip


@lru_cache(1024)
def _timeouts(run_ms: int) -> Timeouts:
    return Timeouts(run=timedelta(milliseconds=run_ms))


def _claim_of(lane: Lane, name: str = "") -> Run:
    """The claim of a lane, as the worker takes it."""
    return Run(
        id=lane.run_id or "", schedule_key=ScheduleKey(str(lane.flow_id)), generation=1, nominal_ms=0, origin=AUTOMATIC,
        overlap=Overlap.SKIP, status=Status.RUNNING, fire_ms=0, start_at_ms=0, action="flow",
        action_id=name or f"flow {lane.flow_id}", attempt=lane.attempt, epoch=lane.epoch,
    )  # fmt: skip

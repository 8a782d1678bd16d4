"""The stored records of flows: lanes, events, inputs and runs, in a transaction of any store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from horae.flow_model import (
    EventStatus,
    FlowEvent,
    FlowInput,
    FlowRun,
    Lane,
    Phase,
    StoredFlow,
)
from horae.model import LogChunk
from horae.store.port import Transaction, Write
from horae.store.tables import (
    FLOW,
    FLOW_EVENT,
    FLOW_INPUT,
    FLOW_LANE,
    FLOW_LOG,
    FLOW_RUN,
    FLOW_SIGNAL,
    FLOW_STATE,
    FlowSignal,
    FlowState,
)

LAST_NUMBER = 2**62
"""Greater than the number of every event, input and run."""


class Probe(NamedTuple):
    """When the next flow is due, and whether events were published from outside."""

    next_at_ms: int | None
    signalled: bool


class RunMove(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A move of an active run to a later phase, under its claim, with the events that it reserves."""

    run_id: str
    epoch: int
    phase: Phase
    updated_at_ms: int
    prepared: str | None = None
    mutation: str | None = None
    events: int = 0
    title: str = ""
    numbers: Sequence[int] = ()


Reserved = Iterable[tuple[str, Sequence[int]]]
"""Runs, and the numbers of the events of each."""


class FlowRecords:
    """The records of flows, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows
        self._find = transaction.find
        self._find_one = transaction.find_one
        self._write = transaction.write

    # Flows and lanes

    async def flow(self, owner: str, name: str) -> StoredFlow | None:
        """A flow by its owner and name."""
        return await self._find_one(FLOW, "flow_named", owner=owner, name=name)

    async def flows(self, owner: str | None, after: tuple[str, str], limit: int) -> list[StoredFlow]:
        """A page of an owner's flows, or of all flows if ``owner`` is ``None``, in the order of names and owners."""
        name, whose = after
        return await self._find(FLOW, "flows", owner=owner, after_name=name, after_owner=whose, limit=limit)

    async def flows_called(self, name: str) -> list[StoredFlow]:
        """The first two flows of a name, of any owners."""
        return await self._find(FLOW, "flows_called", name=name)

    async def flows_by_id(self, ids: Collection[int]) -> dict[int, StoredFlow]:
        """The flows with the given ids, by id."""
        found = await self._find(FLOW, "flows_by_id", ids=list(ids))
        return {each.flow_id: each for each in found}

    async def flow_ids(self, after: int, limit: int) -> list[int]:
        """A page of the ids of flows."""
        return await self._transaction.column("flow_ids", after=after, limit=limit)

    async def prune(self, flow_ids: Iterable[int], before: int, count: int, max_rows: int) -> int:
        """Delete what is beyond the retention of some flows; return how many rows were deleted."""
        bounds = {"before": before, "count": count, "max_rows": max_rows}
        rows = [{"flow_id": each, **bounds} for each in flow_ids]
        return await self._write("prune_flow_events", rows) + await self._write("prune_flow_runs", rows)

    async def insert_flow(self, flow: StoredFlow) -> None:
        """Insert a flow, unless another node has just done so."""
        columns = FLOW.parameters(flow)
        del columns["flow_id"]
        await self._rows("insert_flow", **columns)

    async def update_flow(self, flow: StoredFlow) -> None:
        """Replace the definition and the revision of a flow."""
        columns = FLOW.parameters(flow)
        wanted = ("flow_id", "definition", "revision", "updated_at_ms")
        await self._rows("update_flow", **{name: columns[name] for name in wanted})

    async def probe(self, revisions: Sequence[str]) -> Probe:
        """Whether anything is due for a node that hosts the given revisions."""
        ((next_at_ms, signalled),) = await self._rows("flow_probe", revisions=list(revisions))
        return Probe(next_at_ms, bool(signalled))

    async def due(self, revisions: Sequence[str], now: int, limit: int) -> list[Lane]:
        """The due lanes of the given revisions, the longest overdue first; locked."""
        return await self._find(FLOW_LANE, "due_flows", revisions=list(revisions), now=now, limit=limit)

    async def signalled(self, revisions: Sequence[str], limit: int) -> list[Lane]:
        """The lanes of the given revisions with events that were published from outside; locked."""
        return await self._find(FLOW_LANE, "signalled_flows", revisions=list(revisions), limit=limit)

    async def take_signals(self, flow_ids: Collection[int]) -> dict[int, set[str]]:
        """Take the topics in which events were published from outside, by flow. The lanes must be locked."""
        topics: dict[int, set[str]] = defaultdict(set)
        for flow_id, topic in await self._rows("take_signals", ids=list(flow_ids)):
            topics[flow_id].add(topic)
        return topics

    async def lock(self, flow_ids: Collection[int]) -> list[Lane]:
        """The lanes of the given flows; locked."""
        return await self._find(FLOW_LANE, "lock_flows", ids=sorted(flow_ids))

    async def lanes(self, flow_ids: Collection[int]) -> dict[int, Lane]:
        """The lanes of the given flows, by id; not locked."""
        found = await self._find(FLOW_LANE, "flow_lanes", ids=list(flow_ids))
        return {each.flow_id: each for each in found}

    async def claimed(self, epochs: Sequence[int], limit: int) -> list[Lane]:
        """The lanes that the given nodes work on."""
        return await self._find(FLOW_LANE, "claimed_flows", epochs=list(epochs), limit=limit)

    async def insert_lane(self, lane: Lane) -> None:
        """Insert the lane of a new flow."""
        await self._transaction.insert(FLOW_LANE, [lane])

    async def write_lanes(self, lanes: Iterable[Lane], new_runs: Iterable[FlowRun] = ()) -> None:
        """Write decided lanes, with the runs that begin. A flow has one active run: another is an error."""
        await self._transaction.write_together(
            Write("update_flow_lane", [FLOW_LANE.parameters(each) for each in lanes]), _new_runs(new_runs)
        )

    # What handlers keep

    async def states(self, flow_ids: Collection[int]) -> dict[tuple[int, str], str]:
        """The state of the handlers of the given flows, as JSON, by flow and handler."""
        found = await self._rows("flow_states", ids=list(flow_ids))
        return {(flow_id, handler): state for flow_id, handler, state in found}

    # Events

    async def publish(self, events: Sequence[FlowEvent], signals: Sequence[FlowSignal] = ()) -> None:
        """Publish events of one moment; an event that is pending gets the new payload.

        If several events have the same message id, the last counts. With ``signals``, the next decision of each flow sees the events.
        """
        rows = {
            (each.flow_id, each.topic, each.message_id): {
                "flow_id": each.flow_id, "topic": each.topic, "message_id": each.message_id,
                "payload": each.payload, "caused": each.caused,
            }
            for each in events
        }  # fmt: skip
        if rows:
            await self._transaction.write_together(
                Write("publish_events", list(rows.values()), {"created_at_ms": events[0].created_at_ms}),
                Write("insert_signal", [FLOW_SIGNAL.parameters(each) for each in signals]),
            )

    async def pending(self, flow_id: int, topic: str, limit: int) -> list[FlowEvent]:
        """Pending events of a topic, oldest first."""
        return await self._find(FLOW_EVENT, "pending_events", flow_id=flow_id, topic=topic, limit=limit)

    async def prefetch(
        self, topics: Sequence[tuple[int, str]], limit: int
    ) -> dict[tuple[int, str], list[FlowEvent]]:
        """The first pending events of each of the given topics, oldest first."""
        found: dict[tuple[int, str], list[FlowEvent]] = defaultdict(list)
        events = await self._find(
            FLOW_EVENT, "prefetch_events", pairs=[list(each) for each in topics], ids=[each for each, _ in topics],
            topics=[each for _, each in topics], limit=limit,
        )  # fmt: skip
        for event in sorted(events, key=lambda each: each.number):
            found[event.flow_id, event.topic].append(event)
        return found

    async def events_by_message(
        self, flow_id: int, topic: str, message_ids: Collection[str]
    ) -> list[FlowEvent]:
        """The events of a topic with the given message ids."""
        return await self._find(
            FLOW_EVENT, "events_by_message", flow_id=flow_id, topic=topic, message_ids=list(message_ids)
        )

    async def events_by_number(self, numbers: Collection[int]) -> dict[int, FlowEvent]:
        """The events with the given numbers, by number."""
        found = await self._find(FLOW_EVENT, "events_by_number", numbers=list(numbers))
        return {each.number: each for each in found}

    async def oldest_pending(self, flow_id: int, topics: Collection[str]) -> dict[str, int]:
        """When the oldest pending event of each of the given topics was published; topics without one are missing."""
        found = await self._rows("oldest_pending", flow_id=flow_id, topics=list(topics))
        return {topic: created_at_ms for topic, created_at_ms in found if created_at_ms is not None}

    async def release(self, reserved: Reserved) -> None:
        """Release the reservations of runs."""
        await self._write("release_events", _numbered(reserved))

    async def hand_over(self, taken: Iterable[tuple[str, str, Sequence[int]]]) -> None:
        """Transfer reservations to the runs that continue others: the old run, the new run, event numbers."""
        rows = [
            {"number": number, "run_id": new, "retry_of": old} for old, new, numbers in taken for number in numbers
        ]  # fmt: skip
        await self._write("hand_over_events", rows)

    async def skip(self, numbers: Iterable[int], now: int) -> int:
        """Skip events that are not consumed; return how many."""
        return await self._write("skip_events", [{"number": each, "ended_at_ms": now} for each in numbers])

    async def find_events(
        self, flow_id: int, topic: str | None, statuses: Collection[EventStatus], before: int, limit: int
    ) -> list[FlowEvent]:
        """A page of the events of a flow, newest first."""
        return await self._find(
            FLOW_EVENT, "find_events", flow_id=flow_id, topic=topic, statuses=[each.value for each in statuses],
            before=before, limit=limit,
        )  # fmt: skip

    async def count_events(self, flow_id: int, limit: int) -> dict[tuple[str, EventStatus], int]:
        """How many events of a flow are pending and reserved, by topic, counted up to a limit."""
        found = await self._rows("count_events", flow_id=flow_id, limit=limit)
        return {(topic, EventStatus(status)): count for topic, status, count in found}

    async def count_attention(self, limit: int) -> int:
        """How many flows need attention, counted up to a limit."""
        return int(await self._transaction.value("count_attention", limit=limit))

    # Inputs

    async def register_inputs(self, inputs: Iterable[FlowInput]) -> None:
        """Register inputs, each once."""
        last = {(each.flow_id, each.source, each.type, each.input_id): each for each in inputs}
        await self._write("put_inputs", [FLOW_INPUT.parameters(each) for each in last.values()])

    async def cause(self, events: Iterable[tuple[FlowEvent, FlowInput]]) -> None:
        """Record which inputs caused published events."""
        rows = [
            {
                "flow_id": event.flow_id, "topic": event.topic, "message_id": event.message_id,
                "source": cause.source, "type": cause.type, "input_id": cause.input_id,
            }
            for event, cause in events
        ]  # fmt: skip
        await self._write("cause_events", rows)

    async def inherit_causes(self, events: Iterable[tuple[FlowEvent, int]]) -> None:
        """Record that published events have the same cause as another event, given by its number."""
        rows = [
            {"flow_id": event.flow_id, "topic": event.topic, "message_id": event.message_id, "number": number}
            for event, number in events
        ]
        await self._write("inherit_causes", rows)

    async def find_inputs(self, flow_id: int, before: int, limit: int) -> list[tuple[FlowInput, int]]:
        """A page of the inputs of a flow, newest first, and how many open events each has."""
        found = await self._rows("find_inputs", flow_id=flow_id, before=before, limit=limit)
        return [(FLOW_INPUT.decode(columns), count) for *columns, count in found]

    async def input(self, flow_id: int, source: str, kind: str, input_id: str) -> FlowInput | None:
        """An input by its source, type and id."""
        return await self._find_one(
            FLOW_INPUT, "input_named", flow_id=flow_id, source=source, type=kind, input_id=input_id
        )

    async def events_of_input(self, number: int) -> list[tuple[int, str | None]]:
        """The numbers of the open events of an input, and the run that reserved each."""
        return await self._transaction.tuples("events_of_input", number=number)

    async def mark_input_skipped(self, number: int, now: int) -> None:
        """Record that an input was skipped."""
        await self._rows("mark_input_skipped", number=number, skipped_at_ms=now)

    # Runs

    async def insert_runs(self, runs: Iterable[FlowRun]) -> None:
        """Insert new runs. A flow has one active run: another is an error."""
        await self._transaction.write_together(_new_runs(runs))

    async def move_runs(self, moves: Sequence[RunMove]) -> tuple[bool, bool]:
        """Move active runs forward under their claims, and reserve events for them.

        Returns whether all claims hold, and whether all events are pending or were reserved by their runs.
        """
        rows = [msgspec.structs.asdict(each) for each in moves]
        reserved = _numbered((each.run_id, each.numbers) for each in moves)
        moved, taken = await self._transaction.write_together(
            Write("move_flow_run", rows), Write("reserve_events", reserved)
        )
        return moved == len(rows), taken == len(reserved)

    async def end_runs(
        self, runs: Iterable[FlowRun], consumed: Reserved, states: Iterable[FlowState], now: int
    ) -> bool:
        """Record how active runs ended, consume the events of some, and store the new state of their handlers.

        Returns ``False`` if some events are neither reserved by their run nor pending.
        """
        numbered = _numbered(consumed)
        _, taken, _ = await self._transaction.write_together(
            Write("end_flow_run", [FLOW_RUN.parameters(each) | {"run_id": each.id} for each in runs]),
            Write("consume_events", numbered, {"now": now}),
            Write("put_flow_state", [FLOW_STATE.parameters(each) for each in states]),
        )
        return taken == len(numbered)

    async def runs_by_id(self, ids: Collection[str]) -> dict[str, FlowRun]:
        """The runs with the given ids, by id; locked."""
        found = await self._find(FLOW_RUN, "flow_runs_by_id", ids=sorted(ids))
        return {each.id: each for each in found}

    async def run(self, run_id: str) -> FlowRun | None:
        """The run with an id."""
        return await self._find_one(FLOW_RUN, "flow_run", id=run_id)

    async def log(self, run_id: str, after: tuple[int, int], limit: int) -> list[LogChunk]:
        """A page of a run's log, after the line of the given attempt and number."""
        attempt, number = after
        return await self._find(
            FLOW_LOG, "flow_log", run_id=run_id, attempt=attempt, number=number, limit=limit
        )

    async def runs(self, flow_id: int, handler: str | None, before: int, limit: int) -> list[FlowRun]:
        """A page of the runs of a flow, newest first."""
        return await self._find(
            FLOW_RUN, "flow_runs", flow_id=flow_id, handler=handler, before=before, limit=limit
        )

    async def runs_around(self, flow_id: int, at_ms: int) -> list[FlowRun]:
        """The last runs of a flow that began before a moment and the first that began after it; oldest first."""
        found = await self._find(FLOW_RUN, "flow_runs_around", flow_id=flow_id, at_ms=at_ms)
        return sorted(found, key=lambda run: run.number)


def _new_runs(runs: Iterable[FlowRun]) -> Write:
    return Write("insert_flow_run", [FLOW_RUN.parameters(each) for each in runs])


def _numbered(reserved: Reserved) -> list[dict[str, Any]]:
    return sorted(
        ({"number": number, "run_id": run_id} for run_id, numbers in reserved for number in numbers),
        key=lambda row: row["number"],
    )

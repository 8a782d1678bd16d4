"""The operations on flows: deploy, read, run now, pause and resume, resolve, publish, skip."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Literal

import msgspec

from horae.app.attempt_logs import lines_of
from horae.app.field_checks import check_owner, check_text, moment_ms
from horae.app.flow_views import (
    FlowEventView,
    FlowInputView,
    FlowRunView,
    FlowSummaryView,
    FlowView,
    event_view,
    full_view,
    input_view,
    run_view,
    summary,
)
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope
from horae.app.page import MAX_BYTES, Page, cursor_of, number_before, page_limit, place_of, read_newest
from horae.checked import converted
from horae.engine.flow_attempt import read_mutation, read_prepared
from horae.engine.flow_decider import FlowDecider
from horae.engine.flow_deploy import deploy
from horae.errors import (
    FlowInputNotFoundError,
    FlowNotFoundError,
    FlowRefusedError,
    FlowRunNotFoundError,
    InvalidInputError,
    LimitExceededError,
)
from horae.flow.definition import Flow
from horae.flow.json_text import json_text
from horae.flow.phase_permissions import MAX_KEPT, MAX_NAME, MAX_PAYLOAD, is_name
from horae.flow_model import (
    EventStatus,
    FlowEvent,
    FlowRun,
    FlowStatus,
    Lane,
    Mutation,
    MutationStatus,
    Pause,
    Recovery,
    StoredFlow,
)
from horae.model import LogLine
from horae.policy.flow_explain import explain, run_now_refusal
from horae.policy.flow_failure_handling import SKIPPED, Answer, after_reconciliation, retried
from horae.policy.flow_next_handler import queued
from horae.policy.flow_phase_transitions import may_be_skipped
from horae.store.flow_queries import LAST_NUMBER, FlowRecords
from horae.store.tables import FlowSignal

MAX_PAUSES = 20
"""How many pauses by hand are remembered."""
MAX_BATCH = 10_000
"""How many events one call publishes."""
RECENT = 200
"""How many of the latest runs and inputs are searched for a flow's activity."""
SHOWN = 20
MAX_COUNTED = 100_000
"""Up to how many open events are counted."""
MAX_CHAIN = 1000
LOG_CHUNKS = 50
"""The number of rows in a page of a log, each of up to 16 KiB and a line."""
Decision = Literal["retry", "approved", "applied", "not_applied", "skip"]
"""How a person resolves a failure."""
_replace = msgspec.structs.replace


@checks_arguments
class Flows:
    """Flows by name: those of one owner, or those that have none."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def deploy(self, flow: Flow, *, owner: str | None = None) -> StoredFlow:
        """Check and store a flow, and host it in this process: its handlers run here from now on."""
        if self._scope.owner is not None and owner not in {None, self._scope.owner}:
            raise InvalidInputError("owner", "is not the owner of this scope")
        owner = self._scope.owner or owner or ""
        check_owner(owner)
        async with self._changing() as records:
            stored = await deploy(records, flow, owner, self._scope.now())
        self._scope.flows.host(flow, stored)
        return stored

    async def publish(
        self, flow: str, topic: str, message_id: str, payload: Any = None, *, owner: str | None = None  # noqa: ANN401
    ) -> None:  # fmt: skip
        """Publish an event from outside. The same message id again updates the payload while the event is pending."""
        await self.publish_many(flow, [(topic, message_id, payload)], owner=owner)

    async def publish_many(
        self, flow: str, events: Sequence[tuple[str, str, Any]], *, owner: str | None = None
    ) -> int:
        """Publish many events, all or none, given as topics, message ids and payloads. Returns their number."""
        if len(events) > MAX_BATCH:
            reason = f"one call publishes at most {MAX_BATCH} events"
            raise LimitExceededError("events", MAX_BATCH, reason, hint="publish them in several calls")
        payloads = [_payload(*each, place=place) for place, each in enumerate(events)]
        topics = {topic for topic, _, _ in events}
        async with self._changing() as records:
            stored = await self._stored(records, flow, owner)
            _check_topics(stored, topics)
            flow_id, now = stored.flow_id, self._scope.now()
            await records.publish(
                [
                    FlowEvent(
                        flow_id=flow_id, topic=topic, message_id=message_id, payload=text, created_at_ms=now
                    )
                    for (topic, message_id, _), text in zip(events, payloads, strict=True)
                ],
                signals=[FlowSignal(flow_id=flow_id, topic=topic) for topic in topics],
            )
        return len(events)

    # Reading

    async def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[FlowSummaryView]:
        """Flows by name, in plain words."""
        limit = page_limit(limit)
        after = ("", "") if cursor is None else place_of(cursor, tuple[str, str])
        async with self._scope.store.reading() as transaction:
            records = FlowRecords(transaction)
            found = await records.flows(self._scope.owner, after, limit)
            lanes = await records.lanes([each.flow_id for each in found])
        now = self._scope.now()
        shown = [summary(each, lanes[each.flow_id], now) for each in found]
        more = len(found) == limit
        return Page(shown, cursor_of(found[-1].name, found[-1].owner) if more else None)

    async def show(self, flow: str, *, owner: str | None = None) -> FlowView:
        """A flow in plain words, with its recent activity, its unfinished inputs, and the details for operators."""
        async with self._reading(flow, owner) as (records, stored):
            lane = (await records.lanes([stored.flow_id]))[stored.flow_id]
            runs = await read_newest(
                partial(records.runs, stored.flow_id, None), RECENT, LAST_NUMBER, _size_of_run
            )
            inputs = await records.find_inputs(stored.flow_id, LAST_NUMBER, RECENT)
            counts = await records.count_events(stored.flow_id, MAX_COUNTED)
        did = [run for run in runs if run.status is FlowStatus.COMMITTED and (run.events or run.published)]
        return full_view(
            stored, lane, self._scope.now(), runs=did[:SHOWN], inputs=inputs, counts=counts,
            hosted_here=self._scope.flows.find(stored.flow_id, stored.revision) is not None,
        )  # fmt: skip

    async def runs(
        self,
        flow: str,
        *,
        handler: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        owner: str | None = None,
    ) -> Page[FlowRunView]:
        """Runs of a flow, newest first: one record for each attempt."""
        before = number_before(cursor)
        async with self._reading(flow, owner) as (records, stored):
            read = partial(records.runs, stored.flow_id, handler)
            found = await read_newest(read, limit, before, _size_of_run)
        return Page(map(run_view, found), found.next)

    async def chain(self, flow: str, run_id: str, *, owner: str | None = None) -> builtins.list[FlowRunView]:
        """A run and the earlier attempts that it retries, oldest first."""
        async with self._reading(flow, owner) as (records, stored):
            found: builtins.list[FlowRun] = []
            following: str | None = run_id
            size = 0
            while following is not None and len(found) < MAX_CHAIN and size < MAX_BYTES:
                run = await records.run(following)
                if run is None or run.flow_id != stored.flow_id:
                    break
                found.append(run)
                size += _size_of_run(run)
                following = run.retry_of
        if not found:
            raise FlowRunNotFoundError(run_id)
        return [run_view(each) for each in reversed(found)]

    async def logs(
        self, flow: str, run_id: str, *, cursor: str | None = None, owner: str | None = None
    ) -> Page[LogLine]:
        """A page of what the handler of a run logged, in order.

        ``next`` is ``None`` when no more lines can come; while the run is active, it leads to the later lines.
        """
        position = (0, LAST_NUMBER)
        if cursor is not None:
            _, *given = place_of(cursor, tuple[Literal["log"], int, int])
            position = (given[0], given[1])
        async with self._reading(flow, owner) as (records, stored):
            run = await records.run(run_id)
            if run is None or run.flow_id != stored.flow_id:
                raise FlowRunNotFoundError(run_id)
            chunks = await records.log(run_id, position, LOG_CHUNKS)
        lines = lines_of(chunks, position)
        if lines:
            position = (lines[-1].attempt, lines[-1].number)
        more = len(chunks) == LOG_CHUNKS or run.status is FlowStatus.ACTIVE
        return Page(lines, cursor_of("log", *position) if more else None)

    async def events(
        self,
        flow: str,
        *,
        topic: str | None = None,
        status: EventStatus | str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        owner: str | None = None,
    ) -> Page[FlowEventView]:
        """Events of a flow, newest first."""
        statuses = tuple(EventStatus) if status is None else (converted(status, EventStatus, "status"),)
        before = number_before(cursor)
        async with self._reading(flow, owner) as (records, stored):
            read = partial(records.find_events, stored.flow_id, topic, statuses)
            found = await read_newest(read, limit, before, lambda each: len(each.payload))
        return Page(map(event_view, found), found.next)

    async def inputs(
        self, flow: str, *, cursor: str | None = None, limit: int = 100, owner: str | None = None
    ) -> Page[FlowInputView]:
        """Inputs of a flow, newest first."""
        limit = page_limit(limit)
        before = number_before(cursor)
        async with self._reading(flow, owner) as (records, stored):
            found = await records.find_inputs(stored.flow_id, before, limit)
        more = len(found) == limit
        return Page([input_view(*each) for each in found], cursor_of(found[-1][0].number) if more else None)

    async def explain(
        self, flow: str, at: datetime | str, *, handler: str | None = None, owner: str | None = None
    ) -> str:
        """Why a flow, or one of its handlers, did or did not run at a moment, in a sentence."""
        at_ms = moment_ms("time", at)
        async with self._reading(flow, owner) as (records, stored):
            if handler is not None and stored.definition.handler(handler) is None:
                raise InvalidInputError("handler", f'the flow has no handler "{handler}"')
            lane = (await records.lanes([stored.flow_id]))[stored.flow_id]
            around = await records.runs_around(stored.flow_id, at_ms)
        return explain(
            stored.definition, lane, around, at_ms, now=self._scope.now(), handler=handler,
            deployed_at_ms=stored.created_at_ms,
        )  # fmt: skip

    # Changing

    async def run_now(self, flow: str, *, owner: str | None = None) -> FlowSummaryView:
        """Queue all producers of a flow. Refused while one of its handlers runs, and while it is paused or has failed."""

        def queue(stored: StoredFlow, lane: Lane) -> Lane:
            if reason := run_now_refusal(lane, stored.definition):
                raise FlowRefusedError(flow, f"cannot run now: {reason}")
            return queued(lane, stored.definition)

        return await self._change(flow, owner, queue)

    async def pause(self, flow: str, *, note: str = "", owner: str | None = None) -> FlowSummaryView:
        """Pause a flow: the run under way may end, nothing else starts, and triggers accumulate."""
        check_text("note", note)
        now = self._scope.now()

        def stop(_: StoredFlow, lane: Lane) -> Lane:
            if lane.paused:
                return lane
            return _replace(lane, paused=True, pauses=(*lane.pauses, Pause(now, note=note))[-MAX_PAUSES:])

        return await self._change(flow, owner, stop)

    async def resume(self, flow: str, *, owner: str | None = None) -> FlowSummaryView:
        """End a pause; or, if the flow is not paused, try a failed run again."""
        now = self._scope.now()

        def go_on(stored: StoredFlow, lane: Lane) -> Lane:
            if lane.paused:
                last = _replace(lane.pauses[-1], until_ms=now)
                return _replace(lane, paused=False, pauses=(*lane.pauses[:-1], last))
            return lane if lane.trouble is None or lane.run_id else self._retry(stored, lane, now)

        return await self._change(flow, owner, go_on)

    async def resolve(
        self,
        flow: str,
        decision: Decision,
        *,
        result: Any = None,  # noqa: ANN401 - any JSON
        owner: str | None = None,
    ) -> FlowSummaryView:
        """Resolve the failure of a flow: ``retry`` or ``approved``; or, if it is unknown whether an effect happened, ``applied``
        with its result, ``not_applied`` or ``skip``.
        """
        converted(decision, Decision, "decision")
        if result is not None and decision != "applied":
            raise InvalidInputError("result", "is for the decision applied")
        try:
            json_text(result, "it", MAX_KEPT)
        except ValueError as error:
            raise InvalidInputError("result", str(error)) from None
        now = self._scope.now()
        async with self._changing() as records:
            stored, lane = await self._locked(records, flow, owner)
            trouble = lane.trouble
            if trouble is None or lane.run_id is not None:
                why = "is running" if lane.run_id else "has nothing to resolve"
                raise FlowRefusedError(flow, why)
            if decision in {"retry", "approved"}:
                if decision == "approved" and trouble.status is not FlowStatus.APPROVAL:
                    raise FlowRefusedError(flow, f"waits for no approval: it is {trouble.status}")
                lane = self._retry(stored, lane, now)
            else:
                answers: dict[str, Answer] = {
                    "applied": Mutation(MutationStatus.APPLIED, result), "not_applied": "not_applied", "skip": SKIPPED,
                }  # fmt: skip
                lane = await self._settle(records, stored, lane, answers[decision], now)
            lane = _replace(lane, next_at_ms=now)
            await records.write_lanes([lane])
        return summary(stored, lane, now)

    def _retry(self, stored: StoredFlow, lane: Lane, now: int) -> Lane:
        trouble = lane.trouble
        assert trouble is not None  # noqa: S101 - the callers asked
        handler = stored.definition.handler(trouble.handler)
        reconciles = handler is not None and handler.reconciles
        after = retried(trouble, now, reconciles=reconciles)
        if after.retry_at_ms is None:
            raise FlowRefusedError(
                stored.name, "cannot find out by itself whether its last change was made",
                hint="resolve it as applied, not_applied or skip",
            )  # fmt: skip
        return _replace(lane, trouble=after)

    async def _settle(
        self, records: FlowRecords, stored: StoredFlow, lane: Lane, answer: Answer, now: int
    ) -> Lane:
        """Record what a person says became of a mutation."""
        trouble = lane.trouble
        assert trouble is not None  # noqa: S101 - the callers asked
        if trouble.recovery is not Recovery.RECONCILE:
            raise FlowRefusedError(
                stored.name, "knows what became of its last change", hint="resolve it with retry"
            )
        if answer == "not_applied":
            run = (await records.runs_by_id([trouble.run_id]))[trouble.run_id]
            await records.release([(run.id, read_prepared(run).numbers)])
        return _replace(lane, trouble=after_reconciliation(trouble, now, answer))

    async def skip(
        self, flow: str, source: str, type: str, id: str, *, owner: str | None = None  # noqa: A002 - the contract's words
    ) -> int:  # fmt: skip
        """Skip an input: skip its pending events, and give up reservations that were not mutated yet. Returns how many."""
        now = self._scope.now()
        async with self._changing() as records:
            stored, _ = await self._locked(records, flow, owner)
            skipping = await records.input(stored.flow_id, source, type, id)
            if skipping is None:
                raise FlowInputNotFoundError(source, type, id)
            open_events = await records.events_of_input(skipping.number)
            reserving = {run_id for _, run_id in open_events if run_id is not None}
            kept = {run_id for run_id in reserving if _has_mutated(await records.run(run_id))}
            given_up = [number for number, run_id in open_events if run_id not in kept]
            skipped = await records.skip(given_up, now)
            await records.mark_input_skipped(skipping.number, now)
        return skipped

    async def _change(
        self, flow: str, owner: str | None, change: Callable[[StoredFlow, Lane], Lane]
    ) -> FlowSummaryView:
        """Change the lane of a flow under its lock, and decide it at once."""
        now = self._scope.now()
        async with self._changing() as records:
            stored, lane = await self._locked(records, flow, owner)
            lane = _replace(change(stored, lane), next_at_ms=None if lane.run_id else now)
            await records.write_lanes([lane])
        return summary(stored, lane, now)

    @asynccontextmanager
    async def _reading(self, flow: str, owner: str | None) -> AsyncIterator[tuple[FlowRecords, StoredFlow]]:
        """A flow, and a transaction that only reads."""
        async with self._scope.store.reading() as transaction:
            records = FlowRecords(transaction)
            yield records, await self._stored(records, flow, owner)

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[FlowRecords]:
        """A transaction; the deciders of flows, on all nodes, are told of its commit."""
        async with self._scope.store.transaction() as transaction:
            yield FlowRecords(transaction)
            await transaction.notify(FlowDecider.name)
        self._scope.wake(FlowDecider.name)

    async def _locked(self, records: FlowRecords, flow: str, owner: str | None) -> tuple[StoredFlow, Lane]:
        stored = await self._stored(records, flow, owner)
        (lane,) = await records.lock([stored.flow_id])
        return stored, lane

    async def _stored(self, records: FlowRecords, name: str, owner: str | None) -> StoredFlow:
        """A flow of the owner. In the scope of all owners: the one without an owner, or the only one of that name."""
        owner = self._scope.owner if owner is None else owner
        if self._scope.owner not in {None, owner}:
            raise FlowNotFoundError(name)
        stored = await records.flow(owner or "", name)
        if stored is None and owner is None and len(named := await records.flows_called(name)) == 1:
            stored = named[0]
        if stored is None:
            raise FlowNotFoundError(name)
        return stored


def _has_mutated(run: FlowRun | None) -> bool:
    """Whether a run has, or may have, changed something for its events, so that these can no longer be skipped."""
    if run is None:
        return False
    mutation = read_mutation(run.mutation)
    return not may_be_skipped(run.phase, None if mutation is None else mutation.status)


def _size_of_run(run: FlowRun) -> int:
    return len(run.prepared or "") + len(run.mutation or "")


def _check_topics(stored: StoredFlow, topics: Iterable[str]) -> None:
    known = {each for handler in stored.definition.handlers for each in handler.subscribes}
    for topic in topics:
        if topic not in known:
            raise InvalidInputError(
                "topic",
                f'no consumer subscribes to "{topic}"',
                hint=f"the topics of this flow are: {', '.join(sorted(known))}",
            )


def _payload(topic: object, message_id: object, payload: object, *, place: int) -> str:
    """The payload of an event that is to be published, as JSON; raises an error if the event cannot be stored."""
    if not isinstance(topic, str):
        raise InvalidInputError("topic", "must be a text")
    if not is_name(message_id):
        raise InvalidInputError("message_id", f"must be a text of 1 to {MAX_NAME} characters")
    try:
        return json_text(payload, "it", MAX_PAYLOAD)
    except ValueError as error:
        raise InvalidInputError("payload", f"of event {place + 1} cannot be stored: {error}") from None

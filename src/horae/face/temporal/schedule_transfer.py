"""Moves schedules between servers that speak Temporal's API: creates a paused copy, pauses the original, resumes the copy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import grpc.aio
import msgspec
from google.protobuf.message import Message
from temporalio.api.common.v1 import SearchAttributes
from temporalio.api.schedule.v1 import BackfillRequest, Schedule, SchedulePatch, ScheduleState
from temporalio.api.workflowservice import v1 as api

from horae.errors import HoraeError, ServerError
from horae.executor.temporal_connection import TemporalConnection
from horae.face.temporal.schedule_message import new_schedule
from horae.face.temporal.spec_message import cleaned
from horae.face.temporal.times import timestamp_of

WAITS = "copied; it is resumed when the original is paused"
"""The note of a copy that has not taken over yet."""
MOVED = "moved to "
"""How the note of an original begins whose copy takes over; the note ends with the time."""
AT = " at "
CAME = "moved from "
"""How the note of a copy begins that took over."""
SECOND, MOMENT = timedelta(seconds=1), timedelta(microseconds=1)
SECONDS = 30
A = TypeVar("A", bound=Message)


class Server(Protocol):
    """Answers calls of Temporal's API."""

    target: str

    async def call(self, request: Message, kind: type[A]) -> A:
        """Send a request and return the answer."""


class Endpoint:
    """A server at ``host:port``, or ``https://host:port`` for TLS, called with a token if one is given."""

    def __init__(self, target: str, token: str | None = None) -> None:
        self.target = target
        self._connection = TemporalConnection(target, token)

    async def call(self, request: Message, kind: type[A]) -> A:
        """Send a request and return the answer; errors name the server and the call."""
        try:
            return await self._connection.send(request, kind, SECONDS)
        except grpc.aio.AioRpcError as error:
            method, code = type(request).__name__.removesuffix("Request"), error.code()
            details = {"server": self.target, "call": method, "code": code.name}
            raise ServerError(
                f"{self.target} answered {method} with {code.name}: {error.details()}", details
            ) from None

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()


class Transferred(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one schedule's transfer."""

    id: str
    outcome: str
    """``new``, ``updated``, ``there already``, ``refused`` or ``would be new``."""
    state: str = ""
    """The state of the copy."""
    lost: tuple[str, ...] = ()
    """What could not be copied, or means nothing on the other server."""


class Transfer:
    """Copies schedules from one namespace to another; with ``take_over`` the copies replace the originals."""

    def __init__(
        self, source: Server, destination: Server, namespaces: tuple[str, str], now: Callable[[], datetime], *,
        take_over: bool = False,
    ) -> None:  # fmt: skip
        self._source, self._destination = source, destination
        self._from, self._to = namespaces
        self._now, self._take_over = now, take_over
        self._moved = f"{MOVED}{destination.target}"

    async def ids(self) -> AsyncIterator[str]:
        """The ids of all schedules at the source."""
        token = b""
        while True:
            request = api.ListSchedulesRequest(namespace=self._from, next_page_token=token)
            page = await self._source.call(request, api.ListSchedulesResponse)
            for each in page.schedules:
                yield each.schedule_id
            if not (token := page.next_page_token):
                return

    async def look(self, schedule_id: str) -> Transferred:
        """Predict a transfer from the schedule alone; changes nothing."""
        original = await self._describe(self._source, self._from, schedule_id)
        try:
            new_schedule(self._copy(schedule_id, original), "")
        except HoraeError as error:
            return Transferred(id=schedule_id, outcome="refused", lost=(error.message,))
        return Transferred(
            id=schedule_id,
            outcome="would be new",
            lost=tuple(_lost(original, to_horae=await self._to_horae())),
        )

    async def move(self, schedule_id: str) -> Transferred:
        """Copy a schedule, or continue an interrupted transfer."""
        original = await self._describe(self._source, self._from, schedule_id)
        was_running = not original.schedule.state.paused or original.schedule.state.notes.startswith(
            self._moved
        )
        copy = self._copy(schedule_id, original, waits=was_running)
        try:
            outcome = await self._put(copy)
        except ServerError as error:
            return Transferred(id=schedule_id, outcome="refused", lost=(error.message,))
        copied = await self._describe(self._destination, self._to, schedule_id)
        lost = (
            *_lost(original, to_horae=await self._to_horae()),
            *(f"differs: {each}" for each in _differing(original, copied)),
        )
        state = "paused" if copied.schedule.state.paused else "running"
        if (
            self._take_over
            and was_running
            and copied.schedule.state.notes == WAITS
            and copied.schedule.state.paused
        ):
            state = await self._hand_over(schedule_id, original.schedule)
        return Transferred(id=schedule_id, outcome=outcome, state=state, lost=lost)

    async def _put(self, copy: api.CreateScheduleRequest) -> str:
        """Create a copy, or update one that was moved away earlier and now comes back."""
        try:
            await self._destination.call(copy, api.CreateScheduleResponse)
        except ServerError as error:
            if error.details.get("code") != "ALREADY_EXISTS":
                raise
        else:
            return "new"
        copied = await self._describe(self._destination, self._to, copy.schedule_id)
        if not (copied.schedule.state.paused and copied.schedule.state.notes.startswith(MOVED)):
            return "there already"
        update = api.UpdateScheduleRequest(
            namespace=self._to, schedule_id=copy.schedule_id, schedule=copy.schedule, conflict_token=copied.conflict_token,
            request_id=copy.request_id, memo=copy.memo, search_attributes=copy.search_attributes,
        )  # fmt: skip
        await self._destination.call(update, api.UpdateScheduleResponse)
        return "updated"

    async def _hand_over(self, schedule_id: str, original: Schedule) -> str:
        """Pause the original, resume the copy, and backfill what fell due since the original was paused."""
        since = self._paused_at(original.state) or self._now()
        pause = f"{self._moved}{AT}{since.isoformat()}"
        await self._patch(self._source, self._from, schedule_id, SchedulePatch(pause=pause))
        # Temporal answers before it has paused, but describes a schedule only after.
        paused = await self._describe(self._source, self._from, schedule_id)
        if not paused.schedule.state.paused:
            raise ServerError(f'{self._source.target} did not pause "{schedule_id}": its copy stays paused')
        # A slot due just before the pause may not have started.
        start = max([since - SECOND, *(each + SECOND for each in _action_times(paused))])
        note = original.state.notes
        note = f"{CAME}{self._source.target}" if not note or note.startswith((MOVED, CAME)) else note
        await self._patch(self._destination, self._to, schedule_id, SchedulePatch(unpause=note))
        resumed = await self._describe(self._destination, self._to, schedule_id)
        started = [each for each in _action_times(resumed) if each >= start]
        end = min([self._now(), *(each - SECOND for each in started)])
        return await self._make_up(schedule_id, start, end) if start <= end else "running"

    async def _make_up(self, schedule_id: str, start: datetime, end: datetime) -> str:
        """Backfill a running copy with the slots that neither server started."""
        since, until = timestamp_of(start), timestamp_of(end)
        request = api.ListScheduleMatchingTimesRequest(
            namespace=self._to,
            schedule_id=schedule_id,
            start_time=timestamp_of(start - MOMENT),
            end_time=until,
        )
        missed = (await self._destination.call(request, api.ListScheduleMatchingTimesResponse)).start_time
        if not missed:
            return "running"
        made_up = SchedulePatch(backfill_request=[BackfillRequest(start_time=since, end_time=until)])
        await self._patch(self._destination, self._to, schedule_id, made_up)
        return f"running; made up: {len(missed)}"

    def _paused_at(self, state: ScheduleState) -> datetime | None:
        """When an interrupted transfer paused an original, if one did."""
        note, _, moment = state.notes.rpartition(AT)
        try:
            return datetime.fromisoformat(moment) if state.paused and note == self._moved else None
        except ValueError:
            return None

    def _copy(
        self, schedule_id: str, original: api.DescribeScheduleResponse, *, waits: bool = False
    ) -> api.CreateScheduleRequest:
        schedule = Schedule()
        schedule.CopyFrom(original.schedule)
        schedule.state.paused = True
        if waits:
            schedule.state.notes = WAITS
        search = {
            name: payload
            for name, payload in original.search_attributes.indexed_fields.items()
            if not name.startswith("Temporal") and name != "BuildIds"
        }
        return api.CreateScheduleRequest(
            namespace=self._to, schedule_id=schedule_id, schedule=schedule, identity="horae import",
            request_id=str(uuid4()), memo=original.memo,
            search_attributes=SearchAttributes(indexed_fields=search),
        )  # fmt: skip

    async def _describe(
        self, server: Server, namespace: str, schedule_id: str
    ) -> api.DescribeScheduleResponse:
        request = api.DescribeScheduleRequest(namespace=namespace, schedule_id=schedule_id)
        return await server.call(request, api.DescribeScheduleResponse)

    async def _to_horae(self) -> bool:
        """Whether the destination is Horae, not a Temporal cluster."""
        info = await self._destination.call(api.GetClusterInfoRequest(), api.GetClusterInfoResponse)
        return info.cluster_name.startswith("horae")

    async def _patch(self, server: Server, namespace: str, schedule_id: str, patch: SchedulePatch) -> None:
        request = api.PatchScheduleRequest(namespace=namespace, schedule_id=schedule_id, patch=patch)
        await server.call(request, api.PatchScheduleResponse)


def _action_times(described: api.DescribeScheduleResponse) -> list[datetime]:
    """The nominal times of a schedule's recent actions."""
    return [each.schedule_time.ToDatetime(UTC) for each in described.info.recent_actions]


def _lost(original: api.DescribeScheduleResponse, *, to_horae: bool) -> Iterator[str]:
    """What a copy cannot have."""
    if original.info.buffer_size:
        yield f"{original.info.buffer_size} starts that wait"
    if original.info.running_workflows:
        yield f"{len(original.info.running_workflows)} running workflows, which go on where they are"
    if original.info.action_count:
        yield "the counts and recent actions so far"
    workflow = original.schedule.action.start_workflow
    if to_horae and workflow.retry_policy.non_retryable_error_types:
        yield "Horae retries after any error: non_retryable_error_types mean nothing there"
    if to_horae and workflow.header.fields:
        yield "Horae's actions see no headers"


def _differing(one: api.DescribeScheduleResponse, other: api.DescribeScheduleResponse) -> Iterator[str]:
    """The fields in which a copy differs, except its state. Temporal 1.29 does not update a memo."""
    original, copy = one.schedule, other.schedule
    if one.memo != other.memo:
        yield "memo"
    parts: list[tuple[str, Any, Any]] = [
        ("spec", cleaned(original.spec), copy.spec),
        ("action.start_workflow", original.action.start_workflow, copy.action.start_workflow),
        ("policies", original.policies, copy.policies),
    ]
    for name, sent, shown in parts:
        for field in sent.DESCRIPTOR.fields:
            if getattr(sent, field.name) != getattr(shown, field.name):
                yield f"{name}.{field.name}"

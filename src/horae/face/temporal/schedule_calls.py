"""The schedule calls: each reads a request, calls an operation in the scope of its namespace, and answers with a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from google.protobuf.message import Message
from temporalio.api.enums.v1 import ArchivalState, NamespaceState
from temporalio.api.namespace.v1 import NamespaceConfig, NamespaceInfo
from temporalio.api.replication.v1 import ClusterReplicationConfig, NamespaceReplicationConfig
from temporalio.api.schedule.v1 import Schedule
from temporalio.api.workflowservice import v1 as api

from horae import __version__
from horae.app import App, Description, ScopedOperations
from horae.app.fire_times import times_ahead
from horae.app.page import Page, cursor_of
from horae.errors import InvalidInputError
from horae.executor.temporal_payloads import add_types
from horae.face.service.caller import Caller
from horae.face.temporal.batched_reads import Describer, ShownSchedules
from horae.face.temporal.info_message import RUNNING, info_of, list_entry
from horae.face.temporal.list_query import Query, query_of
from horae.face.temporal.schedule_message import (
    backfills_of,
    edit_of,
    new_schedule,
    token_of,
    trigger_of,
)
from horae.face.temporal.times import duration_of, is_set, moment_of, timestamp_of
from horae.model import Run
from horae.model import Schedule as ScheduleRecord

SERVER_VERSION = "1.29.1"
"""The Temporal server that these calls are tested against; clients derive from it what they may use."""
CLUSTER = f"horae {__version__}"
"""What Horae answers where Temporal names its cluster."""
MAX_LIST = 100
"""The most schedules on one page of a list; each is shown with its recent runs."""
LISTED_TIMES = 5
MAX_SCANNED, MAX_SCANS = 1000, 20
"""How many schedules are read at once, and how often for one page, if the database cannot evaluate the query."""
MAX_RUNNING = 100
MAX_REQUEST_ID = 1000
Handler = Callable[["Call", Any], Awaitable[Message]]


class Served:
    """What all calls share: the app, the operations of each owner, and batched reads."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.owned_by = lru_cache(maxsize=1000)(app.owned_by)
        self.shown = ShownSchedules()
        self.describer = lru_cache(maxsize=1000)(Describer)


class Call:
    """The context of a call: what all calls share, and the caller."""

    def __init__(self, served: Served, caller: Caller) -> None:
        self.app, self.shown, self.caller = served.app, served.shown, caller
        self._served = served

    def operations(self, namespace: str) -> ScopedOperations:
        """The operations of a namespace, which is an owner."""
        if not namespace:
            raise InvalidInputError("namespace", "is not set: it is the owner of the schedules")
        self.caller.owner_for(namespace)
        return self._served.owned_by(namespace, self.caller.scopes)

    async def describe(self, operations: ScopedOperations, schedule_id: str) -> Description:
        """The description of a schedule, read in one batch with those of other calls."""
        return await self._served.describer(operations).describe(schedule_id)

    async def forwards(self, operations: ScopedOperations, schedule: Schedule) -> bool:
        """Whether a Temporal cluster runs the workflow: there is one, and Horae has no action of that name."""
        name = schedule.action.start_workflow.workflow_type.name
        if not self.app.config.temporal_forward or not name:
            return False
        return not await operations.schedules.knows_action(name)


async def get_system_info(_call: Call, _: api.GetSystemInfoRequest) -> api.GetSystemInfoResponse:
    """The call that clients make when they connect."""
    return api.GetSystemInfoResponse(
        server_version=SERVER_VERSION,
        capabilities=api.GetSystemInfoResponse.Capabilities(
            internal_error_differentiation=True, supports_schedules=True
        ),
    )


async def get_cluster_info(call: Call, _: api.GetClusterInfoRequest) -> api.GetClusterInfoResponse:
    return api.GetClusterInfoResponse(
        server_version=SERVER_VERSION,
        cluster_id=str(uuid5(NAMESPACE_URL, "horae")),
        cluster_name=CLUSTER,
        persistence_store=call.app.config.database_url.partition(":")[0],
        visibility_store="horae",
        history_shard_count=1,
    )


async def describe_namespace(
    call: Call, request: api.DescribeNamespaceRequest
) -> api.DescribeNamespaceResponse:
    """A namespace is an owner, and exists for every caller who may act for that owner."""
    call.operations(request.namespace)
    return api.DescribeNamespaceResponse(
        namespace_info=NamespaceInfo(
            name=request.namespace,
            id=str(uuid5(NAMESPACE_URL, f"horae:{request.namespace}")),
            state=NamespaceState.NAMESPACE_STATE_REGISTERED,
        ),
        config=NamespaceConfig(
            workflow_execution_retention_ttl=duration_of(call.app.config.retention_age_ms),
            history_archival_state=ArchivalState.ARCHIVAL_STATE_DISABLED,
            visibility_archival_state=ArchivalState.ARCHIVAL_STATE_DISABLED,
        ),
        replication_config=NamespaceReplicationConfig(
            active_cluster_name=CLUSTER, clusters=[ClusterReplicationConfig(cluster_name=CLUSTER)]
        ),
    )


async def create_schedule(call: Call, request: api.CreateScheduleRequest) -> api.CreateScheduleResponse:
    _check_request_id(request.request_id, required=True)
    _add_types(request)
    operations = call.operations(request.namespace)
    forwarded = await call.forwards(operations, request.schedule)
    new = await operations.evaluate(lambda: new_schedule(request, call.caller.user, forwarded=forwarded))
    created = await operations.schedules.create_once([new])
    return api.CreateScheduleResponse(conflict_token=token_of(created.schedules[0]))


def _check_request_id(request_id: str, *, required: bool = False) -> None:
    if required and not request_id:
        raise InvalidInputError("request_id", "is not set")
    if len(request_id) > MAX_REQUEST_ID:
        raise InvalidInputError("request_id", f"has more than {MAX_REQUEST_ID} characters")


def _add_types(request: api.CreateScheduleRequest | api.UpdateScheduleRequest) -> None:
    add_types(request.search_attributes)
    add_types(request.schedule.action.start_workflow.search_attributes)


async def describe_schedule(call: Call, request: api.DescribeScheduleRequest) -> api.DescribeScheduleResponse:
    operations = call.operations(request.namespace)
    description = await call.describe(operations, request.schedule_id)
    running = [each for each in description.recent_runs if each.status in RUNNING]
    if len(running) < description.running + description.retrying:
        runs = await operations.runs.search(
            status=[each.value for each in RUNNING], schedule_id=request.schedule_id, limit=MAX_RUNNING
        )
        running = [each for each in runs if isinstance(each, Run)]
    schedule = description.schedule
    shown = await operations.evaluate(lambda: call.shown.of(schedule))
    return api.DescribeScheduleResponse(
        schedule=shown.schedule,
        info=info_of(description, reversed(running)),
        memo=shown.memo,
        search_attributes=shown.search_attributes,
        conflict_token=token_of(schedule),
    )


async def update_schedule(call: Call, request: api.UpdateScheduleRequest) -> api.UpdateScheduleResponse:
    _check_request_id(request.request_id)
    _add_types(request)
    operations = call.operations(request.namespace)
    forwarded = await call.forwards(operations, request.schedule)
    await operations.schedules.edit(request.schedule_id, partial(edit_of, request, forwarded=forwarded))
    return api.UpdateScheduleResponse()


async def patch_schedule(call: Call, request: api.PatchScheduleRequest) -> api.PatchScheduleResponse:
    _check_request_id(request.request_id)
    if not request.HasField("patch"):
        raise InvalidInputError("patch", "is not set")
    operations, patch, author = call.operations(request.namespace), request.patch, call.caller.user
    await operations.schedules.patch(
        request.schedule_id,
        trigger=trigger_of(patch, author),
        backfills=backfills_of(patch.backfill_request, author),
        pause=patch.pause or None,
        resume=patch.unpause or None,
        request_id=request.request_id,
    )
    return api.PatchScheduleResponse()


async def delete_schedule(call: Call, request: api.DeleteScheduleRequest) -> api.DeleteScheduleResponse:
    await call.operations(request.namespace).schedules.delete(request.schedule_id)
    return api.DeleteScheduleResponse()


async def list_schedules(call: Call, request: api.ListSchedulesRequest) -> api.ListSchedulesResponse:
    operations = call.operations(request.namespace)
    asked = request.maximum_page_size if request.maximum_page_size > 0 else MAX_LIST
    try:
        cursor = request.next_page_token.decode() or None
    except UnicodeDecodeError:
        raise InvalidInputError("next_page_token", "is not from a list") from None
    page = await _page(operations, query_of(request.query), cursor, min(asked, MAX_LIST))
    now = call.app.now()
    recent = await operations.schedules.recent_runs(page, LISTED_TIMES)

    def entries() -> list[Any]:
        return [
            list_entry(schedule, runs, times_ahead(schedule, now, LISTED_TIMES))
            for schedule, runs in zip(page, recent, strict=True)
        ]

    return api.ListSchedulesResponse(
        schedules=await operations.evaluate(entries), next_page_token=(page.next or "").encode()
    )


async def _page(
    operations: ScopedOperations, query: Query, cursor: str | None, limit: int
) -> Page[ScheduleRecord]:
    """A page of the schedules that match a query. With a test it may be short; the next page continues from its cursor."""
    if query.test is None:
        return await operations.schedules.list(query.only, cursor=cursor, limit=limit)
    matching: list[ScheduleRecord] = []
    for _ in range(MAX_SCANS):
        page = await operations.schedules.list(query.only, cursor=cursor, limit=MAX_SCANNED)
        matching += [each for each in page if query.test(each)]
        cursor = page.next
        if len(matching) > limit:
            last = matching[limit - 1]
            return Page(matching[:limit], cursor_of(last.owner, last.id))
        if cursor is None or len(matching) == limit:
            break
    return Page(matching, cursor)


async def count_schedules(call: Call, request: api.CountSchedulesRequest) -> api.CountSchedulesResponse:
    operations = call.operations(request.namespace)
    query = query_of(request.query)
    if query.test is None:
        return api.CountSchedulesResponse(count=await operations.schedules.count(query.only))
    count, cursor = 0, None
    while True:
        page = await operations.schedules.list(query.only, cursor=cursor, limit=MAX_SCANNED)
        count += sum(query.test(each) for each in page)
        if (cursor := page.next) is None:
            return api.CountSchedulesResponse(count=count)


async def list_schedule_matching_times(
    call: Call, request: api.ListScheduleMatchingTimesRequest
) -> api.ListScheduleMatchingTimesResponse:
    operations = call.operations(request.namespace)
    for name, timestamp in (("start_time", request.start_time), ("end_time", request.end_time)):
        if not request.HasField(name) or not is_set(timestamp):  # type: ignore[arg-type]
            raise InvalidInputError(name, "is not set")
    times = await operations.schedules.times(
        request.schedule_id,
        moment_of(request.start_time, "start_time"),
        moment_of(request.end_time, "end_time"),
        limit=call.app.config.preview_limit,
    )
    return api.ListScheduleMatchingTimesResponse(start_time=[timestamp_of(each.fire) for each in times.items])


HANDLERS: dict[str, Handler] = {
    "GetSystemInfo": get_system_info,
    "GetClusterInfo": get_cluster_info,
    "DescribeNamespace": describe_namespace,
    "CreateSchedule": create_schedule,
    "DescribeSchedule": describe_schedule,
    "UpdateSchedule": update_schedule,
    "PatchSchedule": patch_schedule,
    "DeleteSchedule": delete_schedule,
    "ListSchedules": list_schedules,
    "CountSchedules": count_schedules,
    "ListScheduleMatchingTimes": list_schedule_matching_times,
}
"""The calls that Horae answers, by name."""

ANSWERED_BY_THE_CLUSTER = {"GetSystemInfo", "GetClusterInfo", "DescribeNamespace"}
"""The calls that a Temporal cluster answers if there is one, because workers ask what it supports."""


def with_schedules(answer: bytes) -> bytes:
    """A cluster's answer to GetSystemInfo, with schedules supported, because Horae does."""
    info = api.GetSystemInfoResponse.FromString(answer)
    info.capabilities.supports_schedules = True
    return info.SerializeToString()

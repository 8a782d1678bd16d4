"""``/api/v1/flows``: read, publish, pause, resume, resolve."""

from __future__ import annotations

from typing import Annotated

from horae.app import ScopedOperations
from horae.app.flow_views import (
    FlowEventView,
    FlowExplanationView,
    FlowInputView,
    FlowRunView,
    FlowSummaryView,
    FlowView,
    PublishedView,
    SkippedView,
)
from horae.app.view_base import PageView
from horae.app.views import LogPage, log_page_view
from horae.face.http.arguments import query
from horae.face.http.routes import Router, get, post
from horae.face.service.request_bodies import PauseFlow, PublishEvent, ResolveFlow, SkipInput
from horae.face.service.route_helpers import API, Cursor, Limit

HandlerName = Annotated[str | None, query("Only of this handler.")]
Topic = Annotated[str | None, query("Only of this topic.")]
EventStatusName = Annotated[
    str | None,
    query("Only with this status.", enum=["pending", "reserved", "consumed", "skipped"]),
]
Time = Annotated[
    str, query("ISO 8601, with an offset.", format="date-time", examples=["2026-03-08T09:00:00Z"])
]


@get("/", summary="List flows")
async def list_flows(
    operations: ScopedOperations, limit: Limit = 100, cursor: Cursor = None
) -> PageView[FlowSummaryView]:
    """Their status in plain words, ordered by name."""
    flows = await operations.flows.list(cursor=cursor, limit=limit)
    return PageView(items=flows, next=flows.next)


@get("/{flow}", summary="A flow")
async def get_flow(operations: ScopedOperations, flow: str) -> FlowView:
    """Its status and issue in plain words, its recent activity and pending inputs; and for operators its handlers, events and failure."""
    return await operations.flows.show(flow)


@post("/{flow}/events", summary="Publish events", status_code=202)
async def publish_events(
    operations: ScopedOperations, flow: str, data: PublishEvent | list[PublishEvent]
) -> PublishedView:
    """One event or a list of them, all or none. Idempotent by message id."""
    events = data if isinstance(data, list) else [data]
    number = await operations.flows.publish_many(
        flow, [(each.topic, each.message_id, each.payload) for each in events]
    )
    return PublishedView(published=number)


@get("/{flow}/events", summary="List the events of a flow")
async def list_flow_events(
    operations: ScopedOperations,
    flow: str,
    topic: Topic = None,
    status: EventStatusName = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> PageView[FlowEventView]:
    """Newest first."""
    events = await operations.flows.events(flow, topic=topic, status=status, cursor=cursor, limit=limit)
    return PageView(items=events, next=events.next)


@get("/{flow}/inputs", summary="List the inputs of a flow")
async def list_flow_inputs(
    operations: ScopedOperations, flow: str, limit: Limit = 100, cursor: Cursor = None
) -> PageView[FlowInputView]:
    """The inputs that its producers registered, newest first, and whether each is done."""
    inputs = await operations.flows.inputs(flow, cursor=cursor, limit=limit)
    return PageView(items=inputs, next=inputs.next)


@post("/{flow}/inputs/skip", summary="Skip an input of a flow", status_code=200)
async def skip_flow_input(operations: ScopedOperations, flow: str, data: SkipInput) -> SkippedView:
    """Its pending events are skipped; a mutation that was already made is completed."""
    return SkippedView(skipped=await operations.flows.skip(flow, data.source, data.type, data.id))


@get("/{flow}/runs", summary="List the runs of a flow")
async def list_flow_runs(
    operations: ScopedOperations,
    flow: str,
    handler: HandlerName = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> PageView[FlowRunView]:
    """One record for each attempt, newest first."""
    runs = await operations.flows.runs(flow, handler=handler, cursor=cursor, limit=limit)
    return PageView(items=runs, next=runs.next)


@get("/{flow}/runs/{run_id}", summary="A run of a flow and the attempts before it")
async def get_flow_run(operations: ScopedOperations, flow: str, run_id: str) -> list[FlowRunView]:
    """The chain of attempts that ends with this run, oldest first."""
    return await operations.flows.chain(flow, run_id)


@get("/{flow}/runs/{run_id}/logs", summary="What a run of a flow logged")
async def get_flow_run_logs(
    operations: ScopedOperations, flow: str, run_id: str, cursor: Cursor = None
) -> LogPage:
    """The lines that its handler logged, in order. While the run is active, `next` leads to later lines."""
    return log_page_view(await operations.flows.logs(flow, run_id, cursor=cursor))


@get("/{flow}/explain", summary="Why did a flow, or a handler, run or not run?")
async def explain_flow(
    operations: ScopedOperations, flow: str, time: Time, handler: HandlerName = None
) -> FlowExplanationView:
    """For any time, past or future, as a sentence."""
    return FlowExplanationView(sentence=await operations.flows.explain(flow, time, handler=handler))


@post("/{flow}/run-now", summary="Run all producers of a flow", status_code=202)
async def run_flow_now(operations: ScopedOperations, flow: str) -> FlowSummaryView:
    """One after another. Refused while a handler runs, and while the flow is paused or has failed."""
    return await operations.flows.run_now(flow)


@post("/{flow}/pause", summary="Pause a flow", status_code=200)
async def pause_flow(
    operations: ScopedOperations, flow: str, data: PauseFlow | None = None
) -> FlowSummaryView:
    """The current run may finish; nothing else starts."""
    return await operations.flows.pause(flow, note=(data or PauseFlow()).note)


@post("/{flow}/resume", summary="Resume a flow", status_code=200)
async def resume_flow(operations: ScopedOperations, flow: str) -> FlowSummaryView:
    """Ends a pause; a flow that is not paused retries its failed run."""
    return await operations.flows.resume(flow)


@post("/{flow}/resolve", summary="Resolve the failure of a flow", status_code=200)
async def resolve_flow(operations: ScopedOperations, flow: str, data: ResolveFlow) -> FlowSummaryView:
    """`retry` or `approved`; if it is unknown whether an effect happened: `applied`, `not_applied` or `skip`."""
    return await operations.flows.resolve(flow, data.decision, result=data.result)


_HANDLERS = [
    list_flows, get_flow, publish_events, list_flow_events, list_flow_inputs, skip_flow_input, list_flow_runs,
    get_flow_run, get_flow_run_logs, explain_flow, run_flow_now, pause_flow, resume_flow, resolve_flow,
]  # fmt: skip
flows_router = Router(f"{API}/flows", route_handlers=_HANDLERS, tags=("flows",))

"""``/api/internal/graphs``: executes graphs for workers in other processes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from horae.app import App
from horae.app.field_checks import check_text
from horae.app.grant_views import CancelledView, ExecutionView
from horae.app.view_base import view_of
from horae.errors import GrantError, InvalidInputError, PermissionDeniedError
from horae.executor.graph_provider_port import check_graph_id, graph_input
from horae.face.http.arguments import Header
from horae.face.http.routes import Router, post
from horae.face.service.caller import Caller
from horae.face.service.problems import StatusError
from horae.face.service.request_bodies import CancelGraph, ExecuteGraph
from horae.grant_model import ExecutionRequest

ANSWERED_WITHIN = 50
"""Seconds after which a request is answered although its graph is still running."""
MAX_KEY_LENGTH = 2000
Key = Annotated[
    str | None,
    Header("Idempotency-Key", "The slot and the attempt, percent-encoded: each is executed once."),
]


class _Unwatched:
    """Drops events: the outcome contains them."""

    def event(self, text: str) -> None: ...
    def hide(self, secret: str) -> None: ...


def _key(caller: Caller, given: str | None) -> str:
    if not caller.may_name_others:
        raise PermissionDeniedError("Only workers with the scope service may execute graphs")
    key = unquote(given or "")
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise InvalidInputError(
            "Idempotency-Key", f"must be given, and have at most {MAX_KEY_LENGTH} characters"
        )
    check_text("Idempotency-Key", key)
    return key


@post("/{graph_id}/runs", summary="Execute a graph", status_code=200)
async def execute_graph(
    app: App, caller: Caller, graph_id: str, data: ExecuteGraph, idempotency_key: Key = None
) -> ExecutionView:
    """Needs the scope `service`. Repeating a key answers with the same outcome, or with 409 while the graph is still running.

    If the graph fails, the answer is 200 with `ok` false and a `code`. A grant that is not valid is 403.
    """
    key = _key(caller, idempotency_key)
    check_graph_id(graph_id)
    for field in ("run_id", "user_id", "grant_id"):
        check_text(field, getattr(data, field))
    request = ExecutionRequest(
        key=key, user_id=data.user_id, grant_id=data.grant_id, graph_id=graph_id, run_id=data.run_id,
        attempt=data.attempt, input=graph_input(data.input),
    )  # fmt: skip
    try:
        outcome = await app.graph_execution.answer(request, _Unwatched(), ANSWERED_WITHIN)
    except GrantError as error:
        raise StatusError(error, 403) from None
    return view_of(ExecutionView, outcome)


@post("/{graph_id}/runs/cancel", summary="Stop the execution of a graph", status_code=200)
async def cancel_graph(
    app: App, caller: Caller, graph_id: str, data: CancelGraph, idempotency_key: Key = None
) -> CancelledView:
    """Needs the scope `service`. The execution stops soon, on whichever node it runs."""
    key = _key(caller, idempotency_key)
    check_graph_id(graph_id)
    check_text("user_id", data.user_id)
    return CancelledView(asked=await app.graph_execution.stop(data.user_id, key))


internal_router = Router(
    "/api/internal/graphs", route_handlers=[execute_graph, cancel_graph], tags=("internal",)
)

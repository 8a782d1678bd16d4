"""The kind ``graph``: runs a graph for an absent user under its schedule's grant, in this process or on another Horae service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from horae.errors import (
    ExecutionInProgressError,
    GraphError,
    HoraeError,
    IdempotencyMismatchError,
    NoCreditError,
    NotAdmittedError,
    NotStartedError,
    StoreUnavailableError,
)
from horae.executor.attempt_context import Context
from horae.executor.graph_provider_port import check_graph_id, graph_input
from horae.executor.port import Executor
from horae.grant_model import GRANT_ERRORS, ExecutionOutcome, ExecutionRequest
from horae.model import AUTOMATIC, GRAPH, Action, Reason

REFUSALS: dict[type[HoraeError], Reason] = {
    NoCreditError: Reason.NO_CREDIT,
    **{error: reason for reason, error in GRANT_ERRORS.items()},
}
"""The errors with which the executing side refuses a run, and the reasons that the ledger records."""


class Watch(Protocol):
    """Receives what the executing side reports while a graph runs. A run's context is one."""

    def event(self, text: str) -> None:
        """Take an event of the graph, as JSON."""

    def hide(self, secret: str) -> None:
        """Take a text that nothing may show."""


class Execution(Protocol):
    """The executing side: in this process, or behind HTTP."""

    def graphs(self) -> Collection[str]:
        """The ids of the graphs that it can run."""

    async def execute(self, request: ExecutionRequest, watch: Watch) -> ExecutionOutcome:
        """Execute a request once, however often it is made; cancelling this stops it.

        Raises ``ExecutionInProgressError``, ``IdempotencyMismatchError``, an error of the grant, ``NoCreditError``, or
        ``NotStartedError`` if its outcome is not known: then the same request may be made again.
        """

    async def close(self) -> None:
        """Release open resources."""


class GraphExecutor(Executor):
    """Asks the executing side to run graphs. Their addresses are ``graph:`` and their ids."""

    kind = GRAPH

    def __init__(self, execution: Execution, wait: Callable[[asyncio.Event, float], Awaitable[None]]) -> None:
        self._execution = execution
        self._wait = wait

    def actions(self) -> Collection[str]:
        """``graph:ID`` for each graph."""
        return {f"{self.kind}:{each}" for each in self._execution.graphs()}

    def check(self, action: Action, options: Any, stored: Any) -> Any:  # noqa: ANN401, ARG002 - the port's own
        check_graph_id(action.name)
        graph_input(action.input)
        return None

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - any JSON
        """Execute the graph. A grant that does not hold skips the run; a failure of transport is an attempt that did not begin."""
        request = request_of(context)
        try:
            outcome = await self._executed(request, context)
        except tuple(REFUSALS) as error:
            raise NotAdmittedError(REFUSALS[type(error)], error.message) from None
        except StoreUnavailableError:
            raise NotStartedError("the executing side has no database now") from None
        except IdempotencyMismatchError as error:
            raise GraphError(error.message) from None
        if not outcome.ok:
            raise GraphError(outcome.message, outcome.code)
        return outcome.result

    async def _executed(self, request: ExecutionRequest, watch: Watch) -> ExecutionOutcome:
        """Execute a request; wait while another execution of it holds a lease."""
        while True:
            try:
                return await self._execution.execute(request, watch)
            except ExecutionInProgressError as error:
                await self._wait(asyncio.Event(), error.details["retryAfter"])

    async def close(self) -> None:
        await self._execution.close()


def request_of(context: Context) -> ExecutionRequest:
    """The request of an attempt. After a crash or a failure of transport it is the same one, so that nothing is charged twice."""
    attempt = context.failures + 1
    return ExecutionRequest(
        key=f"{slot_of(context)}/{attempt}", user_id=context.owner, grant_id=context.grant_id,
        graph_id=context.action.partition(":")[2], run_id=context.run_id, attempt=attempt,
        input=graph_input(context.input),
    )  # fmt: skip


def slot_of(context: Context) -> str:
    """The key of a slot: ``SCHEDULE_ID:SCHEDULED_FOR``, followed by the origin of a run that is not automatic."""
    nominal = context.nominal
    slot = f"{context.schedule_id}:{nominal:%Y-%m-%dT%H:%M:%S}.{nominal.microsecond // 1000:03d}Z"
    return slot if context.origin == AUTOMATIC else f"{slot}:{context.origin}"

"""Execute each graph request once, in this process, under a grant, and charge it once.

A request has a key. If its execution has ended, its outcome is the answer, even if the grant was revoked since. If it is running under
a valid lease, it continues. Only a new request is checked against the grant, and begins.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, assert_never
from uuid import uuid4

import msgspec

from horae.app.accounts import Billing
from horae.app.grants import valid_grant
from horae.clock import Clock
from horae.errors import ExecutionInProgressError, GraphError, IdempotencyMismatchError, NoCreditError
from horae.executor.graph_executor import Watch
from horae.executor.graph_provider_port import Caller, GraphRouter, KeptEvents, UsageEvent, drain
from horae.executor.stored_output import kept_failure, kept_result, secrets_in, without
from horae.grant_model import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionRequest,
    ExecutionStatus,
    Grant,
    Usage,
)
from horae.json_bounds import MAX_INTEGER
from horae.model import Reason
from horae.policy.graph_requests import (
    InProgress,
    Mismatch,
    New,
    Stored,
    Verdict,
    hash_of_request,
    judge_request,
)
from horae.store.port import Transaction
from horae.store.transaction_limit import StoreAccess

MAX_UNIT_LENGTH = 200
ASK_AGAIN_AFTER = 2
"""Seconds after which a worker asks again for an execution that goes on."""


class GraphExecution:
    """Executes graphs in this process."""

    def __init__(
        self,
        store: StoreAccess,
        router: GraphRouter,
        billing: Billing,
        now: Callable[[], int],
        *,
        clock: Clock,
        lease_ms: int,
    ) -> None:
        self._store = store
        self._router = router
        self._billing = billing
        self._now = now
        self._clock = clock
        self._lease_ms = lease_ms
        self._going_on: set[asyncio.Task[ExecutionOutcome]] = set()

    def graphs(self) -> Collection[str]:
        """The ids of the graphs that can be run here."""
        return self._router.graphs()

    async def close(self) -> None:
        """Stop executions that no caller waits for, and release what providers hold open."""
        for task in self._going_on:
            task.cancel()
        await asyncio.gather(*self._going_on, return_exceptions=True)
        await self._router.close()

    async def execute(self, request: ExecutionRequest, watch: Watch) -> ExecutionOutcome:
        """Execute a request, or answer with the outcome of its earlier execution."""
        request_hash = hash_of_request(request.graph_id, request.input)
        async with self._store.reading() as transaction:
            known = await self._known(transaction, request, request_hash)
            if known is not None:
                return known
            grant = await self._granted(transaction, request)
        caller = await self._caller(grant, request)
        now = self._now()
        record = ExecutionRecord(
            user_id=request.user_id, key=request.key, request_hash=request_hash, run_id=request.run_id, holder=str(uuid4()),
            status=ExecutionStatus.RUNNING, lease_until_ms=now + self._lease_ms, created_at_ms=now,
        )  # fmt: skip
        async with self._store.transaction() as transaction:
            known = await self._known(transaction, request, request_hash)
            if known is not None:
                return known
            await self._granted(transaction, request)
            if not await transaction.claim_execution(record):
                raise ExecutionInProgressError(ASK_AGAIN_AFTER)
        watch.hide(caller.virtual_key)
        return await self._run(request, record, caller, watch)

    async def answer(self, request: ExecutionRequest, watch: Watch, seconds: float) -> ExecutionOutcome:
        """Execute a request, and wait at most ``seconds`` for its end. It continues after that; a caller who asks again learns how it ended."""
        task = asyncio.create_task(self.execute(request, watch))
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise ExecutionInProgressError(1)
        return task.result()

    async def stop(self, user_id: str, key: str) -> bool:
        """Ask an execution to stop, wherever it runs; ``False`` if none runs under this key."""
        async with self._store.transaction() as transaction:
            return await transaction.stop_execution(user_id, key)

    async def _known(
        self, transaction: Transaction, request: ExecutionRequest, request_hash: str
    ) -> ExecutionOutcome | None:
        """The outcome that is stored under a request's key; ``None`` if it is to be executed."""
        found = await transaction.execution(request.user_id, request.key)
        verdict: Verdict = judge_request(found, request_hash, self._now())
        match verdict:
            case New():
                return None
            case Stored(outcome):
                return outcome
            case InProgress(for_ms):
                raise ExecutionInProgressError(min(for_ms / 1000, ASK_AGAIN_AFTER))
            case Mismatch():
                raise IdempotencyMismatchError(request.key)
            case _:
                assert_never(verdict)

    async def _granted(self, transaction: Transaction, request: ExecutionRequest) -> Grant:
        """The grant of a request; raise an error if it does not allow the request now."""
        return await valid_grant(
            transaction, request.grant_id, request.user_id, request.graph_id, self._now()
        )

    async def _caller(self, grant: Grant, request: ExecutionRequest) -> Caller:
        accounts = self._billing.accounts
        if not await accounts.has_credit(grant.billing_account_id):
            raise NoCreditError(request.user_id)
        key = await accounts.default_virtual_key(grant.billing_account_id)
        return Caller(
            user_id=grant.user_id,
            billing_account_id=grant.billing_account_id,
            grant_id=grant.id,
            virtual_key=key,
        )

    async def _run(
        self, request: ExecutionRequest, record: ExecutionRecord, caller: Caller, watch: Watch
    ) -> ExecutionOutcome:
        """Run the graph while its lease is renewed, and store how it ended."""
        task = asyncio.create_task(self._outcome(request, caller, watch))
        keeping = asyncio.create_task(self._keep(record, task))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.shield(self._release(record))
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        if task.cancelled():  # it was asked to stop, or lost its lease
            await self._release(record)
            raise ExecutionInProgressError(1)
        outcome = task.result()
        async with self._store.transaction() as transaction:
            if await transaction.end_execution(record, outcome):
                return outcome
        raise ExecutionInProgressError(1)  # another execution has taken over

    async def _keep(self, record: ExecutionRecord, task: asyncio.Task[ExecutionOutcome]) -> None:
        """Renew the lease; stop the graph if that was asked for, or if another execution has taken over."""
        while True:
            await self._clock.wait(asyncio.Event(), self._lease_ms / 3000)
            with contextlib.suppress(Exception):  # the lease lasts for a few more tries
                async with self._store.transaction() as transaction:
                    stopping = await transaction.renew_execution(record, self._now() + self._lease_ms)
                if stopping is not False:
                    task.cancel()

    async def _release(self, record: ExecutionRecord) -> None:
        """Let another execution take over at once."""
        with contextlib.suppress(Exception):  # else it waits for the lease
            async with self._store.transaction() as transaction:
                await transaction.renew_execution(record, self._now())

    async def _outcome(self, request: ExecutionRequest, caller: Caller, watch: Watch) -> ExecutionOutcome:
        """Run the graph to its end; whatever it raises is an outcome too. The caller's key is in none of it."""
        secrets, kept = secrets_in([caller.virtual_key]), KeptEvents()

        def clean(text: str) -> str:
            return without(text.encode("utf-8", "backslashreplace"), secrets).decode()

        async def on_event(event: Any) -> None:  # noqa: ANN401 - of any provider
            if isinstance(event, UsageEvent):
                used = _usage(event, request, caller, self._now())
                used = msgspec.structs.replace(used, unit=clean(used.unit), model=clean(used.model))
                await self._billing.usage.record(used)
            watch.event(clean(kept.add(event)))

        def failed(code: str, message: str) -> ExecutionOutcome:
            events = tuple(map(clean, kept.texts))
            return ExecutionOutcome(
                ok=False, code=code, message=clean(message), events=events, dropped=kept.dropped
            )

        try:
            result = await drain(
                self._router.run_graph(request.run_id, request.graph_id, request.input, caller), on_event
            )
        except GraphError as error:
            return failed(error.code, kept_failure(error.message))
        except Exception as error:
            return failed(Reason.FAILED, kept_failure(_words(error)))
        try:
            text = clean(kept_result(result))
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            return failed(
                Reason.INVALID_RESULT, kept_failure(f"The result of the graph cannot be kept: {error}")
            )
        return ExecutionOutcome(
            ok=True, result=msgspec.json.decode(text), events=tuple(map(clean, kept.texts)), dropped=kept.dropped
        )  # fmt: skip


def _words(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _usage(event: UsageEvent, request: ExecutionRequest, caller: Caller, now: int) -> Usage:
    """Usage as it is recorded: within bounds, whatever a graph reports."""
    numbers = {
        name: min(max(int(getattr(event, name)), 0), MAX_INTEGER)
        for name in ("input_tokens", "output_tokens", "cost")
    }
    return Usage(
        run_id=request.run_id, attempt=request.attempt, unit=str(event.unit)[:MAX_UNIT_LENGTH], user_id=caller.user_id,
        billing_account_id=caller.billing_account_id, graph_id=request.graph_id, recorded_at_ms=now,
        model=str(event.model)[:MAX_UNIT_LENGTH], **numbers,
    )  # fmt: skip

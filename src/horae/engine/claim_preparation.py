"""Lets executors write in the transactions that claim their attempts, so that claim and hand-off become durable together.

A failure affects only the executor's own attempts: it is rolled back to a savepoint, and the transaction continues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from horae.errors import NotStartedError
from horae.executor.executor_database import Claim
from horae.executor.port import Executor
from horae.executor.stored_output import kept_json
from horae.model import Checkpoint, Denial, Run
from horae.store.port import Transaction

if TYPE_CHECKING:
    from horae.engine.worker import Launch

_replace = msgspec.structs.replace


async def prepare(
    transaction: Transaction,
    launches: Sequence[Launch],
    preparing: Callable[[Run], Executor | None],
    denial: Callable[[Launch], Denial | None],
    now: int,
) -> Sequence[Launch]:
    """Prepare the admitted launches whose executors support it, and return all launches. ``denial`` says why a launch is not admitted."""
    groups: dict[Executor, list[Launch]] = defaultdict(list)
    for each in launches:
        executor = preparing(each.run) if each.call is None else None
        if executor is not None and denial(each) is None:
            groups[executor].append(each)
    if not groups:
        return launches
    prepared = {
        each.run.id: each
        for executor, group in groups.items()
        for each in await _prepare(transaction, executor, group, now)
    }
    return [prepared.get(each.run.id, each) for each in launches]


async def _prepare(
    transaction: Transaction, executor: Executor, launches: Sequence[Launch], now: int
) -> Sequence[Launch]:
    """Prepare attempts of one kind together; if that fails, one by one."""
    await transaction.execute("SAVEPOINT horae_prepare")
    try:
        prepared = await _prepare_all(transaction, executor, launches, now)
        await transaction.execute("RELEASE SAVEPOINT horae_prepare")
    except Exception as error:  # of the executor's own statements, or of what it makes of an input
        await transaction.execute("ROLLBACK TO SAVEPOINT horae_prepare")
        if len(launches) == 1:
            return [_replace(launches[0], refusal=_refusal(error))]
        return [each for one in launches for each in await _prepare(transaction, executor, [one], now)]
    return prepared


async def _prepare_all(
    transaction: Transaction, executor: Executor, launches: Sequence[Launch], now: int
) -> list[Launch]:
    claims = [Claim(run=each.run, checkpoints=each.checkpoints) for each in launches]
    saved = await executor.prepare(claims, transaction)
    prepared, kept = [], []
    for each in launches:
        checkpoints = each.checkpoints
        if each.run.id in saved:
            bounds = executor.checkpoint_bounds
            text = kept_json(saved[each.run.id], "what is saved for an attempt", bounds.value_bytes)
            kept.append((each.run, {executor.kind: text}))
            new = Checkpoint(
                run_id=each.run.id, key=executor.kind, value=text, attempt=each.run.attempt, saved_at_ms=now
            )
            checkpoints = [*(one for one in checkpoints if one.key != executor.kind), new]
        prepared.append(_replace(each, prepared=True, checkpoints=checkpoints))
    if kept:
        await transaction.save_checkpoints(kept, now)
    return prepared


def _refusal(error: Exception) -> NotStartedError:
    if isinstance(error, NotStartedError):
        return error
    reason = " ".join(str(error).split())
    return NotStartedError(f"it could not be prepared: {type(error).__name__}: {reason}")

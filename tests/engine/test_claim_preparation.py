"""What an executor writes in the transaction that claims an attempt: it is there exactly if the claim is."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from horae import App, Config, Context, Executor
from horae.errors import InvalidInputError, NotStartedError, StoreUnavailableError
from horae.executor.executor_database import Claim, Database, Statements
from horae.model import Action, Denial, Reason, Run
from horae.store.port import Transaction
from tests.support.nodes import step
from tests.support.wait import PATIENCE, wait_until

TABLE = "CREATE TABLE letter (run_id TEXT)"


class Letter:
    pass


class LetterExecutor(Executor):
    """Writes a letter for each run that it claims the first time."""

    kind = "letter"
    prepares = True

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.ran: list[Any] = []
        self.denied = ""
        self.held: list[weakref.ref[Letter]] = []
        self.database: Database | None = None

    def bind(self, database: Database) -> None:
        self.database = database

    def check(self, action: Action, options: None, stored: None) -> None:
        assert self.database is not None
        if action.input == self.database.dialect:
            raise InvalidInputError("action.kind", "is for another database")

    def admit(self, action: Action) -> Denial | None:
        return Denial(Reason.NOT_ALLOWED, "no") if self.denied == action.input else None

    async def prepare(self, claims: Sequence[Claim], transaction: Statements) -> Mapping[str, Any]:
        self.batches.append(len(claims))
        new = [each.run for each in claims if not each.checkpoints]
        for run in new:
            await transaction.execute("INSERT INTO letter VALUES (:id)", id=run.id)
        for run in new:
            if run.input == "bad":
                letter = Letter()
                self.held.append(weakref.ref(letter))
                raise NotStartedError("bad letters are not sent", permanent=True)
            if run.input == "worse":
                await transaction.execute("INSERT INTO nowhere VALUES (1)")
        return {run.id: f"letter of {run.input}" for run in new}

    async def run(self, context: Context) -> Any:
        self.ran.append((context.input, context.checkpoints.get(self.kind), context.attempt))
        if context.input == "slow" and context.attempt == 1:
            await asyncio.sleep(60)
        return "sent"


@asynccontextmanager
async def node(database: str, *inputs: str) -> AsyncIterator[tuple[App, LetterExecutor, list[str]]]:
    """An app whose schedules, one for each input, have been triggered."""
    app, executor = App(database, config=Config(drain_ms=0, terminate_ms=500)), LetterExecutor()
    app.use(executor)
    async with app, asyncio.timeout(PATIENCE):
        async with app.transaction() as transaction:
            await transaction.execute(TABLE)
        for each in inputs:
            await app.schedules.create(
                each, {}, {"kind": "letter", "input": each}, policies={"start_attempts": 1}
            )
        yield app, executor, [await app.schedules.trigger(each) for each in inputs]


async def letters(app: App) -> list[str]:
    async with app.transaction() as transaction:
        return [run_id for (run_id,) in await transaction.execute("SELECT run_id FROM letter")]


async def ended(app: App, *ids: str) -> list[Run]:
    async def all_ended() -> bool:
        await step(app)
        return all([(await app.runs.get(each)).ended_at_ms is not None for each in ids])

    await wait_until(all_ended)
    return [await app.runs.get(each) for each in ids]


async def test_what_fails_concerns_its_own_attempt_only(database: str):
    async with node(database, "a", "bad", "worse", "b") as (app, executor, ids):
        a, bad, worse, b = await ended(app, *ids)
        assert (a.result, b.result, await letters(app)) == ("sent", "sent", [a.id, b.id])
        assert [each[:2] for each in executor.ran] == [("a", "letter of a"), ("b", "letter of b")]
        assert executor.batches == [4, 1, 1, 1, 1]
        assert (bad.status, bad.failure) == ("dropped", "NotStartedError: bad letters are not sent")
        assert worse.status == "dropped"
        assert "it could not be prepared: " in str(worse.failure)
        gc.collect()
        assert [each() for each in executor.held] == [None, None]  # nor the frames of the error


async def test_a_claim_that_is_not_committed_leaves_nothing(database: str, monkeypatch: pytest.MonkeyPatch):
    async with node(database, "a") as (app, executor, (run_id,)):
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "is_node", is_dead)
            patch.setattr("horae.store.postgres.PostgresTransaction.is_node", is_dead)
            with pytest.raises(StoreUnavailableError):
                await step(app)
        assert (executor.batches, await letters(app)) == ([1], [])
        await ended(app, run_id)
        assert (executor.ran, await letters(app)) == ([("a", "letter of a", 1)], [run_id])


async def is_dead(*_: object) -> bool:
    return False


async def test_a_commit_whose_answer_was_lost_is_not_prepared_again(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    async with node(database, "a") as (app, executor, (run_id,)):
        plain = app._store.transaction

        @asynccontextmanager
        async def transaction() -> AsyncIterator[Transaction]:
            async with plain() as transaction:
                yield transaction
            raise StoreUnavailableError("the answer to the commit was lost")

        with monkeypatch.context() as patch:
            patch.setattr(app._store, "transaction", transaction)
            with pytest.raises(StoreUnavailableError):
                await step(app)
        await ended(app, run_id)
        assert (executor.ran, await letters(app)) == ([("a", "letter of a", 1)], [run_id])


async def test_the_next_attempt_has_what_was_saved_and_one_that_is_not_admitted_is_not_prepared(
    database: str,
):
    async with node(database, "slow", "denied") as (app, executor, (slow, denied)):
        executor.denied = "denied"
        await step(app)
        await wait_until(lambda: executor.ran)
        app.worker.stop_all(Reason.SHUTDOWN)
        runs = await ended(app, slow, denied)
        assert [each.status for each in runs] == ["succeeded", "skipped"]
        assert [each[1:] for each in executor.ran] == [("letter of slow", 1), ("letter of slow", 2)]
        assert await letters(app) == [slow]
        other = {"kind": "letter", "input": app._store.dialect}
        with pytest.raises(InvalidInputError, match="is for another database"):
            await app.schedules.create("other", {}, other)

"""Hands actions to Procrastinate: a job in the same PostgreSQL, deferred in the transaction that claims the attempt.

So there is no moment at which one is durable and the other is not. The outcomes of jobs are read from Procrastinate's own table, with
one query for all jobs that a node follows: its workers need nothing of Horae, and send no notification when a job ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from horae.errors import InvalidInputError, MissingExtraError, NotStartedError
from horae.executor.attempt_context import work_id_of
from horae.executor.executor_database import POSTGRESQL, Claim, Database, Statements
from horae.executor.hand_off import End, Ending, HandOff, HandOffExecutor, arguments
from horae.model import BETWEEN, Action, Overlap, Run

try:
    from procrastinate import App
    from procrastinate.connector import BaseAsyncConnector
    from procrastinate.jobs import Job
    from procrastinate.manager import JobManager
except ImportError:
    raise MissingExtraError("procrastinate", "procrastinate") from None

_ENDINGS = {
    "succeeded": Ending.SUCCEEDED,
    "failed": Ending.FAILED,
    "cancelled": Ending.STOPPED,
    "aborted": Ending.STOPPED,
}
_NO_JOBS = "its jobs are in the same database as the schedules, and this one is not PostgreSQL"
_PARAMETER = re.compile(r"%\(([a-z_]+)\)s")


class ProcrastinateExecutor(HandOffExecutor):
    """The kind ``procrastinate``: ``procrastinate:NAME`` defers a job of that task with the action's input as its arguments."""

    kind = "procrastinate"
    engine = "Procrastinate"
    for_nodes = False
    prepares = True

    def __init__(self, app: App, tasks: Collection[str], *, schema: str = "public") -> None:
        """``app`` is the program's Procrastinate app, of which only the tasks are used; ``tasks`` are the names of those that may be run.

        ``schema`` is the schema in Horae's database that has Procrastinate's tables.
        """
        super().__init__(tasks)
        self._app = app
        self._schema = f'"{schema.replace(chr(34), chr(34) * 2)}"'
        self._database: Database | None = None

    def bind(self, database: Database) -> None:
        """Keep the database that has the schedules and the jobs."""
        self._database = database

    def check(self, action: Action, options: None, stored: None) -> None:  # noqa: ARG002 - the kind has no options
        """Refuse an action if the database cannot have jobs."""
        if not self._can_have_jobs:
            raise InvalidInputError("action.kind", f"cannot be procrastinate: {_NO_JOBS}")

    async def prepare(self, claims: Sequence[Claim], transaction: Statements) -> Mapping[str, Any]:
        """Defer a job for each attempt that has none yet."""
        if not self._can_have_jobs:  # the action was stored by a program that does not know the kind
            raise NotStartedError(_NO_JOBS, permanent=True)
        new = [each for each in claims if not self._is_deferred(each)]
        try:
            jobs = [self._job(each.run) for each in new]
            ids = await self._defer(jobs, transaction) if jobs else ()
        except Exception as error:  # from the database, or from Procrastinate about the input
            raise self.not_taken(error) from None
        return {
            each.run.id: {"id": work_id_of(each.run), "receipt": job_id}
            for each, job_id in zip(new, ids, strict=True)
        }

    @property
    def _can_have_jobs(self) -> bool:
        return self._database is not None and self._database.dialect == POSTGRESQL

    def _is_deferred(self, claim: Claim) -> bool:
        saved = (msgspec.json.decode(each.value) for each in claim.checkpoints if each.key == self.kind)
        return any(each["id"] == work_id_of(claim.run) for each in saved)

    def _job(self, run: Run) -> Job:
        """A job whose lock is the run's lane, unless runs may overlap; then it has that of its task."""
        settings: dict[str, Any] = {"task_kwargs": arguments(run.input), "queueing_lock": run.key}
        if run.overlap is not Overlap.ALLOW_ALL:
            settings["lock"] = f"horae:{run.schedule_key.replace(BETWEEN, '/')}"
        return self._app.configure_task(self._names[run.action], **settings).job

    async def _defer(self, jobs: Sequence[Job], transaction: Statements) -> Sequence[int]:
        async with self._manager(transaction) as manager:
            deferred = await manager.batch_defer_jobs_async(list(jobs))
        return [each.id for each in deferred]

    async def submit(self, work: HandOff) -> None:
        """There is nothing to submit: a job that was not deferred with its claim is claimed again."""
        raise NotStartedError(f"{work.name} was not deferred with its claim")

    async def ask(self, works: Sequence[HandOff]) -> Mapping[str, End]:
        """Read the rows of jobs."""
        columns = "id, status::text, attempts, queueing_lock"
        text = f"SELECT {columns} FROM {self._schema}.procrastinate_jobs WHERE id = ANY(:ids::bigint[])"  # noqa: S608 - the operator's
        async with self._bound().reading() as transaction:
            found = await transaction.execute(text, ids=[each.receipt for each in works])
        rows = {row["id"]: row for row in found}
        ends = {each.id: _end_of(each, rows.get(each.receipt)) for each in works}
        return {work_id: end for work_id, end in ends.items() if end is not None}

    async def stop(self, work: HandOff, *, force: bool) -> None:  # noqa: ARG002 - Procrastinate has one way
        """Cancel a job that waits; ask for one that runs to be aborted, which its task must heed."""
        async with self._bound().transaction() as transaction, self._manager(transaction) as manager:
            await manager.cancel_job_by_id_async(work.receipt, abort=True)

    @asynccontextmanager
    async def _manager(self, transaction: Statements) -> AsyncIterator[Any]:
        """Run Procrastinate's own statements in a transaction of Horae; afterwards the transaction finds Horae's tables again."""
        path = "SELECT current_setting('search_path'), set_config('search_path', :path, TRUE)"
        ((before, _),) = await transaction.execute(path, path=self._schema)
        yield JobManager(_ClaimConnector(transaction))
        await transaction.execute(path, path=before)

    def _bound(self) -> Database:
        if self._database is None:
            raise NotStartedError("the executor is used by no app")
        return self._database


def _end_of(work: HandOff, row: Any) -> End | None:  # noqa: ANN401 - a row of the database
    """How a job ended, by its row; ``None`` if it has not."""
    job_id, key = work.receipt, work.id.rpartition("-")[0]
    if row is None or row["queueing_lock"] != key:
        reason = f"the job {job_id} is gone; let workers keep what ended (`delete_jobs` must be `never`)"
        return End(ending=Ending.FAILED, reason=reason)
    ending, attempts = _ENDINGS.get(row["status"]), row["attempts"]
    if ending is None:
        return None
    if ending is Ending.SUCCEEDED:
        return End(ending=ending, result={"job": job_id, "attempts": attempts})
    if ending is Ending.STOPPED:
        return End(ending=ending, reason=f"the job {job_id} was {row['status']}")
    reason = f"the job {job_id} failed at attempt {attempts}; the log of its worker says why, because Procrastinate keeps no error"
    return End(ending=ending, reason=reason)


class _ClaimConnector(BaseAsyncConnector):
    """Executes Procrastinate's statements in a transaction of Horae."""

    def __init__(self, transaction: Statements) -> None:
        self._transaction = transaction

    async def execute_query_all_async(self, query: str, **arguments: object) -> list[dict[str, Any]]:
        values = {name: _encoded(value) for name, value in arguments.items()}
        rows = await self._transaction.execute(_PARAMETER.sub(r":\1", query), **values)
        return [dict(row) for row in rows]

    async def execute_query_one_async(self, query: str, **arguments: object) -> dict[str, Any]:
        return (await self.execute_query_all_async(query, **arguments))[0]


def _encoded(value: Any) -> Any:  # noqa: ANN401 - what a database takes
    """A parameter as the driver takes it: rows as tuples, JSON as text."""
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, tuple):
        return tuple(json.dumps(each) if isinstance(each, dict) else each for each in value)
    return value

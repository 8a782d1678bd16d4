"""A database of any age is brought up to date by opening it, once, whoever comes first; a newer one is left alone."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae.errors import DatabaseVersionError, StoreUnavailableError
from horae.model import Counts, Reason, Status
from horae.store.port import Store
from horae.store.postgres import PostgresStore
from horae.store.queries import migrations
from horae.store.sqlite import SqliteStore

ROWS = (
    """
    INSERT INTO schedule (id, generation, spec, action, policies, state, version, created_at, updated_at, owner, tags)
    VALUES ('s', 1, '{"crons":["* * * * *"]}', '{"name":"a"}', '{}', '{}', 1, 5, 5, 'ada', '["t"]')
    """,
    "INSERT INTO due (schedule_id, cursor, next_at, started) VALUES ('s', 60, 120000, 1)",
    "INSERT INTO generation (schedule_id, latest) VALUES ('s', 1)",
    """
    INSERT INTO run (id, schedule_id, generation, nominal, origin, overlap, status, fire_at, start_at, action,
        action_id, reason, attempt, epoch, author, note)
    VALUES ('r', 's', 1, 60, 'automatic', 'skip', 'running', 60000, 60000, 'a', 's-1', '', 1, 1, '', '')
    """,
    """
    INSERT INTO unstarted_range (schedule_id, generation, first, last, count, status, reason, decided_at)
    VALUES ('s', 1, 0, 0, 1, 'skipped', 'overlap', 3)
    """,
)
"""What a program of the first version may have left."""


class Database:
    """A database without a program."""

    dialect = ""

    async def execute(self, *statements: str) -> None:
        raise NotImplementedError

    async def fetch(self, query: str) -> list[Any]:
        raise NotImplementedError

    async def shape(self) -> list[Any]:
        """Everything about the schema, in order."""
        raise NotImplementedError

    def store(self) -> Store:
        raise NotImplementedError

    async def age(self, version: int) -> None:
        """Make it one that a program of some version has made, with rows in it."""
        steps = migrations(self.dialect)[:version]
        await self.execute(*(statement for step in steps for statement in step.split(";\n")))
        if version:
            await self.execute(f"UPDATE horae SET version = {version}", *ROWS)  # noqa: S608

    async def open(self) -> None:
        store = self.store()
        try:
            await store.open(lambda: None)
        finally:
            await store.close()


class SqliteDatabase(Database):
    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def _do(self, *statements: str) -> list[Any]:
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            return [row for statement in statements for row in connection.execute(statement)]
        finally:
            connection.close()

    async def execute(self, *statements: str) -> None:
        self._do(*statements)

    async def fetch(self, query: str) -> list[Any]:
        return self._do(query)

    async def shape(self) -> list[Any]:
        return self._do("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")

    def store(self) -> Store:
        return SqliteStore(self._path)


class PostgresDatabase(Database):
    dialect = "postgres"

    def __init__(self, address: str) -> None:
        self._address = address

    async def execute(self, *statements: str) -> None:
        for statement in statements:
            await self.fetch(statement)

    async def fetch(self, query: str) -> list[Any]:
        connection = await asyncpg.connect(self._address)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    async def shape(self) -> list[Any]:
        columns = await self.fetch(
            "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY table_name, column_name"
        )
        indexes = await self.fetch(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexdef"
        )
        constraints = await self.fetch(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2"
        )
        return [*columns, *indexes, *constraints]

    def store(self) -> Store:
        return PostgresStore(self._address)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "postgres":
        return PostgresDatabase(request.getfixturevalue("postgres"))
    return SqliteDatabase(tmp_path / "horae.db")


@pytest.fixture
async def fresh(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> list[Any]:
    """The schema of a database that was made at once, in the same dialect."""
    other: Database
    if database.dialect == "sqlite":
        other = SqliteDatabase(tmp_path / "fresh.db")
    else:
        server = request.getfixturevalue("postgres_server")
        name = f"fresh_{tmp_path.name.lower()}".replace("-", "_")[:60]
        server.psql(f'CREATE DATABASE "{name}";')
        other = PostgresDatabase(server.get_uri(database=name))
    await other.open()
    return await other.shape()


STEPS = len(migrations("sqlite"))
COUNTED = next(
    number for number, step in enumerate(migrations("sqlite"), 1) if "CREATE TABLE unstarted (" in step
)
"""The step from which on slots that did not start are counted by reason, and not found in the ledger."""


def test_both_dialects_have_taken_as_many_steps():
    assert len(migrations("postgres")) == STEPS


@pytest.mark.parametrize("version", range(STEPS + 1))
async def test_a_database_of_any_age_is_brought_up_to_date_with_its_rows(
    database: Database, fresh: list[Any], version: int
):
    await database.age(version)
    store = database.store()
    await store.open(lambda: None)
    async with store.transaction() as transaction:
        found = await transaction.schedules(["s"])
        runs = await transaction.runs("s", 9)
        unstarted = await transaction.unstarted_ranges("s", 9)
        counts_of = await transaction.counts_of(["s"])
        assert await transaction.open_backfills(["s"]) == []  # what is new is there
    await store.close()
    assert await database.fetch("SELECT version FROM horae") == [(STEPS,)]
    assert await database.shape() == fresh
    if version:
        assert [(each.id, each.cursor, each.owner, each.tags) for each in found] == [("s", 60, "ada", ("t",))]
        assert [(run.id, run.status, run.attempt, run.failures) for run in runs] == [
            ("r", Status.RUNNING, 1, 0)
        ]
        assert [(each.first, each.reason) for each in unstarted] == [(0, "overlap")]
        assert counts_of["s"] == Counts(started=1, unstarted={Reason.OVERLAP: 1} if version < COUNTED else {})
    else:
        assert (found, runs, unstarted) == ([], [], [])


@pytest.mark.parametrize("version", [0, 1])
async def test_many_that_open_a_database_at_once_take_each_step_once(
    database: Database, fresh: list[Any], version: int
):
    await database.age(version)
    await asyncio.gather(*(database.open() for _ in range(5)))
    assert await database.shape() == fresh
    assert await database.fetch("SELECT version FROM horae") == [(STEPS,)]


async def test_a_new_file_is_opened_when_another_connection_has_written_to_it(tmp_path: Path):
    """SQLite does not wait for a writer by itself when a file begins to be written ahead."""
    file = str(tmp_path / "horae.db")
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(0.2, other.execute, "COMMIT")
        store = SqliteStore(file)
        await store.open(lambda: None)
        await store.close()


async def test_a_step_that_fails_leaves_nothing_of_itself(database: Database):
    await database.age(1)
    await database.execute(
        "CREATE TABLE version (something INTEGER)"
    )  # the last thing that the second step makes
    before = await database.shape()
    with pytest.raises((StoreUnavailableError, asyncpg.DuplicateTableError)):
        await database.open()
    assert await database.shape() == before
    assert await database.fetch("SELECT version FROM horae") == [(1,)]
    await database.execute("DROP TABLE version")
    await database.open()
    assert await database.fetch("SELECT version FROM horae") == [(STEPS,)]


async def test_a_database_newer_than_the_program_is_refused_and_left_alone(database: Database):
    await database.open()
    await database.execute(f"UPDATE horae SET version = {STEPS + 1}")  # noqa: S608
    before = await database.shape()
    with pytest.raises(DatabaseVersionError, match=str(STEPS + 1)):
        await database.open()
    assert await database.shape() == before
    assert await database.fetch("SELECT version FROM horae") == [(STEPS + 1,)]

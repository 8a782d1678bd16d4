"""Opening a database takes the migrations that it misses, each once; a newer database is refused and left alone."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from importlib import resources
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae.errors import DatabaseNotSetUpError, DatabaseVersionError, StoreUnavailableError
from horae.model import Counts, ScheduleKey, Status
from horae.store.dialect import Dialect, migrations
from horae.store.postgres import PostgresStore
from horae.store.postgres.dialect import POSTGRES
from horae.store.sqlite import SQLITE, SqliteStore
from tests.support.postgres import new_postgres_database

ROWS = (
    """
    INSERT INTO schedule (key, id, generation, spec, action, policies, state, version, created_at_ms, updated_at_ms, owner, tags)
    VALUES ('s', 's', 1, '{"crons":["* * * * *"]}', '{"name":"a"}', '{}', '{}', 1, 5, 5, '', '["t"]')
    """,
    "INSERT INTO due (schedule_key, cursor_ms, next_at_ms, started) VALUES ('s', 60000, 120000, 1)",
    "INSERT INTO generation (schedule_key, schedule_id, latest) VALUES ('s', 's', 1)",
    """
    INSERT INTO run (id, schedule_key, generation, nominal_ms, origin, overlap, status, fire_ms, start_at_ms, decided_at_ms, action,
        action_id, reason, attempt, epoch, author, note)
    VALUES ('r', 's', 1, 60000, 'automatic', 'skip', 'running', 60000, 60000, 60000, 'a', 's-1', '', 1, 1, '', '')
    """,
    """
    INSERT INTO unstarted_range (schedule_key, generation, start_ms, end_ms, count, status, reason, decided_at_ms)
    VALUES ('s', 1, 0, 0, 1, 'skipped', 'overlap', 3)
    """,
)
"""What a program of the first version may have left."""

FURTHER_STEPS = (
    """
    ALTER TABLE schedule ADD COLUMN colour TEXT;
    CREATE TABLE seen (schedule_id TEXT NOT NULL, number INTEGER NOT NULL);
    INSERT INTO seen (schedule_id, number) SELECT schedule_key, 1 FROM run;
    """,
    """
    CREATE INDEX seen_number ON seen (number) WHERE number > 0;
    CREATE TABLE after_all (id TEXT PRIMARY KEY);
    """,
)
"""What programs to come may do: add a column, a table that is filled from what is there, and an index."""


class Database:
    """A database that no program has open."""

    dialect: Dialect

    def __init__(self, *further: str) -> None:
        """The steps that programs to come would add to those of this one."""
        self.steps = (*migrations(self.dialect), *further)

    async def execute(self, *statements: str) -> None:
        raise NotImplementedError

    async def fetch(self, query: str) -> list[Any]:
        raise NotImplementedError

    async def catalogue(self) -> list[Any]:
        """Everything that the database knows about its tables, columns, keys and indexes, in a fixed order."""
        raise NotImplementedError

    def store(self) -> SqliteStore | PostgresStore:
        raise NotImplementedError

    async def prepare(self) -> None:
        """Make the place in which a script creates tables."""

    async def run_script(self, script: str) -> None:
        await self.prepare()
        await self.execute(*(each for each in script.split(";\n") if each.strip()))

    async def age(self, version: int) -> None:
        """Make it one that a program of some version has made, with rows in it."""
        for step in self.steps[:version]:
            await self.run_script(step)
            if step is self.steps[0]:
                await self.execute(*ROWS)
        if version:
            await self.execute(f"UPDATE horae SET version = {version}")  # noqa: S608

    async def open(self, *, setup: bool = True) -> None:
        store = self.store()
        store.schema_steps = self.steps
        try:
            await store.open(lambda: None, setup=setup)
        finally:
            await store.close()

    async def version(self) -> int:
        return int((await self.fetch("SELECT version FROM horae"))[0][0])


class SqliteDatabase(Database):
    dialect = SQLITE

    def __init__(self, path: Path, *further: str) -> None:
        super().__init__(*further)
        self._path = str(path)

    def _do(self, *statements: str) -> list[Any]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            return [row for statement in statements for row in connection.execute(statement)]

    async def execute(self, *statements: str) -> None:
        self._do(*statements)

    async def fetch(self, query: str) -> list[Any]:
        return self._do(query)

    async def catalogue(self) -> list[Any]:
        tables = self._do(
            "SELECT name, wr, strict FROM pragma_table_list WHERE schema = 'main' ORDER BY name"
        )
        columns = [
            (name, *row)
            for name, *_ in tables
            for pragma in ("table_xinfo", "foreign_key_list")
            for row in self._do(f"PRAGMA {pragma}({name})")
        ]
        indexes = self._do("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name")
        return [*tables, *columns, *((name, table, _words(sql)) for name, table, sql in indexes)]

    def store(self) -> SqliteStore:
        return SqliteStore(self._path)


def _words(sql: str | None) -> str | None:
    """The text of an index without the white space of its author; a key has none."""
    return sql and re.sub(r"\s+", " ", sql)


class PostgresDatabase(Database):
    dialect = POSTGRES

    def __init__(self, address: str, *further: str) -> None:
        super().__init__(*further)
        self._address = address

    async def execute(self, *statements: str) -> None:
        async with self._connection() as connection:
            for statement in statements:
                await connection.execute(statement)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        connection = await asyncpg.connect(self._address)
        try:
            yield connection
        finally:
            await connection.close()

    async def prepare(self) -> None:
        await self.execute("CREATE SCHEMA IF NOT EXISTS horae")

    async def fetch(self, *queries: str) -> list[Any]:
        async with self._connection() as connection:
            return [tuple(row) for query in queries for row in await connection.fetch(query)]

    async def catalogue(self) -> list[Any]:
        return await self.fetch(
            "SELECT relname, relkind, reloptions FROM pg_class "
            "WHERE relnamespace = to_regnamespace('horae') ORDER BY relname",
            "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default, "
            "identity_generation FROM information_schema.columns WHERE table_schema = 'horae' ORDER BY 1, 2",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'horae' ORDER BY indexdef",
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = to_regnamespace('horae') ORDER BY 1, 2",
        )

    def store(self) -> PostgresStore:
        return PostgresStore(self._address)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """An empty database, for a program that knows more steps than this one."""
    if request.param == "postgres":
        return PostgresDatabase(request.getfixturevalue("empty_postgres"), *FURTHER_STEPS)
    return SqliteDatabase(tmp_path / "horae.db", *FURTHER_STEPS)


@pytest.fixture
async def another(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Database:
    """Another empty database of the same dialect."""
    if database.dialect is SQLITE:
        return SqliteDatabase(tmp_path / "another.db", *FURTHER_STEPS)
    server = request.getfixturevalue("postgres_server")
    return PostgresDatabase(new_postgres_database(server, empty=True), *FURTHER_STEPS)


_fresh: dict[str, list[Any]] = {}


@pytest.fixture
async def fresh(another: Database) -> list[Any]:
    """The catalogue of a database that took all steps at once, by its dialect."""
    if another.dialect.name not in _fresh:
        await another.open()
        _fresh[another.dialect.name] = await another.catalogue()
    return _fresh[another.dialect.name]


REAL_STEPS = len(migrations(SQLITE))
STEPS = REAL_STEPS + len(FURTHER_STEPS)


async def test_the_committed_schema_is_what_the_migrations_make(database: Database, another: Database):
    database.steps = migrations(database.dialect)
    await database.open()
    schema = resources.files(f"horae.store.{database.dialect.name}").joinpath("schema.sql").read_text("utf-8")
    await another.run_script(schema)
    assert await another.catalogue() == await database.catalogue()


def test_the_committed_schema_is_up_to_date():
    tool = Path(__file__).resolve().parents[2] / "tools" / "schema.py"
    checked = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, ""), "run tools/schema.py"


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE other (id TEXT)",
        "ALTER TABLE due ADD COLUMN colour TEXT",
        "DROP INDEX run_open",
        "CREATE INDEX run_status ON run (status) WHERE status = 'pending'",
    ],
)
async def test_a_difference_between_two_schemas_is_noticed(database: Database, fresh: list[Any], change: str):
    await database.open()
    assert await database.catalogue() == fresh
    await database.execute(change)
    assert await database.catalogue() != fresh


@pytest.mark.parametrize("version", range(STEPS + 1))
async def test_a_database_of_any_age_is_brought_up_to_date_with_its_rows(
    database: Database, fresh: list[Any], version: int
):
    await database.age(version)
    await database.open()
    assert await database.version() == STEPS
    assert await database.catalogue() == fresh
    store = database.store()
    store.schema_steps = database.steps
    await store.open(lambda: None)
    async with store.transaction() as transaction:
        found = await transaction.schedules([ScheduleKey("s")])
        runs = await transaction.runs(ScheduleKey("s"), 9)
        unstarted = await transaction.unstarted_ranges(ScheduleKey("s"), 9)
        counts = await transaction.counts_of([ScheduleKey("s")])
    await store.close()
    seen = await database.fetch("SELECT schedule_id, number FROM seen")
    if version:
        assert [(each.id, each.cursor_ms // 1000, each.owner, each.tags) for each in found] == [
            ("s", 60, "", ("t",))
        ]
        assert [(run.id, run.status, run.attempt, run.failures) for run in runs] == [
            ("r", Status.RUNNING, 1, 0)
        ]
        assert [(each.start_ms // 1000, each.reason) for each in unstarted] == [(0, "overlap")]
        assert counts[ScheduleKey("s")] == Counts(started=1)
        assert seen == [("s", 1)]
    else:
        assert (found, runs, unstarted, seen) == ([], [], [], [])


@pytest.mark.parametrize("version", [0, REAL_STEPS])
async def test_many_that_open_a_database_at_once_take_each_step_once(
    database: Database, fresh: list[Any], version: int
):
    await database.age(version)
    await asyncio.gather(*(database.open() for _ in range(5)))
    assert await database.catalogue() == fresh
    assert await database.version() == STEPS


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
    await database.age(REAL_STEPS)
    await database.execute(
        "CREATE TABLE after_all (something INTEGER)"
    )  # the last thing that the last step makes
    before = await database.catalogue()
    with pytest.raises((StoreUnavailableError, asyncpg.DuplicateTableError)):
        await database.open()
    assert await database.catalogue() == before
    assert await database.version() == REAL_STEPS
    await database.execute("DROP TABLE after_all")
    await database.open()
    assert await database.version() == STEPS


async def test_a_database_newer_than_the_program_is_refused_and_left_alone(database: Database):
    await database.open()
    before = await database.catalogue()
    database.steps = database.steps[:-1]
    with pytest.raises(DatabaseVersionError, match=str(STEPS)):
        await database.open()
    assert await database.catalogue() == before
    assert await database.version() == STEPS


@pytest.mark.parametrize("version", range(STEPS))
async def test_without_setup_nothing_is_created_or_migrated(database: Database, version: int):
    await database.age(version)
    before = await database.catalogue()
    expected = DatabaseVersionError if version else DatabaseNotSetUpError
    with pytest.raises(expected) as refused:
        await database.open(setup=False)
    assert "horae migrate" in (refused.value.hint or "")
    assert await database.catalogue() == before
    await database.open()
    await database.open(setup=False)


async def test_an_open_store_notices_that_a_newer_program_changed_the_schema(database: Database):
    store = database.store()
    await store.open(lambda: None)
    assert not await store.has_newer_schema()
    await database.open()
    assert await store.has_newer_schema()
    await store.close()

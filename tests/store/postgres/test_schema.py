"""Horae is a guest in a database: its tables are in a schema of their own, and disturb nothing outside of it."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from horae import App, Config
from horae.errors import DatabaseSetupError
from horae.model import Node
from horae.store.postgres import PostgresStore
from tests.support.nodes import fetch, only_run, soon, step_until
from tests.support.wait import wait_until

APPLICATION = ("schedule", "run", "due", "node", "horae", "version")
"""Tables of an application that have names of ours."""


@asynccontextmanager
async def opened(database: str, schema: str, wake: Any = lambda: None) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, schema=schema)
    await store.open(wake)
    try:
        yield store
    finally:
        await store.close()


async def tables_of(database: str, schema: str) -> set[str]:
    found = await fetch(database, "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    return {name for (name,) in found}


@pytest.mark.parametrize("path", ["public", "elsewhere, public", "pg_catalog"])
async def test_tables_of_the_application_are_neither_used_nor_changed(empty_postgres: str, path: str):
    await fetch(empty_postgres, f"ALTER DATABASE {postgres_name(empty_postgres)} SET search_path = {path}")
    await fetch(empty_postgres, "CREATE SCHEMA elsewhere")
    for name in APPLICATION:
        await fetch(empty_postgres, f"CREATE TABLE public.{name} (id TEXT, version INTEGER)")
        await fetch(empty_postgres, f"INSERT INTO public.{name} VALUES ('theirs', 99)")  # noqa: S608
    async with App(empty_postgres) as app:
        app.action("hello")(lambda: None)
        await app.schedules.create("s", soon(app), "hello")
        await wait_until(lambda: step_until(app, "succeeded"))
        assert (await only_run(app)).status == "succeeded"
    assert await tables_of(empty_postgres, "public") == set(APPLICATION)
    assert await tables_of(empty_postgres, "elsewhere") == set()
    assert {"schedule", "due", "run", "node"} <= await tables_of(empty_postgres, "horae")
    for name in APPLICATION:
        assert await fetch(empty_postgres, f"SELECT * FROM public.{name}") == [("theirs", 99)]  # noqa: S608


async def test_two_schemas_of_one_database_do_not_disturb_each_other(empty_postgres: str):
    woken: list[None] = []
    node = Node(epoch=1, name="same", actions=(), tzdata="2026a", started_at_ms=0)
    async with (
        opened(empty_postgres, "one") as one,
        opened(empty_postgres, "two", lambda: woken.append(None)) as two,
    ):
        async with one.transaction() as transaction:
            await transaction.rows("lock_names")
            assert await asyncio.wait_for(two.register_node(node), 30)  # it waits for no lock of the other
        assert await one.register_node(node)  # nor is its name taken there

        await wait_until(lambda: bool(woken))  # it listens
        woken.clear()
        await notify(one)
        await notify(two)  # notifications come in the order of commits: that of the other would come first
        await wait_until(lambda: bool(woken))
        assert len(woken) == 1
    assert await fetch(empty_postgres, "SELECT count(*) FROM one.node") == [(1,)]


async def notify(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await transaction.notify()


async def test_a_schema_of_another_name_is_a_setting(empty_postgres: str):
    async with App(empty_postgres, config=Config(schema="jobs_2")) as app:
        assert len(await app.nodes()) == 1
    assert await tables_of(empty_postgres, "horae") == set()
    assert "schedule" in await tables_of(empty_postgres, "jobs_2")


def postgres_name(address: str) -> str:
    return address.partition("?")[0].rpartition("/")[2]


async def test_a_role_that_may_not_create_the_schema_is_told_what_to_run(empty_postgres: str):
    role = f"u{uuid.uuid4().hex}"
    await fetch(empty_postgres, f"CREATE ROLE {role} LOGIN")
    as_role = re.sub(r"//[^@/]*@", f"//{role}:@", empty_postgres)
    with pytest.raises(DatabaseSetupError) as refused:
        await App(as_role).open()
    command = f"CREATE SCHEMA horae AUTHORIZATION {role}"
    assert command in (refused.value.hint or "")
    assert f'"{role}" may not create the schema "horae"' in refused.value.message
    await fetch(empty_postgres, command)
    async with App(as_role):
        assert "schedule" in await tables_of(empty_postgres, "horae")


async def test_a_role_without_rights_on_the_schema_is_told_what_to_run(empty_postgres: str):
    role = f"u{uuid.uuid4().hex}"
    await fetch(empty_postgres, f"CREATE ROLE {role} LOGIN")
    as_role = re.sub(r"//[^@/]*@", f"//{role}:@", empty_postgres)
    async with App(empty_postgres):
        pass
    with pytest.raises(DatabaseSetupError) as refused:
        await App(as_role).open()
    for grant in (refused.value.hint or "").partition(": ")[2].split("; "):
        await fetch(empty_postgres, grant)
    async with App(as_role) as app:
        assert len(await app.nodes()) == 1

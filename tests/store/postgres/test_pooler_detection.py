"""A connection needs a session of its own: a pooler that shares sessions is refused, one that gives a session to each is not."""

from __future__ import annotations

from typing import Any

import pytest

from horae import App
from horae.errors import ConnectionPoolerError
from horae.store.inspection import inspect
from tests.support.nodes import fetch, running, soon
from tests.support.pgbouncer import behind_pgbouncer
from tests.support.wait import wait_until


async def test_pgbouncer_in_transaction_mode_is_refused_and_nothing_is_created(
    postgres_server: Any, empty_postgres: str
):
    with behind_pgbouncer(postgres_server, empty_postgres, "transaction") as address:
        for attempt in (App(address).open(), inspect(address, "horae", lambda: 0)):
            with pytest.raises(ConnectionPoolerError) as refused:
                await attempt
            assert "pool_mode = session" in (refused.value.hint or "")
    assert await fetch(empty_postgres, "SELECT 1 FROM pg_namespace WHERE nspname = 'horae'") == []


async def test_pgbouncer_in_session_mode_works(postgres_server: Any, postgres: str):
    with behind_pgbouncer(postgres_server, postgres, "session") as address:
        async with running(App(address)) as app:
            app.action("hello")(lambda: None)
            await app.schedules.create("s", soon(app), "hello")

            async def has_run() -> bool:
                return [run.status for run in await app.runs.list("s")] == ["succeeded"]

            await wait_until(has_run)
        assert (await inspect(address, "horae", lambda: 0)).version > 0
    assert await fetch(postgres, "SELECT status FROM horae.run") == [("succeeded",)]

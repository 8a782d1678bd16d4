"""Events that an application publishes in its own PostgreSQL transaction, with each driver."""

from __future__ import annotations

import asyncio

import asyncpg
import psycopg
import pytest

from horae import App, Config
from tests.support.flows import Script, events_of
from tests.support.nodes import running
from tests.support.wait import wait_until

PUBLISH = "SELECT horae.flow_publish('', 'f', 'in', 'FROM {0}', '{{\"a\": 1}}')"


@pytest.mark.contract("FLOW-28")
async def test_an_application_publishes_with_its_own_commit(postgres: str):
    script = Script()
    async with running(App(postgres, config=Config(tick_ms=3_600_000))) as app:
        await app.flows.deploy(script.flow)
        await wait_until(lambda: script.outcomes)
        connection = await asyncpg.connect(postgres)
        mine = connection.transaction()
        await mine.start()
        await connection.execute(PUBLISH.format("asyncpg"))
        assert await events_of(app) == []  # not before the commit
        await app.flows.publish("f", "in", "another")  # and does not wait for it
        await wait_until(lambda: script.effects == [["another"]])
        await mine.commit()
        await wait_until(lambda: ["FROM asyncpg"] in script.effects)
        async with connection.transaction():
            await connection.execute(PUBLISH.format("asyncpg"))  # the same again
        with pytest.raises(asyncpg.RaiseError, match="no consumer subscribes"):
            await connection.execute("SELECT horae.flow_publish('', 'f', 'out', '1', NULL)")
        with pytest.raises(asyncpg.RaiseError, match="there is no flow"):
            await connection.execute("SELECT horae.flow_publish('', 'g', 'in', '1', NULL)")
        await connection.close()
        await asyncio.to_thread(with_psycopg, postgres)
        await asyncio.to_thread(with_sqlalchemy, postgres)
        await wait_until(lambda: len(script.effects) == 4)
        assert sorted(script.effects) == [
            ["FROM asyncpg"],
            ["FROM psycopg"],
            ["FROM sqlalchemy"],
            ["another"],
        ]


def with_psycopg(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(PUBLISH.format("psycopg").encode())
        connection.rollback()
        connection.execute(PUBLISH.format("psycopg").encode())


def with_sqlalchemy(url: str) -> None:
    import sqlalchemy as sa  # noqa: PLC0415 - it takes long to load, also for those who only collect tests

    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.exec_driver_sql(PUBLISH.format("sqlalchemy"))
    engine.dispose()

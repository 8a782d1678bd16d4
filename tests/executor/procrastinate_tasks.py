"""Tasks of a Procrastinate worker under test. The environment says where PostgreSQL is, and the file that tasks write to."""

import asyncio
import os
from pathlib import Path

from procrastinate import App, PsycopgConnector

DATABASE = os.environ.get("HORAE_TEST_DATABASE", "")
app = App(connector=PsycopgConnector(conninfo=DATABASE, kwargs={"options": "-c search_path=public"}))


def note(word: str) -> None:
    with Path(os.environ["HORAE_TEST_LOG"]).open("a") as file:
        file.write(f"{word}\n")


@app.task(name="add", queue="sums")
async def add(x: int, y: int) -> int:
    note(f"add {x} {y}")
    return x + y


@app.task(name="boom")
def boom() -> None:
    note("boom")
    raise ValueError("no")


@app.task(name="slow")
async def slow(who: str) -> None:
    note(f"slow begins {who}")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note(f"slow stops {who}")
        raise

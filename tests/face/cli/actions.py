"""What the server of the tests can run: it is given to ``horae serve --app``."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import horae

app = horae.App(":memory:")


@app.action("greet")
async def greet(context: horae.Context) -> dict[str, Any]:
    return {"hello": context.input}


@app.action("fail")
async def fail(context: horae.Context) -> None:
    raise ValueError("the [red]source[/red] is empty")


@app.action("talk")
async def talk(context: horae.Context) -> None:
    context.log.info("counting to %d", context.input)
    for number in range(context.input):
        logging.getLogger("jobs").warning("%d [bold]and\nmore[/bold]", number + 1)
        await asyncio.sleep(0)
    if context.attempt == 1:
        raise ValueError("once more")


@app.action("wait")
async def wait(context: horae.Context) -> None:
    await asyncio.sleep(600)

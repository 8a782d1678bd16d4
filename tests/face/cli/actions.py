"""What the server of the tests can run: it is given to ``horae serve --app``."""

from __future__ import annotations

import asyncio
from typing import Any

import horae

app = horae.App(":memory:")


@app.action("greet")
async def greet(context: horae.Context) -> dict[str, Any]:
    return {"hello": context.input}


@app.action("fail")
async def fail(context: horae.Context) -> None:
    raise ValueError("the [red]source[/red] is empty")


@app.action("wait")
async def wait(context: horae.Context) -> None:
    await asyncio.sleep(600)

"""Actions of the service that the console is tested on."""

import asyncio

import horae
from horae.app import schedules

schedules.MAX_EXAMINED, schedules.CHUNK = 200, 50
"""A search goes on soon: a few hundred schedules are very many here."""
app = horae.App()


@app.action("ping")
async def ping(context: horae.Context) -> object:
    """Gives back what it got."""
    return {"pong": context.input}


@app.action("fail")
async def fail(context: horae.Context) -> None:
    context.log.warning("about to fail: %s", context.input)
    raise ValueError(f"attempt {context.attempt} went wrong: {context.input}")


@app.action("hold")
async def hold(context: horae.Context) -> str:
    """Logs a line and runs until it is stopped."""
    context.log.info("holding on")
    await asyncio.sleep(600)
    return "let go"


@app.action("large")
async def large(context: horae.Context) -> str:
    return "x" * 1_000_000

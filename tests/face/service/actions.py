"""Actions of a service under test."""

import asyncio
import contextlib
import threading
from pathlib import Path

import horae
from horae.errors import NotStartedError

app = horae.App()


@app.action("ping")
async def ping(context: horae.Context) -> dict[str, object]:
    return {"pong": context.input, "key": context.key}


@app.action("fail")
async def fail(context: horae.Context) -> None:
    raise ValueError(f"attempt {context.attempt} went wrong")


@app.action("slow")
async def slow(context: horae.Context) -> None:
    await asyncio.sleep(60)


@app.action("unreachable")
async def unreachable(context: horae.Context) -> None:
    raise NotStartedError("the broker is away")


@app.action("nap")
async def nap(context: horae.Context) -> str:
    await asyncio.sleep(0.5)
    return "rested"


@app.action("swallow")
async def swallow(context: horae.Context) -> None:
    """It ignores that it is to stop."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@app.action("thread")
def thread(context: horae.Context) -> None:
    threading.Event().wait()


@app.action("pool")
async def pool(context: horae.Context) -> None:
    """What waits in a pool keeps the process alive, even after the coroutine ended."""
    await asyncio.to_thread(threading.Event().wait)


@app.action("block")
async def block(context: horae.Context) -> None:
    """It blocks the event loop."""
    threading.Event().wait()


@app.action("report")
async def report(context: horae.Context) -> dict[str, object]:
    """The action of the examples in the OpenAPI document."""
    return {"pages": 12}


@app.action("noted")
async def noted(context: horae.Context) -> None:
    """Writes when it was called: the schedule, its nominal time, and the time."""
    with Path(str(context.input)).open("a") as file:
        file.write(
            f"{context.schedule_id} {context.nominal.timestamp():.0f} {app.clock.now().timestamp():.3f}\n"
        )

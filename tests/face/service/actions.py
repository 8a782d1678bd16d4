"""Actions of a service under test."""

import asyncio

import horae

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


@app.action("nap")
async def nap(context: horae.Context) -> str:
    await asyncio.sleep(0.5)
    return "rested"


@app.action("report")
async def report(context: horae.Context) -> dict[str, object]:
    """The action of the examples in the OpenAPI document."""
    return {"pages": 12}

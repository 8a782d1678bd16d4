"""The cost of a million schedules that are not due: two programs, each in its own process.

``python -m bench.herd.idle fill URL COUNT`` creates the schedules and triggers one of them;
``python -m bench.herd.idle rest URL SECONDS`` starts on that database and then has nothing to do. It has
taken its first step when the run that was triggered starts. Each prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta

from bench.herd import memory
from bench.herd.contestant import background, batches
from bench.herd.starts import TIMES, no_operation, wall

BATCH = 5000
CALM = 1.0
"""Seconds between the first start and the rest, in which its end is recorded."""


async def fill(url: str, count: int) -> dict[str, float]:
    from horae import App, NewSchedule  # noqa: PLC0415 - loading it is part of what rest() times

    yesterday = datetime.fromtimestamp(wall(), UTC) - timedelta(days=1)
    # A time of every minute of a day that will not come for a year.
    specs = [f"{n % 60} {n // 60} {yesterday.day} {yesterday.month} *" for n in range(24 * 60)]
    app = App(url)
    app.action("noop")(no_operation)
    async with app:
        began = time.perf_counter()
        for batch in batches(count, BATCH):
            await app.schedules.create_many(
                [NewSchedule(id=f"s{n}", spec=specs[n % len(specs)], action="noop") for n in batch]
            )
        registering = time.perf_counter() - began
        await app.schedules.trigger("s0")
    return {"register_rate": count / registering}


async def rest(url: str, seconds: float) -> dict[str, float]:
    began = wall()
    from horae import App  # noqa: PLC0415 - see above

    app = App(url)
    app.action("noop")(no_operation)
    async with app, background(app.serve()):
        while not TIMES:
            await asyncio.sleep(0.005)
        await asyncio.sleep(CALM)
        used = time.process_time()
        await asyncio.sleep(seconds)
        used = time.process_time() - used
    return {"startup": (TIMES[0] - began) * 1000, "processor": used * 1000, "memory": memory.present()}


def main(program: str, url: str, amount: str) -> None:
    done = fill(url, int(amount)) if program == "fill" else rest(url, float(amount))
    print(json.dumps(asyncio.run(done)))


if __name__ == "__main__":
    main(*sys.argv[1:])

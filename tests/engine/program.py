"""A program with schedules, to be killed: ``python program.py DATABASE LOG SECONDS SCHEDULES [CONFIG]``.

A line of the log is written at once, so that it is there whatever becomes of the process: the key of the run, the number of the
attempt that begins or how it ended, and the process.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from horae import App, Config, Context
from horae.errors import ScheduleExistsError, StaleClaimError, StoreUnavailableError


def offer_saving(app: App, write: Callable[[Context, object], None], seconds: float) -> None:
    """Actions that save checkpoints: each step once; and one after the other, for as long as it may."""

    @app.action("steps")
    async def steps(context: Context) -> None:
        write(context, context.attempt)
        for step in ("one", "two", "three"):
            if step in context.checkpoints:
                write(context, f"saw:{step}={context.checkpoints[step]}")
                continue
            write(context, f"did:{step}")
            await context.checkpoint(step, os.getpid())
            write(context, f"saved:{step}")
            await asyncio.sleep(seconds)
        write(context, "done")

    @app.action("keep saving")
    def keep_saving(context: Context) -> None:
        write(context, context.attempt)
        write(context, f"saw:{len(context.checkpoints)}")
        for number in range(900):
            try:
                context.checkpoint_from_thread(f"{context.attempt}-{number}")
            except StoreUnavailableError:
                write(context, "away")
            except StaleClaimError:
                write(context, "stale")
                raise
            time.sleep(seconds)


async def main(database: str, log: str, seconds: float, schedules: int, config: dict[str, Any]) -> None:
    app = App(database, config=Config(**config))
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(context: Context, word: object) -> None:
        os.write(file, f"{context.key} {word} {os.getpid()}\n".encode())

    @app.action("work")
    async def work(context: Context) -> None:
        write(context, context.attempt)
        try:
            await asyncio.sleep(seconds if context.input is None else context.input)
        except asyncio.CancelledError:
            write(context, "stopped")
            raise
        write(context, "done")

    @app.action("hang")
    def hang(context: Context) -> None:
        write(context, context.attempt)
        threading.Event().wait()

    @app.action("talk")
    async def talk(context: Context) -> None:
        context.log.info("attempt %d begins in %d", context.attempt, os.getpid())
        await asyncio.sleep(seconds)
        context.log.info("attempt %d ends", context.attempt)
        write(context, "done")

    offer_saving(app, write, seconds)
    async with app:
        for number in range(schedules):
            with contextlib.suppress(ScheduleExistsError):
                await app.schedules.create(f"s{number}", "* * * * * *", "work")
        running = asyncio.create_task(app.serve())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5])))

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
from typing import Any

from horae import App, Config, Context
from horae.errors import ScheduleExistsError


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

    async with app:
        for number in range(schedules):
            with contextlib.suppress(ScheduleExistsError):
                await app.schedules.create(f"s{number}", "* * * * * *", "work")
        running = asyncio.create_task(app.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[5])))

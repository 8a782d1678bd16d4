"""A program with schedules, to be killed: ``python program.py DATABASE LOG SECONDS SCHEDULES``."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from horae import App, Context
from horae.errors import ScheduleExistsError


async def main(database: str, log: str, seconds: float, schedules: int) -> None:
    app = App(database)

    @app.action("work")
    async def work(context: Context) -> None:
        with Path(log).open("a") as file:
            file.write(f"{context.key} {context.attempt} {os.getpid()}\n")
        await asyncio.sleep(seconds)
        with Path(log).open("a") as file:
            file.write(f"{context.key} done {os.getpid()}\n")

    async with app:
        for number in range(schedules):
            with contextlib.suppress(ScheduleExistsError):
                await app.schedules.create(f"s{number}", "* * * * * *", "work")
        await app.run()


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))

"""A program with a schedule, to be killed: ``python program.py DATABASE LOG SECONDS``."""

import asyncio
import sys
from pathlib import Path

from horae import App, Context


async def main(database: str, log: str, seconds: float) -> None:
    app = App(f"sqlite:///{database}")

    @app.action("work")
    async def work(context: Context) -> None:
        with Path(log).open("a") as file:
            file.write(f"{context.key} {context.attempt}\n")
        await asyncio.sleep(seconds)
        with Path(log).open("a") as file:
            file.write(f"{context.key} done\n")

    async with app:
        if not await app.schedules.list():
            await app.schedules.create("s", "* * * * * *", "work")
        await app.run()


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))

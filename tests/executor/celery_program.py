"""A program that hands a task to Celery and dies by SIGKILL right after it was sent: ``python celery_program.py DATABASE [die]``."""

import asyncio
import os
import signal
import sys

from horae import App
from horae.executor.celery_executor import CeleryExecutor
from horae.executor.hand_off import HandOff
from horae.model import OPEN
from tests.executor.celery_tasks import app as celery


class Dying(CeleryExecutor):
    async def submit(self, work: HandOff) -> None:
        await super().submit(work)
        os.kill(os.getpid(), signal.SIGKILL)


async def main(database: str, kind: type[CeleryExecutor]) -> None:
    app = App(database)
    app.use(kind(celery, ["add"]))
    async with app:
        await app.once("celery:add", key="k", in_="0s", input={"x": 2, "y": 3})
        serving = asyncio.create_task(app.serve())
        while not (found := await app.runs.list("k")) or found[0].status in OPEN:
            await asyncio.sleep(0.05)
        serving.cancel()
        sys.stdout.write(f"{found[0].status} {found[0].result}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Dying if sys.argv[2:] else CeleryExecutor))

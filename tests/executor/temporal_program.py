"""A program that hands a workflow to Temporal and dies by SIGKILL right after it began: ``python temporal_program.py DATABASE TARGET [die]``."""

import asyncio
import os
import signal
import sys

from horae import App
from horae.executor import temporal_executor
from horae.executor.temporal_executor import TemporalExecutor
from horae.model import OPEN
from tests.support.temporal_cluster import QUEUE


class Dying(temporal_executor._HandOff):
    async def start(self) -> None:
        await super().start()
        os.kill(os.getpid(), signal.SIGKILL)


async def main(database: str, target: str) -> None:
    app = App(database)
    app.use(TemporalExecutor(target, {"Greet": QUEUE}))
    async with app:
        await app.once("temporal:Greet", key="k", in_="0s", input="Ada")
        serving = asyncio.create_task(app.serve())
        while not (found := await app.runs.list("k")) or found[0].status in OPEN:
            await asyncio.sleep(0.05)
        serving.cancel()
        sys.stdout.write(f"{found[0].status} {found[0].result}\n")


if __name__ == "__main__":
    if sys.argv[3:]:
        temporal_executor._HandOff = Dying  # type: ignore[misc]
    asyncio.run(main(*sys.argv[1:3]))

"""A program that hands two workflows to Temporal, one by each kind of action, and dies by SIGKILL right after both began:
``python temporal_program.py DATABASE TARGET [die]``.
"""

import asyncio
import os
import signal
import sys
from typing import Any

from horae import App
from horae.executor.hand_off import HandOff, HandOffExecutor
from horae.executor.temporal_executor import TemporalExecutor
from horae.executor.temporal_workflow_start import ForwardingExecutor
from horae.model import OPEN
from tests.support.temporal_cluster import QUEUE

ACTIONS: dict[str, str | dict[str, Any]] = {
    "named": "temporal:Greet",
    "forwarded": {"kind": "temporal-workflow", "options": {"workflow_type": "Greet", "task_queue": QUEUE}},
}


class Dying(HandOffExecutor):
    began = 0

    async def submit(self, work: HandOff) -> Any:
        await super().submit(work)  # type: ignore[safe-super]
        Dying.began += 1
        if Dying.began == len(ACTIONS):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()


class DyingTemporal(Dying, TemporalExecutor):
    pass


class DyingForwarding(Dying, ForwardingExecutor):
    pass


async def main(database: str, target: str, *die: str) -> None:
    app = App(database)
    app.use((DyingTemporal if die else TemporalExecutor)(target, {"Greet": QUEUE}))
    app.use((DyingForwarding if die else ForwardingExecutor)(target))
    async with app:
        for key, action in ACTIONS.items():
            await app.once(action, key=key, in_="0s", input=key)
        serving = asyncio.create_task(app.serve())
        for key in ACTIONS:
            while not (found := await app.runs.list(key)) or found[0].status in OPEN:
                await asyncio.sleep(0.05)
            sys.stdout.write(f"{found[0].status} {found[0].result}\n")
        serving.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

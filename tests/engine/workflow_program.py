"""A program that runs a workflow, and kills itself: ``python workflow_program.py DATABASE LOG KILL_AT before|after``.

It dies by SIGKILL at its save number KILL_AT (0 is never), right before what it saves is durable, or right after. A line of the log is the
place of a node whose action is called; it ends by itself when the run has.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

from horae import App, Context
from horae.executor.node_context import NodeContext
from horae.model import OPEN, Run
from horae.workflow import WorkflowBuilder


def workflow() -> WorkflowBuilder:
    flow = WorkflowBuilder("killed", 1)
    one = flow.task("work", id="one")
    left, right = (
        flow.task("work", id=name, after=one, attempts=2, delay="1ms") for name in ("left", "right")
    )
    loop = flow.foreach("loop", "[1, 2]", after=flow.join("both", after=[left, right]))
    flow.again(loop, after=flow.task("work", id="body", after=loop))
    flow.end(after=flow.task("work", id="last", after=loop), output={"all": loop})
    return flow


async def main(database: str, log: str, kill_at: int, when: str) -> None:
    app = App(database)
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    saves = 0

    @app.action("work")
    async def work(context: Context) -> str:
        assert isinstance(context, NodeContext)
        os.write(file, f"{context.place} {context.key}\n".encode())
        if context.place == "left" and context.attempt == 1:
            raise ValueError("the first attempt of this one fails")
        return context.place

    save = app.worker.save_checkpoints

    async def save_and_die(run: Run, values: Mapping[str, str]) -> None:
        nonlocal saves
        saves += 1
        if saves == kill_at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await save(run, values)
        if saves == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    app.worker.save_checkpoints = save_and_die
    async with app:
        await app.workflows.deploy(workflow())
        run = await app.workflows.launch("killed", key="once")
        serving = asyncio.create_task(app.serve())
        while (run := await app.runs.get(run.id)).status in OPEN:
            await asyncio.sleep(0.01)
        os.write(file, f"ended {run.status} {run.result} after {saves}\n".encode())
        serving.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))

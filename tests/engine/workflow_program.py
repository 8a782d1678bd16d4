"""A program that runs a workflow, and kills itself: ``python workflow_program.py DATABASE LOG KILL_AT before|after``.

It dies by SIGKILL at its save number KILL_AT (0 is never), right before what it saves is durable, or right after. A line of the log is the
place of a node whose action is called; it ends by itself when the run has.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from horae import App, Config, Context
from horae.executor.node_context import NodeContext
from horae.model import OPEN, Run
from horae.workflow import WorkflowBuilder


def workflow() -> dict[str, Any]:
    """One of every kind of node, every mode of joins, a retry, a failure that is handled, and branches that lose."""
    flow = WorkflowBuilder("killed", 1)
    gate = flow.choose("gate", after=flow.task("work", id="one"))
    switch = flow.choose("switch", after=gate.if_("nodes.one.output == 'one'"))
    fan = flow.parallel("fan", after=switch.if_("true"))
    left, right = (
        flow.task("work", id=name, after=fan, attempts=2, delay="1ms") for name in ("left", "right")
    )
    both = flow.join("both", after=[left, right])
    mend = flow.task("work", id="mend", after=flow.task("work", id="broken", after=both).failed)
    slow = flow.task("work", id="slow", after=both)
    either = flow.join("either", mode="any", after=[mend, slow])
    three = [flow.task("work", id=name, after=either) for name in ("quick", "brisk", "slow-too")]
    loop = flow.foreach("loop", "[1, 2]", after=flow.join("most", mode="quorum", quorum=2, after=three))
    flow.again(loop, after=flow.task("work", id="body", after=loop))
    until = flow.while_("until", "index < 2", after=loop)
    flow.again(until, after=flow.task("work", id="step", after=until))
    flow.end(after=flow.task("work", id="last", after=until), output={"all": loop, "until": until})
    document: dict[str, Any] = json.loads(flow.json())
    next(each for each in document["nodes"] if each["id"] == "gate")["type"] = "gateway_if"
    return document


async def main(database: str, log: str, kill_at: int, when: str) -> None:
    app = App(database, config=Config(lease_ms=3000, housekeeping_ms=300))
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    saves = 0

    @app.action("work")
    async def work(context: Context) -> str:
        assert isinstance(context, NodeContext)
        os.write(file, f"{context.place} {context.key}\n".encode())
        if context.place == "broken" or (context.place == "left" and context.attempt == 1):
            raise ValueError("this one fails, or its first attempt does")
        if context.place.startswith("slow"):
            await asyncio.sleep(60)
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

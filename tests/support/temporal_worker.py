"""A worker with the workflows of tests: ``python -m tests.support.temporal_worker ADDRESS QUEUE FILE``. They write lines to the file."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


def note(line: str) -> None:
    if not workflow.unsafe.is_replaying():
        with Path(sys.argv[3]).open("a") as file:
            file.write(f"{line}\n")


@workflow.defn(name="Greet", sandboxed=False)
class Greet:
    @workflow.run
    async def run(self, name: str) -> str:
        note(f"greet {name}")
        return f"hello {name}"


@workflow.defn(name="ping", sandboxed=False)
class Ping:
    """What the action of that name does."""

    @workflow.run
    async def run(self, given: Any = None) -> Any:
        return {"pong": given}


@workflow.defn(name="Boom", sandboxed=False)
class Boom:
    @workflow.run
    async def run(self) -> None:
        note("boom")
        raise ApplicationError("no", type="Wrong")


@workflow.defn(name="Countdown", sandboxed=False)
class Countdown:
    @workflow.run
    async def run(self, left: int) -> str:
        if left:
            workflow.continue_as_new(left - 1)
        return "done"


@workflow.defn(name="Slow", sandboxed=False)
class Slow:
    """It waits for ever; when it is cancelled, it cleans up, or insists."""

    @workflow.run
    async def run(self, insists: bool = False) -> None:
        note("slow begins")
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            note("slow was cancelled")
            if insists:
                await workflow.sleep(timedelta(days=1))
            raise


@workflow.defn(name="Know", sandboxed=False)
class Know:
    """Say what it was started with."""

    @workflow.run
    async def run(self, given: RawValue) -> dict[str, Any]:
        info = workflow.info()
        return {
            "id": info.workflow_id, "data": given.payload.data.decode("latin-1"),
            "encoding": given.payload.metadata["encoding"].decode(), "memo": workflow.memo(),
            "headers": sorted(info.headers), "timeout": str(info.run_timeout), "queue": info.task_queue,
        }  # fmt: skip


async def main() -> None:
    client = await Client.connect(sys.argv[1])
    workflows = [Greet, Ping, Boom, Countdown, Slow, Know]
    await Worker(
        client, task_queue=sys.argv[2], workflows=workflows, workflow_runner=UnsandboxedWorkflowRunner()
    ).run()


if __name__ == "__main__":
    asyncio.run(main())

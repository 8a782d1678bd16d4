"""A worker in a process of its own, which kills itself at a point: ``python -m tests.support.graph_worker DATABASE RUN``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from horae import App
from tests.support.graphs import ended, settings

GRAPHS = '{"steps": "tests.support.langgraphs:steps"}'
FAST = {"graphs": GRAPHS, "lease_ms": 1500, "housekeeping_ms": 200}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def work(database: str, run_id: str, point: str) -> None:
    async with App(database, config=settings(database, **FAST)) as app:
        app.use_builtin()
        usage, plain = app._billing.usage, app.graph_execution.execute

        class Deadly:
            async def record(self, record: Any) -> None:
                if point == "before usage":
                    die()
                await usage.record(record)
                if point == "after usage":
                    die()

        async def execute(*given: Any) -> Any:
            outcome = await plain(*given)
            if point == "before end":
                die()
            return outcome

        app.use_usage(Deadly())
        app.graph_execution.execute = execute  # type: ignore[method-assign,assignment]
        await ended(app, run_id)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], os.environ["HORAE_TEST_KILL"]))

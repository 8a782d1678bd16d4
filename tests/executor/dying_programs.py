"""Programs that hand work over and die by SIGKILL at a point: one process that forks, so that each is real and none imports anew.

``python -m tests.executor.dying_programs ENGINE DATABASE POINT …``: a process for each point, and one that lives, which says how the run ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any

from horae import App, Config, Policies
from horae.executor.hand_off import End, HandOff, HandOffExecutor
from horae.model import OPEN, Run

GIVEN = {"x": 2, "y": 3}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def executor_of(engine: str) -> HandOffExecutor:
    match engine:
        case "celery":
            from horae.executor.celery_executor import CeleryExecutor  # noqa: PLC0415
            from tests.executor.celery_tasks import app as celery  # noqa: PLC0415

            return CeleryExecutor(celery, ["add"])
        case "dask":
            from horae.executor.dask_executor import DaskExecutor  # noqa: PLC0415

            return DaskExecutor(os.environ["HORAE_TEST_DASK"], {"add": "tests.executor.dask_functions:add"})
        case _:
            from horae.executor.procrastinate_executor import ProcrastinateExecutor  # noqa: PLC0415
            from tests.executor.procrastinate_tasks import app as procrastinate  # noqa: PLC0415

            return ProcrastinateExecutor(procrastinate, ["add"])


def dying(executor: HandOffExecutor, app: App, point: str) -> None:
    """Let the process die at a point: ``prepared`` and ``submitted`` are before what follows is durable, ``claimed`` is before the launch."""
    plain: Any = {
        "prepared": executor.prepare, "submitted": executor.submit, "claimed": app.worker.launch, "following": executor.follow
    }.get(point)  # fmt: skip

    async def done_and_dead(*given: Any) -> None:
        await plain(*given)
        die()

    async def dead_soon(work: HandOff) -> End:
        asyncio.get_running_loop().call_later(0.1, die)
        end: End = await plain(work)
        die()
        return end

    match point:
        case "prepared":
            executor.prepare = done_and_dead  # type: ignore[assignment,method-assign]
        case "submitted":
            executor.submit = done_and_dead  # type: ignore[assignment,method-assign]
        case "claimed":
            app.worker.launch = lambda *_: die()  # type: ignore[method-assign]
        case "following":
            executor.follow = dead_soon  # type: ignore[method-assign]


async def main(engine: str, database: str, point: str) -> None:
    settings = Config(tick_ms=50, lease_ms=1500, housekeeping_ms=200, max_crashes=20)
    app, executor = App(database, config=settings), executor_of(engine)
    app.use(executor)
    dying(executor, app, point)
    async with app:
        await app.once(f"{engine}:add", key="k", in_="0s", input=GIVEN, policies=Policies(start_attempts=20))
        serving = asyncio.create_task(app.serve())
        found: list[Run] = []
        try:
            async with asyncio.timeout(120):
                while not found or found[0].status in OPEN:
                    await asyncio.sleep(0.02)
                    found = await app.runs.list("k")
        except TimeoutError:
            raise AssertionError(f"at {app.now()}: {found}, {await app.nodes()}, {serving}") from None
        serving.cancel()
        sys.stdout.write(f"{found[0].status} {found[0].result}\n")


if __name__ == "__main__":
    engine, database, *points = sys.argv[1:]
    logging.basicConfig()
    executor_of(engine)  # imports what it needs
    for point in [*points, "none"]:
        if (child := os.fork()) == 0:
            asyncio.run(main(engine, database, point))
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        expected = 0 if point == "none" else signal.SIGKILL
        assert status == expected, (point, status)

"""A program with a scheduler, to be killed: ``python program.py DATABASE LOG TASKS [CONFIG]``.

``TASKS`` is JSON: a name, a cron expression and the seconds that the callback takes, for each. A line of the log is written at
once, so that it is there whatever becomes of the process: JSON, with the process, what happened, the task and details.
SIGTERM stops the scheduler.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from horae import Scheduler
from horae.errors import HoraeError, TaskTryDeserializeError
from horae.face.declarative import Event
from horae.face.declarative import scheduler as module

FAILED = 3


async def main(database: str, log: str, tasks: list[tuple[str, str, float]], config: dict[str, Any]) -> int:
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    if config:
        module.UNLIMITED = {"drain_ms": 2**40, **config}

    def write(what: str, task: str | None, details: object = None, time: float | None = None) -> None:
        line = {"pid": os.getpid(), "what": what, "task": task, "details": details, "time": time}
        os.write(file, f"{json.dumps(line, default=str)}\n".encode())

    def listener(event: Event) -> None:
        details = {key: each for key, each in event.details.items() if each}
        write(event.name, event.task, details, event.time.timestamp())

    def callback(name: str, seconds: float) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            write("begin", name)
            await asyncio.sleep(seconds)
            write("done", name)

        return call

    scheduler = Scheduler(database=database, timezone="UTC", listener=listener)
    registrations = [
        (name, cron, callback(name, seconds), timedelta(days=1)) for name, cron, seconds in tasks
    ]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    try:
        await scheduler.initialize(registrations)
    except HoraeError as error:
        write(type(error).__name__, error.task if isinstance(error, TaskTryDeserializeError) else None)
        return FAILED
    await ended.wait()
    await scheduler.stop()
    return 0


if __name__ == "__main__":
    config = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), config)))

"""The program that is disturbed: a node that writes down what its actions begin and how they end, at once.

``python -m tests.chaos.node SETTINGS``, settings as JSON: the database, the log, the file of its clock, and the configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from horae import App, Config, Context
from horae.clock import SystemClock
from horae.errors import StoreUnavailableError
from tests.chaos.clock import ShiftedClock
from tests.chaos.evidence import BEGUN, DONE, FAILED, STOPPED, Line


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is told."""

    database: str
    log: str
    clock: str
    config: dict[str, Any]


class Log:
    """A file that only grows; a line is in it as soon as it is written, whatever becomes of the process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._clock = SystemClock()

    def write(self, context: Context, word: str) -> None:
        line = Line(
            word=word, run_id=context.run_id, attempt=context.attempt, key=context.key,
            at=int(self._clock.monotonic() * 1000),
        )  # fmt: skip
        os.write(self._file, msgspec.json.encode(line) + b"\n")


def make_app(settings: Settings) -> App:
    app = App(settings.database, clock=ShiftedClock(Path(settings.clock)), config=Config(**settings.config))
    log = Log(settings.log)

    @app.action("work")
    async def work(context: Context) -> None:
        log.write(context, BEGUN)
        try:
            await asyncio.sleep(context.input["seconds"])
        except asyncio.CancelledError:
            log.write(context, STOPPED)
            raise
        if context.attempt <= context.input["failures"]:
            log.write(context, FAILED)
            raise RuntimeError("this attempt was to fail")
        log.write(context, DONE)

    return app


async def main(settings: Settings) -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    while not ending.is_set():
        try:
            async with make_app(settings) as app:
                running = asyncio.create_task(app.serve())
                asked = asyncio.create_task(ending.wait())
                await asyncio.wait([running, asked], return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
                return
        except StoreUnavailableError as error:  # it was started while the database was away
            logging.warning("%s", error.message)
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Settings)))

"""A node whose actions block its event loop: ``python blocking_program.py DATABASE LOG SECONDS [CONFIG]``.

A line of the log is written at once: the key of the run, the number of the attempt that begins or ``done``, and the process. What the
node itself logs is in a file beside it, named for the process.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from typing import Any

from horae import App, Config, Context


async def main(database: str, log: str, seconds: float, config: dict[str, Any]) -> None:
    app = App(database, config=Config(**config))
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(context: Context, word: object) -> None:
        os.write(file, f"{context.key} {word} {os.getpid()}\n".encode())

    @app.action("block")
    async def block(context: Context) -> None:
        """Block the loop: the first attempt for some seconds, later ones not."""
        write(context, context.attempt)
        if context.attempt == 1:
            time.sleep(seconds)
        write(context, "done")

    async with app:
        running = asyncio.create_task(app.serve())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await running


if __name__ == "__main__":
    logging.basicConfig(
        filename=f"{sys.argv[2]}.{os.getpid()}",
        level=logging.INFO,
        format="%(levelname)s %(message)s",
        force=True,
    )
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), json.loads(sys.argv[4])))

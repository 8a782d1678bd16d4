"""Start a service, fill it, ask it many times, and note how long each answer took."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, NamedTuple

import httpx

from bench.page import percentile
from horae.app.page import cursor_of

BATCH = 1000
CLIENTS = 4
"""How many requests are under way at a time; on two cores more only wait for each other."""
SETTINGS = {"HORAE_SCHEDULES_PER_USER": "10000000", "HORAE_REQUESTS_PER_SECOND": "1000000"}
LISTENS = r"listens on (http://[\d.:]+\d)"
"""The line that a service logs when it listens."""


class Figures(NamedTuple):
    """Answers per second, and the milliseconds that half, and 99 of 100, took at most."""

    rate: float
    median: float
    p99: float


class Measured(NamedTuple):
    """The figures of one service."""

    create: Figures
    describe: Figures
    several: Figures


def served(database: str, *options: str, pattern: str = LISTENS) -> contextlib.AbstractContextManager[str]:
    """The address of a service of Horae on a new database."""
    command = ["horae", "serve", "--port", "0", "--database", database, "--app", "bench.service.actions"]
    return _program(*command, *options, pattern=pattern)


def ceiling() -> contextlib.AbstractContextManager[str]:
    """The address of a service that does nothing but answer."""
    return _program("bench.service.ceiling")


@contextlib.contextmanager
def _program(*command: str, pattern: str = LISTENS) -> Iterator[str]:
    """The address that a program logs when it listens."""
    command = (sys.executable, "-m", *command)
    settings = os.environ | SETTINGS
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, env=settings) as started,  # noqa: S603 - ours
    ):
        try:
            yield _address(log, started, pattern)
        finally:
            started.terminate()
            started.wait(60)


def _address(log: IO[str], started: subprocess.Popen[bytes], pattern: str) -> str:
    for _ in range(600):
        log.seek(0)
        text = log.read()
        if found := re.search(pattern, text):
            return found[1]
        if started.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start: {text}")


async def ask_horae(address: str, schedules: int, requests: int) -> Measured:
    """Fill a service of Horae with schedules, and ask about them."""
    return await _ask(
        f"{address}/api/v1", schedules, requests, lambda name: f"?limit=100&cursor={cursor_of('local', name)}"
    )


async def ask_ceiling(address: str, schedules: int, requests: int) -> Measured:
    """Send the same requests to the ceiling."""
    return await _ask(address, schedules, requests, lambda _: "")


async def _ask(url: str, schedules: int, requests: int, page: Callable[[str], str]) -> Measured:
    """Create schedules, describe them, and list them; ``page`` is the query for a page after a schedule."""
    names = [f"s-{number * 7919 % schedules:07d}" for number in range(requests)]
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        return Measured(
            await _timed(lambda n: _create(client, n), schedules // BATCH, 1),
            await _timed(lambda n: _get(client, f"/schedules/{names[n]}"), requests),
            await _timed(lambda n: _get(client, f"/schedules{page(names[n])}"), requests // 10),
        )


async def _create(client: httpx.AsyncClient, number: int) -> None:
    bodies = [
        {
            "id": f"s-{number * BATCH + each:07d}", "spec": {"crons": [f"{each % 60} {each % 24} 1 1 *"]},
            "action": {"name": "nothing", "input": {"number": each}}, "tags": [f"t{each % 10}"],
        }
        for each in range(BATCH)
    ]  # fmt: skip
    answer = await client.post("/bulk/schedules", json={"schedules": bodies})
    answer.raise_for_status()


async def _get(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    answer.raise_for_status()


async def _timed(ask: Callable[[int], Awaitable[None]], number: int, clients: int = CLIENTS) -> Figures:
    took: list[float] = []
    numbers = iter(range(number))

    async def work() -> None:
        for each in numbers:
            begun = time.perf_counter()
            await ask(each)
            took.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    seconds = time.perf_counter() - begun
    took.sort()
    return Figures(len(took) / seconds, percentile(took, 50) * 1000, percentile(took, 99) * 1000)

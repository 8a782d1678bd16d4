"""Several nodes on one database: two programs, and each node is a process.

``python -m bench.herd.cluster lead URL COUNT ALLOWANCE NODES`` registers a herd, has the nodes started, and listens to
them. It prints one line of JSON, as ``bench.herd.child`` does, with the share of each node in the starts.
``python -m bench.herd.cluster node URL`` is one node, until its input ends. It prints the times of its starts as they
come, a list a line; the first line says that it is ready.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from bench.herd.child import GLANCE, SETTLE, Times, all_ended, count_rows, figures
from bench.herd.horae_app import Cron
from bench.herd.ledger import succeeded
from bench.herd.starts import TIMES, wall

TELL = 0.02
"""Seconds between two lines of a node."""
MAX_LINE_LENGTH = 2**26


async def lead(url: str, count: int, allowance: float, nodes: int) -> dict[str, Any]:
    herd = Cron(url)
    due = math.ceil(wall() + allowance + SETTLE)
    async with herd.opened():
        began = perf_counter()
        await herd.register(count, due)
        registering = perf_counter() - began
    await count_rows(url)
    async with succeeded(url) as ends, _started(url, nodes) as starts:
        if wall() > due - SETTLE:
            return {"late": perf_counter() - began}
        while sum(map(len, starts)) < count:
            await asyncio.sleep(GLANCE)
        ended = await all_ended(ends, count)
    if sum(map(len, starts)) != count:
        raise RuntimeError(f"{count} starts were due, and there were {sum(map(len, starts))}")
    times = Times(due, 0, [time for each in starts for time in each], ended)
    shares = sorted((len(each) / count for each in starts), reverse=True)
    return {"register_rate": count / registering, **figures(times), "shares": shares}


@asynccontextmanager
async def _started(url: str, nodes: int) -> AsyncIterator[list[list[float]]]:
    """Nodes that are at work, and the times of the starts of each as they become known."""
    starts: list[list[float]] = [[] for _ in range(nodes)]
    processes = [await _node(url) for _ in starts]
    async with asyncio.TaskGroup() as group:
        for process in processes:
            await process.stdout.readline()
        for process, times in zip(processes, starts, strict=True):
            group.create_task(_listen(process, times))
        yield starts
        for process in processes:
            process.stdin.close()


async def _node(url: str) -> Any:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.herd.cluster",
        "node",
        url,
        stdin=PIPE,
        stdout=PIPE,
        limit=MAX_LINE_LENGTH,
    )


async def _listen(process: Any, times: list[float]) -> None:
    while line := await process.stdout.readline():
        times += json.loads(line)
    if await process.wait() or not process.stdin.is_closing():
        raise RuntimeError("a node ended before it was asked to")


async def node(url: str) -> None:
    herd = Cron(url)
    asked = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    reported = 0
    async with herd.opened(), herd.running():
        _say([])
        while not asked.done():
            if news := TIMES[reported:]:
                _say(news)
                reported += len(news)
            await asyncio.sleep(TELL)
    _say(TIMES[reported:])


def _say(times: list[float]) -> None:
    print(json.dumps(times), flush=True)


def main(program: str, url: str, *amounts: str) -> None:
    if program == "node":
        asyncio.run(node(url))
        return
    count, allowance, nodes = amounts
    print(json.dumps(asyncio.run(lead(url, int(count), float(allowance), int(nodes)))))


if __name__ == "__main__":
    main(*sys.argv[1:])

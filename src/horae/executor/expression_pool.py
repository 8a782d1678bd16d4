"""Evaluates expressions: cheap ones here, all others in a few processes, within bounds of time and memory.

So no expression blocks the event loop for longer than a comparison takes, whatever its author intends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from horae.errors import ExpressionError
from horae.workflow.expression import MAX_DATA_HERE, evaluate, is_cheap

PROCESSES = 2
"""How many expressions are evaluated at once in processes."""
START_SECONDS = 30.0
"""How long a new process may take until it answers."""


class ExpressionPool:
    """Processes that evaluate expressions; each is started when it is needed, and killed when an evaluation takes too long."""

    def __init__(self, time_ms: int, value_bytes: int) -> None:
        self._seconds = time_ms / 1000
        self._value_bytes = value_bytes
        self._slots: asyncio.Semaphore | None = None
        self._idle: list[asyncio.subprocess.Process] = []

    @staticmethod
    def is_cheap(text: str, data: Mapping[str, Any]) -> bool:
        """Whether an expression may be evaluated in the event loop."""
        return is_cheap(text) and len(msgspec.json.encode(data)) <= MAX_DATA_HERE

    async def evaluate(self, text: str, data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """The value of an expression; raises ``ExpressionError``."""
        known = msgspec.json.encode(data)
        if len(known) <= MAX_DATA_HERE and is_cheap(text):
            return evaluate(text, data)
        if self._slots is None:
            self._slots = asyncio.Semaphore(PROCESSES)
        question = b"[%b,%b,%d]\n" % (msgspec.json.encode(text), known, self._value_bytes)
        async with self._slots:
            answered, value = await self._ask(text, question)
        if not answered:
            raise ExpressionError(text, value)
        return value

    async def _ask(self, text: str, question: bytes) -> tuple[bool, Any]:
        fresh = not self._idle
        process = await _start(self._value_bytes) if fresh else self._idle.pop()
        try:
            if fresh:  # the time that a process takes to start does not count
                await _answer(process, b'["1",{},9]\n', START_SECONDS)
            answer = await _answer(process, question, self._seconds)
        except TimeoutError:
            await _kill(process)
            reason = f"was not evaluated within the limit expression_ms, {round(self._seconds * 1000)}"
            raise ExpressionError(text, reason) from None
        except (OSError, ValueError):  # it ran out of memory, or out of its limits otherwise
            await _kill(process)
            raise ExpressionError(text, "its evaluation needs too much memory") from None
        except BaseException:
            await _kill(process)
            raise
        self._idle.append(process)
        return answer

    async def close(self) -> None:
        """End the processes."""
        idle, self._idle, self._slots = self._idle, [], None
        for process in idle:
            await _kill(process)


async def _answer(process: asyncio.subprocess.Process, question: bytes, seconds: float) -> tuple[bool, Any]:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they were asked for
    async with asyncio.timeout(seconds):
        process.stdin.write(question)
        await process.stdin.drain()
        line = await process.stdout.readline()
    return msgspec.json.decode(line, type=tuple[bool, Any])


async def _start(value_bytes: int) -> asyncio.subprocess.Process:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "horae.workflow.expression_worker",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        limit=value_bytes * 2, start_new_session=True,
    )  # fmt: skip


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()

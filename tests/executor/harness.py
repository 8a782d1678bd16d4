"""What tests of executors share: an attempt without an engine, and a server that remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from horae import App, Config
from horae.engine.worker import Launch, Worker
from horae.executor.action_registry import Executors
from horae.executor.attempt_context import hash_of
from horae.executor.function_executor import FunctionExecutor
from horae.executor.http_options import HttpRequest
from horae.executor.port import Executor
from horae.executor.secret_sealing import Sealer
from horae.model import (
    AUTOMATIC,
    Action,
    AttemptResult,
    LastOutcome,
    Overlap,
    Run,
    ScheduleKey,
    Status,
)
from tests.support.nodes import running
from tests.support.wait import PATIENCE, wait_until

NOW = 1_772_366_400_000

DECIDER = "test"
RUN = Run(
    id="5f0c", schedule_key=ScheduleKey("nightly"), generation=1, nominal_ms=NOW, origin=AUTOMATIC, overlap=Overlap.SKIP,
    status=Status.RUNNING, fire_ms=NOW + 250, start_at_ms=NOW, action="act", action_id="nightly-2026", attempt=2, epoch=7,
    started_at_ms=NOW, input={"a": [1, "ü"]},
)  # fmt: skip


def stored(request: HttpRequest, key: str = "k") -> Action:
    """The action of a request as it is stored, unchecked."""
    sealer = Sealer(key)
    headers = {name: sealer.seal(value, name) for name, value in request.headers.items()}
    secret = request.secret and sealer.seal(request.secret, "secret")
    options = msgspec.to_builtins(msgspec.structs.replace(request, headers=headers, secret=secret))
    return Action(kind="http", options=options)


@contextlib.asynccontextmanager
async def handing_off(executor: Executor, database: str = ":memory:") -> AsyncIterator[App]:
    """An app that keeps time and has an executor which hands work off."""
    app = App(database, config=Config(tick_ms=50, terminate_ms=2000))
    app.use(executor)
    async with asyncio.timeout(PATIENCE), running(app):
        yield app


class Attempts:
    """Attempts of one kind's action, made without an engine; what is asked of them is asked as an engine would."""

    def __init__(self, executor: Executor, *, terminate: int = 5000) -> None:
        self.clock = 0
        self.tokens: list[str] = []
        executors = Executors(FunctionExecutor(), "k")
        executors.use(executor)
        (self.address,) = executor.actions()
        self.worker = Worker(
            executors,
            lambda: None,
            lambda: self.clock,
            lambda: self.clock,
            concurrency=100,
            terminate_ms=terminate,
        )
        self.worker.keep_token = self._keep_token

    async def _keep_token(self, run: Run, token_hash: str) -> None:
        self.tokens.append(token_hash)

    def begin(self, action: Action | None = None, last: LastOutcome | None = None, **more: Any) -> Run:
        run = msgspec.structs.replace(RUN, action=self.address, **more)
        self.worker.launch(DECIDER, Launch(run=run, last=last, action=action))
        return run

    async def end(self) -> AttemptResult:
        await wait_until(self.worker.ended)
        (ended,) = self.worker.ended()
        self.worker.forget(DECIDER, 1)
        return ended

    async def make(
        self, action: Action | None = None, last: LastOutcome | None = None, **more: Any
    ) -> AttemptResult:
        self.begin(action, last, **more)
        return await self.end()

    def ask(self, run: Run, how: str) -> None:
        """Ask it to stop."""
        reason = f"{how}led".replace("terminateled", "terminated")
        self.worker.stop(DECIDER, msgspec.structs.replace(run, stop=how, reason=reason))

    def pass_time(self, milliseconds: int) -> None:
        self.clock += milliseconds
        self.worker.enforce()


class Asked(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def is_token(self, token_hash: str) -> bool:
        return hash_of(msgspec.json.decode(self.body)["report"]["token"]) == token_hash


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


async def say(writer: asyncio.StreamWriter, status: str, body: bytes = b"", *headers: str) -> None:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    await writer.drain()


class Server:
    """A real server, whose answers a test decides."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        self.handlers: set[asyncio.Task[None]] = set()
        self.answer = answer or (lambda _, writer: say(writer, "200 OK", b'{"ok": true}'))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.handlers.add(asyncio.create_task(self.handle(reader, writer)))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.asked.append(Asked(method, path, headers, body))
            await self.answer(self.asked[-1], writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(answer: Answer | None = None, **more: Any) -> AsyncIterator[Server]:
    server = Server(answer)
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0, **more)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for handler in server.handlers:
            handler.cancel()
        await asyncio.gather(*server.handlers)


def is_alive(pid: int) -> bool:
    """Whether a process is running; a zombie, which has ended and was not waited for, is not."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in {"Z", "X"}
    return False


async def gone(*pids: int) -> None:
    await wait_until(lambda: not any(map(is_alive, pids)))


TREE = """
import os, signal, sys, time
folder, stubborn, depth = sys.argv[1], sys.argv[2] == "stubborn", int(sys.argv[3])
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2 if depth else 0):
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", open(folder + "/tree.py").read(), folder, sys.argv[2], str(depth - 1)])
open(f"{folder}/{os.getpid()}.pid", "w").close()
time.sleep(600)
"""

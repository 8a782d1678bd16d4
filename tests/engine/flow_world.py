"""An outside world for flows, and processes that host one, to be killed.

The world is an HTTP server that counts what was done, by key, and can fail before, during and after it did it. What it was asked
about and had not done, it never does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from horae import App, Config
from horae.flows import Applied, Flow, NotApplied, Prepared, Reservation, Transient
from horae.store.port import Store, Transaction
from tests.support.process import ROOT, Process, environment, fork_server, kill

CONFIG = Config(lease_ms=1500, housekeeping_ms=200, tick_ms=100, terminate_ms=200)
FAILURES = ("refused", "lost before", "lost during", "failed after")
"""How the world fails: it says that it does nothing; it answers nothing, and does nothing, or does it; it does it, and answers 500."""


class World:
    """What was done, by key and by event; how it fails next; and which steps wait."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.fenced: set[str] = set()
        self.failures: list[str] = []
        self.reached: list[str] = []
        self.hold: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        world = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                with contextlib.suppress(OSError):  # who asked was killed
                    world.answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: Any) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        if body["step"] == "ask":
            found: Any = self._find_out(body["key"])
        else:
            failure = self.failures.pop(0) if self.failures else ""
            self._wait("before the effect")
            if failure not in {"refused", "lost before"}:
                self._do(body["key"], body["events"])
            self._wait("after the effect")
            if failure.startswith("lost"):
                handler.close_connection = True
                return
            found = {"done": failure != "refused"}
            if failure == "failed after":
                handler.send_error(500)
                return
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(json.dumps(found).encode())

    def _do(self, key: str, events: list[str]) -> None:
        with self._lock:
            if key not in self.fenced:
                self.done[key] += 1
                self.events.update(events)

    def _find_out(self, key: str) -> bool:
        with self._lock:
            if not self.done[key]:
                self.fenced.add(key)
            return self.done[key] > 0

    def _wait(self, step: str) -> None:
        """The first to come to a step that is held waits."""
        first = step not in self.reached
        self.reached.append(step)
        if first and step in self.hold:
            self.hold[step].wait(60)

    def close(self) -> None:
        for each in self.hold.values():
            each.set()
        self.server.shutdown()
        self.server.server_close()


def ask(address: str, **body: Any) -> Any:
    """Ask the world, blocking. A lost connection is a ``ConnectionError``."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", "/", json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise Transient(f"the world answers {answer.status}")
    return json.loads(text)


class Kills:
    """Ends this process at one point, unless another process has ended there: whichever gets there first."""

    def __init__(self, point: str = "", marker: str = "") -> None:
        self._point, self._marker = point, marker

    def reach(self, point: str) -> None:
        if point == self._point and not Path(self._marker).exists():
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)


class Hosted:
    """The code of the flow: what its handlers do to the world, and where they can be killed."""

    def __init__(self, address: str, kills: Kills, log: str) -> None:
        self._address, self.kills, self._log = address, kills, log

    async def ask(self, **body: Any) -> Any:
        return await asyncio.to_thread(ask, self._address, **body)

    @contextlib.contextmanager
    def part(self, name: str, ctx: Any) -> Iterator[None]:
        """A part of a handler: it says when it begins and ends, and can be killed in between."""
        self._say("begins", ctx, name)
        self.kills.reach(f"in {name}")
        try:
            yield
        finally:
            self._say("ends", ctx, name)

    def _say(self, what: str, ctx: Any, name: str) -> None:
        with Path(self._log).open("a") as written:
            written.write(f"{os.getpid()} {what} {ctx.run_id} {name}\n")


class Take:
    """One event a run. It can find out whether the world had its effect."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted

    async def prepare(self, ctx: Any, state: Any) -> Any:
        ids = [each.id for each in await ctx.peek("in", limit=1)]
        if not ids:
            return Prepared()
        with self._hosted.part("prepare", ctx):
            return Prepared([Reservation("in", ids)], ids)

    async def mutate(self, ctx: Any, prepared: Any) -> Any:
        hosted = self._hosted
        with hosted.part("mutate", ctx):
            found = await ctx.effect(lambda: hosted.ask(step="do", key=ctx.key, events=prepared.data))
            hosted.kills.reach("after mutate")
            if not found["done"]:
                raise Transient("the world refuses", applied=False)
            return found

    async def next(self, ctx: Any, prepared: Any, outcome: Any) -> Any:
        if prepared.data:
            with self._hosted.part("next", ctx):
                await asyncio.sleep(0)

    async def reconcile(self, ctx: Any, prepared: Any) -> Any:
        with self._hosted.part("reconcile", ctx):
            found = await ctx.read(lambda: self._hosted.ask(step="ask", key=ctx.key))
            return Applied(True) if found else NotApplied()


def flow_of(address: str, kills: Kills, log: str = os.devnull) -> Flow:
    """A flow whose producer finds one thing, and that has an effect for it."""
    flow, hosted = Flow("killed", revision="1"), Hosted(address, kills, log)

    @flow.producer(publishes=["in"], every="1d")
    async def poll(ctx: Any, state: int | None) -> int:
        with hosted.part("poll", ctx):
            if state is None:
                ctx.publish("in", "e0")
            return 1

    flow.consumer(subscribes=["in"], name="take", timeout="60s")(Take(hosted))
    return flow


RUNS = "SELECT id, handler, phase, status, events + published, NULL FROM flow_run"
LANES = "SELECT flow_id, task, NULL, NULL, attempt, run_id FROM flow_lane"
MINE = " WHERE xmin = pg_current_xact_id_if_assigned()::xid"
"""On PostgreSQL: the rows that this transaction wrote. On SQLite no other transaction writes meanwhile."""


class Writes:
    """Makes the moments before and after each commit of a flow's run points at which a process can be killed."""

    def __init__(self, store: Store, kills: Kills, mine: str) -> None:
        self._begin, self._kills, self._mine = store.transaction, kills, mine
        self._reconciling = False
        store.transaction = self.transaction  # type: ignore[method-assign]

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._begin() as made:
            before = set() if self._mine else await self._written(made)
            yield made
            points = self._points(await self._written(made) - before)
            for each in points:
                self._kills.reach(f"before {each}")
        for each in points:
            self._kills.reach(f"after {each}")

    async def _written(self, transaction: Transaction) -> set[tuple[Any, ...]]:
        found = [await transaction.execute(each + self._mine) for each in (RUNS, LANES)]
        return {tuple(row) for rows in found for row in rows}

    def _points(self, written: set[tuple[Any, ...]]) -> list[str]:
        points = []
        for _, name, phase, status, number, claimed in written:
            if phase is None:  # a lane
                claims = name == "reconcile" and claimed is not None
                points += ["claim reconcile"] if claims else ["reconciled"] if self._reconciling else []
                self._reconciling = claims
            elif status == "active":
                points.append(f"claim {name}" if phase in {"executing", "preparing"} else phase)
            elif status == "committed" and number:
                points.append(f"commit {name}")
        return points


async def host(database: str, address: str, point: str, folder: str) -> None:
    """Host the flow until killed."""
    kills = Kills(point, f"{folder}/killed")
    app = App(database, config=CONFIG)
    Writes(app._store, kills, MINE if database.startswith("postgres") else "")
    async with app:
        await app.flows.deploy(flow_of(address, kills, f"{folder}/log"))
        await app.serve()


class Hosts:
    """Processes that host the flow; each is a node, and can be killed."""

    def __init__(self) -> None:
        self._started: list[Process] = []

    def start(self, *arguments: str) -> int:
        """The id of a new process."""
        command = ["-m", "tests.engine.flow_world", *arguments]
        self._started.append(fork_server().start(command, ROOT, environment()))
        return self._started[-1].pid

    def kill_all(self) -> None:
        kill(*self._started)
        self._started.clear()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    asyncio.run(host(*sys.argv[1:]))

"""An outside world for flows, and a process that hosts one, to be killed.

The world is an HTTP server that counts what was done, by key. It can fail before, during and after it did it.
``python -m tests.engine.flow_world DATABASE ADDRESS`` hosts a flow whose mutation asks the world to do something.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib import error, request

from horae import App, Config
from horae.flows import Applied, Flow, NotApplied, Prepared, Reservation, Unknown

CONFIG = Config(lease_ms=1500, housekeeping_ms=200, tick_ms=100, terminate_ms=200)


class World:
    """What was done, by key; who is in the middle of it; and which step waits to be killed in."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.reached: list[str] = []
        self.hold: dict[str, threading.Event] = {}
        self.active: Counter[str] = Counter()
        world = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                world.answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: Any) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        step, key = body["step"], body.get("key", "")
        if step == "do":
            self._wait("before the effect")
            self.done[key] += 1
            self.events.update(body["events"])
            self._wait("after the effect")
            found: Any = True
        elif step == "ask":
            found = self.done[key] > 0
        else:
            self._wait(step)
            found = None
        try:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(json.dumps(found).encode())
        except OSError:
            return  # who asked was killed

    def _wait(self, step: str) -> None:
        self.reached.append(step)
        if (held := self.hold.get(step)) is not None:
            held.wait(20)

    def close(self) -> None:
        for each in self.hold.values():
            each.set()
        self.server.shutdown()
        self.server.server_close()


def ask(address: str, **body: Any) -> Any:
    """Ask the world, blocking."""
    sent = request.Request(address, json.dumps(body).encode(), method="POST")  # noqa: S310 - our own address
    with request.urlopen(sent, timeout=30) as answer:  # noqa: S310
        return json.loads(answer.read())


def flow_of(address: str) -> Flow:
    """A flow that asks the world to do something for each event, and can find out whether it did."""
    flow = Flow("killed", revision="1")

    async def asked(**body: Any) -> Any:
        try:
            return await asyncio.to_thread(ask, address, **body)
        except error.URLError as lost:
            raise ConnectionError(str(lost)) from lost

    @flow.consumer(subscribes=["in"], name="take", timeout="60s")
    class Take:
        async def prepare(self, ctx: Any, state: Any) -> Any:
            events = await ctx.peek("in", limit=1)
            if events:
                await asked(step="in prepare")
            return Prepared([Reservation("in", [each.id for each in events])], [each.id for each in events])

        async def mutate(self, ctx: Any, prepared: Any) -> Any:
            return await ctx.effect(lambda: asked(step="do", key=ctx.key, events=prepared.data))

        async def next(self, ctx: Any, prepared: Any, outcome: Any) -> Any:
            if prepared.data:
                await asked(step="in next")

        async def reconcile(self, ctx: Any, prepared: Any) -> Any:
            found = await ctx.read(lambda: asked(step="ask", key=ctx.key))
            return Unknown() if found is None else Applied(True) if found else NotApplied()

    return flow


async def host(database: str, address: str) -> None:
    """Host the flow until killed."""
    async with App(database, config=CONFIG) as app:
        await app.flows.deploy(flow_of(address))
        await app.serve()


if __name__ == "__main__":
    asyncio.run(host(*sys.argv[1:]))

"""Graphs of a provider of ten lines, and a worker whose executing side is in its own process or behind HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx

from horae import App, Config
from horae.executor.graph_executor import GraphExecutor
from horae.executor.graph_provider_port import Caller, GraphProvider, GraphRun
from horae.executor.remote_graph_client import RemoteExecution
from horae.model import Run
from horae.testing import TimeMachine
from tests.support.nodes import step
from tests.support.service import service_of
from tests.support.tokens import SECRET

Work = Callable[[dict[str, Any], Caller, str], AsyncIterator[Any]]


class TestGraphs(GraphProvider):
    """Async generators as graphs: they yield events, and last their result."""

    prefix = "test"
    __test__ = False

    def __init__(self, **graphs: Work) -> None:
        self._graphs = {f"test:{name}": work for name, work in graphs.items()}

    def graphs(self) -> list[str]:
        return list(self._graphs)

    def run_graph(self, run_id: str, graph_id: str, input: dict[str, Any], caller: Caller) -> GraphRun:  # noqa: A002 - the port's word
        final = asyncio.get_running_loop().create_future()

        async def events() -> AsyncIterator[Any]:
            event = None
            async for event in self._graphs[graph_id](input, caller, run_id):
                yield event
            final.set_result(event)

        return GraphRun(events(), final)


def settings(database: str, **more: Any) -> Config:
    return Config(database_url=database, jwt_secret=SECRET, secret_key="seal " * 10, **more)


@asynccontextmanager
async def worker_of(database: str, graphs: GraphProvider, *, remote: bool, **more: Any) -> AsyncIterator[App]:
    """A worker; with ``remote``, its graphs run in another app, which it asks through its HTTP service."""
    async with AsyncExitStack() as stack:
        config = settings(database, **more)
        if remote:
            there = App(database, config=config)
            there.use_graphs(graphs)
            await there.open()
            stack.push_async_callback(there.close)
            here = RemoteExecution(
                settings(database, graph_execution_url="http://127.0.0.1"), graphs.graphs, there.now
            )
            transport = httpx.ASGITransport(app=service_of(there, config), raise_app_exceptions=False)
            here._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
            app = await stack.enter_async_context(App(database, config=config))
            app.use(GraphExecutor(here, app.clock.wait))
        else:
            app = await stack.enter_async_context(App(database, config=config))
            app.use_graphs(graphs)
        yield app


async def ended(app: App, run_id: str) -> Run:
    """Drive an app until a run has ended."""
    for _ in range(2000):
        await app.engine.renew(app.now())
        await step(app)
        run = await app.runs.get(run_id)
        if run.ended_at_ms is not None:
            return run
        await asyncio.sleep(0.005)
    raise AssertionError(f"the run is {run.status}")


async def pass_time(machine: TimeMachine, minutes: int = 1) -> None:
    """Let minutes pass, and the graphs that they start end: these take turns of the event loop, and no time on the clock."""
    for _ in range(minutes):
        await machine.advance(minutes=1)
        while machine.app.worker.tasks:
            await asyncio.sleep(0)
        await machine.advance(seconds=0)

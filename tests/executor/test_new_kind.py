"""Another kind of action costs one class and one line: this one is made here, and runs through the real engine on both stores."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import msgspec
import pytest

from horae import Accepted, App, Config, Context, Executor, Filter, Policies, Run, Timeouts
from horae.errors import InvalidInputError
from horae.executor.secret_sealing import HIDDEN
from horae.face.service import Service
from horae.model import RetryPolicy
from horae.policy.lifecycle import ENDED
from tests.support.nodes import keeping_time
from tests.support.wait import wait_until

pytestmark = pytest.mark.contract("SCHD-17")
PASSWORD = "hunter2-hunter2"  # noqa: S105 - of no account


class BellOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a bell rings."""

    tone: Annotated[str, msgspec.Meta(description="What is heard.")]
    password: str = ""


class BellExecutor(Executor):
    kind = "bell"
    options = BellOptions
    secrets = ("password",)

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.closed = False

    def check(self, action: object, options: BellOptions, stored: object) -> BellOptions:
        if options.tone == "silence":
            raise InvalidInputError("action.options.tone", "must be heard")
        return options

    async def run(self, context: Context) -> Any:
        if context.input == "fail" and context.attempt == 1:
            raise RuntimeError("it is cracked")
        if context.input == "ring on":
            await asyncio.sleep(3600)
        if context.input == "hand over":
            self.tokens[context.run_id] = await context.report_token()
            return Accepted()
        return [context.options.tone, context.options.password == PASSWORD]

    async def close(self) -> None:
        self.closed = True


@contextlib.asynccontextmanager
async def running(database: str, *executors: Executor) -> AsyncIterator[App]:
    quick = Config(secret_key=PASSWORD, terminate_ms=1000, housekeeping_ms=200, tick_ms=100)
    app = App(database, config=quick)
    for executor in executors:
        app.use(executor)
    async with app, keeping_time(app):
        yield app


def bell(**more: Any) -> dict[str, Any]:
    return {"kind": "bell", "options": {"tone": "dong"} | more}


async def ring(app: App, how: str = "", **policies: Any) -> str:
    """The id of a run that was just triggered."""
    action = bell(password=PASSWORD)
    await app.schedules.create("s", {}, action, input=how, policies=Policies(**policies))
    return await app.schedules.trigger("s")


async def has(app: App, run_id: str, status: str) -> Run:
    async def is_so() -> bool:
        run = await app.runs.get(run_id)
        assert run.status == status or run.status not in ENDED, run
        return run.status == status

    await wait_until(is_so)
    return await app.runs.get(run_id)


async def test_it_runs_fails_and_is_attempted_again(database: str):
    executor = BellExecutor()
    async with running(database, executor) as app:
        run_id = await ring(app, "fail", retry=RetryPolicy(attempts=2, initial_delay="1ms"))
        run = await has(app, run_id, "succeeded")
        (failed,) = await app.runs.attempts(run_id)
        assert (run.action, run.result, run.attempt) == ("bell", ["dong", True], 2)
        assert failed.failure == "RuntimeError: it is cracked"
        assert [node.actions for node in await app.nodes()] == [("bell", "workflow")]
    assert executor.closed


async def test_it_times_out_and_it_is_stopped(database: str):
    async with running(database, BellExecutor()) as app:
        run_id = await ring(app, "ring on", timeouts=Timeouts(run="100ms"))
        assert (await has(app, run_id, "timed_out")).reason == "run_timeout"
        await app.schedules.update("s", policies=Policies())
        run_id = await app.schedules.trigger("s")
        await has(app, run_id, "running")
        await app.runs.cancel(run_id)
        assert (await has(app, run_id, "cancelled")).reason == "cancelled"


async def test_an_external_worker_reports_its_end(database: str):
    executor = BellExecutor()
    async with running(database, executor) as app:
        run_id = await ring(app, "hand over")
        await wait_until(lambda: run_id in executor.tokens and not app.worker.known("schedules"))
        await app.runs.report(run_id, executor.tokens[run_id], "succeeded", result="heard")
        assert (await has(app, run_id, "succeeded")).result == "heard"


async def test_its_options_are_checked_described_and_shown_without_secrets(database: str):
    async with running(database, BellExecutor()) as app, asking(app) as api:

        async def refused(action: Any) -> tuple[int, str, str]:
            answer = await api.post("/api/v1/schedules", json={"id": "s", "spec": {}, "action": action})
            problem = answer.json()
            return answer.status_code, problem["code"], problem["details"]["field"]

        assert await refused("bell") == (422, "invalid_input", "action.options.tone")
        assert await refused(bell(tone=5)) == (422, "invalid_input", "action.options.tone")
        assert await refused(bell(tone="silence")) == (422, "invalid_input", "action.options.tone")
        assert await refused(bell(volume=11)) == (422, "invalid_input", "action.options.volume")
        assert await refused(bell(password=HIDDEN)) == (422, "invalid_input", "action.options.password")
        given = {"id": "s", "spec": {}, "action": bell(password=PASSWORD)}
        shown = (await api.post("/api/v1/schedules", json=given)).json()["action"]
        assert (shown["kind"], shown["options"]) == ("bell", {"tone": "dong", "password": "***"})
        assert "sealed:" in (await app.schedules.get("s")).action.options["password"]

        shown["options"]["tone"] = "ding"
        answer = await api.patch("/api/v1/schedules/s", json={"action": shown})  # as it was shown
        assert PASSWORD not in answer.text + (await api.get("/api/v1/schedules/s")).text
        run_id = await app.schedules.trigger("s")
        assert (await has(app, run_id, "succeeded")).result == ["ding", True]

        assert [each.id for each in await app.schedules.list(Filter(action="bell"))] == ["s"]
        assert (await api.get("/api/v1/actions")).json()["items"] == ["bell", "workflow"]
        schemas = (await api.get("/openapi.json")).json()["components"]["schemas"]
        assert schemas["BellOptions"]["properties"]["tone"]["description"] == "What is heard."
        assert "BellOptions" in json.dumps(schemas["Action"])


async def test_a_node_without_the_kind_leaves_it_alone_and_shows_no_secret(database: str):
    async with running(database) as without, asking(without) as api:
        async with running(database, BellExecutor()) as app:
            await app.schedules.create("s", {}, bell(password=PASSWORD))
            shown = (await api.get("/api/v1/schedules/s")).json()["action"]
            assert shown["options"] == {"tone": "dong", "password": "***"}
            edited = await api.patch("/api/v1/schedules/s", json={"action": shown})
            assert (edited.status_code, edited.json()["details"]["field"]) == (422, "action.kind")
            await without.schedules.update("s", input="again")  # what it need not understand, it can change
            assert (await has(app, await without.schedules.trigger("s"), "succeeded")).input == "again"
        run_id = await without.schedules.trigger("s")
        await has(without, run_id, "starting")
        async with running(database, BellExecutor()) as app:
            await has(app, run_id, "succeeded")


@contextlib.asynccontextmanager
async def asking(app: App) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=Service(app, app.config), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client

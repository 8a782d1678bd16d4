"""The executing side as a service: who may ask, what each answer means, and a service that goes away."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from horae import App
from horae.errors import GrantScopeError, NotStartedError
from horae.executor.graph_provider_port import Caller
from horae.executor.remote_graph_client import RemoteExecution
from horae.grant_model import ExecutionRequest
from horae.model import Status
from tests.support.graphs import TestGraphs, ended, settings
from tests.support.process import Server
from tests.support.service import client_of
from tests.support.tokens import SECRET, bearer

PATH = "/api/internal/graphs/test:poet/runs"


async def poet(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
    if given["model"] == "bad":
        raise ValueError("as planned")
    yield {"for": caller.user_id}


@pytest.mark.contract("GRNT-17", "GRNT-08")
async def test_only_services_may_execute_and_each_answer_has_its_meaning(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    config = settings(database)
    async with App(database, config=config) as app, client_of(app, config) as client:
        app.use_graphs(TestGraphs(poet=poet))
        grant = await app.owned_by("ada").grants.create(["graph:execute:test:poet"])
        body = {"run_id": "r", "user_id": "ada", "grant_id": grant.id}

        async def ask(
            key: str | None = "k", path: str = PATH, *, who: Any = ("robot", "service"), **more: Any
        ) -> httpx.Response:
            headers = (bearer(*who) if who else {}) | ({} if key is None else {"Idempotency-Key": quote(key)})
            return await client.post(path, headers=headers, json=body | more)

        assert (await ask(who=None)).status_code == 401
        assert (await ask(who=("ada",))).status_code == 403
        assert (await ask(who=("robot", "read"))).status_code == 403
        good = await ask()
        assert (good.status_code, good.json()["ok"], good.json()["result"]) == (200, True, {"for": "ada"})
        assert (await ask()).json() == good.json()
        mismatch = await ask(input={"model": "x"})
        assert (mismatch.status_code, mismatch.json()["code"]) == (422, "idempotency_mismatch")
        bad = await ask("k2", input={"model": "bad"})
        assert (bad.status_code, bad.json()["ok"], bad.json()["code"]) == (200, False, "failed")
        for wrong, code in (
            ({"grant_id": "none"}, "grant_not_found"), ({"user_id": "eve"}, "grant_not_found"),
        ):  # fmt: skip
            answer = await ask("k3", **wrong)
            assert (answer.status_code, answer.json()["code"]) == (403, code)
        answer = await ask("k3", "/api/internal/graphs/test:other/runs")
        assert (answer.status_code, answer.json()["code"]) == (403, "grant_scope")
        await app.owned_by("ada").grants.revoke(grant.id)
        answer = await ask("k3")
        assert (answer.status_code, answer.json()["code"]) == (403, "grant_revoked")
        assert (await ask()).json() == good.json()  # the key is asked before the grant
        for key, path, more in (
            (None, PATH, {}), ("", PATH, {}), ("k" * 3000, PATH, {}), ("k4", "/api/internal/graphs/poet/runs", {}),
            ("k4", PATH, {"input": []}), ("k4", PATH, {"attempt": "x"}), ("k4", PATH, {"virtual_key": "x"}),
        ):  # fmt: skip
            assert (await ask(key, path, **more)).status_code in {400, 422}, (key, more)
        every = await app.owned_by("ada").grants.create(["graph:execute:*"])
        answer = await ask("k5", "/api/internal/graphs/test:none/runs", grant_id=every.id)
        assert (answer.status_code, answer.json()["code"]) == (200, "graph_unavailable")
        cancelled = await client.post(
            f"{PATH}/cancel",
            headers=bearer("robot", "service") | {"Idempotency-Key": "k"},
            json={"user_id": "ada"},
        )
        assert cancelled.json() == {"asked": False}  # it has ended


@pytest.mark.contract("GRNT-17")
async def test_a_worker_asks_a_real_service_and_outlives_it(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    graphs = '{"poet": "tests.support.langgraphs:poet"}'
    server = Server(database, HORAE_JWT_SECRET=SECRET, HORAE_GRAPHS=graphs, HORAE_NODE_NAME="executing")
    try:
        config = settings(database, graphs=graphs, graph_execution_url=server.url)
        async with App(database, config=config) as app:
            app.use_builtin()
            assert isinstance(app.executors._kinds["graph"]._execution, RemoteExecution)  # type: ignore[attr-defined]
            ada = app.owned_by("ada")
            await ada.schedules.create("s", "0 0 1 1 *", "graph:langgraph:poet", input={"model": "m"})
            run = await ended(app, await ada.schedules.trigger("s"))
            assert run.status is Status.SUCCEEDED, run.failure
            assert run.result["messages"][0]["content"] == "thinking for ada"
            ask: Any = app.executors._kinds["graph"]._execution.execute  # type: ignore[attr-defined]
            other = await ada.grants.create(["graph:execute:test:other"])
            request = _request(other.id)
            with pytest.raises(GrantScopeError):
                await ask(request, None)
            server.end(signal.SIGKILL)
            with pytest.raises(NotStartedError, match="cannot be reached"):
                await ask(request, None)
            await ada.schedules.update("s", policies={"start_attempts": 2})
            run = await ended(app, await ada.schedules.trigger("s"))
            assert (run.status, run.reason, run.attempt) == (Status.DROPPED, "not_started", 2)
            assert "cannot be reached" in (run.failure or "")
    finally:
        if server.process.poll() is None:
            server.end()


def _request(grant_id: str) -> Any:
    return ExecutionRequest(
        key="k", user_id="ada", grant_id=grant_id, graph_id="langgraph:poet", run_id="r", attempt=1, input={}
    )

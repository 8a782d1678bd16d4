"""Secrets are planted wherever they may enter, and searched for wherever they might come out."""

from __future__ import annotations

import base64
import logging
import os
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import horae
from horae import App
from horae.executor.graph_provider_port import Caller, UsageEvent
from horae.face.service.metrics import Metrics
from horae.face.service.tracing import TraceObserver
from tests.support.graphs import TestGraphs, ended, settings
from tests.support.service import client_of
from tests.support.tokens import SECRET, bearer

KEY = "sk-planted-virtual-key"
EXECUTION = "planted-execution-token"
SEAL = "planted sealing key, which is long"
PACKAGE = Path(horae.__file__).parent
PLANTED = (KEY, EXECUTION, SEAL, SECRET)
DUMPS: list[str] = []
"""What a reporter of crashes would send while a graph runs: all frames, with the values of their variables."""


async def leak(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
    """A graph that says its key wherever it can."""
    frames = traceback.StackSummary.extract(traceback.walk_stack(None), capture_locals=True)
    ours = [  # not those of pytest, which holds what is planted: it may be installed in a folder of that name too
        each for each in frames if Path(each.filename).is_relative_to(PACKAGE) or each.name == "leak"
    ]
    DUMPS.append("".join(traceback.StackSummary.from_list(ours).format()))
    logging.getLogger("graph").warning("the key is %s", caller.virtual_key)
    try:
        raise RuntimeError(caller.virtual_key)
    except RuntimeError:
        logging.getLogger("graph").exception("again")
    yield {"event": caller.virtual_key}
    yield UsageEvent(unit=caller.virtual_key, model=caller.virtual_key)
    yield object.__new__(type(caller.virtual_key, (), {}))
    if given["model"] == "bad":
        raise ValueError(f"401 for {caller.virtual_key}")
    yield {"result": caller.virtual_key, "in": [f"a list: {caller.virtual_key}!"]}


async def database_bytes(database: str, folder: Path) -> bytes:
    """All that a database holds: the files of SQLite, the rows of all tables of PostgreSQL."""
    if database.startswith("sqlite"):
        return b"".join(file.read_bytes() for file in folder.iterdir() if file.name.startswith("horae.db"))
    connection = await asyncpg.connect(database)
    try:
        tables = await connection.fetch(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(current_schema())"
        )
        assert len(tables) > 10
        questions = [f"SELECT t::text FROM {table} AS t" for (table,) in tables]  # noqa: S608 - its own names
        rows = [row for question in questions for row in await connection.fetch(question)]
    finally:
        await connection.close()
    return "\n".join(text for (text,) in rows).encode()


def found_in(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    forms = {each: (each.encode(), base64.b64encode(each.encode())[:-4]) for each in PLANTED}
    return [each for each, ways in forms.items() if any(way in data for way in ways)]


@pytest.mark.contract("GRNT-06", "GRNT-16")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_no_secret_is_anywhere(
    request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture, store: str
):
    caplog.set_level(logging.DEBUG)
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    if store == "postgres":
        database = str(request.getfixturevalue("postgres"))
    graphs = '{"poet": "tests.support.langgraphs:poet"}'
    config = settings(database, graph_execution_token=EXECUTION, graphs=graphs)
    config = msgspec.structs.replace(config, secret_key=SEAL)
    spans, metrics, answers = InMemorySpanExporter(), Metrics(), list[str]()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    async with App(database, config=config) as app:
        app.use_builtin()
        app.use_graphs(TestGraphs(leak=leak))
        app.watch(metrics)
        app.watch(TraceObserver(provider))
        async with client_of(app, config) as client:

            async def ask(method: str, path: str, user: str = "ada", *scopes: str, **body: Any) -> Any:
                headers = bearer(user, *scopes)
                answer = await client.request(method, f"/api/v1{path}", headers=headers, json=body or None)
                answers.append(f"{answer.text} {dict(answer.headers)}")
                return answer.json() if answer.content else None

            await ask("PUT", "/account?owner=ada", "root", "admin", virtual_key=KEY)
            await ask("PUT", "/account?owner=ada", "root", "admin", virtual_key=KEY, credit="wrong")
            await ask("PUT", "/account", "eve", virtual_key=KEY)
            when = {"cron": "0 0 1 1 *", "timezone": "UTC"}
            await ask("POST", "/schedules", id="good", graph_id="test:leak", **when)
            await ask("POST", "/schedules", id="bad", graph_id="test:leak", input={"model": "bad"}, **when)
            await ask("POST", "/schedules", id="real", graph_id="langgraph:poet", **when)
            for name, status in (("good", "success"), ("bad", "error"), ("real", "success")):
                run_id = (await ask("POST", f"/schedules/{name}/trigger"))["run_id"]
                await ended(app, run_id)
                (run,) = (await ask("GET", f"/schedules/{name}/runs"))["items"]
                assert run["status"] == status, run
                await ask("GET", f"/runs/{run_id}")
                await ask("GET", f"/runs/{run_id}/logs")
            for path in ("/schedules", "/grants", "/account", "/runs", "/usage", "/schedules/none", "/nodes"):
                await ask("GET", path)
            answers.append((await client.get("/metrics", headers=bearer("root", "admin"))).text)
            shown = f"{config!r} {app!r} {await app.accounts.get('ada')!r}"
    assert any("***" in each for each in answers)  # the graphs did say it
    assert "the key is ***" in caplog.text
    for place, text in {
        "answers": "\n".join(answers), "crash dumps": "".join(DUMPS), "log": caplog.text, "spans": "".join(each.to_json() for each in spans.get_finished_spans()),
        "values": shown, "arguments": Path("/proc/self/cmdline").read_text(), "environment": " ".join(os.environ.values()),
    }.items():  # fmt: skip
        assert found_in(text) == [], place
    assert len(spans.get_finished_spans()) >= 3
    assert "caller = " in DUMPS[0]
    stored = await database_bytes(database, tmp_path)
    assert found_in(stored) == []
    assert b"graph:execute:test:leak" in stored  # it was all looked at
    assert b"a list: ***!" in stored

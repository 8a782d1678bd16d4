"""Real LangGraph graphs, which call no model: events, results, callers, faults; and workers that are killed within them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from horae import App, Config, Policies
from horae.app.graph_discovery import graph_providers, read_graphs
from horae.errors import ConfigError
from horae.executor.graph_provider_port import Caller, UsageEvent, drain, graph_input
from horae.executor.langgraph_provider import LangGraphProvider
from horae.model import Status, Timeouts
from tests.support.forked import ForkServer
from tests.support.graph_worker import FAST
from tests.support.graphs import ended, settings
from tests.support.process import environment, run_program
from tests.support.wait import PATIENCE

POINTS = ["graph", "before usage", "after usage", "before end"]
PLACE = "tests.support.langgraphs"
CALLER = Caller(user_id="ada", billing_account_id="a", grant_id="g", virtual_key="sk-planted-virtual-key")


async def run(provider: LangGraphProvider, graph_id: str, given: Any = None) -> tuple[list[Any], Any]:
    seen: list[Any] = []

    async def see(event: Any) -> None:
        seen.append(event)

    return seen, await drain(provider.run_graph("r", graph_id, graph_input(given), CALLER), see)


@pytest.mark.contract("GRNT-01", "GRNT-02")
async def test_a_compiled_graph_runs_with_its_input_model_and_caller():
    provider = LangGraphProvider({"poet": f"{PLACE}:poet"})
    assert set(provider.graphs()) == {"langgraph:poet"}
    events, result = await run(
        provider, "langgraph:poet", {"messages": [{"role": "user", "content": "hi"}], "model": "m"}
    )
    said = [each["content"] for each in result["messages"]]
    assert said == ["hi", "thinking for ada", "a poem by m, with sk-planted-virtual-key"]
    used = [each for each in events if isinstance(each, UsageEvent)]
    assert [(each.unit, each.input_tokens, each.output_tokens, each.cost) for each in used] == [
        ("verse", 0, 9, 2), ("m2", 4, 6, 0),
    ]  # fmt: skip
    assert [next(iter(each)) for each in events if isinstance(each, dict)] == ["updates", "custom", "updates"]
    (_, again) = await run(provider, "langgraph:poet")
    assert again["messages"][0]["content"] == "thinking for ada"


@pytest.mark.contract("GRNT-02", "GRNT-05")
async def test_faults_of_graphs_end_with_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HORAE_TEST_STEPS", str(tmp_path / "steps"))
    names = {
        "missing": "tests.no_such_module:graph", "unnamed": f"{PLACE}:nothing", "uncompiled": f"{PLACE}:not_compiled",
        "failing": f"{PLACE}:failing", "asking": f"{PLACE}:asking", "no_json": f"{PLACE}:no_json", "sleeping": f"{PLACE}:sleeping",
    }  # fmt: skip
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    async with App(database, config=settings(database)) as app:
        app.use_graphs(LangGraphProvider(names))
        ada = app.owned_by("ada")
        expected = {
            "missing": ("graph_unavailable", "cannot be imported: ModuleNotFoundError"),
            "unnamed": ("graph_unavailable", "cannot be imported: AttributeError"),
            "uncompiled": ("graph_unavailable", "is no compiled graph"), "failing": ("failed", "ValueError: as planned"),
            "asking": ("failed", "interrupted"), "no_json": ("invalid_result", "cannot be kept"),
            "sleeping": ("run_timeout", ""),
        }  # fmt: skip
        for name, (reason, words) in expected.items():
            policies = Policies(timeouts=Timeouts(run="1s" if name == "sleeping" else "30s"))
            await ada.schedules.create(name, "0 0 1 1 *", f"graph:langgraph:{name}", policies=policies)
            ran = await ended(app, await ada.schedules.trigger(name))
            assert (ran.reason, words in (ran.failure or "")) == (reason, True), (name, ran.failure)
            assert ran.attempt == 1
        await ada.schedules.update("sleeping", policies=Policies())
        run_id = await ada.schedules.trigger("sleeping")
        await app.engine.step(app.now())
        await ada.runs.cancel(run_id)
        assert (await ended(app, run_id)).status is Status.CANCELLED


class Snapshots:
    """A memory that remembers what was in it after each save."""

    def __init__(self, entries: Mapping[str, str] = {}) -> None:
        self.taken = [dict(entries)]

    async def load(self, run_id: str) -> dict[str, str]:
        return dict(self.taken[-1])

    async def save(self, run_id: str, entries: Mapping[str, str], dropped: Collection[str] = ()) -> None:
        kept = {key: value for key, value in self.taken[-1].items() if key not in dropped}
        self.taken.append(kept | dict(entries))


@pytest.mark.contract("GRNT-07")
async def test_a_graph_resumes_to_the_same_end_after_each_save_of_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HORAE_TEST_STEPS", str(tmp_path / "steps"))
    monkeypatch.setenv("HORAE_TEST_KILL", "")
    whole = Snapshots()
    _, result = await run(LangGraphProvider({"steps": f"{PLACE}:steps"}, whole), "langgraph:steps")
    assert result["done"] == ["first", "second"]
    assert len(whole.taken) > 5  # checkpoints, and what each step wrote between them
    for entries in whole.taken:
        resumed = LangGraphProvider({"steps": f"{PLACE}:steps"}, Snapshots(entries))
        assert (await run(resumed, "langgraph:steps"))[1] == result


@pytest.fixture(scope="module")
def graph_forks() -> Iterator[ForkServer]:
    """What forks workers that have loaded LangGraph."""
    made = ForkServer(sys.executable, environment(), PLACE)
    yield made
    made.close()


@pytest.mark.contract("GRNT-07", "GRNT-08")
@pytest.mark.parametrize(
    ("store", "point"),
    [
        *(("sqlite", point) for point in POINTS),
        *(("postgres", point) for point in (POINTS if "HORAE_SEEDS" in os.environ else ["after usage"])),
    ],
)
async def test_a_killed_worker_repeats_no_step_that_was_done_and_no_charge(
    request: pytest.FixtureRequest,
    graph_forks: ForkServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
    point: str,
):
    steps, database = tmp_path / "steps", f"sqlite:///{tmp_path / 'horae.db'}"
    if store == "postgres":
        database = str(request.getfixturevalue("postgres"))
    monkeypatch.setenv("HORAE_TEST_STEPS", str(steps))
    async with App(database, config=settings(database, **FAST)) as app:
        app.use_builtin()
        ada = app.owned_by("ada")
        await ada.schedules.create("s", "0 0 1 1 *", "graph:langgraph:steps")
        run_id = await ada.schedules.trigger("s")
    given = {"HORAE_TEST_STEPS": str(steps), "HORAE_TEST_KILL": point}
    command = ["-m", "tests.support.graph_worker", database, run_id]
    killed = await asyncio.to_thread(run_program, *command, settings=given, forks=graph_forks)
    assert killed.returncode == -9, killed.stderr[-2000:]
    monkeypatch.setenv("HORAE_TEST_KILL", "")
    async with App(database, config=settings(database, **FAST)) as app:
        app.use_builtin()
        async with asyncio.timeout(PATIENCE):  # it takes over the runs of dead nodes
            while not (await app.runs.get(run_id)).crashes:
                await app.engine.renew_and_maintain(app.now())
                await asyncio.sleep(0.02)
        ran = await ended(app, run_id)
        assert (ran.status, ran.failures, ran.crashes) == (Status.SUCCEEDED, 0, 1), ran.failure
        assert ran.result["done"] == ["first", "second"]
        done = Counter(steps.read_text().split())
        assert done["second"] == 1
        if point in {"graph", "before end"}:  # the checkpoint after the first step was durable
            assert done["first"] == 1
        else:  # a step that was cut off before what it wrote was durable is done again, and charged once
            assert done["first"] in {1, 2}
        used = await app.usage.of_run(run_id)
        assert [(each.attempt, each.unit, each.cost) for each in used] == [(1, "first", 1), (1, "second", 1)]


async def test_the_setting_names_graphs(tmp_path: Path):
    assert read_graphs(Config()) == {}
    (provider,) = graph_providers(Config(graphs='{"poet": "a.b:c"}'), None)  # type: ignore[arg-type]
    assert list(provider.graphs()) == ["langgraph:poet"]
    for wrong in (
        "poet",
        "[]",
        '{"poet": 5}',
        '{"a b": "a:b"}',
        '{"poet": "a.b"}',
        '{"poet": "a:b; import os"}',
    ):
        with pytest.raises(ConfigError, match="HORAE_GRAPHS"):
            read_graphs(Config(graphs=wrong))

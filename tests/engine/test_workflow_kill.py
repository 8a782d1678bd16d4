"""Workflows in real processes, killed at their checkpoints: another one resumes, what was saved is not repeated, and the run ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from horae.workflow.document import NODE_TYPES
from tests.engine.workflow_program import workflow
from tests.support.process import run_program

PROGRAM = Path(__file__).parent / "workflow_program.py"
SAVES = 15
EVERY = [(number, when) for number in range(1, SAVES + 1) for when in ("before", "after")]
KILLS = (
    [(store, *kill) for store in ("sqlite", "postgres") for kill in EVERY]
    if "HORAE_SEEDS" in os.environ
    else [("sqlite", 8, "after"), ("postgres", 9, "before")]
)
RESULT = "ended succeeded {'all': ['loop/0/body', 'loop/1/body'], 'until': ['until/0/step', 'until/1/step']}"
QUERY = "SELECT key, value FROM checkpoint WHERE key LIKE 'node:%'"


class Runs:
    """Processes that run the workflow, one after another."""

    def __init__(self, folder: Path, database: str) -> None:
        self._folder, self._database = folder, database

    def run(self, kill_at: int = 0, when: str = "after") -> int:
        arguments = (str(PROGRAM), self._database, str(self._folder / "log"), str(kill_at), when)
        return run_program(*arguments).returncode

    def log(self) -> list[str]:
        return (self._folder / "log").read_text().splitlines()

    def ended_nodes(self) -> set[str]:
        """The nodes whose ends are saved."""
        states = {"succeeded", "failed", "cancelled"}
        return {
            key.removeprefix("node:") for key, text in self._saved() if json.loads(text)["state"] in states
        }

    def _saved(self) -> list[tuple[str, str]]:
        if self._database.startswith("postgresql"):
            return asyncio.run(self._saved_there())
        with closing(sqlite3.connect(self._database.removeprefix("sqlite:///"))) as connection:
            return connection.execute(QUERY).fetchall()

    async def _saved_there(self) -> list[tuple[str, str]]:
        connection = await asyncpg.connect(self._database)
        try:
            return [tuple(row) for row in await connection.fetch(QUERY)]
        finally:
            await connection.close()


@pytest.fixture
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Runs:
    if request.param == "postgres":
        return Runs(tmp_path, str(request.getfixturevalue("postgres")))
    return Runs(tmp_path, f"sqlite:///{tmp_path}/horae.db")


@pytest.mark.contract("CRON-22")
@pytest.mark.parametrize(("runs", "kill_at", "when"), KILLS, indirect=["runs"])
def test_a_workflow_killed_at_a_checkpoint_repeats_no_finished_node(runs: Runs, kill_at: int, when: str):
    assert runs.run(kill_at, when) == -9
    saved, before = runs.ended_nodes(), runs.log()
    assert runs.run() == 0
    *after, last = runs.log()[len(before) :]
    assert last.startswith(RESULT)
    places = [line.split()[0] for line in after]
    assert not saved & set(places)
    assert {place for place in places if places.count(place) > 1} <= {"left"}  # the one that is retried
    keys = dict(line.split() for line in before)
    assert all(keys.get(line.split()[0], line.split()[1]) == line.split()[1] for line in after)


@pytest.mark.parametrize("runs", ["sqlite"], indirect=True)
def test_it_is_known_how_many_saves_can_be_killed(runs: Runs):
    assert runs.run() == 0
    assert runs.log()[-1] == f"{RESULT} after {SAVES}"


def test_the_workflow_has_every_kind_of_node():
    document = workflow()
    assert {each["type"] for each in document["nodes"]} == set(NODE_TYPES)
    assert {each["data"]["mode"] for each in document["nodes"] if each["type"] == "join"} == {
        "all",
        "any",
        "quorum",
    }
    assert "error" in {each.get("when") for each in document["edges"]}

"""Workflows in real processes, killed at their checkpoints: what was saved is not repeated, and the run ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import environment

PROGRAM = Path(__file__).parent / "workflow_program.py"
SAVES = 9
EVERY = [(number, when) for number in range(1, SAVES + 1) for when in ("before", "after")]
KILLS = EVERY if "HORAE_SEEDS" in os.environ else [(4, "after"), (6, "before")]
RESULT = "ended succeeded {'all': ['loop/0/body', 'loop/1/body']}"


def run(folder: Path, kill_at: int = 0, when: str = "after") -> int:
    command = [
        sys.executable,
        str(PROGRAM),
        f"sqlite:///{folder}/horae.db",
        str(folder / "log"),
        str(kill_at),
        when,
    ]
    return subprocess.run(
        command, env=environment(), check=False, timeout=60, stderr=subprocess.DEVNULL
    ).returncode


def ended_nodes(folder: Path) -> set[str]:
    with sqlite3.connect(folder / "horae.db") as connection:
        rows = connection.execute("SELECT key, value FROM checkpoint WHERE key LIKE 'node:%'").fetchall()
    return {
        key.removeprefix("node:")
        for key, text in rows
        if json.loads(text)["state"] in {"succeeded", "failed"}
    }


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


@pytest.mark.contract("CRON-22")
@pytest.mark.parametrize(("kill_at", "when"), KILLS)
def test_a_workflow_killed_at_a_checkpoint_repeats_no_finished_node(tmp_path: Path, kill_at: int, when: str):
    assert run(tmp_path, kill_at, when) == -9
    saved, before = ended_nodes(tmp_path), log(tmp_path)
    assert run(tmp_path) == 0
    *after, last = log(tmp_path)[len(before) :]
    assert last.startswith(RESULT)
    places = [line.split()[0] for line in after]
    assert not saved & set(places)
    assert len(set(places)) == len(places) or places.count("left") == 2
    keys = dict(line.split() for line in before)
    assert all(keys.get(line.split()[0], line.split()[1]) == line.split()[1] for line in after)


@pytest.mark.skipif(
    "HORAE_SEEDS" not in os.environ, reason="it says how many saves there are, for the test of all"
)
def test_every_save_is_killed(tmp_path: Path):
    assert run(tmp_path) == 0
    assert log(tmp_path)[-1] == f"{RESULT} after {SAVES}"

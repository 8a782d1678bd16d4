"""Graphs of installed packages are found by entry point, without a line of configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from horae import App
from horae.model import Status
from tests.support.graphs import ended, settings

METADATA = "Metadata-Version: 2.1\nName: planted-graphs\nVersion: 1.0\n"
ENTRY = "[horae.graphs]\nplanted = planted_graphs:Planted\n"
PROVIDER = """
from tests.support.graphs import TestGraphs


async def poet(given, caller, run_id):
    yield f"a poem for {caller.user_id} by {given['model']}"


class Planted(TestGraphs):
    def __init__(self):
        super().__init__(poet=poet)
"""


@pytest.mark.contract("GRNT-02")
async def test_a_provider_of_an_installed_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package = tmp_path / "planted_graphs-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(METADATA)
    (package / "entry_points.txt").write_text(ENTRY)
    (tmp_path / "planted_graphs.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    async with App(database, config=settings(database)) as app:
        app.use_builtin()
        ada = app.owned_by("ada")
        await ada.schedules.create("s", "0 0 1 1 *", "graph:test:poet", input={"model": "m"})
        run = await ended(app, await ada.schedules.trigger("s"))
        assert (run.status, run.result) == (Status.SUCCEEDED, "a poem for ada by m"), run.failure

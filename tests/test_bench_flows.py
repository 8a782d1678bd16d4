"""The benchmark of flows runs, and every contestant has its figures reported. No test checks how fast they are."""

import re
from pathlib import Path

import pytest

from tests.support.process import run_program


@pytest.mark.heavy
@pytest.mark.contract("FLOW-29")
def test_every_contestant_has_every_figure(tmp_path: Path):
    written = tmp_path / "explanation" / "flows-speed.md"
    ran = run_program("-m", "bench.flows", "--quick", "--write", str(written))
    assert ran.returncode == 0, ran.stderr
    assert written.read_text("utf-8") == ran.stdout
    names = ["Horae", "table and poll", "Horae", "table and poll", "Procrastinate", "PgQueuer"]
    rows = re.findall(rf"^\| ({'|'.join(names[1:])}) \| (.+) \|$", ran.stdout, re.MULTILINE)
    assert [name for name, _ in rows] == names
    for name, figures in rows:
        cells = figures.split(" | ")
        assert len(cells) == 8
        absent = cells.count("–")
        assert absent == (2 if name in {"Procrastinate", "PgQueuer"} else 0), rows
        assert all(re.fullmatch(r"[\d,.]+|–", cell) for cell in cells), rows
    assert ran.stdout.count("A commit of one row alone took") == 2
    assert re.search(
        r"Beside PgQueuer: [\d.]+ times as many published, [\d.]+ times as many one by one\.", ran.stdout
    )

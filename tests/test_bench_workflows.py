"""The benchmark of workflows runs, and every contestant has its figures reported. No test checks how fast they are."""

import re
from pathlib import Path

import pytest
from bench.workflows.__main__ import CHECKPOINTS, DBOS, HORAE, ROWS

from tests.support.process import run_program


@pytest.mark.heavy
def test_every_contestant_has_every_figure(tmp_path: Path):
    written = tmp_path / "explanation" / "workflows-speed.md"
    ran = run_program("-m", "bench.workflows", "--quick", "--write", str(written))
    assert ran.returncode == 0, ran.stderr
    assert written.read_text("utf-8") == ran.stdout
    names = [HORAE, DBOS, CHECKPOINTS, ROWS]
    rows = re.findall(rf"^\| ({'|'.join(names)}) \| (.+) \|$", ran.stdout, re.MULTILINE)
    assert [name for name, _ in rows] == names * 2
    for name, figures in rows:
        cells = figures.split(" | ")
        assert len(cells) == 4
        ratio = "" if name == HORAE else r" \([\d.]+×\)"
        assert re.fullmatch(rf"[\d,]+{ratio}", cells[0]), rows
        assert all(re.fullmatch(r"[\d,]+", cell) for cell in cells[1:]), rows

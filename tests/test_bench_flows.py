"""The benchmark of flows runs, and every contestant has its figures reported. No test checks how fast they are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.contract("FLOW-29")
def test_every_contestant_has_every_figure(tmp_path: Path):
    written = tmp_path / "explanation" / "flows-speed.md"
    command = [sys.executable, "-X", "utf8", "-m", "bench.flows", "--quick", "--write", str(written)]
    root = Path(__file__).parents[1]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=root)
    assert ran.returncode == 0, ran.stderr
    assert written.read_text("utf-8") == ran.stdout
    rows = re.findall(r"^\| (Horae|table and poll|Procrastinate) \| (.+) \|$", ran.stdout, re.MULTILINE)
    assert [name for name, _ in rows] == [
        "Horae",
        "table and poll",
        "Horae",
        "table and poll",
        "Procrastinate",
    ]
    for name, figures in rows:
        cells = figures.split(" | ")
        assert len(cells) == 5
        assert all(
            re.fullmatch(r"[\d,.]+", cell) or (cell == "–" and name == "Procrastinate") for cell in cells
        ), rows

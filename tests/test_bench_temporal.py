"""The benchmark of Temporal's calls runs, and every figure is reported. How fast it is, no test says."""

import re
from pathlib import Path

import pytest

from tests.support.process import run_program

ROW = r"^\| SQLite \| [\d,]+ \| [\d.]+ \| [\d.]+ \| ([\d,]+) of ([\d,]+) \| \d+ \| \d+ \| \d+ \|$"


@pytest.mark.heavy
@pytest.mark.contract("SCHD-30")
def test_calls_are_answered_and_every_schedule_fires_meanwhile(tmp_path: Path):
    written = tmp_path / "page.md"
    sizes = ("--schedules", "50", "--rate", "40", "--seconds", "2", "--store", "SQLite")
    ran = run_program("-m", "bench.temporal", *sizes, "--write", str(written))
    assert ran.returncode == 0, ran.stderr
    found = re.search(ROW, ran.stdout, re.MULTILINE)
    assert found is not None, ran.stdout
    assert found[1] == found[2] == "50"
    assert written.read_text("utf-8").strip() == ran.stdout.strip()

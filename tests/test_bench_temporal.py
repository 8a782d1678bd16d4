"""The benchmark of Temporal's calls runs, and every figure is reported. How fast it is, no test says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import environment

ROW = r"^\| SQLite \| [\d,]+ \| [\d.]+ \| [\d.]+ \| ([\d,]+) of ([\d,]+) \| \d+ \| \d+ \| \d+ \|$"


@pytest.mark.heavy
@pytest.mark.contract("SCHD-30")
def test_calls_are_answered_and_every_schedule_fires_meanwhile(tmp_path: Path):
    written = tmp_path / "page.md"
    command = [
        sys.executable,
        "-m",
        "bench.temporal",
        "--schedules",
        "50",
        "--rate",
        "40",
        "--seconds",
        "2",
        "--store",
        "SQLite",
    ]
    root = Path(__file__).parents[1]
    ran = subprocess.run(
        [*command, "--write", str(written)], cwd=root, env=environment(), capture_output=True, text=True,
        timeout=240, check=True,
    )  # fmt: skip
    found = re.search(ROW, ran.stdout, re.MULTILINE)
    assert found is not None, ran.stdout
    assert found[1] == found[2] == "50"
    assert written.read_text("utf-8").strip() == ran.stdout.strip()

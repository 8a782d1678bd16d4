"""The benchmark of the service runs, and every figure is reported. How fast it is, no test says."""

import re
from pathlib import Path

import pytest

from tests.support.process import run_program

ROW = r"^\| (.+?) \| (create|describe|list) \| [\d,]+( \([\d.]+×\))? \| [\d.]+ \| [\d.]+ \|$"


@pytest.mark.heavy
def test_every_request_has_every_figure(tmp_path: Path):
    written = tmp_path / "page.md"
    ran = run_program(
        "-m", "bench.service", "--schedules", "1000", "--requests", "50", "--write", str(written)
    )
    assert ran.returncode == 0, ran.stderr
    rows = {(name, request) for name, request, _ in re.findall(ROW, ran.stdout, re.MULTILINE)}
    services = ("ceiling", "Horae on SQLite", "Horae on PostgreSQL")
    assert rows == {(name, request) for name in services for request in ("create", "describe", "list")}
    assert written.read_text("utf-8").strip() == ran.stdout.strip()

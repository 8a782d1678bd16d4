"""The benchmark runs and reports every library in every table. How fast anything is, no test says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TABLES = {
    "`next_after`": 10,
    "parsing, in a row": 5,
    "parsing, one at a time": 5,
    "parsing and first answer": 5,
    "`between`": 2,
    "cache": 1,
}
LIBRARIES = ["horae", "croniter-rs", "cronsim", "APScheduler", "croniter"]
TARGETS = 9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What it printed, and what it wrote."""
    written = tmp_path_factory.mktemp("bench") / "explanation" / "speed.md"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "bench", "--quick", "--write", written],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, written.read_text("utf-8")


def rows_of(report: str, title: str) -> list[list[str]]:
    """The cells of a table, its header first."""
    lines = report.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {title} |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize("title", TABLES)
def test_every_library_is_reported_with_a_number_in_every_table(run: tuple[str, str], title: str) -> None:
    header, *rows = rows_of(run[0], title)
    assert header[1:] == LIBRARIES
    assert len(rows) == TABLES[title]
    for _, ours, *others in rows:
        assert re.fullmatch(r"[\d,]+(\.\d+)?", ours)
        for cell in others:
            assert re.fullmatch(r"[\d,]+(\.\d+)? \([\d.]+× (slower|faster)\)", cell)


def test_equal_documents_are_one_object(run: tuple[str, str]) -> None:
    assert "2,000 spec documents were given to `Spec.parse`, 1,000 of them distinct: 1,000 objects" in run[0]


def test_every_target_is_said_to_be_met_or_missed_with_its_figure(run: tuple[str, str]) -> None:
    verdicts = re.findall(r"^- (?:met|\*\*missed\*\*): .+ \(.*\d.*\)$", run[0], re.MULTILINE)
    assert len(verdicts) == TARGETS


def test_what_is_written_is_what_is_printed(run: tuple[str, str]) -> None:
    printed, written = run
    assert written.strip() == printed.strip()
    assert written.startswith("# ")

"""The herd runs, and every contestant has every figure reported. No test checks how fast they are."""

import re
from pathlib import Path

import pytest

from tests.support.process import run_program

TABLES = {
    "SQLite": ["Horae", "Horae, one-shot", "Horae, declarative", "APScheduler", "ceiling"],
    "PostgreSQL": ["Horae", "Horae, one-shot", "APScheduler", "Procrastinate", "ceiling"],
}
FIGURES = [
    "registered/s", "first start, ms", "last start, ms", "p50, ms", "p99, ms", "starts/s", "ends/s",
    "registering 1,000: CPU, ms", "running 1,000: CPU, ms", "memory, MB",
]  # fmt: skip
NUMBER = r"-?[\d,]+(\.\d+)?"
COMPARED = rf"{NUMBER}( \([\d.]+× (faster|slower|sooner|later|more|less)\))?"


@pytest.mark.contract("SCHD-31", "DECL-41")
@pytest.mark.heavy
def test_every_contestant_has_every_figure(tmp_path: Path) -> None:
    # One test, because it takes a minute, and tests that share a fixture may be run by several processes.
    written = tmp_path / "explanation" / "herd.md"
    page = printed("--quick", "--write", str(written))
    for database, contestants in TABLES.items():
        check_herd(rows_of(page, database), contestants)
    check_nodes(rows_of(page, "nodes"))
    check_steady(rows_of(page, "steady"))
    check_backfill(rows_of(page, "backfill"))
    check_idle(rows_of(page, "idle"))
    check_initialize(rows_of(page, "initialize"))
    assert written.read_text("utf-8").strip() == page.strip()
    assert page.startswith("# ")


def printed(*arguments: str) -> str:
    ran = run_program("-m", "bench.herd", *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def rows_of(report: str, title: str) -> list[list[str]]:
    """The cells of a table, its header first."""
    table = re.search(rf"^\| {title} \|.*\n(?:\|.*\n)+", report, re.MULTILINE)
    assert table, f"no table {title}"
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()
    ]
    return [header, *rows]


def check_herd(table: list[list[str]], contestants: list[str]) -> None:
    header, *rows = table
    assert header[1:] == ["jobs", *FIGURES]
    assert [row[0] for row in rows] == contestants
    for contestant, jobs, *figures in rows:
        assert jobs == "30"
        for name, figure in zip(FIGURES, figures, strict=True):
            # APScheduler remembers nothing of a run, so there is no end to wait for.
            pattern = "not recorded" if (contestant, name) == ("APScheduler", "ends/s") else COMPARED
            assert re.fullmatch(pattern, figure), (contestant, name, figure)


def check_nodes(table: list[list[str]]) -> None:
    header, *rows = table
    assert header[1:] == [
        "jobs", "share of each, %", "first start, ms", "last start, ms", "p50, ms", "p99, ms", "starts/s", "ends/s",
    ]  # fmt: skip
    assert [row[0] for row in rows] == [f"{nodes} on {database}" for database in TABLES for nodes in (1, 3)]
    for nodes, jobs, shares, *figures in rows:
        assert jobs == "30"
        # Each is rounded, so together they may be off by one.
        percent = [int(share) for share in shares.split(", ")]
        assert len(percent) == int(nodes[0])
        assert 99 <= sum(percent) <= 101
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def check_steady(table: list[list[str]]) -> None:
    header, *rows = table
    assert header[1:] == ["due/s", "keeps up", "starts/s", "ends/s", "p50, ms", "p99, ms", "memory, MB"]
    contestants = ("Horae", "APScheduler")
    assert [row[0] for row in rows] == [
        f"{name} on {database}" for database in TABLES for name in contestants
    ]
    for contestant, due, keeps_up, starts, ends, *figures in rows:
        assert due == "5"
        assert keeps_up in {"yes", "no"}
        assert re.fullmatch(COMPARED, starts)
        assert re.fullmatch("not recorded" if "APScheduler" in contestant else COMPARED, ends)
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def check_backfill(table: list[list[str]]) -> None:
    header, *rows = table
    assert header[1:] == ["slots", "first start, ms", "last start, ms", "starts/s", "ends/s", "memory, MB"]
    contestants = ("Horae", "ceiling")
    assert [row[0] for row in rows] == [
        f"{name} on {database}" for database in TABLES for name in contestants
    ]
    for _, slots, *figures in rows:
        assert slots == "60"
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def check_idle(table: list[list[str]]) -> None:
    header, *rows = table
    assert header[1:] == ["registered/s", "start-up, ms", "memory, MB", "processor time, ms"]
    assert [row[0] for row in rows] == list(TABLES)
    for _, *figures in rows:
        assert all(re.fullmatch(NUMBER, figure) for figure in figures)


def check_initialize(table: list[list[str]]) -> None:
    header, *rows = table
    assert header[1:] == ["tasks", "first, ms", "again, ms"]
    assert [row[:2] for row in rows] == [[database, "30"] for database in TABLES]
    for _, _, *figures in rows:
        assert all(re.fullmatch(NUMBER, figure) for figure in figures)

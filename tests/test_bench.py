"""The benchmarks run, and their pages report every figure of every contestant. No test checks how fast anything is."""

import re
import sqlite3
import sys
from pathlib import Path

import pytest
from bench.console.__main__ import PAGES, measured
from bench.workflows.__main__ import CHECKPOINTS, DBOS, HORAE, ROWS

from tests.support.process import run_program

NUMBER = r"-?[\d,]+(\.\d+)?"
COMPARED = rf"{NUMBER}( \([\d.]+× (faster|slower|sooner|later|more|less)\))?"
DATABASES = ("SQLite", "PostgreSQL")


def page_of(benchmark: str, folder: Path, *options: str) -> str:
    """The page that a benchmark prints, and writes to a file."""
    written = folder / "explanation" / "page.md"
    ran = run_program("-m", benchmark, *options, "--write", str(written))
    assert ran.returncode == 0, ran.stderr
    assert written.read_text("utf-8").strip() == ran.stdout.strip()
    assert ran.stdout.startswith("# ")
    return ran.stdout


def table_of(page: str, title: str) -> tuple[list[str], list[list[str]]]:
    """The header of a table, without its title, and the cells of its rows."""
    table = re.search(rf"^\| {title} \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert table, f"no table {title}"
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()
    ]
    return header[1:], rows


def test_every_library_has_every_figure(tmp_path: Path) -> None:
    page = page_of("bench", tmp_path, "--quick")
    tables = {
        "`next_after`": 10, "parsing, in a row": 5, "parsing, one at a time": 5, "parsing and first answer": 5, "`between`": 2, "cache": 1,
    }  # fmt: skip
    for title, count in tables.items():
        header, rows = table_of(page, title)
        assert header == ["horae", "croniter-rs", "cronsim", "APScheduler", "croniter"]
        assert len(rows) == count
        for _, ours, *others in rows:
            assert re.fullmatch(r"[\d,]+(\.\d+)?", ours)
            for cell in others:
                assert re.fullmatch(r"[\d,]+(\.\d+)? \([\d.]+× (slower|faster)\)", cell)
    assert "2,000 spec documents were given to `Spec.parse`, 1,000 of them distinct: 1,000 objects" in page
    verdicts = re.findall(r"^- (?:met|\*\*missed\*\*): .+ \(.*\d.*\)$", page, re.MULTILINE)
    assert len(verdicts) == 9


async def test_every_page_of_the_console_has_its_figures():
    page = await measured(schedules=30, runs=200, times=1)
    assert re.findall(r"^\| (.+?) (?:\| [\d.]+ ){3}\| \d+ \|$", page, re.MULTILINE) == list(PAGES)


@pytest.mark.heavy
def test_every_request_to_the_service_has_every_figure(tmp_path: Path):
    page = page_of("bench.service", tmp_path, "--schedules", "1000", "--requests", "50")
    row = r"^\| (.+?) \| (create|describe|list) \| [\d,]+(?: \([\d.]+×\))? \| [\d.]+ \| [\d.]+ \|$"
    services = ("ceiling", *(f"Horae on {database}" for database in DATABASES))
    rows = {(name, request) for name in services for request in ("create", "describe", "list")}
    assert set(re.findall(row, page, re.MULTILINE)) == rows


@pytest.mark.heavy
@pytest.mark.contract("FLOW-29")
def test_every_contestant_with_flows_has_every_figure(tmp_path: Path):
    page = page_of("bench.flows", tmp_path, "--quick")
    names = ["Horae", "table and poll", "Horae", "table and poll", "Procrastinate", "PgQueuer"]
    rows = re.findall(rf"^\| ({'|'.join(names[1:])}) \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == names
    for name, figures in rows:
        cells = figures.split(" | ")
        assert len(cells) == 8
        absent = cells.count("–")
        assert absent == (2 if name in {"Procrastinate", "PgQueuer"} else 0), rows
        assert all(re.fullmatch(r"[\d,.]+|–", cell) for cell in cells), rows
    assert page.count("A commit of one row alone took") == 2
    assert re.search(
        r"Beside PgQueuer: [\d.]+ times as many published, [\d.]+ times as many one by one\.", page
    )


@pytest.mark.heavy
@pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason="since Python 3.12 DBOS takes SQLite for 3.42 or later",
)
def test_every_contestant_with_workflows_has_every_figure(tmp_path: Path):
    page = page_of("bench.workflows", tmp_path, "--quick")
    names = [HORAE, DBOS, CHECKPOINTS, ROWS]
    rows = re.findall(rf"^\| ({'|'.join(names)}) \| (.+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == names * 2
    for name, figures in rows:
        cells = figures.split(" | ")
        assert len(cells) == 4
        ratio = "" if name == HORAE else r" \([\d.]+×\)"
        assert re.fullmatch(rf"[\d,]+{ratio}", cells[0]), rows
        assert all(re.fullmatch(r"[\d,]+", cell) for cell in cells[1:]), rows


@pytest.mark.heavy
@pytest.mark.contract("SCHD-30")
def test_temporals_calls_are_answered_and_every_schedule_fires_meanwhile(tmp_path: Path):
    sizes = ("--schedules", "50", "--rate", "40", "--seconds", "2", "--store", "SQLite")
    page = page_of("bench.temporal", tmp_path, *sizes)
    row = r"^\| SQLite \| [\d,]+ \| [\d.]+ \| [\d.]+ \| ([\d,]+) of ([\d,]+) \| \d+ \| \d+ \| \d+ \|$"
    assert re.findall(row, page, re.MULTILINE) == [("50", "50")], page


@pytest.mark.contract("SCHD-31", "DECL-41")
@pytest.mark.heavy
def test_every_contestant_in_the_herd_has_every_figure(tmp_path: Path) -> None:
    # One test, because it takes a minute, and tests that share a fixture may be run by several processes.
    page = page_of("bench.herd", tmp_path, "--quick")
    check_herd(page)
    check_nodes(*table_of(page, "nodes"))
    check_steady(*table_of(page, "steady"))
    check_backfill(*table_of(page, "backfill"))
    header, rows = table_of(page, "idle")
    assert header == ["registered/s", "start-up, ms", "memory, MB", "processor time, ms"]
    assert [row[0] for row in rows] == list(DATABASES)
    assert all(re.fullmatch(NUMBER, figure) for _, *figures in rows for figure in figures)
    header, rows = table_of(page, "initialize")
    assert header == ["tasks", "first, ms", "again, ms"]
    assert [row[:2] for row in rows] == [[database, "30"] for database in DATABASES]
    assert all(re.fullmatch(NUMBER, figure) for _, _, *figures in rows for figure in figures)


def check_herd(page: str) -> None:
    contestants = {
        "SQLite": ["Horae", "Horae, one-shot", "Horae, declarative", "APScheduler", "ceiling"],
        "PostgreSQL": ["Horae", "Horae, one-shot", "APScheduler", "Procrastinate", "ceiling"],
    }
    for database in DATABASES:
        header, rows = table_of(page, database)
        assert header == [
            "jobs", "registered/s", "first start, ms", "last start, ms", "p50, ms", "p99, ms", "starts/s", "ends/s",
            "registering 1,000: CPU, ms", "running 1,000: CPU, ms", "memory, MB",
        ]  # fmt: skip
        assert [row[0] for row in rows] == contestants[database]
        for contestant, jobs, *figures in rows:
            assert jobs == "30"
            for name, figure in zip(header[1:], figures, strict=True):
                # APScheduler remembers nothing of a run, so there is no end to wait for.
                pattern = "not recorded" if (contestant, name) == ("APScheduler", "ends/s") else COMPARED
                assert re.fullmatch(pattern, figure), (contestant, name, figure)


def check_nodes(header: list[str], rows: list[list[str]]) -> None:
    assert header == [
        "jobs", "share of each, %", "first start, ms", "last start, ms", "p50, ms", "p99, ms", "starts/s", "ends/s",
    ]  # fmt: skip
    assert [row[0] for row in rows] == [
        f"{nodes} on {database}" for database in DATABASES for nodes in (1, 3)
    ]
    for nodes, jobs, shares, *figures in rows:
        assert jobs == "30"
        # Each is rounded, so together they may be off by one.
        percent = [int(share) for share in shares.split(", ")]
        assert len(percent) == int(nodes[0])
        assert 99 <= sum(percent) <= 101
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def check_steady(header: list[str], rows: list[list[str]]) -> None:
    assert header == ["due/s", "keeps up", "starts/s", "ends/s", "p50, ms", "p99, ms", "memory, MB"]
    assert [row[0] for row in rows] == named_on_each("Horae", "APScheduler")
    for contestant, due, keeps_up, starts, ends, *figures in rows:
        assert due == "5"
        assert keeps_up in {"yes", "no"}
        assert re.fullmatch(COMPARED, starts)
        assert re.fullmatch("not recorded" if "APScheduler" in contestant else COMPARED, ends)
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def check_backfill(header: list[str], rows: list[list[str]]) -> None:
    assert header == ["slots", "first start, ms", "last start, ms", "starts/s", "ends/s", "memory, MB"]
    assert [row[0] for row in rows] == named_on_each("Horae", "ceiling")
    for _, slots, *figures in rows:
        assert slots == "60"
        assert all(re.fullmatch(COMPARED, figure) for figure in figures)


def named_on_each(*contestants: str) -> list[str]:
    return [f"{name} on {database}" for database in DATABASES for name in contestants]

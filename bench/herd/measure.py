"""The parent: a fresh database and a fresh process for each contestant and size, one after another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from bench.herd.contestant import ENTRIES, POSTGRES, SQLITE, Entry
from bench.herd.server import Databases

IDLE = "idle"
INITIALIZE = "declarative"
FIRST_GUESS = 500.0
"""Jobs registered per second, before anything is known about a contestant."""
COUNTING = 1.0
"""Seconds allowed beside registering, in which PostgreSQL counts its rows."""
ATTEMPTS = 3
TIME_LIMIT = 3600
"""Seconds for one contestant and one size."""


class Effort(NamedTuple):
    """How much is measured."""

    sizes: tuple[int, ...]
    repeats: int
    repeated_sizes: int
    """The largest herd that is repeated; larger ones differ less from run to run, and take their time."""
    idle_schedules: int
    idle_seconds: float
    peers_up_to: int = 10_000
    """The largest herd of the peers: with 100,000 jobs each of them takes from three to six minutes."""


FULL = Effort(
    (1000, 10_000, 100_000), repeats=3, repeated_sizes=1000, idle_schedules=1_000_000, idle_seconds=20
)
QUICK = Effort((200,), repeats=1, repeated_sizes=200, idle_schedules=2000, idle_seconds=1)


class Figures(NamedTuple):
    """What a contestant's process reports. Times are milliseconds after the instant, rates are per second."""

    register_rate: float
    first: float
    last: float
    median: float
    p99: float
    start_rate: float
    end_rate: float | None
    memory: float


class Result(NamedTuple):
    entry: Entry
    jobs: int
    figures: Figures


class Initialize(NamedTuple):
    """How long the declarative scheduler's ``initialize`` takes, in milliseconds: the first time, and again."""

    database: str
    tasks: int
    first: float
    again: float


class Idle(NamedTuple):
    """What idle schedules cost: milliseconds until the first step is done, milliseconds of processor time."""

    database: str
    register_rate: float
    startup: float
    memory: float
    processor: float


def measure(databases: Databases, effort: Effort, only: str | None) -> list[Result]:
    """All herds. Contestants take turns, so that a machine busy with something else disturbs them alike."""
    entries = [entry for entry in ENTRIES if only in (None, entry.name)]
    rates = dict.fromkeys(entries, FIRST_GUESS)
    found = []
    for count in effort.sizes:
        present = [entry for entry in entries if not entry.is_peer or count <= effort.peers_up_to]
        runs: dict[Entry, list[Figures]] = {entry: [] for entry in present}
        for _ in range(effort.repeats if count <= effort.repeated_sizes else 1):
            for entry in present:
                figures = _herd(databases, entry, count, rates[entry])
                rates[entry] = figures.register_rate
                runs[entry].append(figures)
        found += [Result(entry, count, _typical(runs[entry])) for entry in present]
    return found


def _typical(runs: list[Figures]) -> Figures:
    """The run with the middle time to the last start: figures of one run fit together."""
    return sorted(runs, key=lambda figures: figures.last)[len(runs) // 2]


def _herd(databases: Databases, entry: Entry, count: int, rate: float) -> Figures:
    """One herd. If registering took longer than its rate so far foretold, the contestant begins anew."""
    for _ in range(ATTEMPTS):
        with databases.fresh(entry.database) as url:
            said = _run("bench.herd.child", entry.place, url, count, COUNTING + 1.3 * count / rate)
        _tell(f"{entry.title} on {entry.database}, {count:,} jobs: {said}")
        if "late" not in said:
            return Figures(**said)
        rate = count / said["late"]
    raise RuntimeError(
        f"{entry.title} on {entry.database}: registering {count:,} jobs takes longer each time"
    )


def measure_initialize(databases: Databases, effort: Effort, only: str | None) -> list[Initialize]:
    kinds: Iterable[str] = (SQLITE, POSTGRES) if only in (None, INITIALIZE) else ()
    found = []
    for kind in kinds:
        for count in effort.sizes:
            with databases.fresh(kind) as url:
                found.append(Initialize(kind, count, **_run("bench.herd.declarative", url, count)))
            _tell(str(found[-1]))
    return found


def measure_idle(databases: Databases, effort: Effort, only: str | None) -> list[Idle]:
    kinds: Iterable[str] = (SQLITE, POSTGRES) if only in (None, IDLE) else ()
    found = []
    for kind in kinds:
        with databases.fresh(kind) as url:
            filled = _run("bench.herd.idle", "fill", url, effort.idle_schedules)
            rested = _run("bench.herd.idle", "rest", url, effort.idle_seconds)
        found.append(Idle(kind, **filled, **rested))
        _tell(f"{effort.idle_schedules:,} idle schedules: {found[-1]}")
    return found


def _run(module: str, *arguments: object) -> dict[str, Any]:
    """What a program says, in one line."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", timeout=TIME_LIMIT, check=True)  # noqa: S603
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _tell(progress: str) -> None:
    """All of it takes the better part of an hour; who waits sees the figures as they come."""
    print(progress, file=sys.stderr, flush=True)

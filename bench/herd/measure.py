"""The parent: a fresh database and a fresh process for each contestant and size, one after another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product, repeat
from typing import Any, NamedTuple

from bench.herd.contestant import BACKFILL, CLUSTERS, ENTRIES, OURS, POSTGRES, SQLITE, STEADY, Entry, before
from bench.herd.server import Databases

IDLE = "idle"
STEADILY = "steady"
BACKFILLS = "backfill"
CLUSTER = "nodes"
INITIALIZE = "declarative"
PARTS = (STEADILY, BACKFILLS, CLUSTER, IDLE)
"""The parts, besides a contestant's herds, that can be measured alone."""
NODES = 3
FIRST_GUESS = 500.0
"""Jobs registered per second, before anything is known about a contestant."""
COUNTING = 1.0
"""Seconds allowed beside registering, in which PostgreSQL counts its rows."""
JOINING = 1.5
"""Seconds allowed for each of several nodes to start."""
ATTEMPTS = 6
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
    steady_rates: tuple[int, ...]
    """Schedules that are due every second. A contestant that does not keep up is given no more."""
    steady_seconds: int
    backfill: int
    """Slots."""
    at_once: int = 1
    """How many parts, and how many contestants of a herd, run beside each other; more than one spoils the figures."""
    peers_up_to: int = 10_000
    """The largest herd of the peers: with 100,000 jobs each of them takes from three to six minutes."""
    before: str = ""
    """The checkout of another version of Horae, whose herds are measured as well."""


FULL = Effort(
    (1000, 10_000, 100_000), repeats=3, repeated_sizes=1000, idle_schedules=1_000_000, idle_seconds=20,
    steady_rates=(300, 1000, 3000, 5000, 10_000), steady_seconds=10, backfill=100_000,
)  # fmt: skip
QUICK = Effort(
    (30,), repeats=1, repeated_sizes=30, idle_schedules=30, idle_seconds=0.2, steady_rates=(5,), steady_seconds=2,
    backfill=60, at_once=4,
)  # fmt: skip


class Figures(NamedTuple):
    """The report of a contestant's process. Times are milliseconds after the instant, rates are per second.

    Work is the processor time of the process in milliseconds for 1,000 jobs: to register them, and to start and end them.
    """

    register_rate: float
    first: float
    last: float
    median: float
    p99: float
    start_rate: float
    end_rate: float | None
    register_work: float | None = None
    run_work: float | None = None
    memory: float | None = None
    shares: Sequence[float] = ()
    """The share of each of several nodes in the starts, the largest first."""

    @property
    def keeps_up(self) -> bool:
        """Whether nearly all starts come before those of the next second are due."""
        return self.p99 < 1000


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
    """The cost of idle schedules: milliseconds until the first step is done, and of processor time."""

    database: str
    register_rate: float
    startup: float
    memory: float
    processor: float


class Measured(NamedTuple):
    """All that one run found out."""

    herds: list[Result]
    nodes: list[Result]
    steady: list[Result]
    backfills: list[Result]
    idle: list[Idle]
    initialize: list[Initialize]


def measure(databases: Databases, effort: Effort, only: str | None) -> Measured:
    """All parts, one after another unless it must be quick."""
    parts = (
        measure_herds, measure_nodes, measure_steady, measure_backfills, measure_idle, measure_initialize,
    )  # fmt: skip
    return Measured(*measure_all(effort.at_once, lambda part: part(databases, effort, only), parts))


def measure_all(at_once: int, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Like ``map``, in so many threads; without threads if it is one, so that a signal ends it at once."""
    if at_once == 1:
        return list(map(work, *arguments))
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, *arguments))


def measure_herds(databases: Databases, effort: Effort, only: str | None) -> list[Result]:
    """All herds. Contestants take turns, so that a machine busy with something else disturbs them alike."""
    entries = [entry for entry in ENTRIES if only in (None, entry.name)]
    entries += before(effort.before) if effort.before and only in (None, OURS) else []
    rates = dict.fromkeys(entries, FIRST_GUESS)
    found = []
    for count in effort.sizes:
        present = [entry for entry in entries if not entry.is_peer or count <= effort.peers_up_to]
        runs: dict[Entry, list[Figures]] = {entry: [] for entry in present}
        for _ in range(effort.repeats if count <= effort.repeated_sizes else 1):
            allowances = [_allowance(count, rates[entry]) for entry in present]
            taken = measure_all(
                effort.at_once, partial(measure_herd, databases), present, repeat(count), allowances
            )
            for entry, figures in zip(present, taken, strict=True):
                rates[entry] = figures.register_rate
                runs[entry].append(figures)
        found += [Result(entry, count, _typical(runs[entry])) for entry in present]
    return found


def _typical(runs: list[Figures]) -> Figures:
    """The run with the middle time to the last start: figures of one run fit together."""
    return sorted(runs, key=lambda figures: figures.last)[len(runs) // 2]


def measure_herd(
    databases: Databases, entry: Entry, count: int, allowance: float, amount: int = 0
) -> Figures:
    """Measure one herd. If registering took longer than allowed, the contestant begins anew."""
    for _ in range(ATTEMPTS):
        with databases.fresh(entry.database) as url:
            arguments = (entry.program, entry.place, url, count, allowance, amount)
            figures = _run(*arguments, checkout=entry.checkout)
        _tell(f"{entry.title} on {entry.database}, {count:,} jobs: {figures}")
        if "late" not in figures:
            return Figures(**figures)
        allowance = _allowance(1, 1 / figures["late"])
    raise RuntimeError(f"{entry.title} on {entry.database}: registering {count:,} jobs takes ever longer")


def _allowance(count: int, rate: float) -> float:
    """Seconds for registering, by the rate so far."""
    return COUNTING + 1.3 * count / rate


def measure_nodes(databases: Databases, effort: Effort, only: str | None) -> list[Result]:
    """Herds of all sizes again, with several nodes."""
    found: list[Result] = []
    for entry in CLUSTERS if only in (None, CLUSTER) else ():
        found += _growing(databases, entry, effort.sizes, NODES, NODES * JOINING)
    return found


def _growing(
    databases: Databases, entry: Entry, sizes: Sequence[int], amount: int, joining: float = 0
) -> Iterator[Result]:
    """Herds of one contestant, each allowed the time that the rate of the one before suggests."""
    rate = FIRST_GUESS
    for count in sizes:
        figures = measure_herd(databases, entry, count, _allowance(count, rate) + joining, amount)
        rate = figures.register_rate
        yield Result(entry, count, figures)


def measure_steady(databases: Databases, effort: Effort, only: str | None) -> list[Result]:
    """Schedules that are due every second: more and more of them, until a contestant does not keep up."""
    found = []
    for entry in STEADY if only in (None, STEADILY) else ():
        for result in _growing(databases, entry, effort.steady_rates, effort.steady_seconds):
            found.append(result)
            if not result.figures.keeps_up:
                break
    return found


def measure_backfills(databases: Databases, effort: Effort, only: str | None) -> list[Result]:
    """A backfill of one schedule, asked for at the instant; there is next to nothing to register."""
    return [
        Result(entry, effort.backfill, measure_herd(databases, entry, effort.backfill, COUNTING))
        for entry in (BACKFILL if only in (None, BACKFILLS) else ())
    ]


def measure_initialize(databases: Databases, effort: Effort, only: str | None) -> list[Initialize]:
    found = []
    for kind, count in product((SQLITE, POSTGRES), effort.sizes if only in (None, INITIALIZE) else ()):
        with databases.fresh(kind) as url:
            found.append(Initialize(kind, count, **_run("bench.herd.declarative", url, count)))
        _tell(str(found[-1]))
    return found


def measure_idle(databases: Databases, effort: Effort, only: str | None) -> list[Idle]:
    found = []
    for kind in (SQLITE, POSTGRES) if only in (None, IDLE) else ():
        with databases.fresh(kind) as url:
            filled = _run("bench.herd.idle", "fill", url, effort.idle_schedules)
            rested = _run("bench.herd.idle", "rest", url, effort.idle_seconds)
        found.append(Idle(kind, **filled, **rested))
        _tell(f"{effort.idle_schedules:,} idle schedules: {found[-1]}")
    return found


def _run(module: str, *arguments: object, checkout: str = "") -> dict[str, Any]:
    """The line of JSON that a program prints; with ``checkout``, the program of another version, with our packages."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    sources = {"PYTHONPATH": os.pathsep.join([checkout, f"{checkout}/src"])} if checkout else {}
    done = subprocess.run(  # noqa: S603
        command, stdout=subprocess.PIPE, encoding="utf-8", timeout=TIME_LIMIT, check=True,
        cwd=checkout or None, env=os.environ | sources,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _tell(progress: str) -> None:
    """All of it takes twenty minutes or so; the figures are printed as they come, a line each."""
    sys.stderr.write(f"{progress}\n")
    sys.stderr.flush()

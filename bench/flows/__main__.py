"""Measure flows beside their peers in one run: ``python -m bench.flows [--quick] [--events N] [--write PAGE]``."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Coroutine
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from bench.flows.figures import Figures, Meter, Rate, better, percentiles
from bench.flows.horae_flows import FLOWS, measure
from bench.flows.peers import (
    commits_postgres,
    commits_sqlite,
    pgqueuer,
    polled_postgres,
    polled_sqlite,
    procrastinate,
)
from bench.herd.contestant import POSTGRES, SQLITE
from bench.herd.server import Databases
from bench.page import parser, publish, table

Contestant = Callable[[Meter, str, int, int], Coroutine[Any, Any, Figures]]
HEADINGS = (
    "", "published/s", "CPU", "one a run/s", "CPU", "100 a run, events/s", "CPU", "wake p50, ms", "wake p99, ms",
)  # fmt: skip
WANTED = {SQLITE: 2000, POSTGRES: 1500}
"""One-event runs a second that we want to reach."""

INTRODUCTION = """\
Written by `python -m bench.flows`: {events:,} events are published in batches of 1,000 and go through a flow that takes 100 of them a
run; a tenth as many go through {flows} flows that take one event a run and are independent of each other, as a flow runs one handler
at a time. Events that are consumed were published before, and a figure ends when the last run has committed. Horae and its peers take
turns on one machine ({machine}, {cores} cores, Python {python}), in {rounds} rounds: each figure is the best of them. The load average was
{before:.1f} before and {after:.1f} after: what else a machine does makes all figures smaller, so look at the ratios. *CPU* is microseconds
of processor time for each event, of the program and the database server together.

A run of Horae is a record with its phases and its state, and remembers which events it consumed; a polled table has none of that, and
takes its events in one transaction each, or 100 in one. Procrastinate and PgQueuer get a tenth of the events, as one job each, and run
100 jobs side by side. Wake latency is from the call that publishes to the handler, in the same process, on an idle flow; that of a
polled table is computed from its pause of 50 ms, and not measured. It cannot be less than two commits of one row: that which publishes,
and that which claims the run."""


class Table(NamedTuple):
    """The figures on one database, and how long commits of one row took, in milliseconds."""

    figures: list[Figures]
    commits: list[float]


def page(tables: dict[str, Table], events: int, rounds: int, load: tuple[float, float]) -> str:
    """The figures as a page."""
    introduction = INTRODUCTION.format(
        events=events, flows=FLOWS, machine=platform.machine(), cores=os.cpu_count(), python=platform.python_version(),
        before=load[0], after=load[1], rounds=rounds,
    )  # fmt: skip
    parts = ["# How fast flows are", introduction]
    for database, (figures, commits) in tables.items():
        rows = [_row(each) for each in figures]
        rows.append(["*wanted*", "50,000", "", f"{WANTED[database]:,}", "", "20,000", "", "5.0", "20.0"])
        parts.append(f"## {database}\n\n{table(HEADINGS, rows)}".rstrip())
        parts.append(
            "\n".join([*_compared(figures), _limits(figures[0], commits), _missed(database, figures[0])])
        )
    return "\n\n".join(parts) + "\n"


def _row(figures: Figures) -> list[str]:
    rates = (figures.published, figures.one_to_one, figures.batched)
    cells = [cell for each in rates for cell in _cells(each)]
    return [figures.name, *cells, f"{figures.wake_p50:.1f}", f"{figures.wake_p99:.1f}"]


def _cells(rate: Rate | None) -> tuple[str, str]:
    return ("–", "–") if rate is None else (f"{rate.per_second:,.0f}", f"{rate.cpu_us:,.0f}")


def _compared(figures: list[Figures]) -> list[str]:
    """Horae's figures as multiples of its peers'."""
    mine, *others = figures
    sentences = []
    for other in others:
        pairs = [
            (mine.published, other.published, "as many published"),
            (mine.one_to_one, other.one_to_one, "as many one by one"),
            (mine.batched, other.batched, "as many by hundreds"),
        ]
        ratios = [f"{a.per_second / b.per_second:.1f} times {words}" for a, b, words in pairs if a and b]
        sentences.append(f"Beside {other.name}: {', '.join(ratios)}.")
    return sentences


def _limits(mine: Figures, commits: list[float]) -> str:
    """The limits that the disk sets: a run of a flow follows another's commit, and a wake waits for two."""
    half, most = percentiles(commits)
    mean = sum(commits) / len(commits)
    return (
        f"A commit of one row alone took {half:.1f} ms (p50), {most:.1f} ms (p99) and {mean:.1f} ms on average in the same run. With that,"
        f" one flow cannot pass {100_000 / mean:,.0f} events/s by hundreds, and a wake takes at least {2 * half:.1f} ms;"
        f" the median wake took {mine.wake_p50 / half:.1f} such commits.\n{_by_cpu(mine)}"
    )


def _by_cpu(mine: Figures) -> str:
    """The rates that Horae's processor time would allow if nothing waited for the disk or for other programs."""
    rates = (("published", mine.published), ("one a run", mine.one_to_one), ("100 a run", mine.batched))
    found = [f"{1e6 / each.cpu_us:,.0f} {words}" for words, each in rates if each and each.cpu_us]
    return f"By the processor time of one core alone, Horae's rates would be {', '.join(found)}."


def _missed(database: str, mine: Figures) -> str:
    """Which of the figures that we want were not reached, and by how much."""
    rates = [
        (mine.published, 50_000, "published"), (mine.one_to_one, WANTED[database], "one a run"), (mine.batched, 20_000, "100 a run"),
    ]  # fmt: skip
    missed = [
        f"{words} ({each.per_second / wanted:.0%} of what is wanted)"
        for each, wanted, words in rates
        if each and each.per_second < wanted
    ]
    waits = [(mine.wake_p50, 5.0, "wake p50"), (mine.wake_p99, 20.0, "wake p99")]
    missed += [
        f"{words} ({found / wanted:.1f} times what is wanted)"
        for found, wanted, words in waits
        if found > wanted
    ]
    if not missed:
        return "All that is wanted was reached in this run."
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    why = f" About {load:.0f} programs shared {cores} cores." if load > cores + 1 else ""
    return f"Not reached in this run: {', '.join(missed)}.{why}"


def _server_cpu(databases: Databases) -> Callable[[], float]:
    """The processor time of the server and its children, ended or not, in seconds."""
    root, tick = databases.server_pid(), os.sysconf("SC_CLK_TCK")

    def used() -> float:
        total = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(entry.name) == root:
                    total += sum(map(int, fields[11:15]))  # with children that have ended
                elif int(fields[1]) == root:
                    total += sum(map(int, fields[11:13]))
        return total / tick

    return used


def _best(rounds: list[list[Figures]]) -> list[Figures]:
    """The best figures of each contestant: what else the machine did then disturbed them least."""
    return [reduce(better, each) for each in zip(*rounds, strict=True)]


def _sqlite(databases: Databases, events: int, wakes: int) -> tuple[list[Figures], list[float]]:
    with databases.fresh(SQLITE) as url, databases.fresh(SQLITE) as other, databases.fresh(SQLITE) as bare:
        figures = [
            asyncio.run(measure(Meter(), url, events, wakes)),
            polled_sqlite(Meter(), other.removeprefix("sqlite:///"), events, wakes),
        ]
        return figures, commits_sqlite(bare.removeprefix("sqlite:///"), wakes)


def _postgres(databases: Databases, events: int, wakes: int) -> tuple[list[Figures], list[float]]:
    contestants: list[tuple[Contestant, int]] = [
        (measure, events),
        (polled_postgres, events),
        (procrastinate, events // 10),
        (pgqueuer, events // 10),
    ]
    found = []
    for contestant, number in contestants:
        with databases.fresh(POSTGRES) as url:
            meter = Meter(_server_cpu(databases))
            found.append(asyncio.run(contestant(meter, url, number, wakes)))
    with databases.fresh(POSTGRES) as url:
        return found, asyncio.run(commits_postgres(url, wakes))


def main() -> None:
    options = parser("bench.flows", "How fast flows are, beside their peers.")
    options.add_argument("--quick", action="store_true", help="few events, to see that it runs")
    options.add_argument("--events", type=int, default=100_000, help="how many events are published")
    options.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    given = options.parse_args()
    events, wakes, rounds = (1000, 5, 1) if given.quick else (given.events, 500, given.rounds)
    load = os.getloadavg()[0]
    tables: dict[str, Table] = {}
    with Databases() as databases:
        for database, run in ((SQLITE, _sqlite), (POSTGRES, _postgres)):
            found = [run(databases, events, wakes) for _ in range(rounds)]
            commits = min((commits for _, commits in found), key=sum)
            tables[database] = Table(_best([figures for figures, _ in found]), commits)
    publish(page(tables, events, rounds, (load, os.getloadavg()[0])), given.write)


if __name__ == "__main__":
    main()

"""The tables of contestants: how a figure is headed, shown and compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench.herd.measure import Figures
from bench.page import compared, number, table

NOT_RECORDED = "not recorded"

# Each figure's heading, and the words for more and for less than Horae's.
HEADINGS: dict[str, tuple[str, str, str]] = {
    "register_rate": ("registered/s", "faster", "slower"),
    "first": ("first start, ms", "later", "sooner"),
    "last": ("last start, ms", "later", "sooner"),
    "median": ("p50, ms", "later", "sooner"),
    "p99": ("p99, ms", "later", "sooner"),
    "start_rate": ("starts/s", "faster", "slower"),
    "end_rate": ("ends/s", "faster", "slower"),
    "register_work": ("registering 1,000: CPU, ms", "more", "less"),
    "run_work": ("running 1,000: CPU, ms", "more", "less"),
    "memory": ("memory, MB", "more", "less"),
}


class Row(NamedTuple):
    labels: tuple[str, ...]
    figures: Figures
    ours: Figures | None
    """Horae's figures, to compare with."""


def figures_table(title: str, columns: Sequence[str], names: Iterable[str], rows: Iterable[Row]) -> str:
    """A row for each measurement: its labels, and the named figures."""
    names = tuple(names)
    cells = ((*labels, *(cell(name, figures, ours) for name in names)) for labels, figures, ours in rows)
    return table((title, *columns, *(HEADINGS[name][0] for name in names)), cells)


def cell(name: str, figures: Figures, ours: Figures | None) -> str:
    """A figure, and how it compares to Horae's. A start within the clock's own error compares to nothing."""
    _, more, less = HEADINGS[name]
    value: float | None = getattr(figures, name)
    if value is None:
        return NOT_RECORDED
    base: float | None = getattr(ours, name, None)
    if base is None or base <= 0 or value <= 0:
        return number(value)
    return compared(value, base, more, less)

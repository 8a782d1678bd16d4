"""Shared by all benchmarks: options, tables, percentiles, and writing the page."""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """The options of a benchmark. SIGTERM ends it in order from now on, or its PostgreSQL server would go on alone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    options.add_argument("--write", metavar="FILE", type=Path, help="write the page to a Markdown file")
    return options


def publish(page: str, file: Path | None) -> None:
    """Print a page, and write it to a file if one is named."""
    sys.stdout.write(page)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, "utf-8")


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], texts: int = 1) -> str:
    """A table; its first columns, as many as ``texts``, have texts, and the others have numbers."""
    rule = "|" + "---|" * texts + "---:|" * (len(headings) - texts)
    return "\n".join([_line(headings), rule, *map(_line, rows)]) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items) + "\n"


def number(value: float) -> str:
    """Three digits or so, whatever the size."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def factor(ratio: float) -> str:
    return f"{ratio:.{0 if ratio >= 10 else 1 if ratio >= 2 else 2}f}×"


def compared(value: float, base: float, more: str, less: str) -> str:
    """A figure, and by which factor it is more or less than another."""
    ratio = value / base
    return f"{number(value)} ({f'{factor(ratio)} {more}' if ratio >= 1 else f'{factor(1 / ratio)} {less}'})"


def percentile(ascending: Sequence[float], percent: int) -> float:
    """The value that so many of a hundred do not exceed; 0 if there are no values."""
    return ascending[min(len(ascending) * percent // 100, len(ascending) - 1)] if ascending else 0.0


def machine(*facts: str) -> str:
    """The machine that a page was measured on, and other facts about it."""
    information = Path("/proc/cpuinfo")
    text = information.read_text("utf-8") if information.exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    processor = model[1] if model else platform.machine()
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    return bullets((f"CPU: {processor}, {os.cpu_count()} cores visible", python, *facts))

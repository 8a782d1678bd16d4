"""Fire times as a table for people: local time, UTC, the gap to the one before, clock changes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from rich.console import Group
from rich.table import Table
from rich.text import Text

from horae.spec import TZDATA_VERSION, Spec
from horae.spec.clock_change import timeline


def fire_table(spec: Spec, since: datetime, times: list[datetime], ended: str | None) -> Group:
    """The table, the spec as a sentence above it, and why there are no more times below it."""
    zone = spec.elements.timezone
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#", justify="right", style="dim")
    table.add_column(f"local time ({zone})", no_wrap=True)
    table.add_column("UTC", no_wrap=True, style="dim")
    table.add_column("after", justify="right", no_wrap=True)
    table.add_column("clock change", style="yellow")
    previous = since
    for number, time in enumerate(times, start=1):
        offset = spec.zone.offset_at(int(time.timestamp()))
        local = time.astimezone(timezone(timedelta(seconds=offset)))
        table.add_row(
            str(number),
            f"{local:%a %Y-%m-%d %H:%M:%S} {offset_text(offset)}",
            f"{time:%Y-%m-%d %H:%M:%S}Z",
            gap_text(time - previous),
            _mark(spec, previous, time),
        )
        previous = time
    parts: list[Text | Table] = [Text(f"{spec.sentence()}.", style="bold")]
    if times:
        parts.append(table)
    if ended is not None:
        word = "No more times" if times else "Never"
        parts.append(Text(f"{word}: {ended}.", style="yellow"))
    parts.append(Text(f"after {since:%Y-%m-%d %H:%M:%S}Z, tzdata {TZDATA_VERSION}", style="dim"))
    return Group(*parts)


def offset_text(offset: int) -> str:
    """``+05:30``; with seconds where an old offset has them."""
    sign, rest = ("-" if offset < 0 else "+"), abs(offset)
    text = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}"
    return text + (f":{rest % 60:02}" if rest % 60 else "")


def gap_text(gap: timedelta) -> str:
    """A gap in its two largest units: ``3d 2h``, ``45m``, ``5m 7s``."""
    seconds = max(int(gap.total_seconds()), 0)
    parts = []
    for unit, name in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts[:2]) or "0s"


def _mark(spec: Spec, previous: datetime, time: datetime) -> str:
    """What the clocks did between two times, and which of two equal local times this is."""
    instant = int(time.timestamp())
    offset = spec.zone.offset_at(instant)
    moved = offset - spec.zone.offset_at(int(previous.timestamp()))
    marks = []
    if moved:
        word = "forward" if moved > 0 else "back"
        marks.append(f"clocks went {word} {gap_text(timedelta(seconds=abs(moved)))}")
    same = timeline(spec.elements.timezone).instants(instant + offset)
    if len(same) > 1:
        marks.append("first of two" if instant == same[0] else "second of two")
    return ", ".join(marks)

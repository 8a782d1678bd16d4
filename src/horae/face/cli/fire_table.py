"""Fire times as a table for people: local time, UTC, the gap to the one before, clock changes."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.cli.printing import gap_text, local, utc, with_end
from horae.face.cli.tables import table
from horae.spec import TZDATA_VERSION, Spec
from horae.spec.clock_notes import clock_note


def fire_table(spec: Spec, since: datetime, times: list[datetime], ended: str | None) -> RenderableType:
    """The table, the spec as a sentence above it, and why there are no more times below it."""
    zone = spec.elements.timezone
    rows = [
        (number, local(time, zone), utc(time), gap_text(time - previous), Text(clock_note(zone, previous, time), style="yellow"))
        for number, (previous, time) in enumerate(pairwise([since, *times]), start=1)
    ]  # fmt: skip
    found = table("#>", f"local time ({zone})", "UTC?", "after>?", "clock change~?", rows=rows)
    return Group(
        Text(f"{spec.sentence()}.", style="bold"), with_end(found, ended),
        Text(f"after {since:%Y-%m-%d %H:%M:%S}Z, tzdata {TZDATA_VERSION}", style="dim"),
    )  # fmt: skip

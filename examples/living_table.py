"""A living table of next fire times: the time engine at work in a terminal.

Run it with ``make run``; Ctrl-C ends it. Without a terminal it prints the table once.
"""

from __future__ import annotations

import contextlib
import time
from datetime import datetime, timedelta, timezone

from rich.console import Console
from rich.live import Live
from rich.table import Table

from horae import Spec
from horae.clock import SystemClock
from horae.face.table import gap_text, offset_text

SCHEDULES: list[tuple[str, Spec]] = [
    ("heartbeat", Spec.cron("*/15 * * * * *")),
    ("poll the inbox", Spec.parse({"intervals": [{"every": "90s"}]})),
    ("stand-up", Spec.cron("30 9 * * 1-5", timezone="America/New_York")),
    ("backup", Spec.cron("30 2 * * *", timezone="Europe/Berlin", gap="shift", fold="first")),
    ("payroll", Spec.cron("0 9 LW * *", timezone="Australia/Lord_Howe")),
    (
        "board meeting",
        Spec.parse({"rrules": ["FREQ=MONTHLY;BYDAY=2TU;BYHOUR=14"], "timezone": "Europe/London"}),
    ),
    (
        "report, not at New Year",
        Spec.parse(
            {
                "calendars": [{"hour": "7", "day_of_month": "1"}],
                "exclude": [{"calendar": "new-year"}],
                "timezone": "America/Santiago",
            },
            calendars={"new-year": {"dates": [f"{year}-01-01" for year in range(2026, 2036)]}},
        ),
    ),
    ("leap day", Spec.cron("0 0 29 2 *")),
]


def living_table(now: datetime) -> Table:
    table = Table(
        title=f"Horae, {now:%Y-%m-%d %H:%M:%S} UTC", caption="Ctrl-C ends this", box=None, padding=(0, 2)
    )
    for column in ("schedule", "says", "next, local", "in"):
        table.add_column(column, justify="right" if column == "in" else "left")
    for name, spec in SCHEDULES:
        found = spec.next_after(now)
        if found is None:
            table.add_row(name, spec.sentence(), "never", "")
            continue
        offset = spec.zone.offset_at(int(found.timestamp()))
        local = found.astimezone(timezone(timedelta(seconds=offset)))
        until = gap_text(found - now)
        style = "bold green" if found - now <= timedelta(seconds=3) else ""
        table.add_row(
            name, spec.sentence(), f"{local:%a %Y-%m-%d %H:%M:%S} {offset_text(offset)}", until, style=style
        )
    return table


def main() -> None:
    clock, console = SystemClock(), Console()
    if not console.is_terminal:
        Console(width=160).print(living_table(clock.now()))
        return
    with Live(living_table(clock.now()), console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(1 - clock.now().microsecond / 1_000_000)
            live.update(living_table(clock.now()), refresh=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()

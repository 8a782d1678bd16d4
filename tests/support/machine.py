"""Schedules on a virtual clock: the usual start, and an action that remembers its calls. The root conftest has the fixture."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from horae import Context
from horae.testing import TimeMachine

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


class Recorder:
    """An action that takes its time and remembers when it was called."""

    def __init__(self, machine: TimeMachine, seconds: float = 0, *, fails: int = 0) -> None:
        self.machine, self.seconds, self.fails = machine, seconds, fails
        self.called: list[tuple[datetime, datetime]] = []

    async def __call__(self, context: Context) -> str:
        self.called.append((context.nominal, self.machine.now))
        if self.seconds:
            await self.machine.sleep(seconds=self.seconds)
        if len(self.called) <= self.fails:
            raise RuntimeError(f"failure {len(self.called)}")
        return f"done {context.nominal:%H:%M}"

    @property
    def nominal(self) -> list[datetime]:
        return [nominal for nominal, _ in self.called]


async def accounted(machine: TimeMachine, schedule: str) -> int:
    """Runs and ranges together: how many automatic slots the ledger knows."""
    runs = [run for run in await machine.app.runs.list(schedule, 1000) if run.is_automatic]
    return len(runs) + sum(each.count for each in await machine.app.runs.unstarted_ranges(schedule, 1000))

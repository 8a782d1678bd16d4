"""The processes of a campaign: started, killed, stopped, watched."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from horae.clock import SystemClock
from tests.chaos.clock import ShiftedClock
from tests.chaos.evidence import Line
from tests.chaos.node import Settings
from tests.chaos.store import Database
from tests.support.process import ROOT, Process, environment, fork_server

DRIVER_NOISE = "ConnectionDoesNotExistError('connection was closed in the middle of operation')"
"""What asyncio logs of an answer that asyncpg does not wait for any more, when a connection is cut in the middle of a COPY."""

EXPECTED = (
    "failed: RuntimeError: this attempt was to fail", "failed: the process died", "The clock is",
    "The database cannot be reached",
)  # fmt: skip
"""What nodes log as errors because the campaign causes it: attempts that fail or die, clocks that are off, and a database that is away."""


def monotonic() -> int:
    """Milliseconds of the clock that nodes write their lines by."""
    return int(SystemClock().monotonic() * 1000)


class Nodes:
    """Three places, each with the process that has it at the moment."""

    def __init__(self, folder: Path, database: Database, number: int, config: dict[str, Any]) -> None:
        self._folder = folder
        self._database = database
        self._config = config
        self._generations = [0] * number
        self._processes: list[Process | None] = [None] * number
        self.clocks = [ShiftedClock(self._clock_file(place)) for place in range(number)]
        self.ended_by_itself: list[str] = []

    def _clock_file(self, place: int) -> Path:
        return self._folder / ("clock" if self._database.one_clock else f"clock-{place}")

    def name(self, place: int) -> str:
        """The name of the process that has a place."""
        return f"{place}.{self._generations[place]}"

    def start(self, place: int) -> None:
        self._generations[place] += 1
        name = self.name(place)
        settings = Settings(
            database=self._database.address(place), log=str(self._folder / f"log-{name}"),
            clock=str(self._clock_file(place)), config=self._config,
        )  # fmt: skip
        with (self._folder / f"errors-{name}").open("wb") as errors:
            self._processes[place] = fork_server().start(
                ["-m", "tests.chaos.node", msgspec.json.encode(settings).decode()], ROOT, environment(), errors=errors.fileno()
            )  # fmt: skip

    def _process(self, place: int) -> Process:
        process = self._processes[place]
        assert process is not None
        return process

    async def kill(self, place: int) -> None:
        process, self._processes[place] = self._process(place), None
        if process.poll() is not None:
            self._note_end(place, process)
        process.kill()
        await asyncio.to_thread(process.wait)

    def stop(self, place: int) -> None:
        self._process(place).send_signal(signal.SIGSTOP)

    def go_on(self, place: int) -> None:
        self._process(place).send_signal(signal.SIGCONT)

    def revive(self) -> None:
        """Start again what ended by itself, which should not happen."""
        for place, process in enumerate(self._processes):
            if process is not None and process.poll() is not None:
                self._note_end(place, process)
                self.start(place)

    def _note_end(self, place: int, process: Process) -> None:
        self.ended_by_itself.append(f"process {self.name(place)} ended by itself with {process.returncode}")

    async def end(self, patience: float) -> None:
        """Ask all to end; a process that cannot in time has not ended as asked."""
        self.revive()
        processes = [each for each in self._processes if each is not None]
        for process in processes:
            process.terminate()
        for place, process in enumerate(processes):
            try:
                code = await asyncio.to_thread(process.wait, patience)
            except subprocess.TimeoutExpired:
                self.ended_by_itself.append(f"process {self.name(place)} did not end when asked")
                process.kill()
                process.wait()
            else:
                if code != 0:
                    self._note_end(place, process)
        self._processes = [None] * len(self._processes)

    def kill_all(self) -> None:
        for process in self._processes:
            if process is not None:
                process.kill()
                process.wait()

    def lines(self) -> list[Line]:
        """What the actions of all processes wrote."""
        return [
            msgspec.structs.replace(msgspec.json.decode(line, type=Line), process=file.name[4:])
            for file in sorted(self._folder.glob("log-*"))
            for line in file.read_bytes().splitlines()
        ]

    def errors(self) -> list[str]:
        """The errors in the logs of nodes that their program did not expect, with where to read on."""
        found = []
        for file in sorted(self._folder.glob("errors-*")):
            lines = file.read_text(errors="replace").splitlines()
            found += [
                f"{file.name}: {line}"
                for line, following in pairwise([*lines, ""])
                if (" ERROR " in line or " CRITICAL " in line)
                and DRIVER_NOISE not in following
                and not any(each in line for each in EXPECTED)
            ]
        return found

"""Nodes as processes: they run ``program.py``, and write what they begin and end to one log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support import process
from tests.support.process import Process

PROGRAM = Path(__file__).parent / "program.py"


class Programs(process.Programs):
    """Processes of ``program.py``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PROGRAM)

    def start(
        self, seconds: float, database: str | None = None, schedules: int = 0, **config: Any
    ) -> Process:
        """A node whose actions take some seconds, which creates some schedules first."""
        arguments = [str(self.file), str(seconds), str(schedules), json.dumps(config)]
        return self.launch(database or self.database, *arguments)

    def log(self) -> list[list[str]]:
        """The lines of the log: key of the run, attempt or end, process."""
        return [line.split() for line in self.text().splitlines()]

    def lines(self) -> int:
        """How many lines the log has."""
        return self.text().count("\n")

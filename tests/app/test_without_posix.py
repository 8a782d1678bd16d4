"""A platform that has only what all have, as on Windows: no ``flock``, no process groups, few signals."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import end_leases
from tests.support.process import ROOT, environment, kill
from tests.support.wait import wait_for

WITHOUT_POSIX = [sys.executable, "-m", "tests.support.without_posix"]
IMPORT_ALL = """
import billiard, celery.result, distributed.worker  # they know which platform they are on
from tests.support.without_posix import hide_posix
hide_posix()
import importlib, pkgutil, horae
names = [each.name for each in pkgutil.walk_packages(horae.__path__, "horae.")]
names.remove("horae.__main__")  # it runs the command
for name in names:
    importlib.import_module(name)
print(len(names))
"""
COMMAND = "from horae.face.cli import main; main()"
HELD = re.compile(
    r'DatabaseHeldError: The node ".+" holds the database until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'
)


def quick_start(lease_ms: int) -> str:
    """The program of the README, every second, with another lease."""
    program = re.search(
        r"```python\n(# report.py\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert program is not None
    app = f"horae.App(config=horae.Config(lease_ms={lease_ms}, housekeeping_ms=300))"
    return program[1].replace("0 9 * * *", "* * * * * *").replace("horae.App()", app)


class Copies:
    """Copies of the quick start, as processes that share a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, lease_ms: int = 60_000) -> subprocess.Popen[bytes]:
        (self.folder / "report.py").write_text(quick_start(lease_ms))
        self._started.append(self._popen(len(self._started)))
        return self._started[-1]

    def _popen(self, number: int) -> subprocess.Popen[bytes]:
        with (self.folder / f"log {number}").open("wb") as log:
            return subprocess.Popen(
                [*WITHOUT_POSIX, "report.py"], cwd=self.folder, env=environment(), stdout=log, stderr=log
            )

    def log(self, process: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"log {self._started.index(process)}").read_text()

    def reports(self, process: subprocess.Popen[bytes]) -> int:
        return self.log(process).count("the report of today\n")

    def works(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a copy has run its schedule twice."""
        wait_for(lambda: self.reports(process) > 1 or process.poll() is not None)
        assert process.poll() is None, self.log(process)

    def is_refused(self, process: subprocess.Popen[bytes]) -> None:
        assert process.wait(60) == 1
        assert HELD.search(self.log(process)), self.log(process)

    def end_leases(self) -> None:
        asyncio.run(end_leases(f"sqlite:///{self.folder}/horae.db"))

    def close(self) -> None:
        kill(*self._started)


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Copies]:
    made = Copies(tmp_path)
    yield made
    made.close()


def test_every_module_can_be_imported():
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 300


def test_the_quick_start_runs_and_a_second_copy_is_refused(copies: Copies):
    first = copies.start()
    copies.works(first)
    second = copies.start()
    copies.is_refused(second)
    assert copies.reports(second) == 0
    first.send_signal(signal.SIGINT)
    assert first.wait(60) == 0
    copies.works(copies.start())  # at once: the first one gave the database up


def test_commands_work_beside_it(copies: Copies, tmp_path: Path):
    copies.works(copies.start())
    file = tmp_path / "command.py"
    file.write_text(COMMAND)

    def horae(*arguments: str) -> str:
        return subprocess.run(
            [*WITHOUT_POSIX, str(file), *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
        ).stdout  # fmt: skip

    assert "succeeded" in horae("schedules", "trigger", "report", "--wait")
    assert "alive" in horae("nodes")


def test_after_a_crash_the_next_copy_begins_when_the_lease_has_ended(copies: Copies):
    first = copies.start(lease_ms=2000)
    wait_for(lambda: copies.reports(first))
    kill(first)
    copies.works(copies.start())


def test_a_copy_that_stood_still_until_another_began_ends_and_runs_nothing(copies: Copies):
    first = copies.start()
    copies.works(first)
    first.send_signal(signal.SIGSTOP)
    before = copies.reports(first)
    copies.end_leases()
    second = copies.start()
    copies.works(second)
    first.send_signal(signal.SIGCONT)
    copies.is_refused(first)
    assert copies.reports(first) - before <= 1  # what it had claimed before
    copies.works(second)

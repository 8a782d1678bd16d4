"""Programs that keep time: real processes, which are killed, asked to end, and started again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from horae import App
from tests.support.process import environment, kill

BERLIN = """\
import horae
app = horae.App()
@app.schedule("0 9 * * *", timezone="Europe/Berlin", retries=3)
def report(): print("the report of today")
app.run()
"""

EVERY_SECOND = """\
import time, horae
app = horae.App(config=horae.Config(tick_ms=100))

@app.schedule("* * * * * *")
def report(context):
    print("begins", context.attempt, flush=True)
    time.sleep({seconds})
    print("done", flush=True)

app.run()
print("goodbye", flush=True)
"""


class Program:
    """A Python program in a process; what it says is read as it comes."""

    def __init__(self, folder: Path, text: str) -> None:
        (folder / "program.py").write_text(text)
        self.process = subprocess.Popen(
            [sys.executable, "program.py"], cwd=folder, env=environment(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said: list[str] = []
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip())

    def says(self, words: str) -> str:
        """Wait for a line with some words."""
        while True:
            try:
                line = self._lines.get(timeout=60)
            except Empty:
                raise AssertionError(f"it never said {words!r}, but {self.said}") from None
            self.said.append(line)
            if words in line:
                return line

    def ends(self) -> int:
        """Wait for its end; its exit status."""
        code = self.process.wait(60)
        self._reader.join(60)
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return code


Start = Callable[[str], Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def one(text: str) -> Program:
        started.append(Program(tmp_path, text))
        return started[-1]

    yield one
    kill(*(each.process for each in started))


async def stored(folder: Path) -> list[tuple[str, str, int]]:
    app = App(f"sqlite:///{folder}/horae.db")
    await app.open()
    try:
        return [(each.id, each.managed_by, each.version) for each in await app.schedules.list()]
    finally:
        await app.close()


def test_the_job_in_berlin_takes_six_lines_and_survives_kill_9(start: Start, tmp_path: Path):
    assert len(BERLIN.splitlines()) <= 6
    for _ in range(2):
        program = start(BERLIN)
        while not (found := asyncio.run(stored(tmp_path))):
            assert program.process.poll() is None
        assert found == [("report", "program:program", 1)]
        program.process.kill()
        program.process.wait()


def test_a_run_that_was_killed_is_attempted_again(start: Start):
    program = start(EVERY_SECOND.format(seconds=60))
    program.says("begins 1")
    program.process.kill()
    start(EVERY_SECOND.format(seconds=0)).says("begins 2")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_for_what_is_running_and_ends_without_a_traceback(start: Start, how: signal.Signals):
    program = start(EVERY_SECOND.format(seconds=3))
    program.says("begins 1")
    program.process.send_signal(how)
    program.says("ends when 1 running attempt(s) have")
    program.says("done")
    program.says("goodbye")
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)


def test_a_second_signal_ends_it_at_once(start: Start):
    program = start(EVERY_SECOND.format(seconds=60))
    program.says("begins 1")
    program.process.send_signal(signal.SIGINT)
    program.says("interrupt it again")
    program.process.send_signal(signal.SIGINT)
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)
    assert "goodbye" in program.said
    start(EVERY_SECOND.format(seconds=0)).says("begins 2")


async def test_run_says_what_to_call_inside_an_event_loop():
    with pytest.raises(TypeError, match=r"await app\.serve"):
        App(":memory:").run()

"""Programs that keep time: real processes, which are killed, asked to end, and started again."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from horae import App
from tests.support.pages import blocks_of
from tests.support.process import environment, fork_server, kill
from tests.support.wait import PATIENCE, wait_for

BERLIN = next(each.text for each in blocks_of("README.md") if each.kind == "python")

AT_ANOTHER_TIME = """\
import runpy, sys
from datetime import datetime
from horae.clock import SystemClock

now = SystemClock.now
away = datetime.fromisoformat(sys.argv[1]) - now(None)
SystemClock.now = lambda self: now(self) + away
runpy.run_path("report.py", run_name="__main__")
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

ASLEEP = """\
import asyncio, horae
app = horae.App(config=horae.Config(tick_ms=100, drain_ms={drain_ms}))

@app.schedule("* * * * * *")
async def report(context):
    print("begins", context.attempt, flush=True)
    await asyncio.sleep(60)

app.run()
print("goodbye", flush=True)
"""

INTERRUPTED_TWICE = """\
import os, signal
from horae.app import process_shutdown

exit_within = process_shutdown.exit_within

def exit_within_and_interrupt(seconds):
    process_shutdown.exit_within = exit_within
    os.kill(os.getpid(), signal.SIGTERM)
    return exit_within(seconds)

process_shutdown.exit_within = exit_within_and_interrupt
""" + EVERY_SECOND.format(seconds=60)


class Program:
    """A Python program in a process; what it says is read as it comes."""

    def __init__(self, folder: Path, text: str, *arguments: str) -> None:
        (folder / "program.py").write_text(text)
        self.process, self._written = fork_server().start_piped(
            ["program.py", *arguments], folder, environment()
        )
        self.said: list[str] = []
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._written as lines:
            for line in lines:
                self._lines.put(line.rstrip())

    def says(self, words: str) -> str:
        """Wait for a line with some words."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"it never said {words!r}, but {self.said}") from None
            self.said.append(line)
            if words in line:
                return line

    def ends(self) -> int:
        """Wait for its end; its exit status."""
        code = self.process.wait(PATIENCE)
        self._reader.join(60)
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return code


Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def one(text: str, *arguments: str) -> Program:
        started.append(Program(tmp_path, text, *arguments))
        return started[-1]

    yield one
    kill(*(each.process for each in started))


async def ledger(folder: Path) -> tuple[dict[str, str], list[tuple[str, int, str]]]:
    """What became of the slots of the report: those that ran, and the ranges of those that did not."""
    app = App(f"sqlite:///{folder}/horae.db")
    await app.open()
    try:
        runs = {f"{run.nominal:%a %H:%M}": str(run.status) for run in await app.runs.list("report")}
        ranges = await app.runs.unstarted_ranges("report")
        return runs, [(str(each.status), each.count, str(each.reason)) for each in ranges]
    finally:
        await app.close()


def test_the_job_of_the_readme_survives_kill_9_with_only_its_clock_set_by_the_test(
    start: Start, tmp_path: Path
):
    lines = [line for line in BERLIN.splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 6
    (tmp_path / "report.py").write_text(BERLIN)
    program = start(AT_ANOTHER_TIME, "2026-11-16T08:59:58+01:00")
    program.says("the report of today")
    wait_for(lambda: asyncio.run(ledger(tmp_path)) == ({"Mon 08:00": "succeeded"}, []))
    program.process.kill()
    program.process.wait()
    again = start(AT_ANOTHER_TIME, "2026-11-19T12:00:00+01:00")  # down for three mornings
    again.says("the report of today")
    made_up = {"Mon 08:00": "succeeded", "Thu 08:00": "succeeded"}
    wait_for(lambda: asyncio.run(ledger(tmp_path)) == (made_up, [("missed", 2, "superseded")]))
    again.process.send_signal(signal.SIGTERM)
    assert again.ends() == 0
    told = 'Horae keeps 1 schedule in sqlite:///horae.db; next is "report", now'
    assert again.said == [told, "the report of today"]


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
    program.says("ends when 1 attempt has ended (report), or after 30s; interrupt it again to end now")
    program.says("done")
    program.says("goodbye")
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)


def test_what_is_not_done_when_the_time_to_drain_is_over_is_attempted_again(start: Start):
    program = start(ASLEEP.format(drain_ms=300))
    program.says("begins 1")
    program.process.send_signal(signal.SIGTERM)
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)
    assert program.said[-1] == "goodbye"
    start(ASLEEP.format(drain_ms=0)).says("begins 2")


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


def test_two_signals_that_arrive_at_once_are_both_heard(start: Start):
    """The second arrives before the program has done anything about the first."""
    program = start(EVERY_SECOND.format(seconds=60))
    program.says("begins 1")
    program.process.send_signal(signal.SIGSTOP)
    program.process.send_signal(signal.SIGTERM)
    program.process.send_signal(signal.SIGINT)
    program.process.send_signal(signal.SIGCONT)
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)
    assert "done" not in program.said
    assert "goodbye" in program.said
    start(EVERY_SECOND.format(seconds=0)).says("begins 2")


def test_a_second_signal_while_the_first_is_being_handled_is_heard(start: Start):
    """It comes inside the handler of the first: a program may be interrupted at any instruction."""
    program = start(INTERRUPTED_TWICE)
    program.says("begins 1")
    program.process.send_signal(signal.SIGTERM)
    assert program.ends() == 0
    assert "Traceback" not in "".join(program.said)
    assert "done" not in program.said
    assert "goodbye" in program.said


async def test_run_says_what_to_call_inside_an_event_loop():
    with pytest.raises(TypeError, match=r"await app\.serve"):
        App(":memory:").run()

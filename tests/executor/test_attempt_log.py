"""The log of an attempt in memory: the first lines and the last are kept, whatever is written when, and whatever fails."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.executor.attempt_log import (
    MAX_MESSAGE_LENGTH,
    AttemptLog,
    AttemptLogger,
    LogBounds,
    capture_standard_logging,
    collect_in,
)
from horae.model import AUTOMATIC, LogBatch, LogEntry, Overlap, Run, ScheduleKey, Status

RUN = Run(
    id="r", schedule_key=ScheduleKey("s"), generation=1, nominal_ms=0, origin=AUTOMATIC, overlap=Overlap.SKIP, status=Status.RUNNING, fire_ms=0,
    start_at_ms=0, action="work", attempt=2, epoch=7,
)  # fmt: skip


class Rows:
    """A log, and the table that it is written to."""

    def __init__(self, lines: int = 1000, size: int = 100_000) -> None:
        self.noticed = 0
        self.chunks: dict[int, tuple[LogEntry, ...]] = {}
        self.log = AttemptLog(RUN, LogBounds(lines, size), lambda: 5, self._notice)

    def _notice(self, log: AttemptLog) -> None:
        self.noticed += 1

    def write(self, batch: LogBatch | None) -> None:
        if batch is not None:
            assert (batch.run_id, batch.epoch, batch.attempt) == ("r", 7, 2)
            for chunk in batch.chunks:
                self.chunks.setdefault(chunk.number, chunk.lines)
            for number in batch.dropped:
                self.chunks.pop(number, None)

    @property
    def lines(self) -> dict[int, str]:
        """The message of each line that is stored, by its number."""
        return {
            number: entry.message
            for first, entries in sorted(self.chunks.items())
            for number, entry in enumerate(entries, start=first)
        }


def test_the_first_and_the_last_lines_are_kept():
    rows = Rows(lines=10)
    for number in range(1, 1001):
        rows.log.add("INFO", "jobs", f"line {number}")
    rows.write(rows.log.close())
    rows.log.add("INFO", "jobs", "too late")
    assert rows.log.take() is None
    assert list(rows.lines) == [*range(1, 6), *range(996, 1001)]
    assert rows.lines[996] == "line 996"
    assert rows.noticed == 1


def test_it_is_noticed_again_after_it_was_taken():
    rows = Rows()
    for _ in range(3):
        rows.log.add("INFO", "jobs", "one")
        rows.log.add("INFO", "jobs", "two")
        rows.log.take()
    assert rows.noticed == 3


STEPS = st.lists(
    st.one_of(
        st.integers(0, 250), st.sampled_from(["written", "failed", "written, and the answer was lost"])
    ),
    max_size=40,
)


@given(steps=STEPS, lines=st.integers(1, 400), size=st.integers(1000, 20_000))
def test_whatever_is_written_when_what_is_stored_is_the_beginning_and_the_end(
    steps: list[int | str], lines: int, size: int
):
    """A number is so many lines at once."""
    rows, said = Rows(lines, size), 0
    for step in steps:
        if isinstance(step, int):
            for _ in range(step):
                said += 1
                rows.log.add("INFO", "", f"{said}" + "x" * (step // 4))
            continue
        batch = rows.log.take()
        if step != "failed":
            rows.write(batch)
        if step == "written" and batch is not None:
            rows.log.written(batch)
    rows.write(rows.log.close())
    kept = rows.lines
    assert len(kept) <= lines
    assert sum(len(text) for text in kept.values()) <= size
    gaps = [number for number in kept if number > 1 and number - 1 not in kept]
    assert len(gaps) <= 1  # one part is missing at most
    for number, text in kept.items():
        assert text.rstrip("x") == str(number)
    if said <= lines // 2 and said * 70 <= size // 2:
        assert list(kept) == list(range(1, said + 1))


def test_threads_lose_no_line():
    rows = Rows(lines=10_000, size=10**7)

    def work(name: str) -> None:
        for number in range(500):
            rows.log.add("INFO", name, str(number))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (batch := rows.log.take()) is not None:
            rows.write(batch)
            rows.log.written(batch)
    rows.write(rows.log.close())
    entries = [entry for _, chunk in sorted(rows.chunks.items()) for entry in chunk]
    for name in "abcd":
        assert [entry.message for entry in entries if entry.logger == name] == [
            str(each) for each in range(500)
        ]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("message", "arguments", "kept"),
    [
        ("%s of %d", ("one", 2), "one of 2"),
        ("%d", ("no number",), "str that cannot be shown"),
        (Unspeakable(), (), "Unspeakable that cannot be shown"),
        ("NUL \x00 and \ud800", (), "NUL \\x00 and \\ud800"),
        ("x" * 100_000, (), "x" * MAX_MESSAGE_LENGTH + "…"),
        ("to https://me:hunter2@example.com with Bearer abc", (), "to https://***@example.com with Bearer ***"),
    ],
    ids=["arguments", "wrong arguments", "unspeakable", "no text", "long", "credentials"],
)  # fmt: skip
def test_what_is_logged_is_always_a_line(message: Any, arguments: tuple[Any, ...], kept: str):
    rows = Rows()
    AttemptLogger(RUN, rows.log).info(message, *arguments)
    rows.write(rows.log.close())
    (entry,) = rows.chunks[1]
    assert (entry.level, entry.logger, entry.message) == ("INFO", "work", kept)


def test_an_exception_is_logged_with_its_traceback():
    rows = Rows()
    try:
        raise ValueError("no")
    except ValueError:
        AttemptLogger(RUN, rows.log).exception("it failed")
    rows.write(rows.log.close())
    text = rows.lines[1]
    assert text.startswith("it failed\nTraceback (most recent call last):\n")
    assert text.endswith("ValueError: no")


def test_context_log_is_a_standard_logger(caplog: pytest.LogCaptureFixture):
    """All is kept; what is passed on follows the levels of the program."""
    rows = Rows()
    log = AttemptLogger(RUN, rows.log)
    log.debug("a detail")
    log.warning("careful", extra={"colour": "red"})
    with caplog.at_level(logging.DEBUG, "horae.actions"):
        log.debug("another")
    rows.write(rows.log.close())
    assert list(rows.lines.values()) == ["a detail", "careful", "another"]
    careful, another = caplog.records
    assert (careful.name, careful.funcName) == ("horae.actions.work", "test_context_log_is_a_standard_logger")
    assert careful.__dict__.items() >= {"schedule": "s", "run": "r", "attempt": 2, "colour": "red"}.items()
    assert another.getMessage() == "another"


def test_a_program_that_makes_records_itself_keeps_doing_so(monkeypatch: pytest.MonkeyPatch):
    class Record(logging.LogRecord):
        pass

    rows = Rows()
    monkeypatch.setattr(logging, "_logRecordFactory", Record)
    capture_standard_logging()
    capture_standard_logging()  # the second time it does nothing
    collect_in(rows.log)
    try:
        logging.getLogger("jobs").warning("seen once")
        logging.getLogger("jobs").info("below its level")
        logging.getLogger("horae").warning("of the node")
        assert isinstance(logging.makeLogRecord({}), Record)
    finally:
        collect_in(None)
    rows.write(rows.log.close())
    assert rows.lines == {1: "seen once"}

"""The log of an attempt: the bounded lines of its action, collected for a worker to write in batches.

Lines come from ``context.log``, and from the standard ``logging`` module: every record that is created in the context of an
attempt (its coroutine, the tasks that it starts, its thread) is one of its lines.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from horae.executor.stored_output import Secrets, secrets_in, storable, without, without_credentials
from horae.executor.tracebacks import traceback_text
from horae.model import LogBatch, LogChunk, LogEntry, Run

MAX_MESSAGE_LENGTH = 8 * 1024
"""Characters of one message, with its traceback."""
MAX_NAME_LENGTH = 100
CHUNK_LINES = 100
CHUNK_BYTES = 16 * 1024
"""A chunk, which is a row in the database, ends with the line that reaches one of these."""
OWN_LOGGER = "horae"
"""Records of this logger are for the operator, and no lines of any attempt."""

_current: ContextVar[AttemptLog | None] = ContextVar("horae_attempt_log", default=None)
_NO_SECRETS = Secrets()
_lock = threading.Lock()  # of all logs: it is held for moments


class LogBounds(NamedTuple):
    """How much of an attempt's log is kept: one half for its first lines, the other for its last."""

    lines: int
    bytes: int


class _Line(NamedTuple):
    number: int
    size: int
    entry: LogEntry


class AttemptLog:
    """The lines of one attempt, from any thread. Without lines it costs next to nothing."""

    __slots__ = ("_bounds", "_closed", "_flow", "_kept", "_noticed", "_now", "_on_line", "_run", "_secrets")

    def __init__(
        self,
        run: Run,
        bounds: LogBounds,
        now: Callable[[], int],
        on_line: Callable[[AttemptLog], None],
        *,
        flow: bool = False,
    ) -> None:
        """Begin an empty log. ``on_line`` is called, in any thread, when there is something new to write."""
        self._run = run
        self._flow = flow
        self._bounds = bounds
        self._now = now
        self._on_line = on_line
        self._kept: _KeptLines | None = None
        self._secrets = _NO_SECRETS
        self._noticed = False
        self._closed = False

    def hide(self, secret: str) -> None:
        """Replace a text in all lines that follow."""
        self._secrets = secrets_in([*(each.decode() for each in self._secrets), secret])

    @property
    def hides(self) -> bool:
        """Whether there is a text to replace."""
        return bool(self._secrets)

    def clean(self, text: str) -> str:
        """A text with the hidden texts replaced."""
        if not self._secrets:
            return text
        return without(text.encode("utf-8", "backslashreplace"), self._secrets).decode()

    def add(self, level: str, logger: str, message: str) -> None:
        """Add a line."""
        text = self.clean(without_credentials(storable(message)))
        # One half of the log has half of the bytes, and a character has up to 4.
        most = min(MAX_MESSAGE_LENGTH, self._bounds.bytes // 8)
        if len(text) > most:
            text = f"{text[:most]}…"
        entry = LogEntry(self._now(), level, storable(logger)[:MAX_NAME_LENGTH], text)
        with _lock:
            if self._closed:
                return
            if self._kept is None:
                self._kept = _KeptLines(self._run, self._bounds, flow=self._flow)
            self._kept.add(entry)
            is_first, self._noticed = not self._noticed, True
        if is_first:
            self._on_line(self)

    def take(self) -> LogBatch | None:
        """The batch to write now; it includes what was taken before, unless :meth:`written` confirmed it."""
        if self._kept is None or self._closed:
            return None
        with _lock:
            self._noticed = False
            return self._kept.take()

    def written(self, batch: LogBatch) -> None:
        """Confirm that a batch is durable."""
        if self._kept is not None:
            with _lock:
                self._kept.written(batch)

    def close(self) -> LogBatch | None:
        """End the log with the attempt and return what is not confirmed. Later lines are ignored."""
        if self._kept is None:
            self._closed = True
            return None
        with _lock:
            self._closed = True
            return self._kept.take()


class _KeptLines:
    """Lines within bounds: when there are too many, those between the first and the last are dropped.

    Lines are numbered, so that a gap says how many were dropped. Of what was taken before, whole chunks are dropped.
    """

    def __init__(self, run: Run, bounds: LogBounds, *, flow: bool) -> None:
        self._run = run
        self._flow = flow
        self._head_lines, self._head_bytes = bounds.lines // 2, bounds.bytes // 2  # the room that is left
        self._tail_lines, self._tail_bytes = bounds.lines - self._head_lines, bounds.bytes - self._head_bytes
        self._next = 1
        self._head: list[_Line] = []
        self._tail: deque[_Line] = deque()
        self._tail_chunks: deque[tuple[int, int, int]] = deque()  # number, lines and bytes of each
        self._unwritten: dict[int, LogChunk] = {}  # by number; a retry writes the same chunks
        self._dropped: list[int] = []  # numbers of chunks that are to be deleted

    def add(self, entry: LogEntry) -> None:
        size = len(entry.message.encode()) + len(entry.logger)
        line = _Line(self._next, size, entry)
        self._next += 1
        if self._head_lines > 0 and size <= self._head_bytes:
            self._head.append(line)
            self._head_lines -= 1
            self._head_bytes -= size
            return
        self._head_lines = 0
        self._tail.append(line)
        self._tail_lines -= 1
        self._tail_bytes -= size
        self._make_room()

    def _make_room(self) -> None:
        """Drop the oldest lines of the tail: those that were taken before, by chunks, then the others."""
        while self._tail_lines < 0 or self._tail_bytes < 0:
            if self._tail_chunks:
                number, lines, size = self._tail_chunks.popleft()
                self._unwritten.pop(number, None)
                self._dropped.append(number)  # a write of it may be under way
            else:
                lines, size = 1, self._tail.popleft().size
            self._tail_lines += lines
            self._tail_bytes += size

    def take(self) -> LogBatch | None:
        for lines in _chunks(self._head):
            self._make_chunk(lines)
        for lines in _chunks(self._tail):
            self._make_chunk(lines)
            self._tail_chunks.append((lines[0].number, len(lines), sum(line.size for line in lines)))
        self._head.clear()
        self._tail.clear()
        if not self._unwritten and not self._dropped:
            return None
        run = self._run
        return LogBatch(
            run_id=run.id, epoch=run.epoch, attempt=run.attempt,
            chunks=tuple(self._unwritten.values()), dropped=tuple(self._dropped), flow=self._flow,
        )  # fmt: skip

    def _make_chunk(self, lines: list[_Line]) -> None:
        number, run = lines[0].number, self._run
        self._unwritten[number] = LogChunk(
            run_id=run.id, attempt=run.attempt, number=number, lines=tuple(line.entry for line in lines)
        )

    def written(self, batch: LogBatch) -> None:
        for chunk in batch.chunks:
            self._unwritten.pop(chunk.number, None)
        self._dropped = [number for number in self._dropped if number not in batch.dropped]


def _chunks(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Consecutive lines in parts of the size of a chunk."""
    part: list[_Line] = []
    size = 0
    for line in lines:
        part.append(line)
        size += line.size
        if len(part) == CHUNK_LINES or size >= CHUNK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


class AttemptLogger(logging.Logger):
    """``context.log``: keeps records of any level with the attempt, and passes them on to ``horae.actions``."""

    def __init__(self, run: Run, kept: AttemptLog | None, *, flow: str = "", handler: str = "") -> None:
        """The logger of an attempt of a schedule's run, or of a handler of a flow."""
        self._action = handler or run.action
        super().__init__(f"horae.actions.{self._action}")
        self.parent = logging.getLogger("horae.actions")
        whose = {"flow": flow} if flow else {"schedule": run.schedule_id}
        self._about = {**whose, "run": run.id, "attempt": run.attempt}
        self._kept = kept

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name of the standard library
        """Whether a record of a level is kept or passed on."""
        return self._kept is not None or logging.getLogger("horae.actions").isEnabledFor(level)

    def makeRecord(self, *args: Any, **more: Any) -> logging.LogRecord:  # noqa: ANN401, N802 - as the standard library has it
        """Make a record that names the run; :meth:`callHandlers` keeps it, in whatever context this is called."""
        before = _current.set(None)
        try:
            record = super().makeRecord(*args, **more)
        finally:
            _current.reset(before)
        for name, value in self._about.items():
            record.__dict__.setdefault(name, value)
        return record

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of the standard library
        """Keep a record, and pass it on if its level is enabled."""
        if self._kept is not None:
            _add_record(self._kept, record, self._action)
        passed_on = logging.getLogger("horae.actions")
        if passed_on.isEnabledFor(record.levelno):
            passed_on.handle(record)


def collect_in(log: AttemptLog | None) -> None:
    """From now on, add what is logged in the current context to the log of an attempt."""
    _current.set(log)


def capture_standard_logging() -> None:
    """Make every record of the standard library a line of the attempt in whose context it is created.

    A handler would not do: a program that sets up logging replaces handlers, and one without any would lose Python's last resort.
    """
    make = logging.getLogRecordFactory()
    if getattr(make, "adds_to_attempts", False):
        return

    def make_and_add(*args: Any, **more: Any) -> logging.LogRecord:  # noqa: ANN401 - as the standard library has it
        record = make(*args, **more)
        log = _current.get()
        if log is not None and log.hides:  # also from the log of the process
            record.msg, record.args, record.exc_info = log.clean(_text(record)), (), None
        if log is not None and record.name not in {OWN_LOGGER, None}:
            _add_record(log, record, record.name)
        return record

    make_and_add.adds_to_attempts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_and_add)


def _add_record(log: AttemptLog, record: logging.LogRecord, name: str) -> None:
    try:
        log.add(record.levelname, name, _text(record))
    except Exception:  # a record that cannot be shown must not end the action that logs it
        log.add(record.levelname, name, f"{type(record.msg).__name__} that cannot be shown")


def _text(record: logging.LogRecord) -> str:
    text = record.getMessage()
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        text = f"{text}\n{traceback_text(error) or f'{type(error).__name__}: {error}'}".rstrip()
    return f"{text}\n{record.stack_info}" if record.stack_info else text

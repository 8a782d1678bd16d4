"""The log of the service: lines for people or as JSON, of everything that the process logs, and never a secret.

Headers and bodies are never logged. Values whose names sound like a secret are masked, and so is text that looks like one.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, TextIO

import msgspec
import structlog
from structlog.dev import (
    BRIGHT,
    CYAN,
    DIM,
    RESET_ALL,
    Column,
    KeyValueColumnFormatter,
    LogLevelColumnFormatter,
)
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from horae.config import Config
from horae.executor.stored_output import without_credentials

MASK = "***"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
CHATTY = ("uvicorn", "httpx", "httpcore", "urllib3", "asyncio")
"""Loggers whose records do not help an operator, or contain addresses with queries, which may contain secrets."""

_FIELDS = (
    "schedule", "slot", "run", "status", "reason", "sentence", "attempt", "action", "follows", "attention",
)  # fmt: skip
"""The attributes of Horae's own records that describe a run or a schedule."""
_SHOWN_BY_STATUS = {"decision", "ended"}
_SECRET_NAME = re.compile(
    r"authorization|cookie|credential|headers|jwt|passw|private|secret|token", re.IGNORECASE
)
_log = logging.getLogger("horae")


class _Handler(logging.StreamHandler[TextIO]):
    """Writes nothing while Python shuts down: what formats a line may be gone by then."""

    def emit(self, record: logging.LogRecord, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_over():
            super().emit(record)


class Log:
    """The log of a service, on standard error; it includes what the program logs with the standard library."""

    def __init__(self, config: Config, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._level = LEVELS[config.log_level]
        # Always with microseconds, so that columns align.
        self._stamp = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True)
        self._renderer = _as_json if config.log_format == "json" else _for_people(self._stream)
        before: list[Processor] = [
            structlog.processors.add_log_level,
            self._stamp,
            structlog.processors.format_exc_info,
            mask_secrets,
        ]
        self.line: FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(self._stream),
            processors=[*before, self._renderer],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
            context_class=dict,
        ).bind()
        """The logger for single lines."""
        self._handler = _Handler(self._stream)
        self._handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[structlog.stdlib.ExtraAdder(_FIELDS), _as_own, *before],
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, self._renderer],
            )
        )
        self.collect()

    def collect(self) -> None:
        """Write the records of all loggers of the process. Call it again after importing modules: some set up logging."""
        root = logging.getLogger()
        root.handlers = [self._handler]
        root.setLevel(self._level)
        for logger in list(logging.Logger.manager.loggerDict.values()):
            if isinstance(logger, logging.Logger) and any(_is_to_terminal(each) for each in logger.handlers):
                logger.handlers = [each for each in logger.handlers if not _is_to_terminal(each)]
                logger.propagate = True
        for name in CHATTY:
            logging.getLogger(name).setLevel(
                logging.DEBUG if self._level == logging.DEBUG else max(self._level, logging.WARNING)
            )
        logging.getLogger("uvicorn.access").disabled = True

    def take_over(self) -> None:
        """Write also the warnings and uncaught exceptions that Python would write to standard error."""
        logging.captureWarnings(capture=True)
        sys.excepthook = _log_uncaught
        sys.unraisablehook = lambda each: _log_uncaught(
            each.exc_type, each.exc_value or each.exc_type(), each.exc_traceback
        )
        threading.excepthook = lambda each: _log_uncaught(
            each.exc_type, each.exc_value or each.exc_type(), each.exc_traceback
        )

    def writes(self, level: int) -> bool:
        """Whether lines of a level are written."""
        return level >= self._level

    def lines(self, events: list[tuple[str, EventDict]]) -> None:
        """Write several lines with the same time, each with its level, in one write."""
        if not events:
            return
        stamp = self._stamp(None, "", {})
        texts = [
            str(self._renderer(None, level, mask_secrets(None, level, {**event, "level": level, **stamp})))
            for level, event in events
        ]
        self._stream.write("\n".join(texts) + "\n")
        self._stream.flush()


def _is_to_terminal(handler: logging.Handler) -> bool:
    return isinstance(handler, logging.StreamHandler) and handler.stream in {sys.stdout, sys.stderr}


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    _log.error("an exception was not caught: %s", kind.__name__, exc_info=(kind, error, trace))


def _as_own(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - as it is called
    """Give a failed attempt, and a schedule that needs attention, the names and fields of other lines; name others' loggers."""
    if "attention" in event:
        sentence = event.pop("attention")
        return {**event, "event": "attention", "sentence": sentence}
    if "follows" in event:
        return {**event, "event": "ended"}
    name = event["_record"].name
    return event if name.partition(".")[0] == "horae" else {**event, "logger": name}


# For programs

_encoder = msgspec.json.Encoder(enc_hook=str)


def _as_json(logger: WrappedLogger, method: str, event: EventDict) -> str:  # noqa: ARG001 - as it is called
    return _encoder.encode(event).decode()


# For people


def _for_people(stream: TextIO) -> Processor:
    """A line in columns: time, level, schedule, status, message, sentence, and the rest by name; then a traceback."""
    coloured = stream.isatty() and not os.environ.get("NO_COLOR")
    bright, dim, cyan, reset = (BRIGHT, DIM, CYAN, RESET_ALL) if coloured else ("", "", "", "")

    def column(style: str, width: int = 0) -> KeyValueColumnFormatter:
        return KeyValueColumnFormatter(None, style, reset, str, width)

    levels = structlog.dev.ConsoleRenderer.get_default_level_styles(coloured)
    render = structlog.dev.ConsoleRenderer(
        columns=[
            Column("timestamp", column(dim)),
            Column("level", LogLevelColumnFormatter(levels, reset)),
            Column("logger", column(dim)),
            Column("schedule", column(bright, 20)),
            Column("status", column("", 10)),
            Column("event", column(bright)),
            Column("sentence", column("", 40)),
            Column("", KeyValueColumnFormatter(cyan, "", reset, str)),
        ],
        exception_formatter=structlog.dev.plain_traceback,  # the other one would show the values of variables
        sort_keys=False,
    )  # fmt: skip

    def shown(logger: WrappedLogger, method: str, event: EventDict) -> str:
        texts = {name: _printable(name, value) for name, value in event.items()}
        if "status" in texts and texts["event"] in _SHOWN_BY_STATUS:
            del texts["event"]
        return str(render(logger, method, texts))

    return shown


def _printable(name: str, value: object) -> str:
    """A value as text in one line that does not move the cursor; only a traceback or a message may have several lines."""
    kept = "\n\t" if name in {"exception", "event", "stack"} else ""
    text = str(value).rstrip("\n")
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in kept
        else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


# Secrets


def mask_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - as it is called
    """Mask the secrets in a line."""
    for name, value in event.items():
        event[name] = _masked(name, value)
    return event


def _masked(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever is logged
    if _is_secret(name) and value:
        return MASK
    if type(value) is str:
        return without_credentials(value)
    if isinstance(value, Mapping):
        return {key: _masked(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", each) for each in value]
    return value


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None

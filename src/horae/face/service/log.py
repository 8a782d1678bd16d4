"""The log of the service: a line for each decision, for people or as JSON, and never a secret.

Headers and bodies are never logged. Values whose names sound like a secret are masked, and so is text that looks like one.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from horae.app.views import sentence_of
from horae.config import Config
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Decision, Observer
from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import (
    OPEN,
    WAITING,
    AttemptResult,
    Outcome,
    Run,
    Schedule,
    Status,
    UnstartedRange,
)

MASK = "***"

_SECRET_NAME = re.compile(
    r"authorization|cookie|credential|headers|jwt|passw|private|secret|token", re.IGNORECASE
)
_SECRET_TEXT = re.compile(r"(?<=earer )\S+|\beyJ[\w-]+\.[\w.-]+|(?<=://)[^/\s@]+(?=@)")
_TROUBLE = {Status.FAILED, Status.TIMED_OUT, Status.DROPPED}
_SENTENCES = {
    "due": "its time came",
    "trigger": "a caller asked for it",
    "backfill": "a backfill makes it up",
    "again": "it is attempted again",
    "waiting": "it waits for its turn",
}


class Log:
    """The log of a service, on standard error; it includes what the program logs with the standard library."""

    def __init__(self, config: Config, stream: TextIO | None = None, level: int = logging.INFO) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        self._renderer = _renderer(config, self._stream)
        before: list[Processor] = [
            structlog.processors.add_log_level,
            self._stamp,
            structlog.processors.format_exc_info,
            mask_secrets,
        ]
        self.line: FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(self._stream),
            processors=[*before, self._renderer],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            context_class=dict,
        ).bind()
        """The logger for single lines."""
        self._route(before, level)

    def _route(self, before: list[Processor], level: int) -> None:
        """Route records of the standard library's loggers to this log."""
        handler = logging.StreamHandler(self._stream)
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=before,
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, self._renderer],
            )
        )
        for name in ("horae", "uvicorn"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [handler], False
            logger.setLevel(level)
        below = logging.getLogger("uvicorn.error")
        below.handlers, below.propagate = [], True
        logging.getLogger(
            "uvicorn.access"
        ).disabled = True  # addresses contain queries, which may contain secrets

    def tells(self, level: int) -> bool:
        """Whether lines of a level are written."""
        return self.line.is_enabled_for(level)

    def lines(self, events: list[tuple[str, EventDict]]) -> None:
        """Write several lines with the same time, each with its level, in one write."""
        if not events:
            return
        stamp = self._stamp(None, "", {})
        made = [
            str(self._renderer(None, level, mask_secrets(None, level, {**event, "level": level, **stamp})))
            for level, event in events
        ]
        self._stream.write("\n".join(made) + "\n")
        self._stream.flush()


def _renderer(config: Config, stream: TextIO) -> Processor:
    if config.log_format == "json":
        return structlog.processors.JSONRenderer(serializer=_as_json)
    # The default formatter of exceptions would show the values of variables too.
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty(),
        exception_formatter=structlog.dev.plain_traceback,
        pad_event_to=0,
        sort_keys=False,
    )


_encoder = msgspec.json.Encoder(enc_hook=str)


def _as_json(event: Any, **_: Any) -> str:  # noqa: ANN401 - whatever is logged
    return _encoder.encode(event).decode()


def mask_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:  # noqa: ARG001 - as it is called
    """Mask the secrets in a line."""
    for name, value in event.items():
        event[name] = _masked(name, value)
    return event


def _masked(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever is logged
    if _is_secret(name) and value:
        return MASK
    if type(value) is str:
        return (
            _SECRET_TEXT.sub(MASK, value) if "earer " in value or "eyJ" in value or "://" in value else value
        )
    if isinstance(value, Mapping):
        return {key: _masked(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", each) for each in value]
    return value


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


class LogObserver(Observer):
    """Writes each decision as a line: which schedule, which slot, what, and why.

    A run is logged when it is decided; its launch, and its end if it succeeds, only at the level ``debug``.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tells = log.tells(logging.INFO)
        self._tells_all = log.tells(logging.DEBUG)
        self._away = False

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
        if not self._tells:
            return
        lines: list[tuple[str, EventDict]] = []
        for schedule, decision in decisions:
            # Unstarted slots have separate lines, and waiting runs were logged when they began to wait.
            lines += [("info", _decision(run)) for run in decision.new if run.status in OPEN]
            lines += [("info", _decision(run)) for run in decision.changed if run.status is Status.STARTING]
            lines += [("info", _about("stop", run, run.status, run.reason)) for run in decision.stop]
            attention = decision.state.attention
            if attention and attention != schedule.state.attention:
                lines.append(
                    ("warning", {"event": "attention", "schedule": schedule.id, "sentence": attention})
                )
            if decision.remove:
                over = "it has nothing left to do, and was kept for its time"
                lines.append(("info", {"event": "removed", "schedule": schedule.id, "sentence": over}))
        self._log.lines(lines)

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
        if not launched:
            why = "this node's lease may be over, so they start later"
            self._log.line.warning("withheld", count=len(runs), sentence=why)

    def launched(self, run: Run, at: int) -> None:
        if self._tells_all:
            drift = at - run.fire_at
            about = _about("launched", run, run.status, run.reason, attempt=run.attempt, drift_ms=drift)
            self._log.lines([("debug", about)])

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        if self._tells:
            told = ended if self._tells_all else _noteworthy(ended)
            self._log.lines([_end(each, outcome) for each, outcome in told])

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        if self._tells:
            self._log.lines(
                [
                    ("info", _range(each) if isinstance(each, UnstartedRange) else _decision(each))
                    for each in unstarted
                ]
            )

    def stored(self, seconds: float, error: BaseException | None) -> None:  # noqa: ARG002
        if isinstance(error, StoreUnavailableError | ClockOffError):
            if not self._away:  # log it once, not on every retry
                self._log.line.error("store", sentence=error.for_operator)
            self._away = True
        elif error is None and self._away:
            self._away = False
            self._log.line.info("store", sentence="the database answers again")

    def maintained(self, report: MaintenanceReport) -> None:
        if report.rescued:
            self._log.line.warning("rescued", count=report.rescued, sentence="nodes died over these runs")

    def lost_lease(self) -> None:
        self._log.line.error(
            "lease lost", sentence="this node could not renew its lease: it stops its runs, and rejoins"
        )


def _about(event: str, run: Run, status: str, reason: str, **more: object) -> EventDict:
    return {
        "event": event, "schedule": run.schedule_id, "slot": _slot(run.nominal_ms), "run": run.id, "status": status,
        "reason": reason, "sentence": _sentence(reason), **more,
    }  # fmt: skip


def _decision(run: Run) -> EventDict:
    return _about("decision", run, run.status, _why_it_goes_on(run) if run.status in OPEN else run.reason)


def _range(unstarted: UnstartedRange) -> EventDict:
    line: EventDict = {
        "event": "decision", "schedule": unstarted.schedule_id, "slot": _slot(unstarted.start_ms), "status": unstarted.status,
        "reason": unstarted.reason, "sentence": _sentence(unstarted.reason),
    }  # fmt: skip
    return (
        line
        if unstarted.count == 1
        else {**line, "last_slot": _slot(unstarted.end_ms), "count": unstarted.count}
    )


def _end(ended: AttemptResult, outcome: Outcome) -> tuple[str, EventDict]:
    level = (
        "warning" if outcome.status in _TROUBLE else "debug" if outcome.status is Status.SUCCEEDED else "info"
    )
    # The message of an exception is for the owner, and is in the ledger; the log has only its type.
    more = {"error": ended.errors[0]} if ended.errors else {}
    return level, _about(
        "ended", ended.run, outcome.status, outcome.reason, attempt=ended.run.attempt, **more
    )


def _noteworthy(ended: Iterable[tuple[AttemptResult, Outcome]]) -> Iterable[tuple[AttemptResult, Outcome]]:
    return (pair for pair in ended if pair[1].status is not Status.SUCCEEDED)


def _why_it_goes_on(run: Run) -> str:
    if run.status in WAITING:
        return "waiting"
    if run.attempt:
        return "again"
    return "due" if run.is_automatic else run.origin.kind


def _sentence(reason: str) -> str:
    return _SENTENCES.get(reason) or sentence_of(reason)


@lru_cache(maxsize=1024)
def _slot(nominal_ms: int) -> str:
    """A nominal time as text; cached, because many schedules share one."""
    return f"{datetime.fromtimestamp(nominal_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

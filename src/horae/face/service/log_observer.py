"""Writes what the engine does to the log of the service: one line for each slot, with what became of it and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from structlog.typing import EventDict

from horae.app.views import sentence_of
from horae.engine.attempt_failure_log import is_failure
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Decision, Observer
from horae.face.service.logging_setup import Log
from horae.model import OPEN, WAITING, AttemptResult, Outcome, Run, Schedule, Status, UnstartedRange

_SENTENCES = {
    "due": "its time came",
    "trigger": "a caller asked for it",
    "backfill": "a backfill makes it up",
    "again": "it is attempted again",
    "waiting": "it waits for its turn",
}


class LogObserver(Observer):
    """Writes one line for each slot: when its run has ended, or when it is decided that it does not run.

    An attempt that fails has a line of its own, which the engine writes. At the level ``debug`` there are also lines when a run
    is decided, when it waits, and when its action is called.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._writes_info = log.writes(logging.INFO)
        self._writes_debug = log.writes(logging.DEBUG)

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
        for schedule, decision in decisions:
            if decision.remove:
                over = "it has nothing left to do, and was kept for its time"
                self._log.line.info("removed", schedule=schedule.id, sentence=over)
        if self._writes_debug:
            self._log.lines([("debug", line) for _, decision in decisions for line in _going_on(decision)])

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
        if not launched:
            why = "this node's lease may be over, so they start later"
            self._log.line.warning("withheld", count=len(runs), sentence=why)

    def launched(self, run: Run, at: int) -> None:
        if self._writes_debug:
            drift = at - run.fire_ms
            about = _about("launched", run, run.status, run.reason, attempt=run.attempt, drift_ms=drift)
            self._log.lines([("debug", about)])

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        if self._writes_info:
            self._log.lines(
                [("info", _end(each, outcome)) for each, outcome in ended if not is_failure(each, outcome)]
            )

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        if self._writes_info:
            self._log.lines(
                [
                    ("info", _range(each) if isinstance(each, UnstartedRange) else _decision(each))
                    for each in unstarted
                ]
            )

    def maintained(self, report: MaintenanceReport) -> None:
        if report.rescued:
            self._log.line.warning("rescued", count=report.rescued, sentence="nodes died over these runs")
        if report.repaired or report.stale:
            self._log.line.warning(
                "repaired", count=report.repaired, stale=report.stale,
                sentence="these schedules had no next time, or one that was more than a minute past",
            )  # fmt: skip

    def lost_lease(self) -> None:
        self._log.line.error(
            "lease lost", sentence="this node could not renew its lease: it stops its runs, and rejoins"
        )


def _going_on(decision: Decision) -> Iterator[EventDict]:
    """The lines of runs that a decision starts, lets wait or stops; those that it ends have their own."""
    for run in decision.new:
        if run.status in OPEN:
            yield _decision(run)
    for run in decision.changed:
        if run.status is Status.STARTING:
            yield _decision(run)
    for run in decision.stop:
        yield _about("stop", run, run.status, run.reason)


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


def _end(ended: AttemptResult, outcome: Outcome) -> EventDict:
    """The end of an attempt, with why it ended so; if it succeeded, with why it ran."""
    run = ended.run
    took = {} if outcome.started_at_ms is None else {"took_ms": outcome.ended_at_ms - outcome.started_at_ms}
    return _about("ended", run, outcome.status, outcome.reason or _cause(run), attempt=run.attempt, **took)


def _why_it_goes_on(run: Run) -> str:
    if run.status in WAITING:
        return "waiting"
    return "again" if run.attempt else _cause(run)


def _cause(run: Run) -> str:
    return "due" if run.is_automatic else run.origin.kind


def _sentence(reason: str) -> str:
    return _SENTENCES.get(reason) or sentence_of(reason)


@lru_cache(maxsize=1024)
def _slot(nominal_ms: int) -> str:
    """A nominal time as text; cached, because many schedules share one."""
    return f"{datetime.fromtimestamp(nominal_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

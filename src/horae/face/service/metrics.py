"""Metrics for Prometheus. No label names a schedule, a run or a user: their number is unbounded."""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Iterator, Sequence
from functools import partial

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from horae import __version__
from horae.app import App, Backlog
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Observer, Stall
from horae.errors import StoreUnavailableError
from horae.model import (
    OPEN,
    AttemptEnd,
    AttemptResult,
    Outcome,
    Reason,
    Run,
    Status,
    UnstartedRange,
)
from horae.spec import TZDATA_VERSION

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NOT_STARTED = frozenset({Status.SKIPPED, Status.MISSED, Status.DROPPED})
_DRIFT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_BLOCKED = (1, 2.5, 5, 10, 30, 60, 300)
_STORE = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics(Observer):
    """The metrics of one service: it observes an app, counts requests, and renders the page."""

    media_type = prometheus_client.CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self._due = gauge("horae_schedules_due", "Schedules that are due now")
        self._open = gauge("horae_runs_open", "Runs that have not ended", ["status"])
        self._attention = gauge("horae_flows_attention", "Flows that need attention: they wait for a person")
        self._emitted = counter("horae_runs_emitted", "Runs whose first attempt was launched")
        self._overlapping = counter(
            "horae_runs_skipped_overlap", "Slots skipped because another run was still running"
        )
        self._unlaunched = counter("horae_runs_failed_launch", "Attempts that could not begin, or must not")
        self._drift = histogram(
            "horae_fire_drift_seconds", "How far from its fire time a slot was launched", buckets=_DRIFT
        )
        self._ended = counter(
            "horae_runs_ended", "Runs that ended after an attempt, or were stopped before", ["status"]
        )
        self._unstarted = counter(
            "horae_slots_unstarted", "Slots and starts that never ran", ["status", "reason"]
        )
        self._claimed = counter("horae_runs_claimed", "Attempts that this node took")
        self._rescued = counter("horae_runs_rescued", "Runs of dead nodes that this node took over")
        self._store = histogram("horae_store_seconds", "How long transactions took", buckets=_STORE)
        self._store_errors = counter(
            "horae_store_errors", "Transactions that failed because the database was away"
        )
        self._blocked = histogram(
            "horae_loop_blocked_seconds",
            "How long the event loop did not answer",
            ["cause"],
            buckets=_BLOCKED,
        )
        self._requests = counter(
            "horae_http_requests", "Requests that were answered", ["method", "route", "status"]
        )
        self._request_seconds = histogram("horae_http_seconds", "How long answers took", ["route"])
        self._calls = counter("horae_grpc_calls", "Temporal's calls that were answered", ["method", "code"])
        self._call_seconds = histogram("horae_grpc_seconds", "How long their answers took", ["method"])
        build = gauge("horae_build_info", "What is running here", ["version", "tzdata"])
        build.labels(__version__, TZDATA_VERSION).set(1)

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:  # noqa: ARG002 - the observer's signature
        self._claimed.inc(len(runs))

    def launched(self, run: Run, at: int) -> None:
        if run.attempt == 1:
            self._emitted.inc()
            if run.is_automatic:  # only automatic starts have a fire time to compare with
                self._drift.observe(abs(at - run.fire_ms) / 1000)

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        for status, count in Counts(outcome.status for _, outcome in ended).items():
            if status not in {Status.RETRYING, Status.SKIPPED}:
                self._ended.labels(status).inc(count)
        for _, outcome in ended:
            if outcome.status is Status.SKIPPED:  # it was not admitted
                self._unstarted.labels(outcome.status, outcome.reason).inc()
        self._unlaunched.inc(
            sum(each.ending in {AttemptEnd.REFUSED, AttemptEnd.UNLAUNCHED} for each, _ in ended)
        )

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        counts = Counts[tuple[str, str]]()
        for each in unstarted:
            if isinstance(each, UnstartedRange):
                counts[each.status, each.reason] += each.count
            elif each.attempt or each.status not in _NOT_STARTED:
                self._ended.labels(each.status).inc()
            else:
                counts[each.status, each.reason] += 1
        for (status, reason), count in counts.items():
            self._unstarted.labels(status, reason).inc(count)
        self._overlapping.inc(counts[Status.SKIPPED, Reason.OVERLAP])

    def stored(self, seconds: float, error: BaseException | None) -> None:
        self._store.observe(seconds)
        if isinstance(error, StoreUnavailableError):
            self._store_errors.inc()

    def maintained(self, report: MaintenanceReport) -> None:
        self._rescued.inc(report.rescued)

    def loop_blocked(self, stall: Stall) -> None:
        self._blocked.labels(stall.cause).observe(stall.seconds)

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count an answered request. ``route`` is the pattern that it matched, if any, never its path."""
        known = route or "none"
        self._requests.labels(method if method in METHODS else "other", known, str(status)).inc()
        self._request_seconds.labels(known).observe(seconds)

    def called(self, method: str, code: str, seconds: float) -> None:
        """Count an answered call of Temporal's API. ``method`` is one that the API has, or ``other``."""
        self._calls.labels(method, code).inc()
        self._call_seconds.labels(method).observe(seconds)

    async def page(self, app: App) -> bytes:
        """All metrics in the format of Prometheus; those of the database are counted now."""
        try:
            backlog = await app.backlog()
        except StoreUnavailableError:  # the numbers are unknown
            backlog = Backlog(math.nan, dict.fromkeys(OPEN, math.nan), math.nan)
        self._due.set(backlog.due)
        self._attention.set(backlog.flows_attention)
        for status in OPEN:
            self._open.labels(status).set(backlog.open_runs.get(status, 0))
        return prometheus_client.generate_latest(_WithoutBirths(self.registry))


class _WithoutBirths(Collector):
    """Metrics without their ``_created`` samples."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric

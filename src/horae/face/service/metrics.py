"""Metrics for Prometheus. No label names a schedule, a run or a user: their number is unbounded."""

from __future__ import annotations

import math
from collections import Counter as Counts
from collections.abc import Iterator, Sequence

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from horae import __version__
from horae.app import App, Backlog
from horae.engine.maintenance import MaintenanceReport
from horae.engine.observer import Observer
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

MEDIA_TYPE = prometheus_client.CONTENT_TYPE_LATEST
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NOT_STARTED = frozenset({Status.SKIPPED, Status.MISSED, Status.DROPPED})
_DRIFT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_STORE = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics(Observer):
    """The metrics of one service: it observes an app, counts requests, and renders the page."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._due = Gauge("horae_schedules_due", "Schedules that are due now", registry=registry)
        self._open = Gauge("horae_runs_open", "Runs that have not ended", ["status"], registry=registry)
        self._attention = Gauge(
            "horae_flows_attention", "Flows that need attention: they wait for a person", registry=registry
        )
        self._emitted = Counter(
            "horae_runs_emitted", "Runs whose first attempt was launched", registry=registry
        )
        self._overlapping = Counter(
            "horae_runs_skipped_overlap", "Slots skipped because another run was going on", registry=registry
        )
        self._unlaunched = Counter(
            "horae_runs_failed_launch", "Attempts that could not begin, or must not", registry=registry
        )
        self._drift = Histogram(
            "horae_fire_drift_seconds",
            "How far from its fire time a slot was launched",
            registry=registry,
            buckets=_DRIFT,
        )
        self._ended = Counter(
            "horae_runs_ended",
            "Runs that ended after an attempt, or were stopped before",
            ["status"],
            registry=registry,
        )
        self._unstarted = Counter(
            "horae_slots_unstarted",
            "Slots and starts that never ran",
            ["status", "reason"],
            registry=registry,
        )
        self._claimed = Counter("horae_runs_claimed", "Attempts that this node took", registry=registry)
        self._rescued = Counter(
            "horae_runs_rescued", "Runs of dead nodes that this node took over", registry=registry
        )
        self._store = Histogram(
            "horae_store_seconds", "How long transactions took", registry=registry, buckets=_STORE
        )
        self._store_errors = Counter(
            "horae_store_errors", "Transactions that failed because the database was away", registry=registry
        )
        self._requests = Counter(
            "horae_http_requests",
            "Requests that were answered",
            ["method", "route", "status"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            "horae_http_seconds", "How long answers took", ["route"], registry=registry
        )
        self._calls = Counter(
            "horae_grpc_calls", "Temporal's calls that were answered", ["method", "code"], registry=registry
        )
        self._call_seconds = Histogram(
            "horae_grpc_seconds", "How long their answers took", ["method"], registry=registry
        )
        build = Gauge("horae_build_info", "What is running here", ["version", "tzdata"], registry=registry)
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

"""Runs as OpenTelemetry spans: one for each attempt, from when it was launched until its end was recorded.

If the program has set up OpenTelemetry, its provider gets the spans. Otherwise ``OTEL_TRACES_EXPORTER`` names the exporters, as
OpenTelemetry specifies; their packages must be installed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from horae import __version__
from horae.app.views import sentence_of
from horae.engine.observer import Observer
from horae.errors import ConfigError
from horae.extras import import_extra
from horae.model import AttemptEnd, AttemptResult, Outcome, Status

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkProvider
    from opentelemetry.trace import TracerProvider

_log = logging.getLogger("horae")
_SETTING = "OTEL_TRACES_EXPORTER"
_NO_ATTEMPT = {AttemptEnd.UNLAUNCHED, AttemptEnd.NOT_ADMITTED}
_FAILED = {Status.FAILED, Status.TIMED_OUT, Status.DROPPED}


def tracer_provider(environment: Mapping[str, str] | None = None) -> TracerProvider:
    """The provider of spans: the program's, or a new one with the exporters that the environment names."""
    for module in ("opentelemetry.trace", "opentelemetry.sdk.trace"):
        import_extra(module, "tracing")
    from opentelemetry import trace  # noqa: PLC0415 - an extra, loaded when it is asked for
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider as SdkProvider  # noqa: PLC0415

    own = trace.get_tracer_provider()
    if isinstance(own, SdkProvider):
        return own
    environment = os.environ if environment is None else environment
    # The name "horae" is the default, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES sets another.
    named = "OTEL_SERVICE_NAME" in environment or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    provider = SdkProvider(resource=Resource.create({} if named else {"service.name": "horae"}))
    _export(provider, environment)
    return provider


def _export(provider: SdkProvider, environment: Mapping[str, str]) -> None:
    """Add the exporters that the environment names to a provider."""
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    asked = environment.get(_SETTING, "")
    installed = {each.name: each for each in entry_points(group="opentelemetry_traces_exporter")}
    for name in [each.strip() for each in (asked or "otlp").split(",")]:
        if name == "none":
            continue
        found = next((each for each in _candidates(name, environment) if each in installed), None)
        if found is not None:
            provider.add_span_processor(BatchSpanProcessor(installed[found].load()()))
        elif asked:
            raise ConfigError(_SETTING, asked, f"names the exporter {name}, which is not installed")
        else:
            _log.warning("spans go nowhere: install opentelemetry-exporter-otlp, or set %s", _SETTING)


def _candidates(name: str, environment: Mapping[str, str]) -> Sequence[str]:
    """The names under which an exporter may be installed; for OTLP the name includes the protocol."""
    if name != "otlp":
        return (name,)
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    known = {"grpc": ("otlp_proto_grpc",), "http/protobuf": ("otlp_proto_http",)}
    return known.get(protocol or "", ("otlp_proto_grpc", "otlp_proto_http"))


class TraceObserver(Observer):
    """Creates a span ``horae.run`` for each attempt that ended."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import Status as SpanStatus  # noqa: PLC0415
        from opentelemetry.trace import StatusCode  # noqa: PLC0415

        self._tracer = provider.get_tracer("horae", __version__)
        self._failed = partial(SpanStatus, StatusCode.ERROR)

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        for each, outcome in ended:
            if each.ending not in _NO_ATTEMPT:
                self._span(each, outcome)

    def _span(self, ended: AttemptResult, outcome: Outcome) -> None:
        run = ended.run
        known = (ended.launched_at_ms, run.started_at_ms, outcome.ended_at_ms)
        began = next(at for at in known if at is not None)
        span = self._tracer.start_span(
            "horae.run",
            start_time=_nanoseconds(began),
            attributes={
                "horae.schedule": run.schedule_id,
                "horae.run": run.id,
                "horae.action": run.action,
                "horae.origin": str(run.origin),
                "horae.nominal": datetime.fromtimestamp(run.nominal_ms / 1000, UTC).isoformat(),
                "horae.attempt": run.attempt,
                "horae.status": str(outcome.status),
                "horae.reason": outcome.reason,
                "horae.drift": (began - run.fire_ms) / 1000,
            },
        )
        # An attempt that is retried has failed too.
        if outcome.status in _FAILED or (outcome.status is Status.RETRYING and outcome.reason):
            span.set_status(self._failed(sentence_of(outcome.reason) or outcome.reason))
        span.end(_nanoseconds(max(outcome.ended_at_ms, began)))


def _nanoseconds(milliseconds: int) -> int:
    return milliseconds * 1_000_000

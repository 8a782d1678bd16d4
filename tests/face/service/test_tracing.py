"""Each attempt is a span, and the environment says where spans go."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from horae import Context, Policies, RetryPolicy
from horae.errors import ConfigError
from horae.face.service.tracing import TraceObserver, tracer_provider
from horae.testing import TimeMachine
from tests.support.process import printed_by

START = datetime(2026, 3, 2, tzinfo=UTC)


def times(span: ReadableSpan) -> tuple[timedelta, timedelta]:
    """When a span begins and ends, after the start."""
    assert span.start_time is not None
    assert span.end_time is not None
    begins, ends = (
        datetime.fromtimestamp(each / 1e9, UTC) - START for each in (span.start_time, span.end_time)
    )
    return begins, ends


async def test_each_attempt_is_a_span():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with TimeMachine(START) as tm:
        tm.app.watch(TraceObserver(provider))

        @tm.app.action("flaky")
        async def flaky(context: Context) -> None:
            await tm.sleep(seconds=30)
            if context.attempt == 1:
                raise RuntimeError("not yet")

        policies = Policies(retry=RetryPolicy(attempts=3, initial_delay="10s"))
        await tm.app.schedules.create("s", "0 1 * * *", action="flaky", policies=policies)
        await tm.advance(hours=2)
        (run,) = await tm.app.runs.list("s")
    first, second = exporter.get_finished_spans()
    assert {first.name, second.name} == {"horae.run"}
    hour = timedelta(hours=1)
    assert times(first) == (hour, hour + timedelta(seconds=30))
    assert times(second) == (hour + timedelta(seconds=40), hour + timedelta(seconds=70))
    assert dict(first.attributes or {}) == {
        "horae.schedule": "s", "horae.run": run.id, "horae.action": "flaky", "horae.origin": "automatic",
        "horae.nominal": "2026-03-02T01:00:00+00:00", "horae.attempt": 1, "horae.status": "retrying",
        "horae.reason": "failed", "horae.drift": 0.0,
    }  # fmt: skip
    assert first.status.status_code is StatusCode.ERROR
    assert (second.attributes or {})["horae.status"] == "succeeded"
    assert (second.attributes or {})["horae.attempt"] == 2
    assert second.status.status_code is StatusCode.UNSET
    assert "not yet" not in first.to_json()  # what an exception says is in the ledger


def test_an_exporter_that_is_named_and_not_installed_is_said():
    with pytest.raises(ConfigError, match="OTEL_TRACES_EXPORTER"):
        tracer_provider({"OTEL_TRACES_EXPORTER": "console,zipkin"})


def test_without_any_exporter_the_log_says_so(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "horae"):
        assert isinstance(tracer_provider({}), TracerProvider)
    assert "opentelemetry-exporter-otlp" in caplog.text
    caplog.clear()
    tracer_provider({"OTEL_TRACES_EXPORTER": "none"})
    assert caplog.text == ""


EXPORTS = """
from horae.face.service.tracing import tracer_provider
with tracer_provider({"OTEL_TRACES_EXPORTER": "console"}).get_tracer("t").start_as_current_span("horae.run"):
    pass
"""


def test_the_environment_names_the_exporter():
    """In its own process: what is left to export is exported when it ends."""
    printed = printed_by(EXPORTS)
    assert '"name": "horae.run"' in printed
    assert '"service.name": "horae"' in printed


WITHOUT = """
import sys
sys.modules["opentelemetry.sdk.trace"] = None  # as if it were not installed
from horae.face.service import tracing
from horae.errors import MissingExtraError
try:
    tracing.tracer_provider({})
except MissingExtraError as error:
    print(error.hint)
"""


def test_without_the_extra_it_says_what_to_install():
    assert printed_by(WITHOUT).strip() == "pip install 'horae[tracing]'"


OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from horae.face.service.tracing import tracer_provider
trace.set_tracer_provider(provider := TracerProvider())
print(tracer_provider({}) is provider)
"""


def test_a_program_that_has_set_up_tracing_gets_the_spans_where_its_others_go():
    assert printed_by(OWN).strip() == "True"

"""What is counted is what happened, and the page of the metrics names all of them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from horae import App, Context, NotStartedError, OnResume, Overlap, Policies, Reason, RetryPolicy, Status
from horae import app as app_module
from horae.face.service.metrics import Metrics
from horae.flows import Internal, NeedsApproval, Transient
from horae.model import Denial
from horae.testing import TimeMachine
from tests.support.flows import Script

START = datetime(2026, 3, 2, tzinfo=UTC)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"


async def noop(context: Context) -> None:
    pass


async def read(metrics: Metrics, app: App) -> dict[str, float]:
    """Every sample of the page, under its name and the values of its labels, in the order of their names."""
    text = (await metrics.page(app)).decode()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.contract("CRON-17")
async def test_emitted_skipped_and_drift(machine: TimeMachine):
    metrics = Metrics()
    machine.app.watch(metrics)

    @machine.app.action("slow")
    async def slow(context: Context) -> None:
        await machine.sleep(seconds=150)

    await machine.app.schedules.create("s", "* * * * *", action="slow")
    await machine.advance(minutes=6, seconds=1)
    found = await read(metrics, machine.app)
    # At minutes 1 and 4 it starts, and takes until 3:30 and 6:30; the others are skipped.
    assert found["horae_runs_emitted_total"] == 2
    assert found["horae_runs_skipped_overlap_total"] == 4
    assert found["horae_slots_unstarted_total overlap skipped"] == 4
    assert found["horae_fire_drift_seconds_count"] == 2
    assert found["horae_fire_drift_seconds_bucket 0.005"] == 2
    assert found["horae_runs_claimed_total"] == 2
    assert found["horae_runs_ended_total succeeded"] == 1
    assert found["horae_runs_open running"] == 1
    assert found["horae_runs_open pending"] == found["horae_runs_open starting"] == 0
    assert found["horae_runs_failed_launch_total"] == 0
    assert found["horae_schedules_due"] == 0
    assert found["horae_store_seconds_count"] > 0
    assert found["horae_store_errors_total"] == 0


@pytest.mark.contract("CRON-17")
async def test_launches_that_fail(machine: TimeMachine):
    metrics = Metrics()
    machine.app.watch(metrics)

    @machine.app.action("refuses")
    async def refuses(context: Context) -> None:
        raise NotStartedError("not now")

    @machine.app.action("fails")
    async def fails(context: Context) -> None:
        raise RuntimeError("no")

    await machine.app.schedules.create(
        "r", "0 1 * * *", action="refuses", policies=Policies(start_attempts=3)
    )
    await machine.app.schedules.create(
        "f", "0 1 * * *", action="fails", policies=Policies(retry=RetryPolicy(attempts=2))
    )
    await machine.advance(hours=2)
    found = await read(metrics, machine.app)
    assert found["horae_runs_failed_launch_total"] == 3
    assert found["horae_runs_ended_total dropped"] == 1
    assert found["horae_runs_ended_total failed"] == 1
    assert found["horae_runs_emitted_total"] == 2
    assert found["horae_runs_claimed_total"] == 5
    assert (
        found["horae_fire_drift_seconds_count"] == 2
    )  # an attempt that follows another has a time of its own


async def test_a_run_that_is_not_admitted_counts_as_never_started(machine: TimeMachine):
    metrics = Metrics()
    machine.app.watch(metrics)
    denial = Denial(Reason.NOT_ALLOWED, "not any more")
    machine.app.functions.register("noop", noop, admit=lambda _: denial)
    await machine.app.schedules.create("s", "0 * * * *", action="noop")
    await machine.advance(hours=2)
    found = await read(metrics, machine.app)
    assert found["horae_slots_unstarted_total not_allowed skipped"] == 2
    assert found["horae_runs_emitted_total"] == found["horae_runs_failed_launch_total"] == 0
    assert not any(name.startswith("horae_runs_ended_total") for name in found)


async def test_late_slots_count_with_their_lateness_and_backfills_do_not(machine: TimeMachine):
    metrics = Metrics()
    machine.app.functions.register("noop", noop)
    await machine.app.schedules.create("s", "0 * * * *", action="noop")
    machine.clock.move_to(START.replace(hour=3, minute=30))  # no node ran for hours
    machine.app.watch(metrics)
    await machine.advance(seconds=1)
    late = await read(metrics, machine.app)
    await machine.app.backfills.start(
        "s",
        datetime(2026, 2, 1, tzinfo=UTC),
        datetime(2026, 2, 1, 2, tzinfo=UTC),
        overlap=Overlap.ALLOW_ALL,
    )
    await machine.app.schedules.trigger("s", overlap=Overlap.ALLOW_ALL)
    await machine.advance(seconds=10)
    found = await read(metrics, machine.app)
    assert late["horae_fire_drift_seconds_count"] >= 1
    assert late["horae_fire_drift_seconds_sum"] >= 1800
    assert found["horae_fire_drift_seconds_count"] == late["horae_fire_drift_seconds_count"]
    assert found["horae_runs_emitted_total"] == late["horae_runs_emitted_total"] + 4


@pytest.mark.contract("CRON-17")
async def test_slots_that_a_manual_change_leaves_unstarted_are_counted_once(machine: TimeMachine):
    metrics = Metrics()
    machine.app.watch(metrics)

    @machine.app.action("slow")
    async def slow(context: Context) -> None:
        await machine.sleep(seconds=360_000)

    policies = Policies(overlap=Overlap.BUFFER_ONE, on_resume=OnResume.SKIP)
    await machine.app.schedules.create("s", "0 * * * *", action="slow", policies=policies)
    await machine.advance(hours=4)  # one is running, one waits, and two are skipped
    (waiting,) = [run for run in await machine.app.runs.list("s") if run.status is Status.PENDING]
    await machine.app.runs.terminate(waiting.id)
    await machine.app.schedules.pause("s")
    await machine.advance(hours=3)
    await machine.app.schedules.resume("s")
    machine.clock.move_to(START.replace(hour=9))  # no node has decided about these two hours
    await machine.app.schedules.update("s", "30 * * * *")
    await machine.advance(minutes=31)  # another one waits
    machine.clock.move_to(START.replace(hour=11))
    await machine.app.schedules.delete("s")
    found = await read(metrics, machine.app)
    unstarted = {
        name.removeprefix("horae_slots_unstarted_total "): count
        for name, count in found.items()
        if name.startswith("horae_slots_unstarted_total ")
    }
    assert unstarted == {
        "overlap skipped": 2, "paused skipped": 3, "edited skipped": 2, "deleted skipped": 1, "deleted dropped": 1,
    }  # fmt: skip
    assert found["horae_runs_skipped_overlap_total"] == 2
    assert found["horae_runs_ended_total terminated"] == 1


async def test_what_is_due_and_waits_is_counted_when_metrics_are_read(machine: TimeMachine):
    metrics = Metrics()
    machine.app.functions.register("noop", noop)
    for number in range(5):
        await machine.app.schedules.create(f"s{number}", "0 1 * * *", action="noop")
    assert (await read(metrics, machine.app))["horae_schedules_due"] == 0
    machine.clock.move_to(START.replace(hour=1))
    assert (await read(metrics, machine.app))["horae_schedules_due"] == 5
    await machine.app.schedules.trigger("s0")
    await machine.app.schedules.trigger("s1")
    assert (await read(metrics, machine.app))["horae_runs_open pending"] == 2


@pytest.mark.contract("FLOW-19")
@pytest.mark.parametrize("failure", [Internal("the host is broken"), NeedsApproval("connect Gmail")])
async def test_flows_that_need_attention_are_counted(machine: TimeMachine, failure: Exception):
    metrics, script, flows = Metrics(), Script(), machine.app.flows
    script.deeds["prepare"] = [Transient("later"), failure]
    await flows.deploy(script.flow)
    await machine.advance(seconds=5)
    assert (await read(metrics, machine.app))["horae_flows_attention"] == 0  # it tries again by itself
    await machine.advance(seconds=10)
    assert (await flows.show("f")).status == "Needs attention"
    assert (await read(metrics, machine.app))["horae_flows_attention"] == 1
    await flows.pause("f")
    await machine.advance(seconds=1)
    assert (await read(metrics, machine.app))["horae_flows_attention"] == 0
    await flows.resume("f")
    await machine.advance(seconds=1)
    assert (await read(metrics, machine.app))["horae_flows_attention"] == 1
    await flows.resolve("f", "retry")
    await machine.advance(seconds=1)
    assert (await read(metrics, machine.app))["horae_flows_attention"] == 0


async def test_counting_ends_at_its_limit(database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app_module, "MAX_DUE", 3)
    monkeypatch.setattr(app_module, "MAX_OPEN", 4)
    metrics = Metrics()
    async with App(database) as app:
        app.functions.register("noop", noop)
        await app.schedules.create("s", "0 0 1 1 *", action="noop")
        for _ in range(6):
            await app.schedules.trigger("s")
        for number in range(5):
            await app.schedules.create(f"s{number}", "0 0 1 1 *", action="noop")
            await app.schedules.trigger(f"s{number}")
        found = await read(metrics, app)
        assert found["horae_schedules_due"] == 3
        assert found["horae_runs_open pending"] == 4


async def test_while_the_store_is_away_the_page_still_comes(postgres: str):
    metrics = Metrics()
    async with App(postgres) as app:
        app.watch(metrics)
        await app._store.close()
        found = await read(metrics, app)
        assert math.isnan(found["horae_schedules_due"])
        assert math.isnan(found["horae_runs_open running"])
        assert found["horae_store_errors_total"] == 1
        await app._store.open(app.wake)
        assert (await read(metrics, app))["horae_schedules_due"] == 0


async def test_requests(machine: TimeMachine):
    metrics = Metrics()
    metrics.answered("GET", "/api/v1/schedules", 200, 0.01)
    metrics.answered("GET", "/api/v1/schedules", 200, 0.03)
    for method in ("BREW", "PROPFIND"):  # a made-up method becomes no label
        metrics.answered(method, None, 405, 0.001)
    found = await read(metrics, machine.app)
    assert found["horae_http_requests_total GET /api/v1/schedules 200"] == 2
    assert found["horae_http_requests_total other none 405"] == 2
    assert found["horae_http_seconds_count /api/v1/schedules"] == 2


async def test_two_services_in_one_process_share_nothing(machine: TimeMachine):
    first, second = Metrics(), Metrics()
    first.answered("GET", "/", 200, 0.01)
    assert "horae_http_requests_total GET / 200" not in await read(second, machine.app)


@pytest.mark.contract("CRON-17")
def test_the_page_lists_every_metric_and_no_other():
    rows = re.findall(r"^\| `(horae_\w+)` \| (\w+) \|([^|]*)\|", PAGE.read_text("utf-8"), re.MULTILINE)
    documented = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    there = {}
    for collector in list(Metrics().registry._collector_to_names):
        name, kind = collector._name, collector._type  # type: ignore[attr-defined]
        labels = tuple(collector._labelnames)  # type: ignore[attr-defined]
        there[f"{name}_total" if kind == "counter" else name] = (kind, labels)
    assert documented == there
    assert {
        "horae_schedules_due", "horae_runs_emitted_total", "horae_runs_skipped_overlap_total",
        "horae_runs_failed_launch_total", "horae_fire_drift_seconds",
    } <= set(there)  # fmt: skip


async def test_the_page_says_nothing_about_when_counting_began(machine: TimeMachine):
    assert b"_created" not in await Metrics().page(machine.app)

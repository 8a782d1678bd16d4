"""The examples of flows do what they say, on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from examples import flow_fixer, living_flow
from examples import flow_patterns as patterns

from horae.flow_model import FlowStatus
from horae.flows import FolderFixer
from horae.testing import TimeMachine

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
FLOWS = [patterns.fifo, patterns.correlation, patterns.window, patterns.batch, patterns.digest]


@pytest.fixture(autouse=True)
def sent() -> Iterator[None]:
    patterns.sent.clear()
    flow_fixer.booked.clear()
    yield
    patterns.sent.clear()
    flow_fixer.booked.clear()


@pytest.fixture
async def hosting(machine: TimeMachine) -> TimeMachine:
    for flow in FLOWS:
        await machine.app.flows.deploy(flow)
    await machine.advance(seconds=1)
    return machine


async def put(machine: TimeMachine, flow: str, topic: str, *ids: str) -> None:
    await machine.app.flows.publish_many(flow, [(topic, each, f"{topic} {each}") for each in ids])
    await machine.advance(seconds=1)


@pytest.mark.contract("FLOW-13")
async def test_first_in_first_out(hosting: TimeMachine):
    await put(hosting, "fifo", "orders", "b", "a", "c")
    assert patterns.sent == [("fifo", [f"orders {each}"]) for each in "bac"]


@pytest.mark.contract("FLOW-13")
async def test_correlation_across_topics(hosting: TimeMachine):
    await put(hosting, "correlation", "orders", "1", "2")
    await put(hosting, "correlation", "payments", "3")
    assert patterns.sent == []
    await put(hosting, "correlation", "payments", "2")
    await put(hosting, "correlation", "orders", "3")
    assert patterns.sent == [
        ("correlation", ["orders 2", "payments 2"]), ("correlation", ["orders 3", "payments 3"]),
    ]  # fmt: skip


@pytest.mark.contract("FLOW-13")
async def test_a_time_window(hosting: TimeMachine):
    await put(hosting, "window", "edits", "1")
    await hosting.advance(minutes=30)
    await put(hosting, "window", "edits", "2")
    await hosting.advance(minutes=29)
    assert patterns.sent == []
    await hosting.advance(minutes=2)
    assert patterns.sent == [("window", ["edits 1"])]
    await hosting.advance(minutes=30)
    assert patterns.sent[1:] == [("window", ["edits 2"])]


@pytest.mark.contract("FLOW-13")
async def test_a_batch_with_a_timeout(hosting: TimeMachine):
    await put(hosting, "batch", "rows", *map(str, range(12)))
    assert [len(rows) for _, rows in patterns.sent] == [10]
    await hosting.advance(minutes=58)
    assert len(patterns.sent) == 1
    await hosting.advance(minutes=3)
    assert [len(rows) for _, rows in patterns.sent] == [10, 2]


@pytest.mark.contract("FLOW-13")
async def test_a_daily_digest_over_a_month(hosting: TimeMachine):
    for day in range(30):
        await put(hosting, "digest", "news", f"{day}a", f"{day}b")
        await hosting.advance(hours=23, minutes=59, seconds=59)
    assert [len(news) for _, news in patterns.sent] == [2] * 30


async def test_the_living_flow(machine: TimeMachine):
    await machine.app.flows.deploy(living_flow.flow)
    await machine.advance(minutes=60)
    assert "the spreadsheet does not answer" in ((await machine.app.flows.show("mail-to-sheet")).issue or "")
    await machine.advance(minutes=5)
    view = await machine.app.flows.show("mail-to-sheet")
    assert (view.status, view.next_check) == ("Idle", "Next check in 1 min")
    assert view.activity[0].text in {"Processed 1 email → added to spreadsheet", "Found 1 new event"}
    assert {each.status for each in await machine.app.flows.inputs("mail-to-sheet", limit=50)} <= {
        "done",
        "pending",
    }


@pytest.mark.contract("FLOW-21")
async def test_a_new_version_from_a_folder_repairs_a_flow(machine: TimeMachine):
    machine.app.flow_host.fixer = fixer = FolderFixer(flow_fixer.VERSIONS)
    await machine.app.flows.deploy(flow_fixer.flow)
    await put_amounts(machine, "7.5", "12,50", "3")
    assert flow_fixer.booked == [7.5, 12.5, 3.0]
    first, failed, fixed, last = [each for each in reversed(await machine.app.flows.runs("invoices")) if each.events or each.error]  # fmt: skip
    assert (failed.status, fixed.status, fixed.retry_of) == ("failed:logic", "committed", failed.id)
    assert first.revision == failed.revision != fixed.revision == last.revision
    await put_amounts(machine, "free")  # there is no third version
    view = await machine.app.flows.show("invoices")
    assert (view.status, view.action) == (
        "Needs attention",
        "Deploy a new version, or resolve it with retry",
    )
    assert flow_fixer.booked == [7.5, 12.5, 3.0]
    runs = await machine.app.flows.runs("invoices")
    assert await fixer.fix(flow_fixer.flow, run=None) is None  # type: ignore[arg-type]  # it does not look at it
    assert [each.status for each in runs].count(
        FlowStatus.LOGIC
    ) == 2  # the second version was not given again


async def test_a_version_that_cannot_be_loaded_is_no_fix(machine: TimeMachine, tmp_path: Path):
    (tmp_path / "invoices_2.py").write_text("flow = None")
    machine.app.flow_host.fixer = FolderFixer(tmp_path)
    await machine.app.flows.deploy(flow_fixer.flow)
    await put_amounts(machine, "12,50")
    assert (await machine.app.flows.show("invoices")).status == "Needs attention"


async def put_amounts(machine: TimeMachine, *amounts: str) -> None:
    await machine.app.flows.publish_many("invoices", [("mails", each, each) for each in amounts])
    await machine.advance(seconds=1)

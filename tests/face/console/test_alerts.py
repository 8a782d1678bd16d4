"""Every kind of alert in a real browser: each is shown, on the overview too, and leads to the page that resolves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from horae import Config, Context, Policies
from horae.flows import Flow, LogicError
from horae.policies import CatchUpPolicy, Timeouts
from horae.testing import TimeMachine
from tests.support.browser import Window, needs_chromium
from tests.support.machine import START
from tests.support.service import served

pytestmark = needs_chromium
ALERTS = (
    ("Flow", "Mail to rows", "the sheet has no column"),
    ("Schedule", "stranded", 'no living node can run the action "withdrawn"'),
    ("Grant", "graph:execute:*", "what runs by it then stops"),
)
"""The kind, the name and the text of alerts."""
OUTCOMES = (("fails", "failed"), ("takes-long", "timed out"), ("misses", "missed"), ("drops", "dropped"))
"""Schedules, and how their slots ended."""


@asynccontextmanager
async def bad_day() -> AsyncIterator[tuple[TimeMachine, str]]:
    """A service on a virtual clock on which everything went wrong that can, and its address."""
    async with TimeMachine(START, Config(max_buffer_size=1)) as machine:
        actions: dict[str, Any] = {
            "fail": partial(_fail, "the shop is closed"),
            "hold": partial(_hold, machine),
            "ping": _ping,
            "withdrawn": _ping,
        }
        for name, action in actions.items():
            machine.app.action(name)(action)
        local = machine.app.owned_by("local")
        for name, action, policies in (
            ("fails", "fail", Policies()),
            ("takes-long", "hold", Policies(timeouts=Timeouts(run="1m"))),
            ("drops", "hold", Policies(overlap="buffer_all")),
            ("misses", "ping", Policies(catch_up=CatchUpPolicy(mode="none"))),
            ("stranded", "withdrawn", Policies()),
        ):
            await local.schedules.create(name, "*/10 * * * *", action, policies=policies)
        machine.app.functions.unregister("withdrawn")
        await local.grants.create(["graph:execute:*"], expires_at=machine.now + timedelta(days=3))
        await local.flows.deploy(_failing_flow())
        await machine.advance(minutes=45)
        machine.clock.move_to(machine.now + timedelta(minutes=30))  # the process was suspended
        await machine.advance(minutes=1)
        async with served(machine.app) as (port, _):
            yield machine, f"http://127.0.0.1:{port}"


async def _ping(context: Context) -> None: ...


async def _fail(why: str, context: Context) -> None:
    raise ConnectionError(why)


async def _hold(machine: TimeMachine, context: Context) -> None:
    await machine.sleep(hours=3)


def _failing_flow() -> Flow:
    flow = Flow("mail", title="Mail to rows")

    @flow.producer(publishes=["mail"], every="5m")
    async def poll(ctx: Any, state: int | None) -> int:
        await ctx.publish("mail", f"m{state or 0}", {})
        return (state or 0) + 1

    @flow.consumer(subscribes=["mail"])
    class Take:
        async def prepare(self, ctx: Any, state: None) -> None:
            raise LogicError("the sheet has no column")

    return flow


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """The event loop of the service: the browser has the one of this thread."""
    with start_blocking_portal() as portal:
        yield portal


def test_every_kind_of_alert_is_shown_and_leads_to_what_resolves_it(
    open_window: Callable[..., Window], portal: BlockingPortal, monkeypatch: pytest.MonkeyPatch
):
    with portal.wrap_async_context_manager(bad_day()) as (machine, url):
        window = open_window(url)
        window.go("")
        links = [_link_of_alert(window, *alert) for alert in ALERTS]
        window.go("/alerts")
        assert [_link_of_alert(window, *alert) for alert in ALERTS] == links
        rows = [
            window.page.locator("tr", has_text=schedule).filter(has_text=outcome).first.get_by_role("link")
            for schedule, outcome in OUTCOMES
        ]
        failed = window.page.locator("tr", has_text="the shop is closed").get_by_role("link").nth(1)
        links += [_address_of(link) for link in (*(row.first for row in rows), failed)]
        leads_to = ("Mail to rows", "stranded", "Grants", *(schedule for schedule, _ in OUTCOMES), "fails")
        for link, heading in zip(links, leads_to, strict=True):
            window.page.goto(link)
            assert heading in window.page.locator("h1").inner_text()
        assert "Traceback" in window.text()
        _nodes_in_trouble(window, portal, machine, monkeypatch)
        _resolved(window, portal, machine)


def _address_of(link: Any) -> str:
    """Where a link leads that can be clicked."""
    link.click(trial=True)
    return str(link.get_attribute("href"))


def _link_of_alert(window: Window, kind: str, name: str, text: str) -> str:
    alert = window.page.locator(".alerts li", has_text=text)
    assert kind in alert.inner_text()
    assert name in alert.inner_text()
    return _address_of(alert.get_by_role("link"))


def _nodes_in_trouble(
    window: Window, portal: BlockingPortal, machine: TimeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is asked to end, nodes with different time-zone data, and no node at all."""
    (node,) = portal.call(machine.app.nodes)
    older = msgspec.structs.replace(node, epoch=99, tzdata="2001a")
    gone = msgspec.structs.replace(node, alive=False)
    for nodes, leaving, text in (
        ([node], True, "This node cannot work: this node was asked to end"),
        ([node, older], False, f"Time-zone data differs between nodes: 2001a, {node.tzdata}"),
        ([gone], False, "No node drives this database: nothing fires"),
    ):
        monkeypatch.setattr(machine.app, "nodes", partial(_answer, nodes))
        machine.app.leaving = leaving
        window.go("/alerts")
        alert = window.page.locator(".alerts li", has_text=text)
        assert "Node" in alert.inner_text()
        link = alert.get_by_role("link")
        assert _address_of(link) == "/console/nodes"
    link.click()
    assert window.page.locator("h1").inner_text() == "Nodes"
    monkeypatch.undo()


async def _answer(nodes: list[Any]) -> list[Any]:
    return nodes


def _resolved(window: Window, portal: BlockingPortal, machine: TimeMachine) -> None:
    """What was resolved is an alert no more."""
    machine.app.action("withdrawn")(_ping)
    portal.call(partial(machine.advance, minutes=1))
    for button, page in (("Revoke", "/grants"), ("Try it again", "/flows/mail")):
        window.go(page)
        window.page.get_by_role("button", name=button).first.click()
    window.go("/alerts")
    assert window.page.locator(".alerts li").all_inner_texts() == []
    assert "Nothing waits for you." in window.text()
    portal.call(machine.app.owned_by("local").flows.pause, "mail")
    window.page.reload()
    assert "Nothing waits for you." in window.text(), "a pause is no alert"

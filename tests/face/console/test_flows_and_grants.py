"""The pages of flows and grants, over HTTP on the virtual clock; and what a token that may only read cannot do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import httpx
import jwt
import pytest

from horae.config import Config
from horae.flows import Flow, LogicError
from horae.testing import TimeMachine
from tests.support.service import client_of

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing


@pytest.fixture
async def client(machine: TimeMachine) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(machine.app) as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, page: str, **form: str) -> str:
    """Send a form with the token of its page; what the page then says."""
    token = re.search(r'name="csrf" value="([0-9a-f]+)"', (await client.get(f"/console{page}")).text)
    assert token is not None
    answer = await client.post(f"/console{path}", data={"csrf": token[1], **form})
    assert answer.status_code == 303, answer.text
    return (await client.get(answer.headers["location"])).text


def failing() -> Flow:
    flow = Flow("mail", title="Mail to rows")

    @flow.producer(publishes=["mail"], every="5m")
    async def poll(ctx, state: int | None) -> int:
        await ctx.publish("mail", f"m{state or 0}", {})
        return (state or 0) + 1

    @flow.consumer(subscribes=["mail"])
    class Take:
        async def prepare(self, ctx, state):
            raise LogicError("the <b>sheet</b> has no column")

    return flow


async def test_a_flow_says_what_is_wrong_and_has_the_button_that_resolves_it(
    machine: TimeMachine, client: httpx.AsyncClient
):
    assert "No flows yet" in (await client.get("/console/flows")).text
    await machine.app.flows.deploy(failing())
    await machine.advance(minutes=6)
    page = (await client.get("/console/flows")).text
    assert "Mail to rows" in page
    assert "Needs attention" in page
    shown = (await client.get("/console/flows/mail")).text
    assert "the &lt;b&gt;sheet&lt;/b&gt; has no column" in shown
    assert "Try it again" in shown
    assert "Handlers" not in shown
    behind = (await client.get("/console/flows/mail?operator=1")).text
    for part in ("Handlers", "poll", "Take", "failed:logic", "Handlers and topics"):
        assert part in behind
    assert "It is tried again." in await post(client, "/flows/mail", "/flows/mail", do="retry")
    assert "Paused." in await post(client, "/flows/mail", "/flows/mail", do="pause", note="for a while")
    assert "Stopped" in (await client.get("/console/flows")).text
    assert "Resumed." in await post(client, "/flows/mail", "/flows/mail", do="resume")
    assert "notice-problem" in await post(client, "/flows/mail", "/flows/mail", do="dance")
    assert (await client.get("/console/flows/none")).status_code == 404


async def test_grants_are_listed_renewed_and_revoked(machine: TimeMachine, client: httpx.AsyncClient):
    assert "No grants" in (await client.get("/console/grants")).text
    made = await machine.app.owned_by("local").grants.create(["graph:execute:langgraph:poet"])
    page = (await client.get("/console/grants")).text
    assert made.id in page
    assert "graph:execute:langgraph:poet" in page
    assert "no end" in page
    path, until = f"/grants/{made.id}", machine.now + timedelta(days=30)
    client.cookies.set("horae_zone", "Asia/Tokyo")
    typed = until.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%Y-%m-%dT%H:%M")
    renewed = await post(client, path, "/grants", do="renew", until=typed)
    assert "Renewed: it holds until" in renewed
    assert "no end" not in renewed
    grants = machine.app.owned_by("local").grants
    assert (await grants.get(made.id)).expires_at == until.replace(second=0, microsecond=0)
    assert "must be in the future" in await post(
        client, path, "/grants", do="renew", until="2001-01-01T00:00"
    )
    assert "is not a time" in await post(client, path, "/grants", do="renew", until="soon")
    assert "until it is revoked" in await post(client, path, "/grants", do="renew", until="")
    assert (await grants.get(made.id)).expires_at is None
    assert "Revoked" in await post(client, f"/grants/{made.id}", "/grants", do="revoke")
    assert "revoked" in (await client.get("/console/grants")).text


async def test_a_token_that_may_only_read_changes_nothing(machine: TimeMachine):
    machine.app.action("ping")(lambda: None)
    await machine.app.owned_by("ada").schedules.create("mine", "0 9 * * *", "ping")
    async with client_of(machine.app, Config(jwt_secret=SECRET)) as client:
        claims = {"sub": "ada", "aud": "horae", "exp": machine.app.now() // 1000 + 600, "scope": "read"}
        form = {"token": jwt.encode(claims, SECRET)}
        start = (await client.get("/console/sign-in")).text
        form["csrf"] = re.findall(r'name="csrf" value="([0-9a-f]+)"', start)[0]
        assert (await client.post("/console/sign-in", data=form)).status_code == 303
        page = (await client.get("/console/schedules/mine")).text
        assert 'class="read-only"' in page
        csrf = re.findall(r'name="csrf" value="([0-9a-f]+)"', page)[0]
        for path, todo in (
            ("schedules/mine", "pause"),
            ("schedules/mine", "delete"),
            ("schedules", "pause"),
            ("new", "create"),
        ):
            answer = await client.post(f"/console/{path}", data={"csrf": csrf, "do": todo, "chosen": "mine"})
            assert answer.status_code == 403
        assert (
            await client.post("/console/preview", data={"csrf": csrf, "kind": "cron", "cron": "0 9 * * *"})
        ).status_code == 200
        assert (await client.post("/console/theme", data={"csrf": csrf, "theme": "dark"})).status_code == 303
    assert not (await machine.app.owned_by("ada").schedules.get("mine")).state.paused


async def test_what_was_done_is_told_by_the_next_page_not_by_a_part_of_one(
    machine: TimeMachine, client: httpx.AsyncClient
):
    token = re.findall(r'name="csrf" value="([0-9a-f]+)"', (await client.get("/console/grants")).text)[0]
    made = await client.post("/console/grants", data={"csrf": token, "scopes": "*"})
    assert made.status_code == 303
    for path in ("go?q=x", "forecast"):
        part = await client.get(f"/console/{path}", headers={"HX-Request": "true"})
        assert "Created " not in part.text
    assert "Created " in (await client.get("/console/grants")).text
    assert "Created " not in (await client.get("/console/grants")).text, "it is told once"
    assert (await machine.app.owned_by("local").grants.list())[0].scopes == ("graph:execute:*",)

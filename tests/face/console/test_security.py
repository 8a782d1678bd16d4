"""What keeps the console safe: sign-in, the session cookie, forms, hosts, origins, headers, and other users' addresses."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jwt
import pytest

from horae.app import App
from horae.config import Config
from horae.executor.action_permissions import Permissions
from horae.flows import Flow, Prepared
from horae.testing import TimeMachine
from tests.support.service import client_of

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing
CONFIG = Config(jwt_secret=SECRET, public_url="http://horae.example")


@pytest.fixture
async def client(machine: TimeMachine) -> AsyncIterator[httpx.AsyncClient]:
    machine.app.action("ping")(_ping)
    async with client_of(machine.app, CONFIG) as client:
        yield client


async def _ping(context: object) -> None:
    pass


def token(machine: TimeMachine, user: str = "ada", seconds: int = 3600, **claims: object) -> str:
    return jwt.encode(
        {"sub": user, "aud": "horae", "exp": machine.app.now() // 1000 + seconds, **claims}, SECRET
    )


def csrf_in(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


async def sign_in(
    client: httpx.AsyncClient, machine: TimeMachine, user: str = "ada", **more: Any
) -> httpx.Response:
    form = {
        "csrf": csrf_in((await client.get("/console/sign-in")).text),
        "token": token(machine, user, **more),
        "next": "/console/runs",
    }
    return await client.post("/console/sign-in", data=form)


async def test_a_stranger_is_led_to_the_sign_in_and_back(client: httpx.AsyncClient, machine: TimeMachine):
    answer = await client.get("/console/runs?state=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fruns%3Fstate%3Dfailed"
    for headers in ({"HX-Request": "true"}, {"Accept": "text/event-stream"}):
        assert (await client.get("/console/runs", headers=headers)).status_code == 401
    assert (await client.get("/", follow_redirects=False)).headers["location"] == "/console"
    signed = await sign_in(client, machine)
    assert (signed.status_code, signed.headers["location"]) == (303, "/console/runs")
    cookie = signed.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=strict", "Path=/console", "Max-Age=3600"):
        assert flag.lower() in cookie.lower()
    page = await client.get("/console/runs")
    assert page.status_code == 200
    assert "Sign out" in page.text
    out = await client.post("/console/sign-out", data={"csrf": csrf_in(page.text)})
    assert out.status_code == 303
    assert (await client.get("/console/runs")).status_code == 303


async def test_a_session_ends_with_its_token(client: httpx.AsyncClient, machine: TimeMachine):
    await sign_in(client, machine, seconds=600)
    assert (await client.get("/console/session")).status_code == 200
    await machine.advance(minutes=11)
    assert (await client.get("/console/session")).status_code == 303


@pytest.mark.parametrize("bad", ["", "nonsense", "a.b.c", "ÿ", "x" * 20_000])
async def test_a_bad_token_is_told_and_opens_nothing(client: httpx.AsyncClient, bad: str):
    form = {"csrf": csrf_in((await client.get("/console/sign-in")).text), "token": bad}
    answer = await client.post("/console/sign-in", data=form)
    assert answer.status_code == 401
    assert "notice-problem" in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_forged_or_foreign_cookie_is_no_session(client: httpx.AsyncClient, machine: TimeMachine):
    claims = {"sub": "eve", "scopes": ["admin"], "sid": "x", "aud": "horae-console", "exp": 4_000_000_000}
    for value in (
        jwt.encode(claims, SECRET),
        jwt.encode(claims, "", "none"),
        token(machine, "eve"),
        "ÿ",
        "a.b.c",
    ):
        answer = await client.get(
            "/console", headers=[(b"cookie", f"horae_session={value}".encode("latin-1"))]
        )
        assert answer.status_code == 303
    await sign_in(client, machine)
    session = client.cookies["horae_session"]
    assert (
        await client.get("/api/v1/schedules", headers={"Authorization": f"Bearer {session}"})
    ).status_code == 401


async def test_forms_need_the_token_of_their_session(client: httpx.AsyncClient, machine: TimeMachine):
    await machine.app.owned_by("ada").schedules.create("mine", "0 9 * * *", "ping")
    await sign_in(client, machine, "bob")
    of_bob = csrf_in((await client.get("/console/schedules")).text)
    client.cookies.clear()
    await sign_in(client, machine)
    own = csrf_in((await client.get("/console/schedules/mine")).text)
    for given in ({}, {"csrf": ""}, {"csrf": "ÿ"}, {"csrf": of_bob}):
        assert (
            await client.post("/console/schedules/mine", data={"do": "pause", **given})
        ).status_code == 403
    pause = {"do": "pause", "csrf": own}
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await client.post("/console/schedules/mine", data=pause, headers=headers)).status_code == 403
    assert not (await machine.app.schedules.get("mine")).state.paused
    answer = await client.post("/console/schedules/mine", data=pause, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 303
    assert (await machine.app.schedules.get("mine")).state.paused


async def test_a_foreign_host_is_refused(client: httpx.AsyncClient, machine: TimeMachine):
    await sign_in(client, machine)
    assert (await client.get("/console", headers={"Host": "evil.example"})).status_code == 403
    assert (await client.get("/console", headers={"Host": "horae.example"})).status_code == 200
    async with client_of(machine.app) as local:
        assert (await local.get("/console", headers={"Host": "evil.example"})).status_code == 403
        answer = await local.get("/console", headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "path", ["", "/schedules", "/runs", "/sign-in", "/nowhere", "/new", "/static/0/console.css"]
)
async def test_every_answer_allows_no_inline_script_and_no_frame(
    client: httpx.AsyncClient, machine: TimeMachine, path: str
):
    await sign_in(client, machine)
    answer = await client.get(f"/console{path}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if answer.headers["content-type"].startswith("text/html"):
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]* src=)|\sstyle=|\son\w+=|javascript:", answer.text)


async def test_static_files_are_kept_for_good_under_their_digest(client: httpx.AsyncClient):
    page = (await client.get("/console/sign-in")).text
    for found in re.findall(r'(?:href|src)="(/console/static/[^"]+)"', page):
        answer = await client.get(found)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        again = await client.get(found, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert (await client.get("/console/static/0/console.css")).headers["cache-control"] == "no-cache"
    assert (await client.get("/console/static/0/..%2Fassets.py")).status_code == 404


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example",
        "//evil.example/console",
        "/console\\@evil.example",
        "/etc",
        "javascript:alert(1)",
    ],
)
async def test_the_sign_in_leads_to_no_other_site(
    client: httpx.AsyncClient, machine: TimeMachine, there: str
):
    form = {
        "csrf": csrf_in((await client.get("/console/sign-in")).text),
        "token": token(machine),
        "next": there,
    }
    answer = await client.post("/console/sign-in", data=form)
    assert answer.headers["location"] == "/console"


async def test_another_users_addresses_are_not_there(client: httpx.AsyncClient, machine: TimeMachine):
    app: App = machine.app
    await app.owned_by("bob").schedules.create("secret", "0 9 * * *", "ping")
    run_id = await app.owned_by("bob").schedules.trigger("secret")
    await sign_in(client, machine, "ada")
    own = csrf_in((await client.get("/console/schedules")).text)
    paths = [
        "/schedules/secret", "/schedules/secret/edit", "/schedules/secret/backfill", "/schedules/secret/versions",
        "/schedules/secret/resume", "/schedules/secret/delete", f"/runs/{run_id}",
    ]  # fmt: skip
    for path in paths:
        assert (await client.get(f"/console{path}")).status_code == 404, path
    for path in (
        "",
        "/schedules",
        "/runs",
        "/go?q=secret",
        "/explain?q=why+did+secret+not+run+today+at+9:00",
    ):
        assert "/schedules/secret" not in (await client.get(f"/console{path}")).text
    for todo in ("pause", "trigger", "delete"):
        answer = await client.post("/console/schedules/secret", data={"do": todo, "csrf": own})
        assert answer.status_code == 404
    assert (
        await client.post(f"/console/runs/{run_id}", data={"do": "cancel", "csrf": own})
    ).status_code == 404
    assert (await client.get("/console/schedules?owner=bob")).status_code == 403
    bulk = await client.post("/console/schedules", data={"do": "pause", "chosen": "secret", "csrf": own})
    assert bulk.status_code == 303
    assert not (await app.owned_by("bob").schedules.get("secret")).state.paused
    client.cookies.clear()
    await sign_in(client, machine, "root", scope="admin")
    assert (await client.get("/console/schedules/secret?owner=bob")).status_code == 200


async def test_files_flows_workflows_and_grants_are_the_callers_own_too(
    client: httpx.AsyncClient, machine: TimeMachine
):
    app: App = machine.app
    app.use_builtin("http://127.0.0.1")
    bob = app.owned_by("bob")
    await bob.schedules.create("shared-name", "0 9 * * *", "ping", description="of bob")
    flow = Flow("mail")

    @flow.producer(publishes=["mail"], every="1h")
    async def poll(ctx: object, state: None) -> None: ...

    @flow.consumer(subscribes=["mail"])
    class Take:
        async def prepare(self, ctx: object, state: None) -> Prepared[None]:
            return Prepared()

    await bob.flows.deploy(flow)
    document: dict[str, Any] = {
        "workflow_id": "report", "version": 1, "edges": [{"source": "start", "target": "work"}],
        "nodes": [{"id": "start", "type": "trigger"}, {"id": "work", "type": "action", "data": {"action": "ping"}}],
    }  # fmt: skip
    await bob.workflows.deploy(document)
    grant = await bob.grants.create(["graph:execute:*"])
    await sign_in(client, machine, "ada")
    own = csrf_in((await client.get("/console/schedules")).text)
    for path in ("/flows/mail", "/flows/mail/runs/x", "/workflows/report", "/schedules/shared-name/times"):
        assert (await client.get(f"/console{path}")).status_code == 404, path
    for path, form in (("flows/mail", {"do": "pause"}), (f"grants/{grant.id}", {"do": "revoke"})):
        answer = await client.post(f"/console/{path}", data={"csrf": own, **form})
        assert answer.status_code == 404, path
    started = await client.post("/console/workflows/report", data={"csrf": own})
    assert started.status_code == 404
    assert "of bob" not in (await client.get("/console/export")).text
    text = "schedules:\n  - {id: shared-name, spec: {crons: ['5 4 * * *']}, action: ping}\n"
    applied = await client.post("/console/documents", data={"csrf": own, "documents": text, "do": "apply"})
    assert applied.status_code == 303, applied.text
    assert (await bob.schedules.get("shared-name")).description == "of bob"
    assert (await app.owned_by("ada").schedules.get("shared-name")).owner == "ada"
    assert (
        await client.post(
            "/console/documents?owner=bob", data={"csrf": own, "documents": text, "do": "apply"}
        )
    ).status_code == 422
    page = (await client.get("/console/alerts")).text
    assert "mail" not in page
    assert grant.id not in page


async def test_the_scopes_of_a_token_allow_the_same_as_in_the_api(
    client: httpx.AsyncClient, machine: TimeMachine
):
    machine.app.executors.permissions = Permissions({"ping": ("scope:ops",)})
    for scope, status in (("", 422), ("ops", 303)):
        client.cookies.clear()
        await sign_in(client, machine, "ada", scope=scope)
        own = csrf_in((await client.get("/console/new")).text)
        form = {
            "csrf": own,
            "kind": "cron",
            "cron": "0 9 * * *",
            "id": "mine",
            "action": "ping",
            "do": "create",
        }
        assert (await client.post("/console/new", data=form)).status_code == status


async def test_of_several_schedules_with_one_id_the_callers_own_is_meant(machine: TimeMachine):
    machine.app.action("ping")(_ping)
    for owner in ("local", "ada"):
        await machine.app.owned_by(owner).schedules.create("same", "0 9 * * *", "ping")
    async with client_of(machine.app) as client:
        page = await client.get("/console/schedules/same", follow_redirects=True)
        assert (page.status_code, page.url.query) == (200, b"owner=local")
        listed = (await client.get("/console/schedules")).text
        assert "/console/schedules/same?owner=ada" in listed
        assert (await client.get("/console/schedules/same?owner=ada")).status_code == 200


@pytest.mark.parametrize("page", ["runs", "schedules"])
async def test_a_filter_keeps_the_owner_that_was_named_also_the_empty_one(machine: TimeMachine, page: str):
    async with client_of(machine.app) as client:
        for owner in ("", "ada"):
            shown = (await client.get(f"/console/{page}?owner={owner}")).text
            assert f'<input type="hidden" name="owner" value="{owner}">' in shown
        assert '<input type="hidden" name="owner"' not in (await client.get(f"/console/{page}")).text

"""Grants and accounts over HTTP and on the command line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from horae import App, Config
from tests.face.cli.command import horae
from tests.support.service import client_of
from tests.support.tokens import SECRET, bearer

POET = "graph:execute:langgraph:poet"
CONFIG = Config(jwt_secret=SECRET, secret_key="seal " * 10)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with App(":memory:", config=CONFIG) as app, client_of(app, CONFIG) as client:
        yield client


async def ask(
    client: httpx.AsyncClient, method: str, path: str, user: str, *scopes: str, **body: Any
) -> httpx.Response:
    return await client.request(
        method,
        f"/api/v1{path}",
        headers=bearer(user, *scopes),
        json=body if method in {"POST", "PUT"} else None,
    )


@pytest.mark.contract("GRNT-03")
async def test_a_users_grants(client: httpx.AsyncClient):
    made = await ask(client, "POST", "/grants", "ada", scopes=[POET], expires_at="2126-01-01T00:00:00Z")
    assert made.status_code == 201
    grant = made.json()
    assert {key: grant[key] for key in ("user_id", "billing_account_id", "scopes", "expires_at", "revoked_at")} == {
        "user_id": "ada", "billing_account_id": "ada", "scopes": [POET], "expires_at": "2126-01-01T00:00:00Z", "revoked_at": None,
    }  # fmt: skip
    path = f"/grants/{grant['id']}"
    assert (await ask(client, "GET", path, "ada")).json() == grant
    assert (await ask(client, "GET", "/grants", "ada")).json() == {"items": [grant], "next": None}
    assert (await ask(client, "GET", "/grants", "eve")).json()["items"] == []
    assert (await ask(client, "GET", path, "root", "admin")).json() == grant
    renewed = await ask(client, "POST", f"{path}/renew", "ada")
    assert (renewed.status_code, renewed.json()["expires_at"]) == (200, None)
    for method, foreign in (("GET", path), ("POST", f"{path}/revoke"), ("POST", f"{path}/renew")):
        answer = await ask(client, method, foreign, "eve")
        assert (answer.status_code, answer.json()["code"]) == (404, "grant_not_found")
    assert (await ask(client, "POST", f"{path}/revoke", "ada")).json()["revoked_at"]
    answer = await ask(client, "POST", f"{path}/renew", "ada")
    assert (answer.status_code, answer.json()["code"]) == (403, "grant_revoked")


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["graph:execute"]}, {"scopes": []}, {"scopes": "graph:execute:*"}, {}, {"scopes": [POET], "user_id": "eve"},
        {"scopes": [POET], "expires_at": "2020-01-01T00:00:00Z"}, {"scopes": [POET], "expires_at": "2126-01-01T00:00:00"},
        {"scopes": [POET], "expires_at": 5}, {"scopes": [POET], "billing_account_id": "eve"},
    ],
)  # fmt: skip
async def test_bad_grants_are_refused(client: httpx.AsyncClient, body: dict[str, Any]):
    answer = await ask(client, "POST", "/grants", "ada", **body)
    assert answer.status_code in {400, 422}
    assert (await ask(client, "GET", "/grants", "ada")).json()["items"] == []


@pytest.mark.contract("GRNT-06", "GRNT-16")
async def test_accounts_are_the_operators(client: httpx.AsyncClient):
    key = "sk-planted-secret"
    assert (await ask(client, "PUT", "/account?owner=ada", "ada", virtual_key=key)).status_code == 403
    assert (
        await ask(client, "PUT", "/account?owner=ada", "robot", "service", virtual_key=key)
    ).status_code == 403
    stored = await ask(client, "PUT", "/account?owner=ada", "root", "admin", virtual_key=key, credit=7)
    assert stored.json() == {"id": "ada", "user_id": "ada", "has_key": True, "credit": 7, "spent": 0}
    assert (await ask(client, "GET", "/account?owner=ada", "ada")).json() == stored.json()
    assert (await ask(client, "GET", "/account?owner=ada", "eve")).status_code == 403
    wrong = await ask(client, "PUT", "/account?owner=ada", "root", "admin", virtual_key=key + "\0")
    assert wrong.status_code in {400, 422}
    assert key not in stored.text + wrong.text


def test_grants_and_accounts_on_the_command_line(tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"
    settings: dict[str, Any] = {"HORAE_DATABASE_URL": database, "HORAE_SECRET_KEY": "seal " * 10}
    assert horae("migrate", **settings).returncode == 0
    made = horae(
        "grants", "create", "--scope", POET, "--expires", "in 90d", "--owner", "ada", "--json", **settings
    )
    grant = json.loads(made.stdout)
    assert grant["user_id"] == "ada"
    assert grant["id"] in horae("grants", "list", **settings).stdout
    assert POET in horae("grants", "show", grant["id"], **settings).stdout
    assert horae("grants", "show", grant["id"], "--owner", "eve", **settings).returncode == 2
    renewed = horae("grants", "renew", grant["id"], "--json", **settings)
    assert json.loads(renewed.stdout)["expires_at"] is None
    assert horae("grants", "revoke", grant["id"], "--yes", **settings).stdout == f"Revoked {grant['id']}.\n"
    wrong = horae("grants", "create", "--scope", "graph:execute", **settings)
    assert (wrong.returncode, "is no scope" in wrong.stderr) == (2, True)
    put = horae("accounts", "put", "ada", "--credit", "5", "--key", stdin="sk-planted-secret\n", **settings)
    assert (put.returncode, "planted" in put.stdout + put.stderr) == (0, False)
    assert json.loads(horae("accounts", "show", "ada", "--json", **settings).stdout)["has_key"] is True

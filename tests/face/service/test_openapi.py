"""The OpenAPI document says everything, and says the truth: schemathesis holds the live service to it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import jwt
import pytest

from horae import App, errors
from horae.face.service.examples import ANSWERS, REQUESTS
from horae.face.service.problems import _CODES, STATUSES, code_of
from tests.support.process import ROOT, Server, StartServer
from tests.support.service import client_of
from tests.support.wait import PATIENCE

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing
SETTINGS = Path(__file__).with_name("schemathesis.toml")
SEED = 20261116
EXAMPLES = "2"
"""How many requests each operation gets in a phase."""
METHODS = ("get", "post", "put", "patch", "delete")
TAGS = [
    "schedules", "runs", "why", "bulk", "calendars", "workflows", "grants", "flows", "internal", "system", "registrar",
]  # fmt: skip


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


@pytest.fixture(scope="module")
def document(service: Server) -> dict[str, Any]:
    answer = service.client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def run_schemathesis(folder: Path, server: Server) -> None:
    token = jwt.encode({"sub": "alice", "aud": "horae", "exp": 4_000_000_000}, SECRET)
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
        "--config-file", str(SETTINGS), "run", f"{server.url}/openapi.json",
        "-H", f"Authorization: Bearer {token}", "--seed", str(SEED), "--max-examples", EXAMPLES, "--workers", "1",
        "--no-color", "--continue-on-failure", "--generation-database", "none", "--tls-verify", "false",
    ]  # fmt: skip
    # Its client would look for certificates, for a file with passwords and for proxies at each request, so it is told that there
    # are none. The tables of Unicode are those that the other tests have made.
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.face.service.schemathesis_hooks",
        "PYTHONPATH": str(ROOT),
        "NETRC": "",
        "NO_PROXY": "127.0.0.1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
    }
    server.client.get(
        "/openapi.json", timeout=PATIENCE
    )  # it takes long once, and schemathesis waits for ten seconds
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-5000:]
    assert " passed" in ran.stdout
    assert "Traceback" not in server.log
    assert server.client.get("/readyz").status_code == 200


@pytest.mark.heavy
def test_the_service_does_what_its_document_says_also_with_what_it_made(start: StartServer, tmp_path: Path):
    server = start(HORAE_JWT_SECRET=SECRET, HORAE_REQUESTS_PER_SECOND="1000000")
    run_schemathesis(tmp_path, server)


async def test_it_is_made_once_and_others_are_answered_meanwhile():
    async with App(":memory:") as app, client_of(app) as client:
        asked = [asyncio.create_task(client.get("/openapi.json")) for _ in range(3)]
        answered = 0
        while not any(each.done() for each in asked):
            assert (await client.get("/healthz")).status_code == 200
            answered += 1
            await asyncio.sleep(0)
        documents = [(await each).content for each in asked]
        assert answered > 20  # made in the event loop, it would let one or two through
        assert len(set(documents)) == 1


async def test_other_methods_of_a_path_are_refused():
    async with App(":memory:") as app, client_of(app) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        for path, item in paths.items():
            own = {each.upper() for each in item if each in METHODS}
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY"} - own:
                answer = await client.request(method, path.format_map(defaultdict(lambda: "x")))
                assert answer.status_code == 405, (method, path)
                taken = own | ({"HEAD"} if "GET" in own else set())
                assert taken <= set(answer.headers["allow"].split(", ")) <= taken | {"OPTIONS"}, path


def test_every_operation_is_described(document: dict[str, Any]):
    names = [each["operationId"] for _, each in operations(document)]
    assert len(set(names)) == len(names)
    for where, operation in operations(document):
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", operation["operationId"]), where
        assert operation["summary"], where
        assert operation["description"], where
        assert len(operation["tags"]) == 1, where
        assert operation["tags"][0] in TAGS, where
        for parameter in operation["parameters"]:
            assert parameter["description"], (where, parameter["name"])
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            one, *_ = content["schema"].get("oneOf", [content["schema"]])  # or a list of them
            assert one["$ref"], where
            assert content["examples"], where


def test_every_answer_has_a_shape(document: dict[str, Any]):
    for where, operation in operations(document):
        assert "default" in operation["responses"], where
        for status, answer in operation["responses"].items():
            assert answer["description"], (where, status)
            if status == "204":
                assert "content" not in answer
                continue
            for media_type, content in answer["content"].items():
                assert content["schema"], (where, status)
                assert status < "4" or status == "503" or media_type == "application/problem+json", where


def test_every_field_that_can_be_sent_is_described(document: dict[str, Any]):
    schemas = document["components"]["schemas"]
    for name in set(REQUESTS) - {"SharedCalendar", "ScheduleInput", "PauseInput"}:
        for field, schema in schemas[name]["properties"].items():
            assert schema.get("description"), (name, field)
        assert schemas[name]["additionalProperties"] is False, name


@pytest.mark.parametrize("name", sorted(REQUESTS | ANSWERS))
def test_examples_have_the_shape_that_they_are_examples_of(document: dict[str, Any], name: str):
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    for example in document["components"]["schemas"][name]["examples"]:
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(example)


def test_who_must_be_known_is_said(document: dict[str, Any]):
    for where, operation in operations(document):
        if where in {"GET /healthz", "GET /readyz"}:
            assert "security" not in operation
        elif re.search(r"/runs/\{run_id\}/(started|heartbeat|succeeded|failed)$", where):
            assert operation["security"] == [{"run": []}]
        else:
            assert operation["security"] == [{"token": []}]
            assert "401" in operation["responses"]


def test_the_page_is_made_from_the_document():
    command = [sys.executable, str(ROOT / "tools" / "api_page.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_page_of_errors_has_their_codes_and_statuses():
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+)", page.partition("## Over HTTP")[2], re.MULTILINE))
    listed = set(re.findall(r"\| `(\w+Error)` \|$", page, re.MULTILINE))
    assert {kind.__name__ for kind in STATUSES} <= listed
    for name in listed:
        kind = getattr(errors, name)
        code = code_of(kind.__new__(kind))
        assert rows.pop(code) == str(STATUSES.get(kind, 422)), name
    assert set(rows) == {"invalid_request", "internal", *_CODES.values()} - {"limit_exceeded"}

"""Bodies: the caller is checked before they are read, and their size is bounded in every way."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import pytest

from horae import Accepted, Context
from horae.json_bounds import MAX_DEPTH, MAX_VALUES
from horae.testing import TimeMachine
from tests.support.process import Server
from tests.support.service import client_of

REPORTS = ("succeeded", "failed")
TAKING = ("/schedules", "/bulk/schedules", "/preview", "/calendars/c")


def answer_to(server: Server, request: bytes) -> bytes:
    """The first bytes of the answer to a request that is not sent to its end."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        return connection.recv(1000)


@pytest.mark.parametrize("what", REPORTS)
@pytest.mark.parametrize(
    ("token", "status"),
    [(b"", b"401"), (b"Authorization: Bearer x\r\n", b"409")],
    ids=["none", "a wrong one"],
)
def test_a_report_without_its_token_is_refused_before_its_body_is_read(
    service: Server, what: str, token: bytes, status: bytes
):
    head = f"POST /api/v1/runs/x/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += "Content-Length: 1000000\r\n"
    assert answer_to(service, head.encode() + token + b"\r\n").startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("path", TAKING)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"x": ' + b"[" * 500_000, f"has more than {MAX_VALUES} values"),
        (
            b'{"x": ' + b"[" * 101 + b"]" * 101 + b"}",
            f"has values more than {MAX_DEPTH} deep within each other",
        ),
        (b'{"x": [' + b"[]," * 349_000 + b"[]]}", f"has more than {MAX_VALUES} values"),
    ],
    ids=["open", "deep", "wide"],
)
def test_a_body_that_is_too_deep_or_too_wide_is_refused_with_the_bound(
    service: Server, path: str, body: bytes, reason: str
):
    method = "PUT" if path.startswith("/calendars") else "POST"
    answer = service.ask(method, path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"path": "body", "message": reason}]


async def test_a_report_with_its_token_is_read_with_suspicion_too():
    async with TimeMachine(datetime(2026, 1, 1, tzinfo=UTC)) as machine, client_of(machine.app) as client:
        given: list[tuple[str, str]] = []

        @machine.app.action("work")
        async def work(context: Context) -> Accepted:
            given.append((context.run_id, await context.report_token()))
            return Accepted()

        await machine.app.schedules.create("s", "0 * * * *", "work")
        await machine.advance(minutes=90)
        ((run_id, token),) = given
        deep = b'{"result": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}"
        reports = [
            ("failed", b'{"failure": 7}', 400),
            ("succeeded", b'{"result": "\\u0000"}', 422),
            ("succeeded", deep, 422),
            ("succeeded", b'{"result": 12345678901234567}', 422),
            ("succeeded", b'{"result": "12345678901234567"}', 200),
        ]
        for what, body, status in reports:
            answer = await client.post(
                f"/api/v1/runs/{run_id}/{what}",
                content=body,
                headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
            )
            assert answer.status_code == status, answer.text

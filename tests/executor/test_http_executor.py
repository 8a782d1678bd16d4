"""HTTP requests as actions, against real servers: what is sent, what the answer means, and what cannot be reached."""
# ruff: noqa: S106 - these passwords guard nothing

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import hmac
import ipaddress
import json
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import horae
from horae import Config
from horae.executor.http_connection import PORTION, look_up, new_pool, read_body
from horae.executor.http_destination import Destinations
from horae.executor.http_executor import HttpExecutor
from horae.executor.http_options import HttpRequest
from horae.model import AttemptResult, LastOutcome, ScheduleKey, schedule_key
from tests.executor.harness import NOW, RUN, Asked, Attempts, Server, say, serving, stored
from tests.support.process import printed_by
from tests.support.wait import PATIENCE

pytestmark = pytest.mark.contract("SCHD-17")

LOOPBACK = Config(secret_key="k", http_private=("127.0.0.0/8",), output_limit=1000)


class Names:
    """Names and their addresses; each lookup may give another answer."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise socket.gaierror(-2, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@contextlib.asynccontextmanager
async def acting(config: Config = LOOPBACK, names: Names | None = None) -> AsyncIterator[Attempts]:
    executor = HttpExecutor(config, lambda: NOW, "https://horae.example/", resolve=names)
    try:
        yield Attempts(executor)
    finally:
        await executor.close()


async def ask(
    request: HttpRequest, config: Config = LOOPBACK, names: Names | None = None, **more: Any
) -> AttemptResult:
    async with acting(config, names) as attempts:
        return await attempts.make(stored(request), **more)


def result(ended: AttemptResult) -> Any:
    assert ended.ending == "returned", ended.failure
    return json.loads(ended.result or "null")


# What is sent


async def test_a_request_says_which_slot_it_is_for():
    async with serving() as server:
        last = LastOutcome(ScheduleKey("nightly"), '{"rows": 3}', "it rained")
        ended = await ask(HttpRequest(url=f"{server.url}/hook?a=b"), last=last)
    assert result(ended) == {"status": 200, "body": {"ok": True}}
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/hook?a=b")
    key = horae.spec.slot_key(RUN.schedule_id, RUN.nominal_ms // 1000)
    assert json.loads(asked.body) == {
        "schedule_id": "nightly", "run_id": "5f0c", "action_id": "nightly-2026", "nominal": "2026-03-01T12:00:00Z",
        "fire_time": "2026-03-01T12:00:00.250000Z", "attempt": 2, "origin": {"kind": "automatic", "id": ""}, "idempotency_key": key,
        "input": {"a": [1, "ü"]}, "last_result": {"rows": 3}, "last_failure": "it rained",
    }  # fmt: skip
    assert asked.headers == {
        "host": f"127.0.0.1:{server.port}", "accept-encoding": "identity", "user-agent": f"horae/{horae.__version__}",
        "content-type": "application/json", "content-length": str(len(asked.body)), "idempotency-key": key,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_a_request_without_a_body_says_it_in_headers(method: str):
    async with serving(lambda _, writer: say(writer, "204 No Content")) as server:
        request = HttpRequest(url=server.url, method=method, reports=True)
        ended = await ask(request, schedule_key=schedule_key("", "täglich\r\nEvil: yes"), id="a/b")
    assert ended.ending == "accepted"
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == (method, "/", b"")
    said = {name: value for name, value in asked.headers.items() if name.startswith("horae-")}
    assert said.pop("horae-report-token")
    assert said == {
        "horae-schedule-id": "t%C3%A4glich%0D%0AEvil:%20yes", "horae-run-id": "a/b", "horae-action-id": "nightly-2026",
        "horae-nominal": "2026-03-01T12:00:00Z", "horae-fire-time": "2026-03-01T12:00:00.250000Z", "horae-attempt": "2",
        "horae-origin": "automatic", "horae-report-url": "https://horae.example/api/v1/runs/a%2Fb",
    }  # fmt: skip
    assert "content-length" not in asked.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "GET"])
async def test_a_request_is_signed_with_the_secret(method: str):
    async with serving() as server:
        result(await ask(HttpRequest(url=server.url, method=method, secret="whsec-123")))
    (asked,) = server.asked
    found = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", asked.headers["horae-signature"])
    assert found is not None
    assert found[1] == str(NOW // 1000)
    signed = f"{found[1]}.".encode() + asked.body
    assert hmac.new(b"whsec-123", signed, hashlib.sha256).hexdigest() == found[2]


async def test_headers_are_sent_as_they_were_given():
    given = {"Authorization": "Bearer hunter2", "content-type": "application/vnd.x+json", "USER-AGENT": "me"}
    async with serving() as server:
        result(await ask(HttpRequest(url=server.url, headers=given)))
    (asked,) = server.asked
    for name, value in given.items():
        assert asked.headers[name.lower()] == value


async def test_work_that_reports_back_gets_a_token_whose_hash_was_kept_before():
    kept: list[bool] = []

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        kept.append(asked.is_token(attempts.tokens[-1]))
        await say(writer, "202 Accepted", b"whatever")

    async with serving(answer) as server, acting() as attempts:
        ended = await attempts.make(stored(HttpRequest(url=server.url, reports=True)))
    assert ended.ending == "accepted"
    assert kept == [True]
    assert json.loads(server.asked[0].body)["report"]["url"] == "https://horae.example/api/v1/runs/5f0c"


# What the answer means


@pytest.mark.parametrize(
    ("success", "status", "well"),
    [
        ((), "200 OK", True),
        ((), "299 Fine", True),
        ((), "302 Found", False),
        ((), "404 Not Found", False),
        ((404,), "404 Not Found", True),
        ((404,), "200 OK", False),
        ((302,), "302 Found", True),
    ],
)
async def test_which_statuses_are_success(success: tuple[int, ...], status: str, well: bool):
    async with serving(lambda _, writer: say(writer, status, b"because")) as server:
        ended = await ask(HttpRequest(url=server.url, success=success))
    if well:
        assert result(ended) == {"status": int(status[:3]), "body": "because"}
    else:
        assert ended.ending == "raised"
        assert ended.errors[:2] == ("HttpStatusError", "HoraeError")
        assert ended.failure == f"HttpStatusError: The answer had the status {status[:3]}: because"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"", ""),
        (b"plain", "plain"),
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b"\xff\x00", "\ufffd\x00"),
        (b'"\\ud800"', '"\\ud800"'),
        (b"1e999", "1e999"),
        (b"[" * 900, "[" * 900),
    ],
)
async def test_an_answer_is_kept_as_what_it_is(body: bytes, kept: object):
    async with serving(lambda _, writer: say(writer, "200 OK", body)) as server:
        assert result(await ask(HttpRequest(url=server.url))) == {"status": 200, "body": kept}


@pytest.mark.parametrize("limit", [1000, 3 * 1024 * 1024])
async def test_of_an_answer_that_never_ends_the_beginning_is_kept(limit: int):
    sent = 0

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"\x01" * 65_536)
            await writer.drain()
            sent += 65_536

    config = Config(http_private=("127.0.0.0/8",), output_limit=limit)
    async with serving(answer) as server:
        kept = result(await ask(HttpRequest(url=server.url), config))
    assert kept["truncated"] is True
    assert set(kept["body"]) == {"\x01"}
    assert len(kept["body"]) <= limit
    assert sent < limit + 50_000_000  # what the buffers of the system took, and no more


async def test_many_headers_in_an_answer_are_not_read_for_ever():
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X: " + b"y" * 60_000 + b"\r\n")
            await writer.drain()

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url))
    assert ended.ending == "raised"
    assert ended.errors[0] == "HttpAnswerError"


# An answer that does not end: whatever its form, it fails the attempt


Send = Callable[[bytes], Awaitable[None]]


async def send_to(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def interim_answers(send: Send) -> None:
    while True:
        await send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)


async def interim_answers_with_long_headers(send: Send) -> None:
    while True:
        await send(b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 50_000 + b"\r\n\r\n")


async def small_chunks(send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(64):
        await send(b"1\r\nx\r\n" * 1024)
    await send(b"0\r\n\r\n")


async def chunks_with_long_extensions(send: Send) -> None:
    await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await send(b"1;" + b"y" * 50_000 + b"\r\nx\r\n")


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (interim_answers, "interim answers and headers have more than 65536 bytes"),
        (interim_answers_with_long_headers, "interim answers and headers have more than 65536 bytes"),
        (small_chunks, "came in more than 10000 pieces"),
        (chunks_with_long_extensions, "its body has more than"),
    ],
)
async def test_an_answer_that_costs_more_than_it_says_is_given_up(
    behaviour: Callable[[Send], Awaitable[None]], reason: str
):
    sent = 0

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        async def send(data: bytes) -> None:
            nonlocal sent
            await send_to(writer, data)
            sent += len(data)

        await behaviour(send)

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url, timeout="1h"), Config(http_private=("127.0.0.0/8",)))
    assert ended.ending == "raised"
    assert reason in (ended.failure or "")
    assert ended.errors[:2] == ("HttpAnswerError", "HoraeError")
    assert sent < 50_000_000  # what the buffers of the system took, and no more


async def test_an_answer_by_the_byte_is_given_up():
    """Every segment has one byte, so that each costs a turn of the event loop."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        raw = writer.transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 30_000 + b"\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url, timeout="1h"))
    assert ended.errors[0] == "HttpAnswerError"
    assert "came in more than 10000 pieces" in (ended.failure or "")


async def test_an_answer_that_has_arrived_already_is_read_in_portions():
    """So that others get their turn after a few hundred chunks, and not after all of them."""
    turns, size = 0, 9900

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * size + b"0\r\n\r\n"
        )
        await writer.drain()

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    pool = new_pool(Destinations(["*"], ["127.0.0.0/8"]), look_up)
    async with serving(answer) as server, pool, pool.stream("GET", server.url) as response:
        await asyncio.sleep(0.1)  # it arrives
        counting = asyncio.create_task(others())
        assert await read_body(response, 64 * 1024) == b"x" * size
        counting.cancel()
    assert turns >= 6 * size // PORTION


@pytest.mark.parametrize("form", ["1xx", "chunks"])
async def test_the_whole_answer_has_one_time_limit(form: str):
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"" if form == "1xx" else b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" if form == "1xx" else b"1\r\nx\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url, timeout="200ms"))
    assert (ended.ending, ended.failure) == ("raised", "TimeoutError: no answer within 200ms")


async def test_a_server_that_switches_protocols_has_not_answered():
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        while True:
            await send_to(writer, b"x" * 65_536)

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url))
    assert ended.ending == "raised"


async def test_a_few_interim_answers_and_small_chunks_are_taken():
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100
        )
        writer.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 900 + b"0\r\n\r\n"
        )
        await writer.drain()

    async with serving(answer) as server:
        assert result(await ask(HttpRequest(url=server.url))) == {"status": 200, "body": "x" * 900}


# What goes wrong


@pytest.mark.parametrize("drip", [False, True])
async def test_an_answer_that_takes_too_long_is_a_timeout(drip: bool):
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        if drip:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            if drip:
                writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)
            if writer.is_closing():
                return

    async with serving(answer) as server:
        ended = await ask(HttpRequest(url=server.url, timeout="500ms"))
        server.answer = lambda _, writer: say(writer, "200 OK")
    assert (ended.ending, ended.failure) == ("raised", "TimeoutError: no answer within 500ms")
    assert "TimeoutError" in ended.errors


async def test_what_could_not_be_sent_has_not_begun():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = await ask(HttpRequest(url=f"http://127.0.0.1:{port}/"))
    assert ended.ending == "refused"
    assert f"cannot connect to 127.0.0.1:{port}" in (ended.failure or "")
    for host in ("nowhere.example", "a..b", "x" * 70 + ".example"):
        ended = await ask(HttpRequest(url=f"http://{host}/"), names=None if host == "a..b" else Names())
        assert ended.ending == "refused", host
        assert host in (ended.failure or "")


async def test_a_connection_that_takes_too_long_has_not_begun():
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    executor = HttpExecutor(LOOPBACK, lambda: NOW, resolve=never)
    ended = await Attempts(executor).make(stored(HttpRequest(url="http://slow.example/", timeout="50ms")))
    await executor.close()
    assert ended.ending == "refused"
    assert "no connection to slow.example within 50ms" in (ended.failure or "")


async def test_a_connection_that_is_lost_after_the_request_was_sent_has_begun():
    async def hang_up(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with serving(hang_up) as server:
        ended = await ask(HttpRequest(url=server.url))
    assert ended.ending == "raised"
    assert "ConnectionError" in ended.errors
    assert len(server.asked) == 1  # it was not sent again behind our back


async def test_a_run_whose_schedule_has_no_request_is_not_started():
    async with acting() as attempts:
        ended = await attempts.make(None)
    assert (ended.ending, ended.permanent) == ("refused", True)


async def test_a_request_that_is_cancelled_lets_go_of_its_connection():
    gone = asyncio.Event()

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await asyncio.sleep(0.02)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        gone.set()

    async with serving(answer) as server, acting() as attempts:
        run = attempts.begin(stored(HttpRequest(url=server.url)))
        while not server.asked:
            await asyncio.sleep(0.01)
        attempts.ask(run, "cancel")
        ended = await attempts.end()
        await asyncio.wait_for(gone.wait(), PATIENCE)
    assert (ended.ending, ended.reason) == ("stopped", "cancelled")


# Where it may go


PRIVATE_ONLY = Config(secret_key="k")


@pytest.mark.contract("CRON-23")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1"])
async def test_a_name_with_something_private_behind_it_is_refused(address: str):
    async with serving() as server:
        names = Names(inside_example=[["93.184.215.14", address]])
        ended = await ask(HttpRequest(url=f"http://inside.example:{server.port}/"), PRIVATE_ONLY, names)
    assert ended.ending == "raised"
    assert ended.errors[0] == "DestinationRefusedError"
    assert "its address" in (ended.failure or "")
    assert server.connections == 0


@pytest.mark.contract("CRON-23")
async def test_a_name_that_changes_its_meaning_is_asked_for_once_and_what_was_checked_is_connected_to():
    config = Config(http_private=("127.0.0.2/32",))
    async with serving() as inside:
        # The first address is allowed, and no server listens there; the second would be a private one.
        names = Names(rebinding_example=[["127.0.0.2"], ["127.0.0.1"]])
        ended = await ask(HttpRequest(url=f"http://rebinding.example:{inside.port}/"), config, names)
        assert names.asked == ["rebinding.example"]
        assert ended.ending == "refused"  # no connection, and no other try
        ended = await ask(HttpRequest(url=f"http://rebinding.example:{inside.port}/"), config, names)
        assert ended.errors[0] == "DestinationRefusedError"
    assert inside.connections == 0


@pytest.mark.contract("CRON-23")
@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost."]
)
async def test_the_inside_is_refused_under_its_other_names(host: str):
    async with serving() as server:
        ended = await ask(HttpRequest(url=f"http://{host}:{server.port}/"), PRIVATE_ONLY)
    assert ended.ending in {"raised", "refused"}
    if ended.ending == "raised":
        assert ended.errors[0] == "DestinationRefusedError"
    assert server.connections == 0


@pytest.mark.contract("CRON-23")
@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_is_never_followed(status: str):
    async with serving() as inside:
        location = f"Location: http://127.0.0.1:{inside.port}/secret"
        async with serving(lambda _, writer: say(writer, status, b"", location)) as server:
            ended = await ask(HttpRequest(url=server.url, method="GET"))
    assert ended.failure == f"HttpStatusError: The answer had the status {status[:3]}"
    assert (len(server.asked), inside.connections) == (1, 0)


@pytest.mark.contract("CRON-23")
async def test_a_host_that_is_not_allowed_any_more_is_refused_when_its_time_comes():
    async with serving() as server:
        config = Config(http_private=("127.0.0.0/8",), http_allow=("example.com",))
        ended = await ask(HttpRequest(url=server.url), config)
    assert (ended.ending, ended.reason) == ("not_admitted", "not_allowed")
    assert "not among the allowed" in (ended.failure or "")
    assert server.connections == 0


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    async with serving() as proxy, serving() as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        result(await ask(HttpRequest(url=server.url)))
    assert (proxy.connections, server.connections) == (0, 1)


async def test_another_address_of_a_name_is_tried_when_one_does_not_answer():
    async with serving() as server:
        names = Names(two_example=[["127.0.0.3", "127.0.0.1"]])
        result(await ask(HttpRequest(url=f"http://two.example:{server.port}/"), names=names))
    assert server.asked[0].headers["host"] == f"two.example:{server.port}"


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """A certificate for a name, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(7).not_valid_before(begin).not_valid_after(begin.replace(year=2099))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / f"{name}.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = folder / f"{name}.key"
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(pem), str(secret)


async def test_the_certificate_must_be_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pem, key = certificate(tmp_path, "good.example")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(pem, key)
    monkeypatch.setenv("SSL_CERT_FILE", pem)
    names = Names(good_example=[["127.0.0.1"]], bad_example=[["127.0.0.1"]])
    async with serving(ssl=trust) as server:
        well = await ask(HttpRequest(url=f"https://good.example:{server.port}/"), names=names)
        assert result(well) == {"status": 200, "body": {"ok": True}}
        server.answer = lambda _, writer: small_chunks(partial(send_to, writer))
        config = Config(http_private=("127.0.0.0/8",))
        ended = await ask(HttpRequest(url=f"https://good.example:{server.port}/"), config, names)
        assert ended.errors[0] == "HttpAnswerError"
        for host in ("bad.example", "127.0.0.1"):
            names.names["127.0.0.1"] = [["127.0.0.1"]]
            ended = await ask(HttpRequest(url=f"https://{host}:{server.port}/"), names=names)
            assert ended.ending == "refused"
            assert "certificate" in (ended.failure or "").lower()
    assert len(server.asked) == 2


# What is secret stays so


SECRETS = HttpRequest(
    url="",
    headers={"Authorization": "Bearer hunter2-hunter2", "X-Key": "key-0123456789"},
    secret="whsec-987654321",
)
WORDS = ("hunter2", "key-0123456789", "whsec-987654321")


@pytest.mark.parametrize("status", ["200 OK", "500 Oops"])
@pytest.mark.parametrize("padding", [0, 900, 980, 995])
async def test_a_server_that_sends_secrets_back_does_not_make_them_known(
    status: str, padding: int, caplog: pytest.LogCaptureFixture
):
    async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
        said = json.dumps([asked.headers, json.loads(asked.body)])
        await say(writer, status, b"x" * padding + said.encode())

    caplog.set_level(logging.DEBUG)
    async with serving(echo) as server, acting() as attempts:
        request = HttpRequest(
            url=server.url, headers=SECRETS.headers, secret=SECRETS.secret, reports=status != "200 OK"
        )
        ended = await attempts.make(stored(request))
    (asked,) = server.asked
    token = json.loads(asked.body).get("report", {}).get("token", "nothing")
    for word in (*WORDS, token):
        assert word not in (ended.failure or "") + (ended.result or "")
        assert word not in caplog.text
        assert word not in repr(request)


async def test_a_value_that_cannot_be_a_header_is_not_shown_when_it_fails():
    async with serving() as server, acting() as attempts:
        request = HttpRequest(url=server.url, headers={"X": "hunter2\r\nEvil: yes"})
        ended = await attempts.make(stored(request))
    assert ended.ending == "raised"
    assert "hunter2" not in (ended.failure or "")
    assert server.connections == 0


async def test_another_key_is_said_to_be_another():
    async with serving() as server, acting() as attempts:
        ended = await attempts.make(stored(HttpRequest(url=server.url, headers={"X": "y"}), "other"))
    assert ended.ending == "refused"
    assert "HORAE_SECRET_KEY" in (ended.failure or "")


def test_without_its_client_it_says_what_to_install():
    code = """
import asyncio, sys
sys.modules["httpcore"] = None
from horae import Config
from horae.executor.http_executor import HttpExecutor
from horae.executor.http_destination import Destinations
from horae.executor.http_options import HttpRequest, check_request
check_request(HttpRequest(url="https://example.com"), Destinations(["*"], []))
try:
    HttpExecutor(Config(), int)._connected()
except Exception as error:
    print(type(error).__name__, error.hint)
"""
    assert printed_by(code).strip() == "MissingExtraError pip install 'horae[service]'"


async def test_many_requests_at_once():
    async with serving() as server, acting() as attempts:
        for number in range(50):
            attempts.begin(stored(HttpRequest(url=f"{server.url}/{number}")), id=f"r{number}")
        while len(attempts.worker.ended()) < 50:
            await asyncio.sleep(0.01)
        assert {each.ending for each in attempts.worker.ended()} == {"returned"}
    assert len({asked.path for asked in server.asked}) == 50
    assert isinstance(server, Server)

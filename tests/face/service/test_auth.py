"""Which callers are authenticated, as which user, and which are refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from horae.config import Config
from horae.errors import AuthenticationError, ConfigError, HoraeError, PermissionDeniedError
from horae.face.service import token_verification_keys as keys_module
from horae.face.service.auth import MAX_TOKEN_LENGTH, Authenticator, check_start
from horae.face.service.caller import Caller
from horae.face.service.connection_limit import Connections, Listener
from horae.face.service.http_protocol import HttpProtocol, tls_options
from tests.face.service.certificates import Authority

NOW = 1_800_000_000
EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound to it
SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def claims(**changes: Any) -> dict[str, Any]:
    made = {"sub": "ada", "aud": "horae", "exp": NOW + 60} | changes
    return {key: value for key, value in made.items() if value is not ...}


def token(key: Any = SECRET, algorithm: str = "HS256", kid: str | None = None, **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm, headers=None if kid is None else {"kid": kid})


def raw_token(header: dict[str, Any], payload: bytes, key: bytes = SECRET.encode()) -> str:
    """A token that no library would make, with a signature that holds."""

    def part(text: bytes) -> bytes:
        return base64.urlsafe_b64encode(text).rstrip(b"=")

    signed = part(json.dumps(header).encode()) + b"." + part(payload)
    return (signed + b"." + part(hmac.digest(key, signed, hashlib.sha256))).decode()


def bearing(text: str) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"example.org"), (b"authorization", f"Bearer {text}".encode())]


def jwk(key: rsa.RSAPrivateKey, **changes: Any) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "one", **changes}


def jwks(*entries: Any) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


class Clock:
    """A clock in milliseconds that a test moves."""

    def __init__(self) -> None:
        self.now = NOW * 1000

    def __call__(self) -> int:
        return self.now


async def answer(config: Config, text: str, clock: Clock | None = None) -> Caller:
    return await Authenticator(config, clock or Clock()).caller(bearing(text), None)


WITH_SECRET = Config(jwt_secret=SECRET)


async def test_a_token_identifies_the_caller():
    assert await answer(WITH_SECRET, token()) == Caller("ada")


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize(
    "given",
    [
        {"scope": "read service admin"},
        {"scopes": ["read", "service", "admin"]},
        {"scp": ["read", "service", 7, "admin"]},
        {"scp": "read service", "scope": "admin"},
    ],
)
async def test_scopes_come_in_three_ways(given: dict[str, Any]):
    caller = await answer(WITH_SECRET, token(**given))
    assert caller.scopes == {"read", "service", "admin"}


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: token(exp=NOW - 11), "expired"),
        (lambda: token(exp=...), "lacks"),
        (lambda: token(exp=None), "lacks"),
        (lambda: token(aud=...), "lacks"),
        (lambda: token(aud="another"), "not meant for"),
        (lambda: token(aud=["another", "third"]), "not meant for"),
        (lambda: token(sub=...), "lacks"),
        (lambda: token(sub=""), "1 to 200"),
        (lambda: token(sub="a" * 201), "1 to 200"),
        (lambda: token(sub="a\nb"), "1 to 200"),
        (lambda: raw_token({"alg": "HS256"}, json.dumps(claims(sub=7)).encode()), "subject must be a text"),
        (lambda: token(nbf=NOW + 11), "not valid yet"),
        (lambda: raw_token({"alg": "HS256"}, json.dumps(claims(exp="9999999999")).encode()), "numbers"),
        (lambda: raw_token({"alg": "HS256"}, json.dumps(claims(exp=True)).encode()), "numbers"),
        (lambda: raw_token({"alg": "HS256"}, json.dumps(claims(exp=float("inf"))).encode()), "numbers"),
        (lambda: raw_token({"alg": "HS256"}, b'{"sub":"ada","aud":"horae","exp":1' + b"0" * 400 + b"}"), "numbers"),
        (lambda: raw_token({"alg": "HS256"}, json.dumps(claims(nbf="0")).encode()), "numbers"),
        (lambda: raw_token({"alg": "HS256"}, b"[]"), "cannot be read"),
        (lambda: raw_token({"alg": "HS256", "crit": ["exotic"]}, json.dumps(claims()).encode()), "cannot be read"),
        (lambda: raw_token({"alg": "HS256"}, b"[" * 5000), "cannot be read"),
        (lambda: token("another secret, which is long enough"), "signature"),
        (lambda: token() + "x", "signature"),
        (lambda: jwt.encode(claims(), "", algorithm="none"), "signed with HS256"),
        (lambda: raw_token({"alg": "None"}, json.dumps(claims()).encode()), "signed with HS256"),
        (lambda: raw_token({"alg": ["HS256"]}, json.dumps(claims()).encode()), "be read"),
        (lambda: raw_token({}, json.dumps(claims()).encode()), "be"),
        (lambda: token("s" * 64, "HS512"), "signed with HS256"),
        (lambda: token(RSA_KEY, "RS256"), "signed with HS256"),
        (lambda: "not.a.token", "cannot be read"),
        (lambda: "a" * (MAX_TOKEN_LENGTH + 1), "more than"),
        (lambda: token(much="x" * MAX_TOKEN_LENGTH), "more than"),
        (lambda: "tökén", "cannot be read"),
    ],
)  # fmt: skip
async def test_a_token_that_does_not_hold(made: Any, says: str):
    text = made()
    with pytest.raises(AuthenticationError, match=says) as raised:
        await answer(WITH_SECRET, text)
    shown = f"{raised.value} {raised.value.hint} {raised.value.details} {raised.value.__cause__}"
    assert text not in shown
    assert SECRET not in shown
    assert all(part not in shown for part in text.split(".") if len(part) > 5)


async def test_a_clock_may_be_a_little_off():
    assert (await answer(WITH_SECRET, token(exp=NOW - 9))).user == "ada"
    assert (await answer(WITH_SECRET, token(nbf=NOW + 9))).user == "ada"


async def test_times_are_judged_by_the_clock_that_was_given():
    clock = Clock()
    authenticator = Authenticator(WITH_SECRET, clock)
    text = token()
    assert (await authenticator.caller(bearing(text), None)).user == "ada"
    clock.now += 71_000
    with pytest.raises(AuthenticationError, match="expired"):
        await authenticator.caller(bearing(text), None)


async def test_the_issuer_counts_where_one_is_named():
    config = Config(jwt_secret=SECRET, jwt_issuer="https://issuer.example")
    assert (await answer(config, token(iss="https://issuer.example"))).user == "ada"
    for wrong in (token(iss="https://other.example"), token()):
        with pytest.raises(AuthenticationError):
            await answer(config, wrong)


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([], "no token"),
        ([(b"authorization", b"Basic YTpi")], "must be"),
        ([(b"authorization", b"Bearer")], "must be"),
        ([(b"authorization", b"Bearer ")], "must be"),
        ([(b"authorization", b"Bearer a b")], "cannot be read"),
        (bearing("x") + bearing("y"), "more than once"),
    ],
)
async def test_headers_that_bring_no_token(headers: list[tuple[bytes, bytes]], says: str):
    with pytest.raises(AuthenticationError, match=says):
        await Authenticator(WITH_SECRET, Clock()).caller(headers, None)


async def test_a_token_twice_is_refused_even_if_it_holds():
    with pytest.raises(AuthenticationError, match="more than once"):
        await Authenticator(WITH_SECRET, Clock()).caller([*bearing(token()), *bearing(token())], None)


@given(st.text(st.characters(max_codepoint=255), max_size=300), st.binary(max_size=200))
def test_no_header_brings_it_down(text: str, payload: bytes):
    authenticator = Authenticator(WITH_SECRET, Clock())

    async def ask(value: bytes) -> None:
        with pytest.raises(AuthenticationError):
            await authenticator.caller([(b"authorization", value)], None)

    asyncio.run(ask(b"Bearer " + text.encode("latin-1")))
    asyncio.run(ask(f"Bearer {raw_token({'alg': 'HS256'}, payload)}".encode()))


# Keys in a file


@pytest.mark.contract("CRON-18")
async def test_keys_in_a_file(tmp_path: Path):
    file = tmp_path / "jwks.json"
    file.write_bytes(jwks(jwk(RSA_KEY), jwk(OTHER_KEY, kid="two")))
    config = Config(jwt_jwks=str(file))
    assert (await answer(config, token(RSA_KEY, "RS256", "one"))).user == "ada"
    assert (await answer(config, token(OTHER_KEY, "RS256", "two"))).user == "ada"
    for wrong in (
        token(RSA_KEY, "RS256", "two"),
        token(RSA_KEY, "RS256", "three"),
        token(RSA_KEY, "RS256"),  # there are several, and it does not say which
        token(RSA_KEY, "RS384", "one"),
        token(RSA_KEY, "PS256", "one"),
        token(SECRET, "HS256", "one"),
    ):
        with pytest.raises(AuthenticationError):
            await answer(config, wrong)


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize("secret", ["", SECRET])
async def test_a_public_key_is_no_secret(tmp_path: Path, secret: str):
    """A token signed with HS256 and the public key, which is no secret, is refused."""
    file = tmp_path / "jwks.json"
    file.write_bytes(jwks(jwk(RSA_KEY)))
    config = Config(jwt_jwks=str(file), jwt_secret=secret)
    for key in (PUBLIC_PEM, PUBLIC_PEM.strip(), json.dumps(jwk(RSA_KEY)).encode(), file.read_bytes()):
        forged = raw_token({"alg": "HS256", "kid": "one"}, json.dumps(claims()).encode(), key)
        with pytest.raises(AuthenticationError):
            await answer(config, forged)


async def test_both_kinds_of_tokens_beside_each_other(tmp_path: Path):
    file = tmp_path / "jwks.json"
    file.write_bytes(jwks(jwk(RSA_KEY)))
    config = Config(jwt_jwks=str(file), jwt_secret=SECRET)
    assert (await answer(config, token(sub="hs"))).user == "hs"
    assert (await answer(config, token(RSA_KEY, "RS256", "one", sub="rs"))).user == "rs"
    assert (await answer(config, token(RSA_KEY, "RS256", sub="only"))).user == "only"  # one key needs no name


async def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path):
    file = tmp_path / "jwks.json"
    file.write_bytes(jwks(jwk(RSA_KEY)))
    authenticator = Authenticator(Config(jwt_jwks=str(file)), Clock())

    async def accepts(key: rsa.RSAPrivateKey) -> bool:
        try:
            await authenticator.caller(bearing(token(key, "RS256", "one")), None)
        except AuthenticationError:
            return False
        return True

    assert await accepts(RSA_KEY)
    file.write_bytes(jwks(jwk(OTHER_KEY)))
    os.utime(file, ns=(1, 1))
    assert not await accepts(RSA_KEY)
    assert await accepts(OTHER_KEY)
    file.write_bytes(b'{"keys": [')  # half written: the known keys stay in use
    assert await accepts(OTHER_KEY)
    file.unlink()
    assert await accepts(OTHER_KEY)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [7, null, {"kty": "RSA"}, {"kty": "RSA", "n": 7, "e": "AQAB"}]}',
        jwks({"kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256"}),
        jwks(jwk(RSA_KEY, use="enc")),
        jwks(jwk(RSA_KEY, alg="RS512")),
        jwks(jwk(rsa.generate_private_key(public_exponent=65537, key_size=1024))),  # noqa: S505 - too short
        jwks(jwk(RSA_KEY)) + b" " * keys_module.LARGEST,
    ],
)
def test_a_file_without_a_usable_key_fails_at_start(tmp_path: Path, content: bytes):
    file = tmp_path / "jwks.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="HORAE_JWT_JWKS"):
        check_start(Config(jwt_jwks=str(file)))


# Keys at an address


class KeyServer:
    """A server of keys on this machine, which can be told to fail."""

    def __init__(self) -> None:
        self.content = jwks(jwk(RSA_KEY))
        self.status = 200
        self.asked = 0
        self.address = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        headers = [(b"location", b"/elsewhere")] if self.status == 302 else []
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.content})


@asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[str]:
    """An application on a real socket of this machine; the address is without a scheme."""
    connections = Connections()
    if options.get("http") is HttpProtocol:
        options["http"] = partial(HttpProtocol, connections)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", **options))
    listener = Listener(connections)
    listener.bind(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture
async def key_server() -> AsyncIterator[KeyServer]:
    server = KeyServer()
    async with serving(server) as place:
        server.address = f"http://{place}/jwks.json"
        yield server


@pytest.mark.contract("CRON-18")
async def test_keys_at_an_address_are_kept_for_a_while(key_server: KeyServer):
    clock = Clock()
    authenticator = Authenticator(Config(jwt_jwks=key_server.address), clock)
    text = bearing(token(RSA_KEY, "RS256", "one", exp=NOW + 10_000))
    many = await asyncio.gather(*(authenticator.caller(text, None) for _ in range(20)))
    assert {each.user for each in many} == {"ada"}
    assert key_server.asked == 1
    clock.now += keys_module.FRESH
    await authenticator.caller(text, None)
    assert key_server.asked == 2


async def test_an_unknown_key_is_fetched_at_most_once_in_a_while(key_server: KeyServer):
    clock = Clock()
    authenticator = Authenticator(Config(jwt_jwks=key_server.address), clock)
    await authenticator.caller(bearing(token(RSA_KEY, "RS256", "one")), None)
    new = bearing(token(OTHER_KEY, "RS256", "two"))
    key_server.content = jwks(jwk(RSA_KEY), jwk(OTHER_KEY, kid="two"))
    for _ in range(5):  # made-up key names cause no fetch
        with pytest.raises(AuthenticationError, match="unknown key"):
            await authenticator.caller(new, None)
    assert key_server.asked == 1
    clock.now += keys_module.PATIENCE
    assert (await authenticator.caller(new, None)).user == "ada"
    assert key_server.asked == 2


@pytest.mark.parametrize(
    ("status", "content"),
    [(500, b""), (302, b""), (200, b"<html>"), (200, jwks()), (200, b" " * (keys_module.LARGEST + 1))],
)
async def test_known_keys_stay_in_use_while_they_cannot_be_fetched_again(
    key_server: KeyServer, status: int, content: bytes
):
    clock = Clock()
    authenticator = Authenticator(Config(jwt_jwks=key_server.address), clock)
    text = bearing(token(RSA_KEY, "RS256", "one", exp=NOW + 10_000))
    await authenticator.caller(text, None)
    key_server.status, key_server.content = status, content
    clock.now += keys_module.FRESH
    for _ in range(3):
        assert (await authenticator.caller(text, None)).user == "ada"
    assert key_server.asked == 2  # and not each time


async def test_without_any_keys_every_token_is_refused_until_keys_are_fetched(key_server: KeyServer):
    clock = Clock()
    authenticator = Authenticator(Config(jwt_jwks=key_server.address), clock)
    key_server.status = 503
    text = bearing(token(RSA_KEY, "RS256", "one"))
    with pytest.raises(AuthenticationError):
        await authenticator.caller(text, None)
    key_server.status = 200
    clock.now += keys_module.PATIENCE
    assert (await authenticator.caller(text, None)).user == "ada"


async def test_an_address_where_no_server_listens(key_server: KeyServer):
    authenticator = Authenticator(Config(jwt_jwks="http://127.0.0.1:1/jwks.json"), Clock())
    with pytest.raises(AuthenticationError):
        await authenticator.caller(bearing(token(RSA_KEY, "RS256", "one")), None)


# What the service refuses to start with


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize(
    "host", [EVERYWHERE, "::", "192.168.1.5", "example.org", "", "127.0.0.1.example.org"]
)
def test_another_address_needs_authentication(host: str):
    with pytest.raises(ConfigError, match="HORAE_HOST") as raised:
        check_start(Config(host=host))
    assert "HORAE_JWT_SECRET" in raised.value.message
    check_start(Config(host=host, jwt_secret=SECRET))


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_none(host: str):
    check_start(Config(host=host))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"jwt_secret": "s" * 31}, "HORAE_JWT_SECRET"),
        ({"jwt_secret": PUBLIC_PEM.decode()}, "HORAE_JWT_SECRET"),
        ({"jwt_secret": SECRET, "jwt_audience": ""}, "HORAE_JWT_AUDIENCE"),
        ({"jwt_jwks": "/nowhere/jwks.json"}, "HORAE_JWT_JWKS"),
        ({"jwt_jwks": "http://example.org/jwks.json"}, "HORAE_JWT_JWKS"),
        ({"jwt_jwks": "ftp://example.org/jwks.json"}, "HORAE_JWT_JWKS"),
        ({"tls_certificate": "/nowhere.pem"}, "HORAE_TLS_KEY"),
        ({"tls_key": "/nowhere.key"}, "HORAE_TLS_CERTIFICATE"),
        ({"tls_client_ca": "/nowhere.pem"}, "HORAE_TLS_CERTIFICATE"),
        ({"tls_certificate": "/nowhere.pem", "tls_key": "/nowhere.key"}, "HORAE_TLS_CERTIFICATE"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], named: str):
    with pytest.raises(ConfigError) as raised:
        check_start(Config(**settings))
    assert raised.value.details["setting"] == named
    secret = settings.get("jwt_secret")
    assert not secret or secret not in f"{raised.value} {raised.value.details}"


def test_files_of_tls_that_do_not_fit(tmp_path: Path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "server")
    _, other = authority.issue("other", "other")
    check_start(Config(tls_certificate=certificate, tls_key=key, tls_client_ca=str(authority.file)))
    with pytest.raises(ConfigError, match="HORAE_TLS_CERTIFICATE"):
        check_start(Config(tls_certificate=certificate, tls_key=other))
    with pytest.raises(ConfigError, match="HORAE_TLS_CLIENT_CA"):
        check_start(Config(tls_certificate=certificate, tls_key=key, tls_client_ca=key))


# This machine, without authentication


def local(host: str | None, origin: str | None = None) -> list[tuple[bytes, bytes]]:
    named = ((b"host", host), (b"origin", origin))
    return [(name, value.encode()) for name, value in named if value is not None]


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize(
    "headers",
    [
        local("127.0.0.1:8420"),
        local("localhost"),
        local("LOCALHOST:8420", "http://localhost:8420"),
        local("127.1.2.3:1"),
        local("[::1]:8420", "http://[::1]:8420"),
        local("localhost:8420", "https://localhost:8420"),
    ],
)
async def test_this_machine_is_local(headers: list[tuple[bytes, bytes]]):
    assert await Authenticator(Config(), Clock()).caller(headers, None) == Caller(
        "local", frozenset({"admin", "service"})
    )


@pytest.mark.contract("CRON-18")
@pytest.mark.parametrize(
    "headers",
    [
        local(None),
        local("example.org:8420"),  # a name that was made to lead here
        local("localhost.example.org"),
        local("127.0.0.1.example.org"),
        local("example.org@127.0.0.1"),
        local("::1"),
        local("[127.0.0.1]"),
        local("localhost:8420:8420"),
        local("0.0.0.0:8420"),
        local("localhost:8420", "https://example.org"),  # a page of another site
        local("localhost:8420", "http://localhost:3000"),
        local("localhost:8420", "http://127.0.0.1:8420"),
        local("localhost:8420", "null"),
        local("localhost:8420", ""),
        local("localhost:8420", "http://[oops"),
        local("localhost:8420", "file://localhost:8420"),
    ],
)
async def test_a_page_elsewhere_does_not_drive_a_local_scheduler(headers: list[tuple[bytes, bytes]]):
    with pytest.raises(PermissionDeniedError):
        await Authenticator(Config(), Clock()).caller(headers, None)


async def test_a_host_or_origin_twice_is_refused():
    for headers in (
        local("localhost") * 2,
        [*local("localhost", "http://localhost"), (b"origin", b"http://x")],
    ):
        with pytest.raises(HoraeError, match="more than once"):
            await Authenticator(Config(), Clock()).caller(headers, None)


# Mutual TLS, over real sockets


async def peer_app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(scope["state"]["peer"]).encode()})


async def ask(place: str, authority: Authority, certificate: tuple[str, str] | None) -> Any:
    context = ssl.create_default_context(cafile=str(authority.file))
    if certificate is not None:
        context.load_cert_chain(*certificate)
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        first = await client.get(f"https://{place}/")
        assert (await client.get(f"https://{place}/")).content == first.content  # the connection is kept
        return first.json()


@pytest.fixture
def mutual(tmp_path: Path) -> tuple[Authority, Config]:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "server")
    return authority, Config(
        host=EVERYWHERE, tls_certificate=certificate, tls_key=key, tls_client_ca=str(authority.file)
    )


@pytest.mark.contract("CRON-18")
async def test_the_common_name_of_a_verified_certificate(mutual: tuple[Authority, Config], tmp_path: Path):
    authority, config = mutual
    foreign = Authority(tmp_path, "foreign").issue("mallory", "ada")
    async with serving(peer_app, http=HttpProtocol, **tls_options(config)) as place:
        assert await ask(place, authority, authority.issue("ada", "ada")) == "ada"
        assert await ask(place, authority, authority.issue("bob", "bob of Ünder")) == "bob of Ünder"
        assert await ask(place, authority, authority.issue("two", "ada", "bob")) is None
        for wrong in (None, foreign):
            with pytest.raises((httpx.HTTPError, ssl.SSLError)):
                await ask(place, authority, wrong)


async def test_with_tokens_too_a_connection_needs_no_certificate(
    mutual: tuple[Authority, Config], tmp_path: Path
):
    authority, _ = mutual
    config = Config(
        **{name: getattr(mutual[1], name) for name in Config.__struct_fields__} | {"jwt_secret": SECRET}
    )
    async with serving(peer_app, http=HttpProtocol, **tls_options(config)) as place:
        assert await ask(place, authority, None) is None
        assert await ask(place, authority, authority.issue("ada", "ada")) == "ada"
        with pytest.raises((httpx.HTTPError, ssl.SSLError)):
            await ask(place, authority, Authority(tmp_path, "foreign").issue("mallory", "ada"))


async def test_without_an_authority_a_certificate_names_no_user(mutual: tuple[Authority, Config]):
    authority, config = mutual
    alone = Config(tls_certificate=config.tls_certificate, tls_key=config.tls_key)
    async with serving(peer_app, http=HttpProtocol, **tls_options(alone)) as place:
        assert await ask(place, authority, authority.issue("ada", "ada")) is None


async def test_without_tls_there_is_no_peer():
    assert tls_options(Config()) == {}
    async with (
        serving(peer_app, http=HttpProtocol) as place,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        assert (await client.get(f"http://{place}/")).json() is None


@pytest.mark.contract("CRON-18")
async def test_a_certificate_identifies_the_caller(mutual: tuple[Authority, Config]):
    _, config = mutual
    settings = {name: getattr(config, name) for name in Config.__struct_fields__}
    config = Config(**settings | {"tls_admins": ("ops",)})
    authenticator = Authenticator(config, Clock())
    assert await authenticator.caller(local("anything"), "ada") == Caller("ada")
    assert (await authenticator.caller([], "ops")).scopes == {"admin", "service"}
    assert (
        await authenticator.caller(bearing("whatever"), "ada")
    ).user == "ada"  # no tokens are configured here
    with pytest.raises(AuthenticationError, match="certificate"):
        await authenticator.caller(local("localhost"), None)
    assert (await authenticator.caller(local("horae:8420", "https://horae:8420"), "ada")).user == "ada"
    with pytest.raises(
        PermissionDeniedError
    ):  # her browser shows the certificate to whatever page asks for us
        await authenticator.caller(local("horae:8420", "https://example.org"), "ada")
    with pytest.raises(AuthenticationError, match="characters"):
        await authenticator.caller([], "a\x00b")
    both = Authenticator(Config(**settings | {"jwt_secret": SECRET}), Clock())
    assert (await both.caller([], "ada")).user == "ada"
    assert (await both.caller(bearing(token(sub="bob")), "ada")).user == "bob"
    elsewhere = [*bearing(token(sub="bob")), (b"origin", b"https://example.org")]
    assert (await both.caller(elsewhere, "ada")).user == "bob"  # a page that has a token was given it
    with pytest.raises(AuthenticationError):  # a request with a token is judged by the token
        await both.caller(bearing(token(exp=NOW - 100)), "ada")
    with pytest.raises(AuthenticationError):
        await both.caller([], None)


# Whose things


@pytest.mark.contract("CRON-18")
def test_which_owner_a_caller_acts_for():
    ada, service, admin = (Caller("ada", frozenset(each)) for each in ((), ("service",), ("admin",)))
    assert [each.owner_for(None) for each in (ada, service, admin)] == ["ada", "ada", None]
    assert [each.owner_for("ada") for each in (ada, service, admin)] == ["ada"] * 3
    assert [each.owner_for("bob") for each in (service, admin)] == ["bob"] * 2
    assert [each.owner_of_new(None) for each in (ada, service, admin)] == ["ada"] * 3
    assert [each.owner_of_new("bob") for each in (service, admin)] == ["bob"] * 2
    assert ada.owner_of_new("ada") == "ada"
    for ask_for in (ada.owner_for, ada.owner_of_new):
        with pytest.raises(PermissionDeniedError):
            ask_for("bob")
        with pytest.raises(PermissionDeniedError):
            ask_for("")


# The page


def commands(page: str, beginning: str) -> list[str]:
    """The lines of a block of commands, by how it begins."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / page).read_text("utf-8")
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return next(block for block in blocks if block.startswith(beginning)).splitlines()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
async def test_the_certificates_of_the_page_let_ada_in(tmp_path: Path):
    for command in commands("secure.md", "openssl req -x509"):
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    server, key, authority = (str(tmp_path / name) for name in ("server.pem", "server.key", "ca.pem"))
    config = Config(host=EVERYWHERE, tls_certificate=server, tls_key=key, tls_client_ca=authority)
    check_start(config)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    context.load_cert_chain(tmp_path / "ada.pem", tmp_path / "ada.key")
    async with (
        serving(peer_app, http=HttpProtocol, **tls_options(config)) as place,
        httpx.AsyncClient(verify=context, trust_env=False) as client,
    ):
        assert (await client.get(f"https://{place}/")).json() == "ada"

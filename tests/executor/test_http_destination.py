"""Where requests may go: names by the operator's list, addresses by what they are, however they are written."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import ConfigError, DestinationRefusedError, InvalidInputError
from horae.executor.http_destination import Destinations, target_of
from horae.executor.http_options import HttpRequest, check_request
from tests.support.cases import each_of

pytestmark = pytest.mark.contract("SCHD-17", "CRON-23")

PRIVATE = [
    "127.0.0.1", "127.255.1.2", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",  # noqa: S104
    "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1", "100::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a00:1",
    "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "5f00::1", "4000::1",
]  # fmt: skip
PUBLIC = [
    "93.184.215.14",
    "8.8.8.8",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@each_of("address", PRIVATE)
def test_addresses_that_are_not_public_are_refused(address: str):
    with pytest.raises(DestinationRefusedError, match="private"):
        Destinations(["*"], []).check_address("host", ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not_refused(address: str):
    Destinations(["*"], []).check_address("host", ip_address(address))


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{0}", "64:ff9b::{0}"]))
def test_an_address_is_the_same_however_it_is_written(address: Any, form: str):
    def is_refused(each: Any) -> bool:
        try:
            Destinations(["*"], []).check_address("host", each)
        except DestinationRefusedError:
            return True
        return False

    assert is_refused(address) is is_refused(ip_address(form.format(address)))


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"])
def test_the_operator_may_let_requests_reach_a_private_network(address: str):
    rules = Destinations(["*"], ["10.1.0.0/16"])
    rules.check_address("host", ip_address(address))
    with pytest.raises(DestinationRefusedError):
        rules.check_address("host", ip_address("10.2.0.1"))


def test_a_network_that_is_none_is_said_to_be_none():
    with pytest.raises(ConfigError, match="HORAE_HTTP_PRIVATE"):
        Destinations(["*"], ["10.1.0.0/99"])


@pytest.mark.parametrize(
    "pattern", ["https://example.com", "example.com/x", "*example.com", "a b", "", "*:80:x"]
)
def test_a_pattern_that_is_none_is_said_to_be_none(pattern: str):
    with pytest.raises(ConfigError, match="HORAE_HTTP_ALLOW"):
        Destinations(["example.com", pattern], [])


@each_of(
    ("pattern", "host", "port", "allowed"),
    [
        ("*", "anything.example", 80, True),
        ("example.com", "example.com", 8080, True),
        ("Example.com", "example.com", 443, True),
        ("example.com", "www.example.com", 443, False),
        ("example.com", "notexample.com", 443, False),
        ("example.com:8080", "example.com", 8080, True),
        ("example.com:8080", "example.com", 443, False),
        ("*.example.com", "www.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("*.example.com:443", "www.example.com", 80, False),
        ("2606:4700::1111", "2606:4700::1111", 443, True),
        ("[2606:4700::1111]:443", "2606:4700::1111", 443, True),
        ("[2606:4700::1111]:443", "2606:4700::1111", 80, False),
    ],
)
def test_hosts_are_allowed_by_name(pattern: str, host: str, port: int, allowed: bool):
    rules = Destinations(["elsewhere.example", pattern], [])
    if allowed:
        rules.check_host(host, port)
    else:
        with pytest.raises(DestinationRefusedError, match="not among the allowed"):
            rules.check_host(host, port)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "path"),
    [
        ("https://example.com", "https", "example.com", 443, "/"),
        ("HTTP://Example.COM.:8080/a?b=%20#c", "http", "example.com", 8080, "/a?b=%20"),
        ("http://example.com?q", "http", "example.com", 80, "/?q"),
        ("http://[::1]:99/", "http", "::1", 99, "/"),
    ],
)
def test_an_address_is_taken_apart(url: str, scheme: str, host: str, port: int, path: str):
    target = target_of(url)
    assert (target.scheme, target.host, target.port, target.path) == (scheme, host, port, path)


@each_of(
    "url",
    [
        "", "example.com", "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "http:example.com", "http:///x",
        "http://user:secret@example.com/", "http://example.com@evil.example/", "http://a\\@b/", "http://example.com\\.evil/",
        "http://exa mple.com", "http://example.com/\r\nX: y", "http://example.com/\x00", "http://ex\tample.com", "http://é.example/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:x/", "http://[::1", "http://[fe80::1%25eth0]/",
        "http://example.com:80:80/", "http://%31%32%37.0.0.1/", "//example.com", f"http://example.com/{'x' * 2000}",
    ],
)  # fmt: skip
def test_an_address_with_anything_unusual_about_it_is_refused(url: str):
    with pytest.raises(InvalidInputError) as refused:
        target_of(url)
    assert refused.value.details["field"] == "action.options.url"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "10.0.0.1:9000"]
)
def test_a_private_address_in_a_request_is_refused_before_it_is_stored(host: str):
    request = HttpRequest(url=f"http://{host}/")
    with pytest.raises(InvalidInputError, match="private") as refused:
        check_request(request, Destinations(["*"], []))
    assert refused.value.details["field"] == "action.options.url"
    private = ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "169.254.0.0/16"]
    check_request(request, Destinations(["*"], private))


@each_of(
    ("field", "more"),
    [
        ("url", {"url": "https://elsewhere.example/"}),
        ("method", {"method": "TRACE"}),
        ("method", {"method": "post"}),
        ("timeout", {"timeout": "0s"}),
        ("timeout", {"timeout": "1h1ms"}),
        ("success", {"success": (200, 99)}),
        ("success", {"success": (600,)}),
        ("headers", {"headers": {f"X-{n}": "" for n in range(51)}}),
        ("headers", {"headers": {"X": "y" * 20_000}}),
        ("headers.X Y", {"headers": {"X Y": "z"}}),
        ("headers.", {"headers": {"": "z"}}),
        ("headers.X:", {"headers": {"X:": "z"}}),
        ("headers.X\r\nEvil", {"headers": {"X\r\nEvil": "z"}}),
        ("headers.X", {"headers": {"X": "hidden\r\nEvil: yes"}}),
        ("headers.X", {"headers": {"X": "hidden\nEvil"}}),
        ("headers.X", {"headers": {"X": "hidden\x00"}}),
        ("headers.X", {"headers": {"X": "hidden é"}}),
        ("headers.x", {"headers": {"X": "1", "x": "2"}}),
        *[
            (f"headers.{name}", {"headers": {name: "1"}})
            for name in ("Host", "content-length", "Transfer-Encoding", "Connection", "idempotency-key", "Horae-Signature")
        ],
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_is_refused_by_its_field(field: str, more: dict[str, Any]):
    request = HttpRequest(**{"url": "https://example.com/", **more})
    with pytest.raises(InvalidInputError) as refused:
        check_request(request, Destinations(["example.com"], []))
    assert refused.value.details["field"] == f"action.options.{field}"
    assert "hidden" not in str(refused.value)

"""Which addresses are public: beside IANA's registries of special-purpose addresses, as they were in October 2025."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.executor.public_addresses import is_public, reached
from tests.support.cases import each_of

pytestmark = pytest.mark.contract("SCHD-17", "CRON-23")

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Every row of both registries, with its column "globally reachable"; None is "N/A", or left empty for what is deprecated.
REGISTRY: dict[str, tuple[str, bool | None]] = {
    "0.0.0.0/8": ("this network", False),
    "0.0.0.0/32": ("this host on this network", False),
    "10.0.0.0/8": ("private use", False),
    "100.64.0.0/10": ("shared address space", False),
    "127.0.0.0/8": ("loopback", False),
    "169.254.0.0/16": ("link local", False),
    "172.16.0.0/12": ("private use", False),
    "192.0.0.0/24": ("IETF protocol assignments", False),
    "192.0.0.0/29": ("service continuity prefix", False),
    "192.0.0.8/32": ("dummy address", False),
    "192.0.0.9/32": ("port control protocol, anycast", True),
    "192.0.0.10/32": ("TURN, anycast", True),
    "192.0.0.170/32": ("NAT64/DNS64 discovery", False),
    "192.0.0.171/32": ("NAT64/DNS64 discovery", False),
    "192.0.2.0/24": ("documentation", False),
    "192.31.196.0/24": ("AS112", True),
    "192.52.193.0/24": ("AMT", True),
    "192.88.99.0/24": ("6to4 relay, anycast; deprecated", None),
    "192.88.99.2/32": ("6a44 relay, anycast", False),
    "192.168.0.0/16": ("private use", False),
    "192.175.48.0/24": ("direct delegation AS112", True),
    "198.18.0.0/15": ("benchmarking", False),
    "198.51.100.0/24": ("documentation", False),
    "203.0.113.0/24": ("documentation", False),
    "240.0.0.0/4": ("reserved", False),
    "255.255.255.255/32": ("limited broadcast", False),
    "::1/128": ("loopback", False),
    "::/128": ("unspecified", False),
    "::ffff:0:0/96": ("IPv4-mapped", False),
    "64:ff9b::/96": ("translation, well-known prefix", True),
    "64:ff9b:1::/48": ("translation, local use", False),
    "100::/64": ("discard only", False),
    "100:0:0:1::/64": ("dummy prefix", False),
    "2001::/23": ("IETF protocol assignments", False),
    "2001::/32": ("Teredo", None),
    "2001:1::1/128": ("port control protocol, anycast", True),
    "2001:1::2/128": ("TURN, anycast", True),
    "2001:1::3/128": ("DNS-SD service registration, anycast", True),
    "2001:2::/48": ("benchmarking", False),
    "2001:3::/32": ("AMT", True),
    "2001:4:112::/48": ("AS112", True),
    "2001:10::/28": ("ORCHID; deprecated", None),
    "2001:20::/28": ("ORCHIDv2", True),
    "2001:30::/28": ("drone remote ID", True),
    "2001:db8::/32": ("documentation", False),
    "2002::/16": ("6to4", None),
    "2620:4f:8000::/48": ("direct delegation AS112", True),
    "3fff::/20": ("documentation", False),
    "5f00::/16": ("segment routing", False),
    "fc00::/7": ("unique local", False),
    "fe80::/10": ("link local", False),
}
# Not in those registries, but in the ones of multicast and of the whole IPv6 space, of which only 2000::/3 is given out.
OTHERS = {
    "224.0.0.0/4": False,
    "ff00::/8": False,
    "fec0::/10": False,
    "2000::/3": True,
    "::/0": False,
    "0.0.0.0/0": True,
}
# Here Horae is stricter: what answers there is the nearest equipment of a network, and no server of an owner.
STRICTER = [ip_network("192.0.0.0/24"), ip_network("2001::/23")]

REACHABLE = {ip_network(block): reachable for block, (_, reachable) in REGISTRY.items()} | {
    ip_network(block): reachable for block, reachable in OTHERS.items()
}
TRANSLATED = [ip_network(each) for each in ("::ffff:0:0/96", "64:ff9b::/96", "2002::/16")]


def expected(address: Address) -> bool:
    """What the most specific row says; addresses that stand for one of IPv4 are asked for that."""
    if isinstance(address, IPv6Address):
        number = int(address)
        mapped, nat64, sixtofour = (address in each for each in TRANSLATED)
        if mapped or nat64 or sixtofour:
            return expected(IPv4Address((number >> 80 if sixtofour else number) & 0xFFFF_FFFF))
    if any(address in block for block in STRICTER):
        return False
    rows = [block for block in REACHABLE if address in block]
    return bool(REACHABLE[max(rows, key=lambda block: block.prefixlen)])


def edges(block: Network) -> Iterator[Address]:
    """The first, the last and a middle address of a block, and its neighbours."""
    first, last = int(block.network_address), int(block.broadcast_address)
    kind = IPv4Address if block.version == 4 else IPv6Address
    for number in (first - 1, first, (first + last) // 2, last, last + 1):
        if 0 <= number < 2**block.max_prefixlen:
            yield kind(number)


def test_every_block_of_the_registries_is_known():
    for block in REACHABLE:
        for address in edges(block):
            assert is_public(address) is expected(address), (address, block)


@each_of(
    "address", ["192.0.0.192", "192.0.0.9", "192.88.99.1", "192.88.99.2", "3fff::1", "3fff:fff:ffff::1", "5f00::1", "100:0:0:1::1",
                "2001:1::1", "2001:5::1", "2001:db8::1", "224.0.0.251", "ff0e::1", "2002:c058:6301::", "::192.0.2.1"],
)  # fmt: skip
def test_what_some_version_of_python_calls_global_is_refused(address: str):
    assert not is_public(ip_address(address))


@given(
    st.ip_addresses(v=4)
    | st.sampled_from(list(REGISTRY)).flatmap(lambda block: st.ip_addresses(network=block))
)
def test_any_address_is_what_the_registries_say(address: Address):
    assert is_public(address) is expected(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{0}", "64:ff9b::{0}"]))
def test_an_inner_address_counts_however_it_is_wrapped(inner: IPv4Address, form: str):
    sixtofour = IPv6Address(0x2002 << 112 | int(inner) << 80 | 1)
    for outer in (ip_address(form.format(inner)), sixtofour):
        assert reached(outer) == inner
        assert is_public(outer) is is_public(inner)


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_no_teredo_address_is_public(server: IPv4Address, client: IPv4Address):
    assert not is_public(IPv6Address(0x2001_0000 << 96 | int(server) << 64 | int(client) ^ 0xFFFF_FFFF))


def test_no_opinion_of_the_interpreter_is_asked(monkeypatch: pytest.MonkeyPatch):
    """Versions of Python differ in these; the answer must not."""

    def asked(_: object) -> bool:
        raise AssertionError("the interpreter's own list was asked")

    names = (
        "global",
        "private",
        "reserved",
        "multicast",
        "loopback",
        "link_local",
        "unspecified",
        "site_local",
    )
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        for name in names:
            if hasattr(kind, f"is_{name}"):
                monkeypatch.setattr(kind, f"is_{name}", property(asked))
    for block in REACHABLE:
        for address in edges(block):
            is_public(address)

"""Which addresses are public: a list of our own, after IANA's registries of special-purpose addresses. Pure.

It does not use ``ipaddress.is_global``, which differs between versions of Python.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # shared by the customers of a provider
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link local, where clouds keep their metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # protocol assignments; the nearest equipment answers
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4 and 6a44, deprecated; the nearest one answers
        "192.168.0.0/16",  # private use
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GIVEN_OUT_6 = IPv6Network("2000::/3")  # all else is local, multicast or not given out
_NOT_PUBLIC_6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments, Teredo among them, which hides two IPv4 addresses
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")


def reached(address: Address) -> Address:
    """The address that is reached in the end: some IPv6 addresses stand for an IPv4 address."""
    if isinstance(address, IPv4Address):
        return address
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _6TO4:
        return IPv4Address(int(address) >> 80 & 0xFFFF_FFFF)
    return address


def is_public(address: Address) -> bool:
    """Whether an address, or the one that it stands for, is public."""
    end = reached(address)
    if isinstance(end, IPv4Address):
        return not any(end in network for network in _NOT_PUBLIC_4)
    return end in _GIVEN_OUT_6 and not any(end in network for network in _NOT_PUBLIC_6)

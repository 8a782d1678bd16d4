"""Which names refer to this machine."""

from __future__ import annotations

import ipaddress
import re
import socket

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z.-]+)(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address, or ``localhost`` if that resolves to loopback addresses only."""
    if host.lower() == "localhost":
        try:
            found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
        except OSError:
            return False
        return all(_is_address(str(each[4][0])) for each in found)
    return _is_address(host)


def is_loopback_name(authority: str) -> bool:
    """Whether a Host header names this machine, on any port; decided by its text, without a DNS lookup."""
    match = _AUTHORITY.fullmatch(authority.lower())
    if match is None:
        return False
    host = match[1].strip("[]")
    return host == "localhost" or (_is_address(host) and (":" in host) == match[1].startswith("["))


def _is_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Where requests may go: the operator's rules, for names and for the addresses behind them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import msgspec

from horae.errors import ConfigError, DestinationRefusedError, InvalidInputError
from horae.executor.public_addresses import Address, is_public, reached

MAX_URL_LENGTH = 2000

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>[/?][^#]*)?(?:#.*)?",
    re.IGNORECASE,
)
_PATTERN = re.compile(r"\*|((\*\.)?[a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?|[0-9a-f:.]+", re.IGNORECASE)
_VISIBLE = re.compile(r"[\x21-\x5b\x5d-\x7e]+")  # no blank, no control character, no backslash


class Target(msgspec.Struct, frozen=True):
    """The parts of a URL, parsed once: the request goes to what was checked."""

    scheme: str
    host: str
    """A name or an IP address, without brackets."""
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as the header ``Host`` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """Parse a URL; refuse one with anything unusual."""
    field = "action.options.url"
    if len(url) > MAX_URL_LENGTH:
        raise InvalidInputError(field, f"has more than {MAX_URL_LENGTH} characters")
    if not _VISIBLE.fullmatch(url):
        raise InvalidInputError(
            field, "has a blank, a backslash, or a character outside ASCII", hint="percent-encode it"
        )
    if "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
        raise InvalidInputError(field, "has credentials in it", hint="use a header: its value is encrypted")
    found = _URL.fullmatch(url)
    port = int(found["port"]) if found and found["port"] else 0
    if found is None or port > 65_535 or (found["port"] and not port):
        raise InvalidInputError(field, "must be an address such as https://example.com/path")
    scheme, path = found["scheme"].lower(), found["path"] or "/"
    return Target(
        scheme,
        found["host"].lower().strip("[]").rstrip("."),
        port or _default_port(scheme),
        path if path.startswith("/") else f"/{path}",
    )


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


class Destinations:
    """The operator's rules: allowed hosts, and private networks that are allowed as exceptions."""

    def __init__(self, allow: Iterable[str], private: Iterable[str]) -> None:
        self._allow = tuple(_pattern(each) for each in allow)
        self._private = tuple(_network(each) for each in private)

    def check_host(self, host: str, port: int) -> None:
        """Refuse a host that the operator did not allow."""
        if not any(_matches(pattern, host, port) for pattern in self._allow):
            raise DestinationRefusedError(host, "the host is not among the allowed ones")
        try:
            address = ip_address(host)
        except ValueError:
            return  # a name: its addresses are checked when it is looked up
        self.check_address(host, address)

    def check_address(self, host: str, address: Address) -> None:
        """Refuse an address that is not public, or stands for one that is not, unless the operator allows its network."""
        ways = (address, reached(address))
        if any(each in network for network in self._private for each in ways):
            return
        if not is_public(address):
            raise DestinationRefusedError(host, f"its address {address} is private")


def _pattern(text: str) -> str:
    if not _PATTERN.fullmatch(text):
        raise ConfigError("HORAE_HTTP_ALLOW", text, "must name hosts, host:port or *.domain")
    return text.lower()


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ConfigError("HORAE_HTTP_PRIVATE", text, f"must name networks: {error}") from None


def _matches(pattern: str, host: str, port: int) -> bool:
    """Whether a pattern matches a host: ``*``, ``host``, ``*.domain``, or one of the last two with ``:port``."""
    named = re.fullmatch(r"(\[.+\]|[^:]+):([0-9]+)", pattern)
    if named is not None:
        if int(named[2]) != port:
            return False
        pattern = named[1]
    pattern = pattern.strip("[]")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return pattern in {"*", host}

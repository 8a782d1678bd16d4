"""The public keys that verify tokens: a JWKS in a file, or at an address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import RSAAlgorithm
from jwt.exceptions import InvalidKeyError

from horae.errors import ConfigError
from horae.face.service.loopback import is_loopback

FRESH = 5 * 60 * 1000
"""Milliseconds for which keys from an address are fresh."""
PATIENCE = 30 * 1000
"""Milliseconds between two attempts to fetch keys, even if a token names an unknown key."""
LARGEST = 256 * 1024
SHORTEST_KEY = 2048
SECONDS = 5

SETTING = "HORAE_JWT_JWKS"
_log = logging.getLogger("horae")

Keys = dict[str, RSAPublicKey]


def key_set(place: str, now: Callable[[], int]) -> FileKeys | FetchedKeys:
    """The keys of a setting: an address, or a file. Raise an error now if it cannot be used."""
    if "://" not in place:
        return FileKeys(Path(place))
    address = urlsplit(place)
    if address.scheme == "https" or (address.scheme == "http" and is_loopback(address.hostname or "")):
        return FetchedKeys(place, now)
    raise ConfigError(
        SETTING, place, "must be a file, or an address with https (http only to a loopback address)"
    )


class FileKeys:
    """Keys in a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._seen = self._stamp()
            self._keys = self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(SETTING, str(path), f"cannot be read: {_words(error)}") from None

    async def find(self, name: str | None) -> RSAPublicKey | None:
        try:
            if (stamp := self._stamp()) != self._seen:
                self._keys = self._read()
                self._seen = stamp
        except (OSError, ValueError) as error:  # perhaps half written: keep the previous keys
            _log.warning("the keys in %s cannot be read again: %s", self._path, _words(error))
        return _find(self._keys, name)

    def _stamp(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> Keys:
        with self._path.open("rb") as file:
            return read_keys(file.read(LARGEST + 1))


class FetchedKeys:
    """Keys at an address, cached; while they cannot be fetched, the old ones stay valid."""

    def __init__(self, address: str, now: Callable[[], int]) -> None:
        self._address = address
        self._now = now
        self._keys: Keys = {}
        self._fetched_at: int | None = None
        self._tried_at: int | None = None
        self._fetching = asyncio.Lock()

    async def find(self, name: str | None) -> RSAPublicKey | None:
        known = _find(self._keys, name)
        if known is not None and self._fetching.locked():
            return known  # another request fetches newer keys; no need to wait for it
        if self._wants(name):
            async with self._fetching:
                if self._wants(name):
                    await self._fetch()
        return _find(self._keys, name)

    def _wants(self, name: str | None) -> bool:
        """Whether to fetch: the keys are old or lack the needed one, and the last attempt is not too recent."""
        now = self._now()
        needed = _is_over(self._fetched_at, FRESH, now) or _find(self._keys, name) is None
        return needed and _is_over(self._tried_at, PATIENCE, now)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(2 * SECONDS):
                self._keys = read_keys(await self._download())
            self._fetched_at = self._now()
        except (OSError, ValueError, httpx.HTTPError, httpx.InvalidURL) as error:
            _log.warning("the keys of tokens cannot be fetched: %s", _words(error))
        finally:
            self._tried_at = self._now()

    async def _download(self) -> bytes:
        direct = self._address.startswith("http:")  # plain HTTP is loopback only, and needs no proxy
        body = b""
        async with (
            httpx.AsyncClient(timeout=SECONDS, trust_env=not direct) as client,
            client.stream("GET", self._address) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise ValueError(f"the answer has the status {answer.status_code}")
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > LARGEST:
                    break
        return body


def read_keys(text: bytes) -> Keys:
    """The keys of a JWKS that verify RS256 signatures; other keys are ignored, and at least one must remain."""
    if len(text) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes")
    document = msgspec.json.decode(text)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it is not a JWKS: it has no list of keys")  # noqa: TRY004 - what is wrong is the text
    found: Keys = {}
    for entry in entries:
        if isinstance(entry, dict) and (key := _public_key(entry)) is not None:
            found.setdefault(str(entry.get("kid", "")), key)
    if not found:
        raise ValueError(f"it has no RSA key of at least {SHORTEST_KEY} bits for RS256 signatures")
    return found


def _public_key(entry: dict[str, Any]) -> RSAPublicKey | None:
    """The public part of a key, if it is for RS256; other fields are ignored."""
    fits = (
        entry.get("kty") == "RSA"
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", "RS256") == "RS256"
    )
    if not fits:
        return None
    try:
        key = RSAAlgorithm.from_jwk({"kty": "RSA", "n": entry.get("n"), "e": entry.get("e")})
    except (InvalidKeyError, ValueError, TypeError, AttributeError):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= SHORTEST_KEY else None


def _find(keys: Keys, name: str | None) -> RSAPublicKey | None:
    """The key with a name (``kid``); without a name the only key, if there is exactly one."""
    if name is not None:
        return keys.get(name)
    return next(iter(keys.values())) if len(keys) == 1 else None


def _is_over(last: int | None, span: int, now: int) -> bool:
    """Whether a span has passed since ``last``; also true if the clock was set back, so that nothing lasts for ever."""
    return last is None or not 0 <= now - last < span


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__

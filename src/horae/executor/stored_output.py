"""Results, failures and texts of actions as they are stored: within bounds, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from horae.json_bounds import (
    JSON_HOLDS,
    MAX_DEPTH,
    JsonTooLargeError,
    NotJsonError,
    check_json,
    json_of,
    place_of_no_json,
)

MAX_RESULT_LENGTH = 1024 * 1024
MAX_FAILURE_LENGTH = 10_000
HIDDEN = b"***"
SHORTEST_SECRET = 8
"""Shorter texts occur by chance, so they are not hidden."""
_CREDENTIALS = re.compile(r"(?<=earer )\S+|\beyJ[\w-]+\.[\w.-]+|(?<=://)[^/\s@]+(?=@)")
_encode = msgspec.json.Encoder(enc_hook=json_of).encode


def text_of(data: bytes, most: int) -> str:
    """Bytes as text of at most ``most`` bytes of JSON; bytes that are not UTF-8 are marked."""
    text = data.decode("utf-8", "replace")
    while len(msgspec.json.encode(text)) > most:
        text = text[: len(text) // 2]
    return text


class Secrets(tuple[bytes, ...]):
    """Texts to hide. Their ``repr`` hides them too: a crash report may show the variables of all frames."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


def secrets_in(values: Iterable[str]) -> Secrets:
    """The texts to hide in an output: some values, and the words in them."""
    words = {word for value in values for word in (value, *value.split())}
    hidden = (word.encode() for word in words if len(word) >= SHORTEST_SECRET)
    return Secrets(sorted(hidden, key=len, reverse=True))  # the longest first: others may be part of it


def without(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """An output with every secret replaced, in case the destination sent one back."""
    for secret in secrets:
        data = data.replace(secret, HIDDEN)
    return data


def kept_result(value: object) -> str:
    """A result as it is kept."""
    return kept_json(value, "the result", MAX_RESULT_LENGTH)


def kept_json(value: object, name: str, most: int) -> str:
    """A value as it is stored: JSON of at most ``most`` bytes that can be read and shown again."""
    try:
        text = _encode(value)
    except RecursionError:
        raise ValueError(f"{name} has values more than {MAX_DEPTH} deep within each other") from None
    except NotJsonError as error:
        place = place_of_no_json(value)
        raise TypeError(f"{name}{place} {error}; {JSON_HOLDS}") from None
    if len(text) > most:
        raise ValueError(f"{name} has {len(text)} bytes of JSON, and {most} are kept at most")
    try:
        check_json(text)
    except JsonTooLargeError as error:
        raise ValueError(f"{name} {error}") from None
    return text.decode()


def storable(text: str) -> str:
    """A text that every database takes: no lone surrogates, no NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def without_credentials(text: str) -> str:
    """A text without what looks like a token, or like a password in a URL."""
    if "earer " in text or "eyJ" in text or "://" in text:
        return _CREDENTIALS.sub("***", text)
    return text


def kept_failure(text: str) -> str:
    """A failure as it is kept."""
    text = without_credentials(storable(text))
    return text if len(text) <= MAX_FAILURE_LENGTH else f"{text[:MAX_FAILURE_LENGTH]}…"

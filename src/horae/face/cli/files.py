"""Read files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from horae.errors import InvalidSpecError


def contents(name: str, option: str) -> bytes:
    """The bytes of a file; ``-`` is standard input."""
    try:
        if name != "-":
            return Path(name).read_bytes()
        return sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise InvalidSpecError(option, f"cannot be read: {error}", text=name) from None


def decoded(text: bytes, option: str, example: str) -> dict[str, Any]:
    """A JSON object that an option names."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidSpecError(option, f"is no JSON: {error}", hint=f"such as {example}") from None
    if not isinstance(value, dict):
        raise InvalidSpecError(option, "is no JSON object", hint=f"such as {example}")
    return value

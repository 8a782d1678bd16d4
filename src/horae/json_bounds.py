"""Limits on a JSON value: its bytes, its depth and its width.

Stored values are shown again inside larger answers. A value that is too deep could be stored and never read back, and very many tiny
values cost far more than their bytes. The text is checked in one pass, before it is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

import msgspec

MAX_DEPTH = 100
"""The maximum nesting depth."""
MAX_VALUES = 100_000
"""The maximum number of values in one text, keys not counted."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every reader of JSON understands alike."""
JSON_HOLDS = "JSON holds texts, numbers, true and false, null, lists and mappings; times, dataclasses and pydantic models become these"

_NEITHER_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class JsonTooLargeError(ValueError):
    """A value is too deep, or has too many values within it; its text says which, and the bound."""


class NotJsonError(TypeError):
    """A value is of a type that JSON cannot hold; its text says which, as the end of a sentence."""


def check_json(text: bytes) -> None:
    """Refuse the JSON text of a value that is too deep or too wide; this does not check whether the text is JSON."""
    if len(text) < MAX_VALUES and text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return  # neither is possible: most texts are small
    bare = _without_strings(text)
    # A value begins the text, or follows an opening bracket or a comma. An empty list counts for two, itself and its inside.
    if 1 + bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_VALUES:
        raise JsonTooLargeError(f"has more than {MAX_VALUES} values")
    brackets = bare.translate(None, _NEITHER_BRACKET)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise JsonTooLargeError(f"has values more than {MAX_DEPTH} deep within each other")


def _without_strings(text: bytes) -> bytes:
    """The text without its strings; an unterminated string extends to the end of the text."""
    # Backslashes occur in strings only: once pairs of them are removed, a backslash before a quote escapes it.
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return b"".join(unescaped.split(b'"')[::2])


def json_of(value: object) -> object:
    """The JSON of a value of a class that msgspec does not know: a pydantic model has one. A hook for msgspec's encoders."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise NotJsonError(f"is of the type {type(value).__name__}, which JSON cannot hold")
    return dump(mode="json")


def place_of_no_json(value: object) -> str:
    """Where in a value that JSON cannot hold the culprit is: ``.rows[3]``; empty for the value itself."""
    parts: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        parts = [(f".{key}", each) for key, each in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"[{number}]", each) for number, each in enumerate(value)]
    for name, each in parts:
        try:
            msgspec.json.encode(each, enc_hook=json_of)
        except NotJsonError:
            return name + place_of_no_json(each)
    return ""


def convert_json(
    value: object,
    wanted: Any,  # noqa: ANN401 - a type
    hook: Callable[[type, Any], Any] | None = None,
) -> Any:  # noqa: ANN401 - a value of that type
    """A value converted to a type, strictly: a text is not a number, as it is in a URL, but 7.0 is the integer 7.

    ``hook`` converts to classes that msgspec does not know.
    """
    try:
        return msgspec.convert(value, wanted, dec_hook=hook)
    except msgspec.ValidationError:
        return msgspec.convert(_with_integers(value), wanted, dec_hook=hook)


def _with_integers(value: object) -> object:
    """The same value, its whole numbers written without a point."""
    if isinstance(value, dict):
        return {key: _with_integers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    return value

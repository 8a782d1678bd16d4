"""Values of handlers as JSON text, within bounds, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from horae.json_bounds import JsonTooLargeError, check_json

_encode = msgspec.json.Encoder().encode


def json_text(value: object, name: str, most: int) -> str:
    """A value as JSON; raises ``ValueError``, with the name, if it cannot be JSON or is too large."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise ValueError(f"{name} is no JSON: {error}") from None
    if len(text) > most:
        raise ValueError(f"{name} has {len(text)} bytes of JSON, and at most {most} are taken")
    try:
        check_json(text)
    except JsonTooLargeError as error:
        raise ValueError(f"{name} {error}") from None
    found = text.decode()
    if "\\u0000" in found:
        raise ValueError(f"{name} has a NUL character, which no database stores")
    return found


class Typed:
    """Reads values of one type from JSON; of any type if the type is unknown."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401 - a type as it was annotated
        try:
            self._decode = msgspec.json.Decoder(Any if kind is None else kind).decode
        except (TypeError, ValueError):  # msgspec does not know such types
            self._decode = msgspec.json.Decoder(Any).decode

    def read(self, text: str | None) -> Any:  # noqa: ANN401
        """The value of a text; ``None`` without one."""
        return None if text is None else self._decode(text)

"""Bodies as JSON, validated before any other code uses them.

A body must be declared as JSON: a page of another site can make a browser send text and forms, but not JSON. Texts must not contain
NUL, which our databases treat differently; integers must be exact in every JSON reader; and a body must be neither too deep nor too wide.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from horae.checked import input_error
from horae.errors import InvalidInputError
from horae.face.http.errors import Fault, HttpError
from horae.face.http.requests import Request
from horae.json_bounds import MAX_INTEGER, JsonTooLargeError, check_json, convert_json

HAS_NUL = "must not contain the character NUL"


async def read_json(request: Request, wanted: Any) -> Any:  # noqa: ANN401 - a type, and a value of it
    """The body as a value of a type; ``UNSET`` if there is none."""
    body = await request.body()
    if not body:
        return msgspec.UNSET
    _check_declared(request.headers.get("content-type", ""))
    try:
        check_json(body)
        value = msgspec.json.decode(body)
    except JsonTooLargeError as error:
        raise InvalidInputError("body", str(error)) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise HttpError(400, f"The body is not valid JSON: {error}") from None
    if _SUSPECT.search(body):
        check_value(value)
    try:
        return convert_json(value, wanted)
    except msgspec.ValidationError as error:
        found = input_error(error, wanted, whole="body")
        if isinstance(error.__cause__, InvalidInputError):
            raise found from None
        fault = Fault(found.details["field"], found.details["reason"])
        raise HttpError(400, faults=[fault], hint=found.hint) from None


def _check_declared(content_type: str) -> None:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise HttpError(
            415, "The body must be JSON, and the header Content-Type: application/json must say so"
        )


_SUSPECT = re.compile(rb"\\u0000|[0-9]{16}")
"""Matches every body that may contain a value to refuse; few do, and only those are checked value by value."""
_Place = tuple["_Place | None", str | int, object]
"""The place of the parent, the key or index in it, and the value: the path is only built for an error."""


def check_value(value: object) -> None:
    """Refuse texts and integers that cannot be stored, or that JSON readers interpret differently."""
    waiting: list[_Place] = [(None, "", value)]
    while waiting:
        place = waiting.pop()
        each = place[2]
        if isinstance(each, list):
            waiting.extend((place, index, inner) for index, inner in enumerate(each))
        elif isinstance(each, dict):
            if any("\x00" in key for key in each):
                raise InvalidInputError(_path(place), HAS_NUL)
            waiting.extend((place, key, inner) for key, inner in each.items())
        elif isinstance(each, str):
            if "\x00" in each:
                raise InvalidInputError(_path(place), HAS_NUL)
        elif isinstance(each, int) and abs(each) > MAX_INTEGER:
            raise InvalidInputError(_path(place), f"must be from -{MAX_INTEGER} to {MAX_INTEGER}")


def _path(place: _Place) -> str:
    """The path of a value in a body, such as ``spec.crons[2]``."""
    parts: list[str] = []
    parent, key, _ = place
    while parent is not None:
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        parent, key, _ = parent
    return "".join(reversed(parts)).removeprefix(".") or "body"

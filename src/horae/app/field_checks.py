"""Checks of values before they are stored; each raises an error that names the field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from horae.config import Config
from horae.errors import InvalidInputError, LimitExceededError, NaiveTimeError
from horae.json_bounds import (
    JSON_HOLDS,
    MAX_DEPTH,
    JsonTooLargeError,
    NotJsonError,
    check_json,
    json_of,
    place_of_no_json,
)
from horae.model import MAX_TEXT_LENGTH, SearchValue, instant
from horae.policy.validate import BOUNDS
from horae.spec import Spec
from horae.spec.duration import duration_text
from horae.store.port import LAST

POLICY_BOUNDS = BOUNDS
MAX_INPUT_LENGTH = 1024 * 1024
MAX_ID_LENGTH = 500
MAX_OWNER_LENGTH = 200
MAX_TAG_LENGTH = 200
MAX_TAGS = 100
MAX_MEMO_LENGTH = 64 * 1024


def check_id(given: object, field: str = "id", most: int = MAX_ID_LENGTH) -> None:
    """Require an id to be a printable text of at most ``most`` characters; ``field`` names it in the error."""
    if not isinstance(given, str) or not 1 <= len(given) <= most:
        raise InvalidInputError(field, f"must be a text of 1 to {most} characters")
    if not given.isprintable():
        raise InvalidInputError(field, f"has a character that cannot be shown: {given[:100]!r}")


def check_number(field: str, value: int, least: int, most: int) -> None:
    """Require a number within its bounds, both included."""
    if not least <= value <= most:
        raise InvalidInputError(field, f"must be from {least:,} to {most:,}, and is {value}")


def check_owner(owner: str) -> None:
    """Require the name of an owner to be a printable text; it is empty for a schedule without one."""
    if len(owner) > MAX_OWNER_LENGTH or not owner.isprintable():
        raise InvalidInputError(
            "owner", f"must be a text of at most {MAX_OWNER_LENGTH} characters that can be shown"
        )


def check_jitter(spec: Spec, config: Config) -> None:
    """Require jitter within its bound: a start must not move by days."""
    jitter = spec.elements.jitter
    if jitter is not None and jitter.span_ms > config.jitter_limit_ms:
        raise LimitExceededError(
            "jitter_limit_ms", config.jitter_limit_ms, f"the jitter is {duration_text(jitter.span_ms)}"
        )


def check_tags(tags: Sequence[str]) -> None:
    """Require tags within their limits of number and length."""
    if len(tags) > MAX_TAGS:
        raise InvalidInputError("tags", f"has {len(tags)} entries, and at most {MAX_TAGS} are allowed")
    for tag in tags:
        if not 1 <= len(tag) <= MAX_TAG_LENGTH or not tag.isprintable():
            raise InvalidInputError(
                "tags", f"must be texts of 1 to {MAX_TAG_LENGTH} characters that can be shown"
            )


def stored_search(search: Mapping[str, SearchValue]) -> dict[str, SearchValue]:
    """Search attributes as they will be read again, if they are within their limits."""
    if not search:
        return {}
    if len(search) > MAX_TAGS:
        raise InvalidInputError(
            "search_attributes", f"has {len(search)} entries, and at most {MAX_TAGS} are allowed"
        )
    read: dict[str, SearchValue] = stored_json(search, "search_attributes")
    for key, value in read.items():
        check_text("search_attributes", f"{key}{value}")
    return read


def stored_memo(memo: Mapping[str, Any]) -> dict[str, Any]:
    """A memo as it will be read again, if it is not too large."""
    if not memo:
        return {}
    read: dict[str, Any] = stored_json(memo, "memo")
    if len(msgspec.json.encode(read)) > MAX_MEMO_LENGTH:
        raise InvalidInputError("memo", f"has more than {MAX_MEMO_LENGTH} bytes")
    return read


def check_limit(limit: int | None) -> None:
    """Refuse a negative number of remaining actions."""
    if limit is not None and limit < 0:
        raise InvalidInputError("remaining_actions", f"must be at least 0, and is {limit}")


def stored_json(value: object, field: str = "input") -> Any:  # noqa: ANN401 - any JSON
    """A value from a user as it will be read again. It must be JSON, and not too large."""
    if value is None:
        return None
    try:
        text = msgspec.json.encode(value, enc_hook=json_of)
        finite = b"null" not in text or _is_finite(
            msgspec.to_builtins(value, str_keys=True, enc_hook=json_of)
        )
    except RecursionError:
        raise InvalidInputError(
            field, f"has values more than {MAX_DEPTH} deep within each other, or itself within it"
        ) from None
    except NotJsonError as error:
        raise InvalidInputError(f"{field}{place_of_no_json(value)}", str(error), hint=JSON_HOLDS) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(field, f"is no JSON: {error}") from None
    if not finite:
        raise InvalidInputError(field, "has a number that is not finite, which JSON cannot have")
    if len(text) > MAX_INPUT_LENGTH:
        raise InvalidInputError(field, f"has {len(text)} bytes, and at most {MAX_INPUT_LENGTH} are allowed")
    try:
        check_json(text)
    except JsonTooLargeError as error:
        raise InvalidInputError(field, str(error)) from None
    return msgspec.json.decode(text)


def _is_finite(value: object) -> bool:
    """Whether a value has neither NaN nor an infinity, which would be stored as ``null``."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))


def check_text(field: str, text: str) -> None:
    """Require a text that every database can store and that is not too long."""
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidInputError(
            field, f"has {len(text)} characters, and at most {MAX_TEXT_LENGTH} are allowed"
        )
    if "\x00" in text or (not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)):
        raise InvalidInputError(field, "has a character that cannot be stored")


YEARS = range(1900, 2200)
"""The years that specs support."""


def moment(field: str, value: datetime | str) -> datetime:
    """A moment in UTC, from a ``datetime`` or a text with an offset."""
    given = value
    if isinstance(value, str):
        value = _read(field, value)
    if not isinstance(value, datetime):
        raise InvalidInputError(field, "is no time", hint=_HINT)
    if value.utcoffset() is None:
        raise NaiveTimeError(given, field if isinstance(given, str) else "")
    if value.year not in YEARS:
        raise InvalidInputError(field, f"must be in the years {YEARS.start} to {YEARS.stop - 1}")
    return value.astimezone(UTC)


def moment_ms(field: str, value: datetime | str) -> int:
    """A moment in milliseconds, from a ``datetime`` or a text with an offset."""
    return int(moment(field, value).timestamp() * 1000)


def future_ms(field: str, value: datetime | str, now: int) -> int:
    """A moment after ``now``, in milliseconds."""
    at_ms = moment_ms(field, value)
    if at_ms <= now:
        raise InvalidInputError(field, f"must be in the future, and is {instant(at_ms):%Y-%m-%dT%H:%M:%SZ}")
    return at_ms


def window_ms(since: datetime | str | None, until: datetime | str | None) -> tuple[int, int]:
    """The window from ``since`` on and before ``until``, in milliseconds; an end that is not given is unbounded."""
    since_ms = 0 if since is None else moment_ms("since", since)
    until_ms = LAST if until is None else moment_ms("until", until)
    if until_ms <= since_ms:
        raise InvalidInputError("until", f"must be after since, and is {until}")
    return since_ms, until_ms


_HINT = "ISO 8601 with an offset, such as 2026-03-08T09:00:00Z"


def _read(field: str, text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(field, f'is "{text[:60]}", which is no time', hint=_HINT) from None


def range_ms(start: datetime | str, end: datetime | str) -> tuple[int, int]:
    """The first and the last whole second of a range, both ends included, in milliseconds."""
    first, last = moment("start", start), moment("end", end)
    if last < first:
        raise InvalidInputError(
            "end", f"is before start: {last.isoformat()} comes before {first.isoformat()}"
        )
    # Nominal times are whole seconds: a range that starts within a second begins with the next one.
    begin = first.timestamp()
    return (int(begin) + (begin > int(begin))) * 1000, int(last.timestamp()) * 1000

"""The fields of forms and addresses that are more than texts: times and JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from horae.errors import InvalidInputError
from horae.face.console.page_request import Visit
from horae.face.time_parser import instant_of
from horae.model import instant


def moment_of(visit: Visit, name: str) -> datetime | None:
    """The time in a form's field, in the viewer's zone; ``None`` if it is empty."""
    text = visit.form.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            name, f"is not a time: {text[:40]}", hint="such as 2027-03-14T09:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=visit.zone)


def moment_of_query(visit: Visit, name: str) -> datetime | None:
    """A time in an address, as people write it: ISO 8601, ``yesterday 9:00``, ``-2h``; in the viewer's zone."""
    text = visit.query.get(name, "").strip()
    return instant_of(text, name, visit.zone.key, instant(visit.now)) if text else None


def json_of(visit: Visit, name: str, default: object = None) -> Any:  # noqa: ANN401 - any JSON
    """The JSON in a form's field, or a default if it is empty."""
    text = visit.form.get(name, "").strip()
    return read_json(name, text, 'write for example {"pages": 3}, or "a text" in quotes') if text else default


def read_json(name: str, text: str, hint: str | None = None) -> Any:  # noqa: ANN401 - any JSON
    """The JSON in a text; an error names its field."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise InvalidInputError(name, f"is not valid JSON: {reason}", hint=hint) from None


def unknown_action(visit: Visit) -> InvalidInputError:
    """The error for a form that asks for an action that its page does not have."""
    return InvalidInputError("do", f"is not an action of this page: {visit.form.get('do')}")

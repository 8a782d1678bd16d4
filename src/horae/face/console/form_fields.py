"""The fields of a form that are more than texts: moments and JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from horae.errors import InvalidInputError
from horae.face.console.visit import Visit


def moment_of(visit: Visit, name: str) -> datetime | None:
    """The moment of a form's field, in the viewer's zone; ``None`` if it is empty."""
    text = visit.form.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(name, f"is no time: {text[:40]}", hint="such as 2027-03-14T09:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=visit.zone)


def json_of(visit: Visit, name: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of a form's field; unset if it is empty."""
    text = visit.form.get(name, "").strip()
    if not text:
        return msgspec.UNSET
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInputError(
            name,
            f"is not valid JSON: {str(error).removeprefix('JSON is malformed: ')}",
            hint='write for example {"pages": 3}, or "a text" in quotes',
        ) from None

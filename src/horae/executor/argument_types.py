"""The arguments of actions as their parameters are annotated: dataclasses, pydantic models, enumerations, times."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args

import msgspec

from horae.checked import input_error
from horae.errors import InvalidInputError
from horae.json_bounds import convert_json


class _NotOfJson(Exception):  # noqa: N818 - it ends a conversion, and is no error
    """A class that cannot be made of JSON."""


def from_json(value: object, kind: Any, field: str) -> Any:  # noqa: ANN401 - a type, and a value of it
    """A JSON value converted to a type; one that does not fit raises ``InvalidInputError``.

    For a type that cannot be made of JSON, such as a protocol, the value stays as it is.
    """
    try:
        made = convert_json(value, kind, _model)
    except msgspec.ValidationError as error:
        raise input_error(error, kind, field) from None
    except (_NotOfJson, TypeError):  # msgspec raises TypeError for types that it does not support
        return value
    if _names_dataclass(kind):
        _complete(made)
    return made


def _names_dataclass(kind: object) -> bool:
    return is_dataclass(kind) or any(map(_names_dataclass, get_args(kind)))


def _complete(value: object) -> None:
    """Give dataclasses all their fields: msgspec leaves those with a default to the class, and then does not write them as JSON."""
    if is_dataclass(value):
        for field in fields(value):
            part = getattr(value, field.name)
            if field.name not in getattr(value, "__dict__", field.name):
                object.__setattr__(value, field.name, part)  # it may be frozen
            _complete(part)
    elif isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            _complete(part)


def _model(kind: type, value: object) -> object:
    """A pydantic model made of JSON. Pydantic is known by its method, because it need not be installed."""
    validate = getattr(kind, "model_validate_json", None)
    if validate is None:
        raise _NotOfJson
    try:
        return validate(msgspec.json.encode(value))
    except ValueError as error:
        faults = getattr(error, "errors", None)
        raise _in_words(faults()) if callable(faults) else error from None


def _in_words(faults: list[dict[str, Any]]) -> ValueError:
    """The first fault that pydantic found, with its place; without the value, which may be a secret."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in faults[0]["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    reason = f"{faults[0]['msg']}{more}"
    return (
        InvalidInputError(place.removeprefix("."), f"is refused: {reason}") if place else ValueError(reason)
    )

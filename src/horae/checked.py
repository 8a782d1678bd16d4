"""Structs that check their fields however they are created, and the errors for values that do not fit.

msgspec checks types when it decodes, but not when a program calls the class of a struct. A :class:`Checked` struct converts each field to
its declared type in both cases: an enumeration may be given by name, a struct as a mapping, a tuple as a list. A value that does not fit
is an :class:`~horae.errors.InvalidInputError` that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import StructMeta

from horae.errors import InvalidInputError, did_you_mean

S = TypeVar("S", bound="Checked")
_FAULT = re.compile(r"(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(?:\.\.\.|[0-9]+)\]")
_MISMATCH = re.compile(r"Expected `(.+)`, got `(.+)`", re.DOTALL)
_BOUND = re.compile(r"Expected `int` (>=|<=) (-?[0-9]+)")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_NO_MEMBER = re.compile(r"Invalid enum value '?(.*?)'?", re.DOTALL)
_WORDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "a mapping", "null": "nothing", "none": "nothing", "list": "a list", "tuple": "a list", "dict": "a mapping",
}  # fmt: skip

_OTHER_WORDS = {
    "tz": "timezone",
    "zone": "timezone",
    "time_zone": "timezone",
    "interval": "every",
    "args": "input",
    "kwargs": "input",
}
_IN_SPEC = {
    "cron": 'give the cron expression as spec, the first argument of @app.schedule',
    "timezone": 'the zone goes into the spec: {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}',
    "every": 'an interval goes into the spec: {"intervals": [{"every": "5m"}]}',
}  # fmt: skip
"""Names that newcomers try: what other libraries call a field, and where parts of a spec go."""


class _NamedFields(StructMeta):
    """Refuses unknown and missing fields with an ``InvalidInputError`` when the class is called."""

    def __call__(cls, *args: object, **fields: object) -> Any:  # noqa: ANN401, N805 - a class, and a value of it
        try:
            return super().__call__(*args, **fields)
        except TypeError:
            declared = msgspec.structs.fields(cast("type[msgspec.Struct]", cls))
            known = tuple(each.name for each in declared)
            for name in fields.keys() - set(known):
                raise unknown_field(name, known) from None
            for each in declared:
                if each.required and each.name not in fields and not args:
                    raise InvalidInputError(each.name, "is missing") from None
            raise


class Checked(msgspec.Struct, metaclass=_NamedFields, frozen=True):
    """A struct whose fields have their declared types, however it was created."""

    def __post_init__(self) -> None:
        given = msgspec.structs.astuple(self)
        for place, name, default, exact, convert in _conversions(type(self)):
            value = given[place]
            if value is default or type(value) is exact:
                continue
            if (fitting := convert(value)) is not value:
                msgspec.structs.force_setattr(self, name, fitting)


@cache
def _conversions(
    kind: type[msgspec.Struct],
) -> tuple[tuple[int, str, object, type | None, Callable[[Any], object]], ...]:
    """For each field that has a type: its place, name and default, the type whose values need no conversion, and the conversion."""
    return tuple(
        (place, each.name, each.default, _exact(each.type), _conversion(each))
        for place, each in enumerate(msgspec.structs.fields(kind))
        if each.type is not Any
    )


def _exact(kind: Any) -> type | None:  # noqa: ANN401 - a type
    """The type whose values fit a field as they are, if there is one: it declares nothing else, or its values were checked."""
    if kind in {str, bool, int}:
        return cast("type", kind)
    alternatives = _alternatives(kind)
    return _checked_part(kind) if len(alternatives) == 1 else None


def _conversion(field: msgspec.structs.FieldInfo) -> Callable[[Any], object]:
    part = _checked_part(field.type)
    if field.default_factory is dict:  # each struct gets a new default
        return lambda given: given if given == {} else _converted(given, field.type, field.name, part)
    return lambda given: _converted(given, field.type, field.name, part)


def converted(given: object, kind: Any, field: str) -> Any:  # noqa: ANN401 - a type, and a value of it
    """A value converted to its field's type; otherwise an error that names the field."""
    return _converted(given, kind, field, _checked_part(kind))


def _converted(given: object, kind: Any, field: str, part: type[Checked] | None) -> Any:  # noqa: ANN401
    try:
        if part is not None and isinstance(given, Mapping) and all(isinstance(each, str) for each in given):
            return part(**given)
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise input_error(error, kind, field) from None
    except InvalidInputError as error:
        raise at(field, error) from None
    except (
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # of the value's own class, such as a Decimal that is no number
        raise InvalidInputError(field, f"cannot be read: {error}") from None


def _checked_part(kind: Any) -> type[Checked] | None:  # noqa: ANN401 - a type
    """The :class:`Checked` class that a mapping is converted to, if the type is or may be one."""
    return next(
        (each for each in _alternatives(kind) if _is_struct(each) and issubclass(each, Checked)), None
    )


def changed(value: S, changes: Mapping[str, Any]) -> S:
    """A value with some fields changed; a mapping changes the fields of a part."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    for name, given in changes.items():
        if name not in fields:
            raise unknown_field(name, fields)
        part = fields[name]
        try:
            in_part = isinstance(part, Checked) and isinstance(given, Mapping)
            fields[name] = changed(part, given) if in_part else given
        except InvalidInputError as error:
            raise at(name, error) from None
    return type(value)(**fields)


def _meant(name: str, known: list[str]) -> str | None:
    """The hint for a name that other libraries use, or that is a part of the spec."""
    name = _OTHER_WORDS.get(name, name)
    if name in known:
        return f"did you mean {name}?"
    return _IN_SPEC.get(name) if "spec" in known else None


def unknown_field(given: object, known: Iterable[str]) -> InvalidInputError:
    """The error for a name that no field has."""
    name, names = str(given), list(known)
    hint = _meant(name, names) or did_you_mean(name, names) or f"known are {', '.join(names)}"
    return InvalidInputError(name, "is unknown", hint=hint)


def at(field: str, error: InvalidInputError) -> InvalidInputError:
    """An error about a part of a field's value, with the field's name in front."""
    path = error.details["field"]
    joined = f"{field}{path}" if path.startswith("[") or not field else f"{field}.{path}"
    return InvalidInputError(joined, error.details["reason"], hint=error.hint)


def input_error(
    error: msgspec.ValidationError,
    kind: Any,  # noqa: ANN401 - a type
    field: str = "",
    *,
    whole: str = "value",
) -> InvalidInputError:
    """An error of msgspec in words, with the path of the value. ``kind`` is the type that the whole value should have had."""
    fault = _FAULT.fullmatch(str(error))
    reason, path = (fault["reason"], fault["path"] or "") if fault else (str(error), "")
    where = f"{field}{path}".lstrip(".")
    if isinstance(cause := error.__cause__, InvalidInputError):
        return at(where, cause)
    if unknown := _UNKNOWN.fullmatch(reason):
        return at(where, unknown_field(unknown[1], _fields(kind, path)))
    if missing := _MISSING.fullmatch(reason):
        return at(where, InvalidInputError(missing[1], "is missing"))
    if no_member := _NO_MEMBER.fullmatch(reason):
        return _no_member(where or whole, no_member[1], list(_members(kind, path)))
    key = "has a key that " if fault and fault["key"] else ""
    return InvalidInputError(where or whole, key + in_words(reason))


def in_words(reason: str) -> str:
    """A reason of msgspec, as the end of a sentence about a field."""
    if mismatch := _MISMATCH.fullmatch(reason):
        return f"must be {_worded(mismatch[1])}, not {_worded(mismatch[2])}"
    if bound := _BOUND.fullmatch(reason):
        return f"must be at {'least' if bound[1] == '>=' else 'most'} {bound[2]}"
    return f"cannot be read: {reason}"


def _no_member(field: str, given: str, known: list[str]) -> InvalidInputError:
    names = ", ".join(known)
    return InvalidInputError(
        field, f'is "{given[:60]}", and must be one of {names}', hint=did_you_mean(given, known)
    )


def _worded(types: str) -> str:
    """Types as msgspec names them, in words."""
    return " or ".join(_WORDS.get(each, each) for each in types.split(" | "))


def _fields(kind: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - a type
    for each in _types_at(kind, path):
        if _is_struct(each):
            yield from each.__struct_fields__


def _members(kind: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - a type
    for each in _types_at(kind, path):
        if isinstance(each, type) and issubclass(each, Enum):
            yield from (str(member.value) for member in each)
        elif get_origin(each) is Literal:
            yield from map(str, get_args(each))


def _types_at(kind: Any, path: str) -> list[Any]:  # noqa: ANN401 - a type
    """The types that a value at a path, such as ``.retry.retry_on[0]``, may have."""
    found = _alternatives(kind)
    for step in _STEP.finditer(path):
        inner: list[Any] = []
        for each in found:
            if step[1] and _is_struct(each):
                inner += [
                    field.type for field in msgspec.structs.fields(each) if field.encode_name == step[1]
                ]
            elif not step[1]:
                inner += [arg for arg in get_args(each) if arg is not ...]
        found = [alternative for each in inner for alternative in _alternatives(each)]
    return found


def _is_struct(kind: object) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, StructMeta)


def _alternatives(kind: Any) -> list[Any]:  # noqa: ANN401 - a type
    """The members of a union, or the type itself, without annotations."""
    if hasattr(kind, "__metadata__"):
        return _alternatives(kind.__origin__)
    if get_origin(kind) in {Union, UnionType}:
        return [alternative for each in get_args(kind) for alternative in _alternatives(each)]
    return [kind]

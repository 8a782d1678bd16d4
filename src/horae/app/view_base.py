"""How views are built from models: field by field, with UTC times instead of milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar, get_args

import msgspec

from horae.app.page import Page
from horae.model import instant

T = TypeVar("T")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all views."""

    @classmethod
    def parts(cls, model: Any) -> tuple[object, ...]:  # noqa: ANN401 - of any kind
        """The values whose fields a view shows: its model, or the parts of it."""
        return (model,)

    @classmethod
    def computed(cls, model: Any) -> dict[str, Any]:  # noqa: ANN401, ARG003 - of any kind
        """The fields that the model does not have."""
        return {}


V = TypeVar("V", bound=View)


class PageView(View, Generic[T], frozen=True):
    """A part of a list. Send ``next`` as ``cursor`` to get the next part."""

    items: list[T]
    next: str | None = None


def view_of(kind: type[V], model: object, **computed: object) -> V:
    """Build a view from the model's fields of the same names and from computed values; other fields keep their default."""
    shown = kind.computed(model) | computed
    parts = kind.parts(model)
    for name, place, attribute, convert, required in _plan(kind, tuple(map(type, parts))):
        if name in shown:
            continue
        value = msgspec.UNSET if place is None else getattr(parts[place], attribute)
        if value is not msgspec.UNSET:
            shown[name] = value if convert is None or value is None else convert(value)
        elif required:
            raise AttributeError(name)
    return kind(**shown)


def page_of(kind: type[V], page: Page[Any]) -> PageView[V]:
    """The view of a page."""
    return PageView(items=[view_of(kind, each) for each in page], next=page.next)


@lru_cache
def _plan(
    kind: type[View], parts: tuple[type, ...]
) -> list[tuple[str, int | None, str, Callable[[Any], object] | None, bool]]:
    """For each field of a view: its name, the part and the attribute that it shows, the conversion, and whether it is required."""
    found = []
    for field in msgspec.structs.fields(kind):
        names = (f"{field.name}_ms", field.name)
        sources = ((place, each) for place, part in enumerate(parts) for each in names if hasattr(part, each))
        place, attribute = next(sources, (None, ""))
        found.append((field.name, place, attribute, _conversion(field.type), field.required))
    return found


def _conversion(kind: Any) -> Callable[[Any], object] | None:  # noqa: ANN401 - a type as it was annotated
    if kind is datetime:
        return partial(_each, instant)
    if isinstance(kind, type) and issubclass(kind, View):
        return partial(_each, partial(view_of, kind))
    # the members of a union, the items of a list, or what is annotated
    return next(filter(None, map(_conversion, get_args(kind))), None)


def _each(convert: Callable[[Any], object], value: object) -> object:
    """A value, or each item of a list, converted; a ``datetime`` stays as it is."""
    if isinstance(value, list | tuple):
        return [_each(convert, each) for each in value]
    return value if isinstance(value, datetime) else convert(value)


def whole(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value as JSON with every field, including those with their default."""
    if isinstance(value, msgspec.Struct):
        return {name: whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Enum):
        return value.value
    return [whole(each) for each in value] if isinstance(value, tuple) else value

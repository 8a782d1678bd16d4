"""The fields of a schedule that its owner sets, declared once: types that create, replace, change or show a schedule derive from it.

Bounds here only document: :mod:`horae.app.field_checks` enforces them, with better messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, get_args

import msgspec

from horae.app.field_checks import (
    MAX_ID_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    check_labels,
    check_limit,
    check_text,
)
from horae.model import MAX_TEXT_LENGTH, Overlap, Policies, SearchValue
from horae.policy.validate import check_policies

T = TypeVar("T")
Document = dict[str, Any]


def about(description: str | None = None, **schema: object) -> msgspec.Meta:
    """A description of a field, and bounds as JSON Schema names them, for the OpenAPI document."""
    return msgspec.Meta(description=description, extra_json_schema=schema or None)


def reference(name: str) -> str:
    """The reference to a type's schema in the OpenAPI document."""
    return f"#/components/schemas/{name}"


Id = Annotated[str, about(minLength=1, maxLength=MAX_ID_LENGTH)]
Text = Annotated[str, about(maxLength=MAX_TEXT_LENGTH)]
Tag = Annotated[str, about(minLength=1, maxLength=MAX_TAG_LENGTH)]
Tags = Annotated[tuple[Tag, ...], about(maxItems=MAX_TAGS)]
SearchAttributes = Annotated[dict[str, SearchValue], about(maxProperties=MAX_TAGS)]
Natural = Annotated[int, about(minimum=0)]
OverlapName = Annotated[str, about(examples=[each.value for each in Overlap])]

if TYPE_CHECKING:
    Moment = datetime | str
    SpecField = Any
else:  # the JSON form
    Moment = Annotated[str, about(format="date-time", examples=["2026-11-01T00:00:00Z"])]
    SpecField = Annotated[
        Document | str,
        about(
            "When: a document, or a cron expression in UTC.",
            oneOf=[{"$ref": reference("SpecDocument")}, {"type": "string", "examples": ["0 9 * * 1-5"]}],
        ),
    ]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request. Unknown fields are refused."""


class TriggerBody(Body, frozen=True):
    """A start right now; omitted fields are those of the schedule."""

    overlap: Annotated[
        OverlapName | None, about("What happens if another run is going on: an overlap policy.")
    ] = None
    input: Annotated[Any, about("What the action gets this time.")] = msgspec.UNSET
    note: Annotated[Text, about("Why.")] = ""


class BackfillBody(Body, frozen=True):
    """A range to backfill, both ends included."""

    start: Annotated[Moment, about("The first moment, with an offset.")]
    end: Annotated[Moment, about("The last moment, with an offset.")]
    overlap: Annotated[
        OverlapName | None, about("What happens if another run is going on: an overlap policy.")
    ] = None
    input: Annotated[Any, about("What the action gets; null is the schedule's own.")] = None
    note: Annotated[Text, about("Why.")] = ""


class ScheduleFields(Body, frozen=True):
    """The fields of a schedule that its owner sets."""

    spec: SpecField
    policies: Annotated[Policies, about("What becomes of its slots.")] = Policies()
    paused: Annotated[bool, about("Whether it is paused.")] = False
    note: Annotated[Text, about("Why it is paused, or anything else.")] = ""
    remaining_actions: Annotated[
        Natural | None, about("How many automatic starts it has left; null is any number.")
    ] = None
    description: Annotated[Text, about("What it is for, in words for people.")] = ""
    tags: Annotated[Tags, about("Words to find it by.")] = ()
    memo: Annotated[dict[str, Any], about("What its owner wants to remember: any JSON, at most 64 KiB.")] = {}
    search_attributes: Annotated[SearchAttributes, about("Names and values to find it by.")] = {}


Fill = Literal["declared", "required", "unset"]
"""The default of each field: the declared one, none, or unset."""


def with_fields(
    declaration: type[msgspec.Struct], fill: Fill = "declared", *, without: Collection[str] = ()
) -> Callable[[type[T]], type[T]]:
    """Give a struct the fields of a declaration, except those that it declares itself."""

    def derive(kind: type[T]) -> type[T]:
        own = {*kind.__struct_fields__, *without}  # type: ignore[attr-defined]
        fields = [
            _derived(each, fill) for each in msgspec.structs.fields(declaration) if each.name not in own
        ]
        itself = {"__doc__": kind.__doc__, "__module__": kind.__module__}
        made = msgspec.defstruct(
            kind.__name__, fields, bases=(kind,), namespace=itself, frozen=True, kw_only=True
        )  # fmt: skip
        return cast("type[T]", made)

    return derive


def _derived(field: msgspec.structs.FieldInfo, fill: Fill) -> tuple[str, Any, Any]:
    match fill:
        case "declared" if field.default_factory is not msgspec.NODEFAULT:
            return field.name, field.type, msgspec.field(default_factory=field.default_factory)
        case "declared":
            return field.name, field.type, field.default
        case "required":
            return field.name, field.type, msgspec.NODEFAULT
        case "unset":
            return field.name, field.type | msgspec.UnsetType, msgspec.UNSET


def values_of(source: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The values of the fields that a struct shares with another type, except unset ones."""
    names = [name for name in kind.__struct_fields__ if hasattr(source, name)]
    return {name: value for name in names if (value := getattr(source, name)) is not msgspec.UNSET}


_TEXTS = [each.name for each in msgspec.structs.fields(ScheduleFields) if get_args(each.type)[:1] == (str,)]


def check_fields(said: Mapping[str, Any]) -> None:
    """Refuse values of schedule fields that cannot be stored."""
    for name in _TEXTS:
        check_text(name, said.get(name, ""))
    if "policies" in said:
        check_policies(said["policies"])
    check_limit(said.get("remaining_actions"))
    check_labels(said.get("tags"), said.get("memo"), said.get("search_attributes"))

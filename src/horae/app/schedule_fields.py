"""The fields of a schedule that its owner sets, declared once: the types that create, replace, change or show a schedule derive from here.

Bounds here only document: :mod:`horae.app.field_checks` enforces them, with better messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, cast, get_args

import msgspec

from horae.app.field_checks import (
    MAX_ID_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS,
    check_limit,
    check_tags,
    check_text,
    stored_memo,
    stored_search,
)
from horae.checked import Checked
from horae.model import MAX_TEXT_LENGTH, Overlap, Policies, Schedule, SearchValue
from horae.policies import PolicyFields
from horae.policy.validate import check_policies
from horae.spec import Spec, SpecDocument

SpecLike = Spec | SpecDocument | str | Mapping[str, Any]
"""A spec, its document, or a cron expression in UTC."""
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
Words = tuple[str, ...] | list[str] | AbstractSet[str]

if TYPE_CHECKING:
    Moment = datetime | str
    SpecField = Any
else:  # the JSON form
    # For msgspec a moment is ``Any``, so that Python may give a ``datetime`` and every wrong value gets the same error.
    Moment = Annotated[Any, about(type="string", format="date-time", examples=["2026-11-01T00:00:00Z"])]
    SpecField = Annotated[
        Document | str,
        about(
            "When: a document, or a cron expression in UTC.",
            oneOf=[{"$ref": reference("SpecDocument")}, {"type": "string", "examples": ["0 9 * * 1-5"]}],
        ),
    ]


class Body(Checked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request. Unknown fields are refused."""


class TriggerBody(Body, frozen=True):
    """A start right now; omitted fields take the schedule's values."""

    overlap: Annotated[Overlap | None, about("What happens if another run is going on.")] = None
    input: Annotated[Any, about("The action's input for this run.")] = msgspec.UNSET
    note: Annotated[Text, about("Why the run was started.")] = ""


class BackfillBody(Body, frozen=True):
    """A range to backfill, both ends included."""

    start: Annotated[Moment, about("The start of the range, with an offset.")]
    end: Annotated[Moment, about("The end of the range, with an offset.")]
    overlap: Annotated[Overlap | None, about("What happens if another run is going on.")] = None
    input: Annotated[Any, about("The action's input; null means the schedule's own.")] = None
    note: Annotated[Text, about("Why the backfill was started.")] = ""


class ScheduleFields(Body, frozen=True):
    """The fields of a schedule that its owner sets."""

    spec: SpecField
    policies: Annotated[Policies, about("What happens to its slots.")] = Policies()
    paused: Annotated[bool, about("Whether the schedule is paused.")] = False
    note: Annotated[Text, about("Why the schedule is paused, or any other note.")] = ""
    remaining_actions: Annotated[
        Natural | None, about("How many automatic starts are left; null means no limit.")
    ] = None
    description: Annotated[Text, about("What the schedule is for, in words for people.")] = ""
    tags: Annotated[Tags, about("Words to find the schedule by.")] = ()
    memo: Annotated[
        dict[str, Any], about("Notes of the owner, which Horae only stores: any JSON, at most 64 KiB.")
    ] = msgspec.field(default_factory=dict)
    search_attributes: Annotated[SearchAttributes, about("Names and values to find the schedule by.")] = (
        msgspec.field(default_factory=dict)
    )
    managed_by: Annotated[
        Text, about("The program or file that defines the schedule; empty if it was created by hand.")
    ] = ""
    execution_grant_id: Annotated[
        Text,
        about(
            "The grant under which the graph runs. If omitted, creating the schedule creates a grant for that graph."
        ),
    ] = ""


class GivenFields(TypedDict, total=False):
    """The fields of a schedule as Python may give them, except its spec and action."""

    policies: Policies | PolicyFields
    paused: bool
    note: str
    remaining_actions: int | None
    description: str
    tags: Words
    memo: Mapping[str, Any]
    search_attributes: Mapping[str, SearchValue]
    managed_by: str
    execution_grant_id: str
    input: Any
    """The action's input: any JSON."""


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
        metaclass: Any = type(kind)
        body = {name: default for name, _, default in fields if default is not msgspec.NODEFAULT}
        body |= {
            "__annotations__": {name: type_ for name, type_, _ in fields},
            "__doc__": kind.__doc__,
            "__module__": kind.__module__,
        }
        return cast("type[T]", metaclass(kind.__name__, (kind,), body, frozen=True, kw_only=True))

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
    names = _shared_names(type(source), kind)
    return {name: value for name in names if (value := getattr(source, name)) is not msgspec.UNSET}


@lru_cache
def _shared_names(one: type[msgspec.Struct], other: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in other.__struct_fields__ if name in one.__struct_fields__)


GIVEN = tuple(name for name in ScheduleFields.__struct_fields__ if name != "spec")
STORED = {*GIVEN} & {*Schedule.__struct_fields__}
"""The fields of a schedule that are stored as given."""
_TEXTS = [each.name for each in msgspec.structs.fields(ScheduleFields) if get_args(each.type)[:1] == (str,)]
_CHECKS: dict[str, Callable[[Any], None]] = {
    **{name: partial(check_text, name) for name in _TEXTS},
    "policies": check_policies,
    "remaining_actions": check_limit,
    "tags": check_tags,
}
_MAPPINGS = (("memo", stored_memo), ("search_attributes", stored_search))


def stored_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The values of schedule fields as they will be read again; those that cannot be stored are refused.

    Everything that creates or changes a schedule comes through here.
    """
    for name, given in fields.items():
        if given and name in _CHECKS:
            _CHECKS[name](given)
    for name, as_stored in _MAPPINGS:
        if given := fields.get(name):
            fields = {**fields, name: as_stored(given)}
    return fields

"""A spec as people and programs write it: the shape of its JSON, checked by msgspec."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from horae.checked import input_error
from horae.errors import InvalidSpecError
from horae.spec.clock_change import Fold, Gap
from horae.spec.cron import Dialect
from horae.spec.duration import Duration
from horae.spec.zone import zone_name

ClockChange = Literal["literal", "debian"]
Anchor = Literal["epoch", "start"]
Int = Annotated[int, msgspec.Meta(ge=-(10**12), le=10**12)]
T = TypeVar("T")


class RangeDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"start": 9, "end": 17, "step": 2}``; without an end it is one value."""

    start: Annotated[
        Int | msgspec.UnsetType,
        msgspec.Meta(
            description="Without one it is 0, as in the protocol this form comes from; canonically it is written out."
        ),
    ] = msgspec.UNSET
    end: Int | None = None
    step: Int = 1


FieldDocument = Int | str | tuple[RangeDocument, ...] | None


class CalendarDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"hour": "9", "day_of_week": "mon-fri"}``: a time of day, 00:00:00 if unsaid, on some days."""

    second: FieldDocument = None
    minute: FieldDocument = None
    hour: FieldDocument = None
    day_of_month: FieldDocument = None
    month: FieldDocument = None
    day_of_week: FieldDocument = None
    year: FieldDocument = None
    comment: str = ""


class ExcludeDocument(CalendarDocument, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A calendar to exclude, or ``{"calendar": "us-holidays"}``, a shared one by its name."""

    calendar: str | None = None


class IntervalDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"every": "90m", "phase": "15m", "anchor": "epoch"}``."""

    every: Duration
    phase: Duration = "0s"
    anchor: Anchor = "epoch"


class JitterDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"span": "30s", "centred": true}``: around the nominal time instead of after it."""

    span: Duration
    centred: bool = False


class SharedCalendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A calendar that many specs exclude by its name: whole days, and calendars."""

    dates: tuple[str, ...] = ()
    calendars: tuple[CalendarDocument, ...] = ()


class SpecDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a schedule fires, as JSON."""

    crons: tuple[str, ...] = ()
    dialect: Dialect = "unix"
    calendars: tuple[CalendarDocument, ...] = ()
    intervals: tuple[IntervalDocument, ...] = ()
    rrules: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    exclude: tuple[ExcludeDocument, ...] = ()
    start_at: str | None = None
    end_at: str | None = None
    timezone: str | None = None
    jitter: Duration | JitterDocument | None = None
    gap: Gap = "skip"
    fold: Fold = "both"
    clock_change: ClockChange = "literal"
    shared: Annotated[
        dict[str, SharedCalendar],
        msgspec.Meta(
            description="What the shared calendars that it excludes by name contain; a stored spec has this with it."
        ),
    ] = {}

    def __post_init__(self) -> None:
        if isinstance(self.jitter, Mapping):
            msgspec.structs.force_setattr(self, "jitter", _read(self.jitter, JitterDocument, "jitter"))


def read_document(source: str | bytes | Mapping[str, Any] | SpecDocument) -> SpecDocument:
    """A spec's JSON, text or already decoded, checked for shape; in Python its zone may be a ``tzinfo``."""
    if isinstance(source, Mapping) and isinstance(zone := source.get("timezone"), tzinfo):
        source = {**source, "timezone": zone_name(zone)}
    return _read(source, SpecDocument, "spec")


def read_shared(source: Mapping[str, Any] | SharedCalendar, name: str) -> SharedCalendar:
    """A shared calendar's JSON, checked for shape."""
    return _read(source, SharedCalendar, name)


def _read(source: object, kind: type[T], name: str) -> T:
    try:
        if isinstance(source, str | bytes):
            return msgspec.json.decode(source, type=kind)
        if isinstance(source, kind):  # made by hand, and so not checked yet
            source = msgspec.to_builtins(source)
        return msgspec.convert(source, type=kind)
    except msgspec.ValidationError as error:
        found = input_error(error, kind, "" if name == "spec" else name, whole=name)
        field, reason = found.details["field"], found.details["reason"]
        raise InvalidSpecError(field, reason, hint=found.hint or _shape_hint(field, reason)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidSpecError(name, f"is no JSON: {error}", hint='{"crons": ["0 9 * * 1-5"]}') from None


def _shape_hint(field: str, reason: str) -> str | None:
    """A hint for the bare name of a shared calendar."""
    named = field.startswith("exclude[") and reason.endswith("not a text")
    return 'write {"calendar": "holidays"} for the shared calendar holidays' if named else None

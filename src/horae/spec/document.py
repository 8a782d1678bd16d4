"""A spec as people and programs write it: the shape of its JSON, checked by msgspec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from horae.errors import InvalidSpecError
from horae.spec.cron import Dialect
from horae.spec.timeline import Fold, Gap

ClockChange = Literal["literal", "debian"]
Anchor = Literal["epoch", "start"]
T = TypeVar("T")


class RangeDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"start": 9, "end": 17, "step": 2}``; without an end it is one value."""

    start: int | msgspec.UnsetType = msgspec.UNSET
    """Without one it is 0, as in the protocol this form comes from; canonically it is written out."""
    end: int | None = None
    step: int = 1


FieldDocument = int | str | tuple[RangeDocument, ...] | None


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

    every: str | int
    phase: str | int = "0s"
    anchor: Anchor = "epoch"


class JitterDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``{"span": "30s", "centred": true}``: around the nominal time instead of after it."""

    span: str | int
    centred: bool = False


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
    jitter: str | int | JitterDocument | None = None
    gap: Gap = "skip"
    fold: Fold = "both"
    clock_change: ClockChange = "literal"


class SharedCalendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A calendar that many specs exclude by its name: whole days, and calendars."""

    dates: tuple[str, ...] = ()
    calendars: tuple[CalendarDocument, ...] = ()


def read_document(source: str | bytes | Mapping[str, Any] | SpecDocument) -> SpecDocument:
    """A spec's JSON, text or already decoded, checked for shape."""
    if isinstance(source, SpecDocument):
        return source
    return _read(source, SpecDocument)


def read_shared(source: Mapping[str, Any] | SharedCalendar) -> SharedCalendar:
    """A shared calendar's JSON, checked for shape."""
    if isinstance(source, SharedCalendar):
        return source
    return _read(source, SharedCalendar)


def _read(source: object, kind: type[T]) -> T:
    try:
        if isinstance(source, str | bytes):
            return msgspec.json.decode(source, type=kind)
        return msgspec.convert(source, type=kind)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        element = path.rstrip("`").lstrip(".") or "spec"
        raise InvalidSpecError(element, reason, hint=_shape_hint(reason)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSpecError("spec", f"is no JSON: {error}", hint='{"crons": ["0 9 * * 1-5"]}') from None


def _shape_hint(reason: str) -> str | None:
    if "unknown field" in reason:
        return f"known are {', '.join(SpecDocument.__struct_fields__)}"
    return None

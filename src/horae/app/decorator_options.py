"""Translate the options of ``@app.schedule`` and ``once`` to a spec and policies. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from horae.app.schedule_edits import edited_policies
from horae.app.schedule_fields import SpecLike
from horae.checked import changed
from horae.errors import InvalidInputError, InvalidSpecError, NaiveTimeError
from horae.model import instant
from horae.policies import (
    CatchUp,
    CatchUpFields,
    CatchUpName,
    CatchUpPolicy,
    Overlap,
    OverlapName,
    Policies,
    PolicyFields,
)
from horae.spec import Spec
from horae.spec.duration import Duration, duration_text, milliseconds
from horae.spec.zone import ZoneLike

CatchUpLike = CatchUp | CatchUpName | CatchUpPolicy | CatchUpFields
Times = datetime | str | Iterable[datetime | str]
"""One time or several. A time without an offset is in the time zone of the schedule."""


def spec_of(
    spec: SpecLike | None, every: Duration | None, at: Times | None, timezone: ZoneLike | None
) -> SpecLike:
    """The spec that the options name in one of three ways: a spec, an interval, or single times."""
    ways = sum(each is not None for each in (spec, every, at))
    if ways == 0:
        hint = 'give a cron expression, such as "0 9 * * *", or every="5m", or at="2026-03-08T09:00:00Z"'
        raise InvalidInputError("the times", "are missing", hint=hint)
    if ways > 1:
        raise InvalidInputError(
            "the times", "must be given in one way", hint="a cron expression, every=… or at=…; a spec document has several"
        )  # fmt: skip
    if isinstance(spec, str):
        return Spec.cron(spec, timezone=timezone)
    if spec is not None:
        if timezone is not None:
            raise InvalidInputError("timezone", "goes with a cron expression, every and at", hint="the spec has its own")  # fmt: skip
        return spec
    document: dict[str, Any] = {} if timezone is None else {"timezone": timezone}
    if every is not None:
        every_ms = milliseconds(every, "every")
        if every_ms < 1000:
            raise InvalidInputError("every", "is shorter than 1s")
        return document | {"intervals": [{"every": duration_text(every_ms)}]}
    times = [at] if isinstance(at, datetime | str) else at or ()
    return document | {"times": [_time(each, timezone) for each in times]}


def time_of_once(
    in_: Duration | None, at: datetime | str | None, timezone: ZoneLike | None, now_ms: int
) -> SpecLike:
    """The spec of a single time ahead: after a span, or at a time."""
    if (in_ is None) == (at is None):
        hint = "either after a span, such as 10m, or at a time, such as 2026-03-08T09:00:00Z"
        raise InvalidInputError("the time", "must be given in one way", hint=hint)
    if in_ is not None:
        after_ms = now_ms + milliseconds(in_, "in_")
        # Specs name whole seconds; the second of now is over.
        at = instant(max(-(-after_ms // 1000), now_ms // 1000 + 1) * 1000)
    try:
        spec = Spec.parse(spec_of(None, None, at, timezone))  # type: ignore[arg-type]  # it is a document
    except InvalidSpecError as error:
        if error.details["element"] != "times[0]":
            raise
        raise InvalidInputError("at", error.details["reason"], hint=error.hint) from None
    if spec.next_instant(now_ms // 1000) is None:
        raise InvalidInputError("at", f"is not ahead: {at}")
    return spec


def _time(given: datetime | str, timezone: ZoneLike | None) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, datetime):
        raise InvalidInputError("at", f"must be a datetime or a text, not {type(given).__name__}")
    if given.tzinfo is None and timezone is None:
        raise NaiveTimeError(given)
    return given.isoformat()


def policies_of(
    defaults: Policies,
    given: Policies | PolicyFields | None,
    *,
    retries: int | None = None,
    overlap: Overlap | OverlapName | None = None,
    catch_up: CatchUpLike | None = None,
    timeout: Duration | None = None,
) -> Policies:
    """The policies of a schedule. A mapping changes some of the defaults; the named options come on top."""
    changes: dict[str, Any] = {}
    if retries is not None:
        if retries < 0:
            raise InvalidInputError("retries", f"must be at least 0, and is {retries}")
        changes["retry"] = {"attempts": retries + 1}
    if overlap is not None:
        changes["overlap"] = overlap
    if catch_up is not None:
        changes["catch_up"] = {"mode": catch_up} if isinstance(catch_up, str) else catch_up
    if timeout is not None:
        changes["timeouts"] = {"run": duration_text(milliseconds(timeout, "timeout"))}
    return changed(defaults if given is None else edited_policies(defaults, given), changes)

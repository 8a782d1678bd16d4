"""What routes have in common: who is calling, whose things are meant, ids in paths, tokens in headers, pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

import msgspec
from litestar import Response
from litestar.params import HeaderParameter, QueryParameter

from horae.app import App, BackfillRequest, Filter, ScopedOperations, Trigger
from horae.app.page import Page
from horae.app.views import PageView, ScheduleView
from horae.errors import InvalidInputError, NaiveTimeError
from horae.face.service.caller import Caller
from horae.face.service.requests import BackfillBody, TriggerBody, Which

T = TypeVar("T")
V = TypeVar("V")
Owner = Annotated[
    str | None, QueryParameter(name="owner", description="Whose things: needs the scope service or admin.")
]
Limit = Annotated[int, QueryParameter(name="limit", ge=1, le=1000, description="How many at most.")]
Times = Annotated[
    int,
    QueryParameter(
        name="limit", description="How many at most.", schema_extra={"minimum": 1, "maximum": 1000}
    ),
]
Cursor = Annotated[str | None, QueryParameter(name="cursor", description="The `next` of the page before.")]
IfMatch = Annotated[
    str | None, HeaderParameter(name="If-Match", description="The ETag that the schedule must still have.")
]


def operations(app: App, caller: Caller, owner: str | None) -> ScopedOperations:
    """What can be done to the things that are meant: those of a named owner, of the caller, or of everybody."""
    meant = caller.owner_for(owner)
    return app.all_owners if meant is None else app.owned_by(meant)


def named(text: str) -> str:
    """An id as it was meant: in the path it is percent-encoded, and was found to be a text before."""
    return unquote(text)


YEARS = range(1900, 2200)
"""Those that specs know."""


def moment(field: str, text: str) -> datetime:
    """A moment as it was written, with an offset."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        hint = "ISO 8601 with an offset, such as 2026-03-08T09:00:00Z"
        raise InvalidInputError(field, f"is no time: {text[:60]!r}", hint=hint) from None
    if read.utcoffset() is None:
        raise NaiveTimeError(read)
    if read.year not in YEARS:
        raise InvalidInputError(field, f"must be of the years {YEARS.start} to {YEARS.stop - 1}")
    return read.astimezone(UTC)


def optional_moment(field: str, text: str | None) -> datetime | None:
    """A moment that may have been left out."""
    return None if text is None else moment(field, text)


def version_of_etag(if_match: str | None) -> int | None:
    """The token that an ETag stands for; ``*`` is any."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or not text.isascii() or len(text) > 18:
        raise InvalidInputError(
            "If-Match",
            f"is no ETag of a schedule: {if_match[:100]!r}",
            hint='such as "7", as answers have it',
        )
    return int(text)


def with_etag(view: ScheduleView, status: int = 200, **headers: str) -> Response[Any]:
    """A schedule, with its token as ETag."""
    return Response(view, status_code=status, headers={"ETag": f'"{view.version}"', **headers})


def filter_of(which: Which) -> Filter:
    """The filter that parameters or a body ask for."""
    key = value = None
    if which.search is not None:
        key, colon, value = which.search.partition(":")
        if not colon or not key:
            raise InvalidInputError(
                "search", "must be a name, a colon and a value", hint="such as customer:42"
            )
    states: dict[str | None, tuple[bool | None, bool | None]] = {
        None: (None, None), "running": (False, False), "paused": (True, None), "completed": (False, True),
    }  # fmt: skip
    paused, completed = states[which.state]
    return Filter(
        prefix=which.prefix, action=which.action, tag=which.tag, paused=paused, completed=completed,
        attention=which.attention, search_key=key, search_value=value,
    )  # fmt: skip


def trigger_of(body: TriggerBody | bool | None, caller: Caller) -> Trigger | None:
    """A trigger that a body asks for, by who is calling."""
    if body is None or body is False:
        return None
    if body is True:
        return Trigger(author=caller.user)
    return Trigger(overlap=body.overlap, input=body.input, note=body.note, author=caller.user)


def backfill_of(body: BackfillBody, caller: Caller) -> BackfillRequest:
    """A backfill that a body asks for, by who is calling."""
    return BackfillRequest(
        first=moment("start", body.start), last=moment("end", body.end), overlap=body.overlap, input=body.input,
        note=body.note, author=caller.user,
    )  # fmt: skip


def page_view(page: Page[T], view: Callable[[T], V]) -> PageView[V]:
    """A page of an answer."""
    return PageView(items=[view(each) for each in page], next=page.next)


async def ledger_view(
    there: ScopedOperations, schedule_id: str, page: Page[T], view: Callable[[T], V]
) -> PageView[V]:
    """A page of a schedule's ledger. An empty one is an answer about a schedule that exists, or left a version when it was
    deleted.
    """
    if not page and not await there.schedules.versions(schedule_id, 1):
        await there.schedules.get(schedule_id)
    return page_view(page, view)


def given(body: msgspec.Struct, *names: str) -> dict[str, Any]:
    """Those of some fields that a body has."""
    return {name: value for name in names if (value := getattr(body, name)) is not msgspec.UNSET}

"""Helpers that routes share: callers and owners, ids in paths, versions in headers, pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from litestar import Response
from litestar.params import HeaderParameter, QueryParameter

from horae.app import App, BackfillRequest, Filter, ScopedOperations, Trigger
from horae.app.page import Page
from horae.app.schedule_fields import BackfillBody, TriggerBody, values_of
from horae.app.views import PageView, ScheduleView
from horae.errors import InvalidInputError
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import Which

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
    """The operations in the scope of a request: of the named owner, of the caller, or of all owners."""
    meant = caller.owner_for(owner)
    return app.all_owners if meant is None else app.owned_by(meant)


def named(text: str) -> str:
    """Decode an id from a path, where it is percent-encoded; ``check_address`` has verified that it is text."""
    return unquote(text)


def version_of_etag(if_match: str | None) -> int | None:
    """The version that an ETag stands for; ``None`` for ``*``, which matches any."""
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
    """A schedule, with its version as ETag."""
    return Response(view, status_code=status, headers={"ETag": f'"{view.version}"', **headers})


def filter_of(which: Which) -> Filter:
    """The filter of parameters or of a body."""
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
    """The trigger in a body, with the caller as its author."""
    if body is None or body is False:
        return None
    return Trigger(**values_of(TriggerBody() if body is True else body, TriggerBody), author=caller.user)


def backfill_of(body: BackfillBody, caller: Caller) -> BackfillRequest:
    """The backfill in a body, with the caller as its author."""
    return BackfillRequest(**values_of(body, BackfillBody), author=caller.user)


def page_view(page: Page[T], view: Callable[[T], V]) -> PageView[V]:
    """The view of a page."""
    return PageView(items=[view(each) for each in page], next=page.next)


async def ledger_view(
    there: ScopedOperations, schedule_id: str, page: Page[T], view: Callable[[T], V]
) -> PageView[V]:
    """A page of a schedule's ledger. If it is empty, the schedule must exist, or have left a version when it was deleted;
    otherwise it is not found.
    """
    if not page and not await there.schedules.versions(schedule_id, 1):
        await there.schedules.get(schedule_id)
    return page_view(page, view)

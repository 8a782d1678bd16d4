"""What routes share: parameters, the operations in the scope of a request, and versions in headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from horae.app import App, BackfillRequest, Filter, ScopedOperations, Trigger
from horae.app.schedule_fields import BackfillBody, TriggerBody, values_of
from horae.errors import InvalidInputError
from horae.face.http.arguments import Constant, Header, Made, Provided, QueryFields, query
from horae.face.http.requests import Request
from horae.face.registrar.routes import registrar_of
from horae.face.service.caller import Caller
from horae.face.service.request_bodies import RunSearch, Which

Owner = Annotated[str | None, query("The owner; needs the scope service or admin.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000), query("How many to list at most.")]
Times = Annotated[int, query("How many to list at most.", minimum=1, maximum=1000)]
Cursor = Annotated[str | None, query("The `next` of the page before.")]
IfMatch = Annotated[str | None, Header("If-Match", "The ETag that the schedule must still have.")]
IfNoneMatch = Annotated[str | None, Header("If-None-Match", "`*`: the schedule must not exist.")]
CALLER = "caller"
"""The key of the caller in the ``state`` of a request."""
API = "/api/v1"
"""The beginning of all paths of the API."""
READS = frozenset({"reads"})
"""The mark of a route that changes nothing although its method is POST: it reads a body."""
ANONYMOUS = frozenset({"anonymous"})
"""The mark of a route that needs no authentication."""


def provided_for(app: App) -> Mapping[str, Provided]:
    """What routes take by name: the app, the caller, the operations that they may use, and parameters."""

    def caller_of(request: Request) -> Caller:
        caller: Caller = request.state[CALLER]
        return caller

    def operations(request: Request, owner: Owner = None) -> ScopedOperations:
        return operations_for(app, caller_of(request), owner)

    def own(request: Request, owner: Owner = None) -> ScopedOperations:
        return own_operations(app, caller_of(request), owner)

    common: dict[str, Provided] = {"app": Constant(app), "caller": Made(caller_of)}
    return {
        **common,
        "operations": Made(operations),
        "own": Made(own),
        "registrar": Made(registrar_of, common),
        "which": QueryFields(Which),
        "search": QueryFields(RunSearch),
    }


def operations_for(app: App, caller: Caller, owner: str | None) -> ScopedOperations:
    """The operations on what a request is about: the named owner's, or else the caller's, or for an admin those of all owners."""
    limited_to = caller.owner_for(owner)
    return app.all_owners if limited_to is None else app.owned_by(limited_to, caller.scopes)


def own_operations(app: App, caller: Caller, owner: str | None) -> ScopedOperations:
    """The operations of one owner, the named one or else the caller, who owns what the request creates."""
    return app.owned_by(caller.owner_of_new(owner), caller.scopes)


async def known_actions(app: App) -> list[str]:
    """The actions that this service or another live node can run, by name."""
    announced = {action for node in await app.nodes() if node.alive for action in node.actions}
    return sorted(announced | set(app.executors.actions))


def version_of_etag(if_match: str | None) -> int | None:
    """The version that an ETag stands for; ``None`` for ``*``, which matches any."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or not text.isascii() or len(text) > 18:
        raise InvalidInputError(
            "If-Match",
            f"is not an ETag of a schedule: {if_match[:100]!r}",
            hint='such as "7", as in the header of an answer',
        )
    return int(text)


def must_be_new(if_none_match: str | None) -> bool:
    """Whether a header requires that the schedule does not exist."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidInputError("If-None-Match", f"must be *, and is {if_none_match[:100]!r}")
    return if_none_match is not None


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
    same = values_of(which, Filter)
    return Filter(**same, paused=paused, completed=completed, search_key=key, search_value=value)


def trigger_of(body: TriggerBody | bool | None, caller: Caller) -> Trigger | None:
    """The trigger in a body, with the caller as its author."""
    if body is None or body is False:
        return None
    return Trigger(**values_of(TriggerBody() if body is True else body, TriggerBody), author=caller.user)


def backfill_of(body: BackfillBody, caller: Caller) -> BackfillRequest:
    """The backfill in a body, with the caller as its author."""
    return BackfillRequest(**values_of(body, BackfillBody), author=caller.user)

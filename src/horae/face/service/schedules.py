"""``/api/v1/schedules``: create, read, change, trigger and backfill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
from litestar import Response, Router, delete, get, patch, post, put
from litestar.params import QueryParameter

from horae.app import App, Edit, Filter, NewSchedule, ScopedOperations
from horae.app.schedule_fields import ScheduleFields, TriggerBody, values_of
from horae.app.views import (
    BackfillView,
    DescribedSchedule,
    PageView,
    PatchedView,
    RunView,
    ScheduleView,
    TimesView,
    Triggered,
    UnstartedView,
    VersionView,
    backfill_view,
    description_view,
    run_view,
    schedule_view,
    unstarted_view,
    version_view,
)
from horae.errors import ConflictTokenMismatchError, InvalidInputError
from horae.face.service.caller import Caller
from horae.face.service.problems import PreconditionFailedError
from horae.face.service.request_bodies import (
    MAX_BACKFILLS,
    CreateSchedule,
    MergeSchedule,
    Note,
    PatchSchedule,
    PauseSchedule,
    ReplaceSchedule,
    SkipNext,
    StartBackfill,
    Which,
)
from horae.face.service.request_reading import at_path, fault_of
from horae.face.service.route_helpers import (
    Cursor,
    IfMatch,
    Limit,
    Owner,
    Times,
    backfill_of,
    filter_of,
    ledger_view,
    named,
    operations,
    page_view,
    trigger_of,
    version_of_etag,
    with_etag,
)
from horae.model import Action, Policies, Schedule

StateName = Annotated[
    str | None,
    QueryParameter(
        name="state", description="How they stand.", schema_extra={"enum": ["running", "paused", "completed"]}
    ),
]
ActionName = Annotated[str | None, QueryParameter(name="action", description="What they do.")]
Tag = Annotated[str | None, QueryParameter(name="tag", description="A tag that they have.")]
Prefix = Annotated[str | None, QueryParameter(name="prefix", description="How their ids begin.")]
Attention = Annotated[
    str | None,
    QueryParameter(
        name="attention",
        description="Whether they need attention.",
        schema_extra={"type": "boolean"},
    ),
]
Search = Annotated[
    str | None,
    QueryParameter(
        name="search",
        description="A search attribute and its value: customer:42.",
        schema_extra={"pattern": "^[^:]+:"},
    ),
]


def check_backfills(number: int) -> None:
    """Refuse too many backfills in one request: they start in one transaction, for which others wait."""
    if number > MAX_BACKFILLS:
        reason = f"must be at most {MAX_BACKFILLS} in one request, and are {number}"
        raise InvalidInputError("backfills", reason)


def new_schedule(body: CreateSchedule, caller: Caller) -> NewSchedule:
    """The new schedule of a body; without an id it gets one."""
    return NewSchedule(
        **values_of(body, ScheduleFields), id=str(uuid4()) if body.id is None else body.id, request_id=body.request_id,
        action=body.action, trigger=trigger_of(body.trigger, caller),
        backfills=tuple(backfill_of(each, caller) for each in body.backfills),
    )  # fmt: skip


@post("/", operation_id="createSchedule", summary="Create a schedule", status_code=201)
async def create(
    app: App, caller: Caller, data: CreateSchedule, owner: Owner = None
) -> Response[ScheduleView]:
    """It fires from now on. With a `request_id`, repeating the request creates nothing and answers 200."""
    there = app.owned_by(caller.owner_of_new(owner))
    check_backfills(len(data.backfills))
    made = await there.schedules.create_once([new_schedule(data, caller)])
    view = await there.evaluate(lambda: schedule_view(made.schedules[0]))
    status = 200 if made.repeated else 201
    return with_etag(view, status, Location=f"/api/v1/schedules/{quote(view.id, safe='')}")


@get("/", operation_id="listSchedules", summary="List schedules")
async def list_schedules(
    app: App,
    caller: Caller,
    only: Filter,
    owner: Owner = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> PageView[ScheduleView]:
    """Those that match all given parameters, in the order of their ids. A page ends early when it has 4 MiB."""
    there = operations(app, caller, owner)
    found = await there.schedules.list(only, cursor=cursor, limit=limit)
    return await there.evaluate(lambda: page_view(found, schedule_view))


def asked_filter(
    state_name: StateName = None,
    action: ActionName = None,
    tag: Tag = None,
    prefix: Prefix = None,
    attention: Attention = None,
    search: Search = None,
) -> Filter:
    """The filter in the parameters of a request, shared by lists and counts."""
    wanted: dict[str, Any] = {
        "state": state_name, "action": action, "tag": tag, "prefix": prefix, "search": search,
    }  # fmt: skip
    if attention is not None:
        wanted["attention"] = {"true": True, "false": False}.get(attention.lower(), attention)
    try:
        which = msgspec.convert(wanted, Which)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$.")
        known = "true, false" if path.startswith("attention") else "running, paused, completed"
        raise InvalidInputError(path.rstrip("`"), f"is none of {known}: {reason}") from None
    return filter_of(which)


@get("/{schedule_id:str}", operation_id="describeSchedule", summary="Describe a schedule")
async def describe(
    app: App, caller: Caller, schedule_id: str, owner: Owner = None
) -> Response[DescribedSchedule]:
    """With its counts, its latest runs and its next times."""
    there = operations(app, caller, owner)
    found = await there.schedules.describe(named(schedule_id))
    return with_etag(await there.evaluate(lambda: description_view(found)))


@put("/{schedule_id:str}", operation_id="replaceSchedule", summary="Replace a schedule")
async def replace(
    app: App,
    caller: Caller,
    schedule_id: str,
    data: ReplaceSchedule,
    owner: Owner = None,
    if_match: IfMatch = None,
) -> Response[ScheduleView]:
    """Replaces spec, action, policies and state from now on; waiting runs stay."""
    edit = Edit(**values_of(data, ScheduleFields), action=_whole(data.action))
    there = operations(app, caller, owner)
    return await _edited(there, named(schedule_id), lambda _: edit, data.version, if_match)


@patch("/{schedule_id:str}", operation_id="mergeSchedule", summary="Change a part of a schedule")
async def merge(
    app: App,
    caller: Caller,
    schedule_id: str,
    data: MergeSchedule,
    owner: Owner = None,
    if_match: IfMatch = None,
) -> Response[ScheduleView]:
    """Changes only the given fields; `policies` are merged into the current ones."""
    fields = values_of(data, ScheduleFields)
    if data.action is not msgspec.UNSET:
        fields["action"] = _whole(data.action)

    def edit_of(schedule: Schedule) -> Edit:
        if data.policies is msgspec.UNSET:
            return Edit(**fields)
        return Edit(**fields | {"policies": merged(schedule.policies, data.policies)})

    there = operations(app, caller, owner)
    return await _edited(there, named(schedule_id), edit_of, data.version, if_match)


def _whole(action: Action | str) -> Action:
    """A given action replaces the whole action, even if it is only an address."""
    return Action(name=action) if isinstance(action, str) else action


async def _edited(
    there: ScopedOperations,
    schedule_id: str,
    edit_of: Callable[[Schedule], Edit],
    version: int | None,
    if_match: str | None,
) -> Response[ScheduleView]:
    """Apply an edit; a stale version in the body is a conflict, one in the header a failed precondition."""
    expected = version_of_etag(if_match)
    try:
        changed = await there.schedules.edit(
            schedule_id, edit_of, version=version if expected is None else expected
        )
    except ConflictTokenMismatchError as error:
        if expected is not None:
            raise PreconditionFailedError(error) from None
        raise
    return await _shown(there, changed)


async def _shown(there: ScopedOperations, schedule: Schedule) -> Response[ScheduleView]:
    return with_etag(await there.evaluate(lambda: schedule_view(schedule)))


def merged(policies: Policies, change: dict[str, Any]) -> Policies:
    """Policies with some of them changed; ``null`` restores the default."""
    try:
        return msgspec.convert(_merge(msgspec.to_builtins(policies), change), Policies)
    except msgspec.ValidationError as error:
        reason, path = fault_of(error)
        path = f"policies.{path}".rstrip(".")
        if isinstance(error.__cause__, InvalidInputError):
            raise at_path(error.__cause__, path) from None
        raise InvalidInputError(path, reason) from None


def _merge(old: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    new = dict(old)
    for key, value in change.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict) and isinstance(new.get(key), dict):
            new[key] = _merge(new[key], value)
        else:
            new[key] = value
    return new


@delete("/{schedule_id:str}", operation_id="deleteSchedule", summary="Delete a schedule", status_code=204)
async def remove(
    app: App, caller: Caller, schedule_id: str, owner: Owner = None, if_match: IfMatch = None
) -> None:
    """Running runs continue; waiting ones never start. Its ledger stays."""
    try:
        await operations(app, caller, owner).schedules.delete(
            named(schedule_id), version=version_of_etag(if_match)
        )
    except ConflictTokenMismatchError as error:
        raise PreconditionFailedError(error) from None


@post(
    "/{schedule_id:str}/patch",
    operation_id="patchSchedule",
    summary="Trigger, backfill, pause or resume together",
    status_code=200,
)
async def patch_together(
    app: App, caller: Caller, schedule_id: str, data: PatchSchedule, owner: Owner = None
) -> PatchedView:
    """All changes, or none."""
    check_backfills(len(data.backfills))
    there = operations(app, caller, owner)
    done = await there.schedules.patch(
        named(schedule_id), trigger=trigger_of(data.trigger, caller), pause=data.pause, resume=data.resume,
        backfills=[backfill_of(each, caller) for each in data.backfills], version=data.version,
    )  # fmt: skip
    return PatchedView(
        schedule=await there.evaluate(lambda: schedule_view(done.schedule)), run_id=done.run_id,
        backfills=[backfill_view(each) for each in done.backfills],
    )  # fmt: skip


@post(
    "/{schedule_id:str}/trigger", operation_id="triggerSchedule", summary="Start a run now", status_code=202
)
async def trigger(
    app: App, caller: Caller, schedule_id: str, data: TriggerBody | None = None, owner: Owner = None
) -> Triggered:
    """Whatever the spec says, and also while it is paused; refused while `HORAE_MAX_BUFFER_SIZE` triggered runs wait."""
    wanted = trigger_of(data or TriggerBody(), caller)
    done = await operations(app, caller, owner).schedules.patch(named(schedule_id), trigger=wanted)
    return Triggered(run_id=done.run_id or "")


@post("/{schedule_id:str}/pause", operation_id="pauseSchedule", summary="Pause a schedule", status_code=200)
async def pause(
    app: App, caller: Caller, schedule_id: str, data: PauseSchedule | None = None, owner: Owner = None
) -> Response[ScheduleView]:
    """Stops automatic starts until it is resumed, or until a given time; running runs continue, triggers work."""
    wanted = data or PauseSchedule()
    there = operations(app, caller, owner)
    changed = await there.schedules.pause(named(schedule_id), wanted.note, until=wanted.until)
    return await _shown(there, changed)


@post(
    "/{schedule_id:str}/resume", operation_id="resumeSchedule", summary="Resume a schedule", status_code=200
)
async def resume(
    app: App, caller: Caller, schedule_id: str, data: Note | None = None, owner: Owner = None
) -> Response[ScheduleView]:
    """Slots that fell due during the pause are caught up or skipped, by the policy `on_resume`."""
    there = operations(app, caller, owner)
    return await _shown(there, await there.schedules.resume(named(schedule_id), (data or Note()).note))


@post("/{schedule_id:str}/skip", operation_id="skipNext", summary="Skip the next slots", status_code=200)
async def skip(
    app: App, caller: Caller, schedule_id: str, data: SkipNext | None = None, owner: Owner = None
) -> Response[ScheduleView]:
    """Skips the given number of next slots; 0 revokes that."""
    there = operations(app, caller, owner)
    number = (data or SkipNext()).number
    return await _shown(there, await there.schedules.skip_next(named(schedule_id), number))


@post(
    "/{schedule_id:str}/backfills", operation_id="startBackfill", summary="Backfill a range", status_code=202
)
async def start_backfill(
    app: App, caller: Caller, schedule_id: str, data: StartBackfill, owner: Owner = None
) -> Response[Any]:
    """Both ends included. With `dry_run` nothing starts, and the answer says how many slots, from when to when."""
    there = operations(app, caller, owner)
    if data.dry_run:
        wanted = backfill_of(data, caller)
        preview = await there.backfills.preview(named(schedule_id), wanted.start, wanted.end)
        return Response(preview, status_code=200)
    done = await there.schedules.patch(named(schedule_id), backfills=[backfill_of(data, caller)])
    return Response(backfill_view(done.backfills[0]), status_code=202)


@get("/{schedule_id:str}/backfills", operation_id="listBackfills", summary="List the backfills of a schedule")
async def backfills(
    app: App,
    caller: Caller,
    schedule_id: str,
    owner: Owner = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PageView[BackfillView]:
    """The latest first. A page ends early when it has 4 MiB."""
    there = operations(app, caller, owner)
    found = await there.backfills.list(named(schedule_id), limit, cursor=cursor)
    return await ledger_view(there, named(schedule_id), found, backfill_view)


@get("/{schedule_id:str}/times", operation_id="listTimes", summary="Matching times")
async def times(
    app: App,
    caller: Caller,
    schedule_id: str,
    owner: Owner = None,
    start: Annotated[
        str | None,
        QueryParameter(
            name="start", description="Later than this; now.", schema_extra={"format": "date-time"}
        ),
    ] = None,
    end: Annotated[
        str | None,
        QueryParameter(
            name="end", description="Up to and including this.", schema_extra={"format": "date-time"}
        ),
    ] = None,
    limit: Times = 10,
) -> TimesView:
    """Those later than `start` (now), up to and including `end`; at most 1,000."""
    return await operations(app, caller, owner).schedules.times(named(schedule_id), start, end, limit)


@get("/{schedule_id:str}/runs", operation_id="listRuns", summary="List the runs of a schedule")
async def runs(
    app: App,
    caller: Caller,
    schedule_id: str,
    owner: Owner = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PageView[RunView]:
    """The latest first, each with its status and reason. Those of a deleted schedule stay for its retention.

    A page ends early when it has 4 MiB.
    """
    there = operations(app, caller, owner)
    found = await there.runs.list(named(schedule_id), limit, cursor=cursor)
    return await ledger_view(there, named(schedule_id), found, run_view)


@get(
    "/{schedule_id:str}/unstarted",
    operation_id="listUnstarted",
    summary="List the slots of a schedule that did not run",
)
async def unstarted(
    app: App,
    caller: Caller,
    schedule_id: str,
    owner: Owner = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PageView[UnstartedView]:
    """Consecutive slots that did not run for one reason are one range; the latest first."""
    there = operations(app, caller, owner)
    found = await there.runs.unstarted_ranges(named(schedule_id), limit, cursor=cursor)
    return await ledger_view(there, named(schedule_id), found, unstarted_view)


@get(
    "/{schedule_id:str}/versions",
    operation_id="listVersions",
    summary="List what a schedule was before its edits",
)
async def versions(
    app: App,
    caller: Caller,
    schedule_id: str,
    owner: Owner = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PageView[VersionView]:
    """The latest first. A page ends early when it has 4 MiB."""
    there = operations(app, caller, owner)
    found = await there.schedules.versions(named(schedule_id), limit, cursor=cursor)
    return await ledger_view(there, named(schedule_id), found, version_view)


def schedules_router() -> Router:
    """The routes of schedules."""
    handlers = [
        create, list_schedules, describe, replace, merge, remove, patch_together, trigger, pause, resume, skip,
        start_backfill, backfills, times, runs, unstarted, versions,
    ]  # fmt: skip
    return Router("/schedules", route_handlers=handlers, tags=["schedules"])

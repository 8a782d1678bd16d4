"""``/api/v1/schedules``: create, read, change, trigger and backfill; ``/api/v1/once``: run an action once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from horae.app import Edit, NewSchedule, ScopedOperations
from horae.app.graph_schedules import graph_edit, new_graph_fields
from horae.app.merge_patch import merged_policies, merged_spec
from horae.app.operations import SingleRun
from horae.app.schedule_creation import Creation
from horae.app.schedule_fields import BackfillBody, ScheduleFields, TriggerBody, values_of
from horae.app.schedule_put import Only
from horae.app.schedule_put import put as put_schedule
from horae.app.schedule_views import (
    DescribedSchedule,
    PatchedView,
    PutSchedule,
    ResumedSchedule,
    ScheduleView,
    StoredSchedule,
    TimesView,
    VersionView,
    description_view,
    graph_runs_view,
    resumed_view,
)
from horae.app.view_base import PageView, page_of, view_of
from horae.app.views import BackfillView, RunView, Triggered, UnstartedView
from horae.errors import (
    ConflictTokenMismatchError,
    InvalidInputError,
    ScheduleExistsError,
    ScheduleNotFoundError,
    SpecError,
)
from horae.face.http.arguments import query
from horae.face.http.errors import Fault, HttpError
from horae.face.http.responses import Response
from horae.face.http.routes import Router, delete, get, patch, post, put
from horae.face.service.caller import Caller
from horae.face.service.problems import StatusError
from horae.face.service.request_bodies import (
    MAX_BACKFILLS,
    CreateSchedule,
    GraphFields,
    MergeSchedule,
    PatchSchedule,
    PauseSchedule,
    ReplaceSchedule,
    ResumeSchedule,
    RunOnce,
    SkipNext,
    StartBackfill,
    Which,
)
from horae.face.service.route_helpers import (
    API,
    Cursor,
    IfMatch,
    IfNoneMatch,
    Limit,
    Times,
    backfill_of,
    filter_of,
    must_be_new,
    trigger_of,
    version_of_etag,
)
from horae.model import GRAPH, Action, Schedule
from horae.spec.duration import milliseconds

Start = Annotated[str | None, query("Later than this; now if omitted.", format="date-time")]
End = Annotated[str | None, query("Up to and including this.", format="date-time")]


def check_backfills(number: int) -> None:
    """Refuse too many backfills in one request: they start in one transaction, for which others wait."""
    if number > MAX_BACKFILLS:
        reason = f"must be at most {MAX_BACKFILLS} in one request, and are {number}"
        raise InvalidInputError("backfills", reason)


def new_schedule(body: CreateSchedule, caller: Caller) -> NewSchedule:
    """The new schedule of a body, with a generated id if it has none."""
    fields = values_of(body, ScheduleFields)
    if body.graph_id is not msgspec.UNSET:
        fields |= _of_graph(body, body.graph_id)
    elif given := values_of(body, GraphFields):
        if body.spec is msgspec.UNSET and body.action is msgspec.UNSET:
            raise InvalidInputError(
                next(iter(given)), "needs graph_id", hint="or give spec and action instead"
            )
        raise _not_of_graph(next(iter(given)), body.action)
    else:
        for name in ("spec", "action"):
            if getattr(body, name) is msgspec.UNSET:
                raise _missing(name)
        fields["action"] = body.action
    return NewSchedule(
        **fields, id=str(uuid4()) if body.id is None else body.id, request_id=body.request_id,
        trigger=trigger_of(body.trigger, caller),
        backfills=tuple(backfill_of(each, caller) for each in body.backfills),
    )  # fmt: skip


def _of_graph(body: CreateSchedule, graph_id: str) -> dict[str, Any]:
    """The fields of a new schedule of a graph."""
    for name in ("spec", "action"):
        if getattr(body, name) is not msgspec.UNSET:
            raise InvalidInputError(
                name, "cannot be given with graph_id", hint="give cron and timezone instead"
            )
    given = values_of(body, GraphFields)
    for name in ("cron", "timezone"):
        if name not in given:
            raise _missing(name)
    return new_graph_fields(
        graph_id, given | ({} if body.policies is msgspec.UNSET else {"policies": body.policies})
    )


def _not_of_graph(field: str, action: object) -> InvalidInputError:
    """The error for a field that only a schedule of a graph has: where what was meant belongs."""
    name = action if isinstance(action, str) else action.address if isinstance(action, Action) else "NAME"
    places = {
        "input": ("action", f'write "action": {{"name": "{name}", "input": {{…}}}}'),
        "timezone": ("spec", 'write "spec": {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}'),
        "cron": ("spec", 'write "spec": "0 9 * * *", or with a time zone: {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}'),
    }  # fmt: skip
    if field in places:
        place, hint = places[field]
        return InvalidInputError(field, f"belongs in the {place}", hint=hint)
    instead = "paused" if field == "enabled" else "policies"
    return InvalidInputError(
        field, "is only for schedules of graphs", hint=f"other schedules have {instead} instead"
    )


def _missing(field: str) -> HttpError:
    return HttpError(400, faults=[Fault(field, "is missing")])


@contextlib.contextmanager
def _bad_request(*, of_graph: bool) -> Iterator[None]:
    """Answer 400, and not 422, to values that a schedule of a graph cannot have."""
    try:
        yield
    except (InvalidInputError, SpecError) as error:
        if not of_graph:
            raise
        raise StatusError(error, 400) from None


@post("/", summary="Create a schedule")
async def create_schedule(
    own: ScopedOperations, caller: Caller, data: CreateSchedule
) -> Response[StoredSchedule]:
    """The schedule fires from now on. With a `request_id`, repeating the request creates nothing and answers 200.

    With a `graph_id` the schedule runs a graph for its owner, under a grant for that graph, which is created with it: both, or neither.
    """
    check_backfills(len(data.backfills))
    with _bad_request(of_graph=data.graph_id is not msgspec.UNSET):
        return await created(own, await own.schedules.create_once([new_schedule(data, caller)]))


async def created(own: ScopedOperations, creation: Creation) -> Response[StoredSchedule]:
    """A created schedule with its location; the status is 200 if the same request created it before."""
    (schedule,), status = creation.schedules, 200 if creation.repeated else 201
    return await _stored(own, schedule, status, **_location(schedule.id))


def _location(schedule_id: str) -> dict[str, str]:
    return {"Location": f"/api/v1/schedules/{quote(schedule_id, safe='')}"}


@get("/", summary="List schedules")
async def list_schedules(
    operations: ScopedOperations, which: Which, limit: Limit = 100, cursor: Cursor = None
) -> PageView[ScheduleView]:
    """Schedules that match all given parameters, ordered by id. A page ends early at 4 MiB."""
    schedules = await operations.schedules.list(filter_of(which), cursor=cursor, limit=limit)
    page = await operations.evaluate(lambda: page_of(ScheduleView, schedules))
    return PageView(items=await _with_last_run(operations, page.items, schedules), next=page.next)


@get("/{schedule_id}", summary="Describe a schedule")
async def describe_schedule(operations: ScopedOperations, schedule_id: str) -> Response[DescribedSchedule]:
    """With its counts, its latest runs and its next times."""
    description = await operations.schedules.describe(schedule_id)
    return await _shown(operations, description.schedule, lambda: description_view(description))


@put("/{schedule_id}", summary="Create or replace a schedule")
async def replace_schedule(
    operations: ScopedOperations,
    own: ScopedOperations,
    schedule_id: str,
    data: ReplaceSchedule,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[PutSchedule]:
    """Creates the schedule if it does not exist. Otherwise replaces spec, action, policies and state from now on; waiting runs stay.

    A request that changes nothing keeps the version. With `dry_run` nothing is stored, and the answer is the schedule as it would be.
    """
    expected = version_of_etag(if_match)
    only: Only | None = "new" if must_be_new(if_none_match) else "existing" if if_match is not None else None
    try:
        done = await put_schedule(
            operations.schedules, schedule_id, values_of(data, ScheduleFields) | {"action": _whole(data.action)},
            own=own.schedules, version=data.version if expected is None else expected, only=only, dry_run=data.dry_run,
        )  # fmt: skip
    except (ScheduleExistsError, ScheduleNotFoundError) as error:
        raise error if only is None else StatusError(error, 412) from None
    except ConflictTokenMismatchError as error:
        raise error if expected is None else StatusError(error, 412) from None
    stored = done.outcome == "created" and not data.dry_run
    return await _shown(
        operations, done.schedule,
        lambda: view_of(PutSchedule, done.schedule, warnings=operations.warnings_of(done.schedule), outcome=done.outcome),
        201 if stored else 200,
        **(_location(schedule_id) if stored else {}),
    )  # fmt: skip


@patch("/{schedule_id}", summary="Change a part of a schedule")
async def merge_schedule(
    operations: ScopedOperations, schedule_id: str, data: MergeSchedule, if_match: IfMatch = None
) -> Response[StoredSchedule]:
    """Other fields keep their values. `spec` and `policies` are merged into the current ones, and `null` removes a part of them. Fields of a graph change a schedule of a graph."""
    fields, of_graph = values_of(data, ScheduleFields), values_of(data, GraphFields)
    if data.action is not msgspec.UNSET:
        fields["action"] = _whole(data.action)

    def edit_of(schedule: Schedule) -> Edit:
        merged: dict[str, Any] = {}
        if data.spec is not msgspec.UNSET:
            merged["spec"] = merged_spec(schedule.spec, data.spec)
        if data.policies is not msgspec.UNSET:
            merged["policies"] = merged_policies(schedule.policies, data.policies)
        return Edit(**fields | merged | (graph_edit(schedule, of_graph) if of_graph else {}))

    if of_graph and (stored := (await operations.schedules.get(schedule_id)).action).kind != GRAPH:
        raise _not_of_graph(next(iter(of_graph)), stored)
    with _bad_request(of_graph=bool(of_graph)):
        return await _edited(operations, schedule_id, edit_of, data.version, if_match)


def _whole(action: Action | str) -> Action:
    """A given action replaces the whole action, even if it is only an address."""
    return Action(name=action) if isinstance(action, str) else action


async def _edited(
    operations: ScopedOperations,
    schedule_id: str,
    edit_of: Callable[[Schedule], Edit],
    version: int | None,
    if_match: str | None,
) -> Response[StoredSchedule]:
    """Apply an edit; a stale version in the body is a conflict, one in the header a failed precondition."""
    expected = version_of_etag(if_match)
    try:
        changed = await operations.schedules.edit(
            schedule_id, edit_of, version=version if expected is None else expected
        )
    except ConflictTokenMismatchError as error:
        if expected is not None:
            raise StatusError(error, 412) from None
        raise
    return await _stored(operations, changed)


async def _stored(
    operations: ScopedOperations, schedule: Schedule, status: int = 200, **headers: str
) -> Response[StoredSchedule]:
    """A schedule that was created or changed, with warnings."""
    return await _shown(
        operations, schedule,
        lambda: view_of(StoredSchedule, schedule, warnings=operations.warnings_of(schedule)), status, **headers,
    )  # fmt: skip


V = TypeVar("V", bound=ScheduleView)


async def _shown(
    operations: ScopedOperations,
    schedule: Schedule,
    view_it: Callable[[], V],
    status: int = 200,
    **headers: str,
) -> Response[V]:
    """A view of a schedule, with its version as ETag."""
    (view,) = await _with_last_run(operations, [await operations.evaluate(view_it)], [schedule])
    return Response(view, status_code=status, headers={"ETag": f'"{view.version}"', **headers})


async def _with_last_run(
    operations: ScopedOperations, views: list[V], schedules: Sequence[Schedule]
) -> list[V]:
    """Views of schedules; those of graphs with the start of the latest run."""
    starts = await operations.schedules.last_starts(schedules)
    return [
        view if start is None else msgspec.structs.replace(view, last_run_at=start)
        for view, start in zip(views, starts, strict=True)
    ]


@delete("/{schedule_id}", summary="Delete a schedule")
async def delete_schedule(operations: ScopedOperations, schedule_id: str, if_match: IfMatch = None) -> None:
    """Running runs continue, waiting ones never start. The schedule's ledger stays."""
    try:
        await operations.schedules.delete(schedule_id, version=version_of_etag(if_match))
    except ConflictTokenMismatchError as error:
        raise StatusError(error, 412) from None


@post("/{schedule_id}/patch", summary="Trigger, backfill, pause or resume together", status_code=200)
async def patch_schedule(
    operations: ScopedOperations, caller: Caller, schedule_id: str, data: PatchSchedule
) -> PatchedView:
    """All changes, or none."""
    check_backfills(len(data.backfills))
    trigger, backfills = (
        trigger_of(data.trigger, caller),
        [backfill_of(each, caller) for each in data.backfills],
    )
    done = await operations.schedules.patch(
        schedule_id,
        trigger=trigger,
        pause=data.pause,
        resume=data.resume,
        backfills=backfills,
        version=data.version,
    )
    warnings = _warnings_of_starts(operations, done.schedule, trigger, backfills)
    return await operations.evaluate(lambda: view_of(PatchedView, done, warnings=warnings))


@post("/{schedule_id}/trigger", summary="Start a run now", status_code=202)
async def trigger_schedule(
    operations: ScopedOperations, caller: Caller, schedule_id: str, data: TriggerBody | None = None
) -> Triggered:
    """Whatever the spec says, even while the schedule is paused. Refused while `HORAE_MAX_BUFFER_SIZE` triggered runs wait."""
    wanted = trigger_of(data or TriggerBody(), caller)
    done = await operations.schedules.patch(schedule_id, trigger=wanted)
    return view_of(Triggered, done, warnings=_warnings_of_starts(operations, done.schedule, wanted))


def _warnings_of_starts(
    operations: ScopedOperations,
    schedule: Schedule,
    trigger: TriggerBody | None,
    backfills: Sequence[BackfillBody] = (),
) -> list[str]:
    """Why the inputs of a trigger and of backfills do not fit the schedule's function."""
    given = [] if trigger is None or trigger.input is msgspec.UNSET else [trigger.input]
    given += [each.input for each in backfills if each.input is not None]
    return list(dict.fromkeys(operations.warnings_of_inputs(schedule, *given))) if given else []


@post("/{schedule_id}/pause", summary="Pause a schedule", status_code=200)
async def pause_schedule(
    operations: ScopedOperations, schedule_id: str, data: PauseSchedule | None = None
) -> Response[ScheduleView]:
    """Stops automatic starts until the schedule is resumed, or until a given time. Running runs continue, triggers work."""
    wanted = data or PauseSchedule()
    changed = await operations.schedules.pause(schedule_id, wanted.note, until=wanted.until)
    return await _shown(operations, changed, lambda: view_of(ScheduleView, changed))


@post("/{schedule_id}/resume", summary="Resume a schedule", status_code=200)
async def resume_schedule(
    operations: ScopedOperations, schedule_id: str, data: ResumeSchedule | None = None
) -> Response[ResumedSchedule]:
    """Slots that fell due during the pause are caught up or skipped, by the policy `on_resume` or as this request says.

    The answer says what starts now and what does not. With `dry_run` nothing is changed, and the answer says what would start.
    """
    body = data or ResumeSchedule()
    done = await operations.schedules.resume(
        schedule_id, body.note, on_resume=body.on_resume, dry_run=body.dry_run
    )
    return await _shown(operations, done.schedule, lambda: resumed_view(done))


@post("/{schedule_id}/skip", summary="Skip the next slots", status_code=200)
async def skip_next(
    operations: ScopedOperations, schedule_id: str, data: SkipNext | None = None
) -> Response[ScheduleView]:
    """Skips the given number of next slots; 0 skips none."""
    changed = await operations.schedules.skip_next(schedule_id, (data or SkipNext()).number)
    return await _shown(operations, changed, lambda: view_of(ScheduleView, changed))


@post("/{schedule_id}/backfills", summary="Backfill a range", status_code=202)
async def start_backfill(
    operations: ScopedOperations, caller: Caller, schedule_id: str, data: StartBackfill
) -> Response[Any]:
    """Both ends are included. With `dry_run` nothing starts, and the answer has the number of slots, the first and the last."""
    if data.dry_run:
        preview = await operations.backfills.preview(schedule_id, data.start, data.end)
        return Response(preview, status_code=200)
    done = await operations.schedules.patch(schedule_id, backfills=[backfill_of(data, caller)])
    return Response(view_of(BackfillView, done.backfills[0]), status_code=202)


@get("/{schedule_id}/backfills", summary="List the backfills of a schedule")
async def list_backfills(
    operations: ScopedOperations, schedule_id: str, limit: Limit = 20, cursor: Cursor = None
) -> PageView[BackfillView]:
    """Latest first. A page ends early at 4 MiB."""
    return page_of(BackfillView, await operations.backfills.list(schedule_id, limit, cursor=cursor))


@get("/{schedule_id}/times", summary="Matching times")
async def list_times(
    operations: ScopedOperations, schedule_id: str, start: Start = None, end: End = None, limit: Times = 10
) -> TimesView:
    """Times later than `start` (by default now), up to and including `end`; at most 1,000."""
    return await operations.schedules.times(schedule_id, start, end, limit)


@get("/{schedule_id}/runs", summary="List the runs of a schedule")
async def list_runs(
    operations: ScopedOperations, schedule_id: str, limit: Limit = 20, cursor: Cursor = None
) -> PageView[RunView]:
    """Latest first, each with its status and reason. Runs of a deleted schedule stay for its retention.

    A page ends early at 4 MiB. For a schedule of a graph, slots that did not run are listed too.
    """
    if await operations.schedules.is_of_graph(schedule_id):
        entries = await operations.runs.search(schedule_id=schedule_id, limit=limit, cursor=cursor)
        return graph_runs_view(entries)  # type: ignore[return-value]  # the document has both
    return page_of(RunView, await operations.runs.list(schedule_id, limit, cursor=cursor))


@get("/{schedule_id}/unstarted", summary="List the slots of a schedule that did not run")
async def list_unstarted(
    operations: ScopedOperations, schedule_id: str, limit: Limit = 20, cursor: Cursor = None
) -> PageView[UnstartedView]:
    """Latest first. Consecutive slots that did not run for the same reason are one range."""
    return page_of(UnstartedView, await operations.runs.unstarted_ranges(schedule_id, limit, cursor=cursor))


@get("/{schedule_id}/versions", summary="List earlier versions of a schedule")
async def list_versions(
    operations: ScopedOperations, schedule_id: str, limit: Limit = 20, cursor: Cursor = None
) -> PageView[VersionView]:
    """Latest first. A page ends early at 4 MiB."""
    return page_of(VersionView, await operations.schedules.versions(schedule_id, limit, cursor=cursor))


@post("/", summary="Run an action once")
async def run_once(own: ScopedOperations, data: RunOnce) -> Response[StoredSchedule]:
    """After a span, on the clock of the service, or at a time: creates a schedule with one time. It runs even if that time has passed when
    the schedule is stored. With a `key`, repeating the request creates nothing and answers 200.
    """
    if data.in_ is not None:
        milliseconds(data.in_, "in")  # an error names the field
    return await created(own, await own.create_single_run(SingleRun(**msgspec.structs.asdict(data))))


_HANDLERS = [
    create_schedule, list_schedules, describe_schedule, replace_schedule, merge_schedule, delete_schedule,
    patch_schedule, trigger_schedule, pause_schedule, resume_schedule, skip_next, start_backfill, list_backfills,
    list_times, list_runs, list_unstarted, list_versions,
]  # fmt: skip
once_router = Router(f"{API}/once", route_handlers=[run_once], tags=("schedules",))
schedules_router = Router(f"{API}/schedules", route_handlers=_HANDLERS, tags=("schedules",))

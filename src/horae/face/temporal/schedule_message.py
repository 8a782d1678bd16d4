"""Whole schedules: Temporal's requests as what the operations take, and what is stored as Temporal's schedule. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import msgspec
from temporalio.api.enums.v1 import ScheduleOverlapPolicy
from temporalio.api.schedule.v1 import (
    BackfillRequest as BackfillMessage,
)
from temporalio.api.schedule.v1 import (
    Schedule as ScheduleMessage,
)
from temporalio.api.schedule.v1 import (
    ScheduleAction,
    SchedulePatch,
    SchedulePolicies,
    ScheduleState,
)
from temporalio.api.workflowservice.v1 import CreateScheduleRequest, UpdateScheduleRequest

from horae.app import BackfillRequest, Edit, NewSchedule, Trigger
from horae.app.face_defaults import TEMPORAL
from horae.errors import ConflictTokenMismatchError, InvalidInputError
from horae.face.temporal import action_message, spec_message
from horae.face.temporal.action_message import ORIGINAL_ID, Start
from horae.face.temporal.originals import (
    Originals,
    original_action,
    original_spec,
    originals_of,
    plain_memo,
    read_memo,
    read_search,
    shown_action,
    shown_spec,
    stored_memo,
)
from horae.face.temporal.times import duration_of, moment_of, text_of
from horae.model import Overlap, Policies, Schedule
from horae.spec import Spec
from horae.spec.duration import duration_text, milliseconds

MIN_WINDOW_MS = 10_000
_replace = msgspec.structs.replace
_OVERLAPS: dict[int, Overlap | None] = {
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED: None,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_SKIP: Overlap.SKIP,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE: Overlap.BUFFER_ONE,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL: Overlap.BUFFER_ALL,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER: Overlap.CANCEL_OTHER,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER: Overlap.TERMINATE_OTHER,
    ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL: Overlap.ALLOW_ALL,
}
_OVERLAP_MESSAGES = {overlap: number for number, overlap in _OVERLAPS.items() if overlap is not None}
_TOKEN = struct.Struct(">BQQ")
_TOKEN_FORM = 1


def token_of(schedule: Schedule) -> bytes:
    """The conflict token of a schedule, which means nothing to a client."""
    return _TOKEN.pack(_TOKEN_FORM, schedule.generation, schedule.version)


def check_token(token: bytes, schedule: Schedule) -> None:
    """Refuse a token that is not the current one; without one every version will do."""
    if token and token != token_of(schedule):
        raise ConflictTokenMismatchError(schedule.id, _version(token), schedule.version)


def _version(token: bytes) -> int:
    return int(_TOKEN.unpack(token)[2]) if len(token) == _TOKEN.size else 0


def overlap_of(number: int, field: str) -> Overlap | None:
    """An overlap policy; ``None`` if the message leaves it to the schedule."""
    if number not in _OVERLAPS:
        raise InvalidInputError(field, f"is {number}, which is no overlap policy")
    return _OVERLAPS[number]


def shown_schedule(schedule: Schedule) -> ScheduleMessage:
    """A schedule as Temporal's message."""
    state, policies = schedule.state, schedule.policies
    return ScheduleMessage(
        spec=shown_spec(schedule),
        action=ScheduleAction(start_workflow=shown_action(schedule)),
        policies=_shown_policies(policies, original_id=schedule.action.id_format == ORIGINAL_ID),
        state=ScheduleState(
            notes=state.note,
            paused=state.paused,
            limited_actions=state.remaining_actions is not None,
            remaining_actions=state.remaining_actions or 0,
        ),
    )


def _shown_policies(policies: Policies, *, original_id: bool) -> SchedulePolicies:
    window = policies.catch_up.window
    return SchedulePolicies(
        overlap_policy=_OVERLAP_MESSAGES[policies.overlap],  # type: ignore[arg-type]  # the number of an enumeration
        catchup_window=None if window is None else duration_of(milliseconds(window)),
        pause_on_failure=policies.pause_on_failure,
        keep_original_workflow_id=original_id,
    )


def _with_policies(given: SchedulePolicies, stored: Policies) -> Policies:
    """The policies that a message says; a schedule without any window keeps that if the message has none.

    Another window than the stored one is at least ten seconds, as Temporal's server sees to.
    """
    field = "schedule.policies"
    window = stored.catch_up.window
    if given.HasField("catchup_window"):
        sent = text_of(given.catchup_window, f"{field}.catchup_window")
        if window is None or milliseconds(sent) != milliseconds(window):
            window = duration_text(max(milliseconds(sent), MIN_WINDOW_MS))
    elif window is not None:
        window = TEMPORAL.catch_up.window
    return _replace(
        stored,
        overlap=overlap_of(given.overlap_policy, f"{field}.overlap_policy") or TEMPORAL.overlap,
        catch_up=_replace(stored.catch_up, window=window),
        pause_on_failure=given.pause_on_failure,
    )


def _remaining(state: ScheduleState) -> int | None:
    if not state.limited_actions:
        return None
    if state.remaining_actions < 0:
        raise InvalidInputError("schedule.state.remaining_actions", "must be at least 0")
    return state.remaining_actions


def _start(schedule: ScheduleMessage, *, forwarded: bool) -> Start:
    if schedule.action.WhichOneof("action") != "start_workflow":
        raise InvalidInputError("schedule.action.start_workflow", "is not set: it says what to run")
    read = action_message.forwarded_start_of if forwarded else action_message.start_of
    return read(schedule.action.start_workflow)


def new_schedule(request: CreateScheduleRequest, author: str, *, forwarded: bool = False) -> NewSchedule:
    """The schedule that a request asks for; ``forwarded`` if its workflow is started on a Temporal cluster."""
    schedule = request.schedule
    start, original_id = _start(schedule, forwarded=forwarded), schedule.policies.keep_original_workflow_id
    memo, memo_originals = read_memo(request.memo)
    search, search_originals = read_search(request.search_attributes)
    spec = spec_message.read_spec(schedule.spec)
    originals = Originals(
        spec=original_spec(schedule.spec, spec),
        action=original_action(schedule.action.start_workflow, start),
        memo=memo_originals,
        search=search_originals,
    )
    patch = request.initial_patch
    return NewSchedule(
        id=request.schedule_id,
        spec=spec,
        action=action_message.new_action(start, original_id=original_id),
        policies=action_message.with_limits(_with_policies(schedule.policies, TEMPORAL), start, None),
        paused=(schedule.state.paused or bool(patch.pause)) and not patch.unpause,
        note=patch.unpause or patch.pause or schedule.state.notes,
        remaining_actions=_remaining(schedule.state),
        memo=stored_memo(memo, originals),
        search_attributes=search,
        request_id=request.request_id,
        trigger=trigger_of(patch, author),
        backfills=backfills_of(patch.backfill_request, author),
    )


def edit_of(request: UpdateScheduleRequest, stored: Schedule, *, forwarded: bool = False) -> Edit:
    """What an update changes. Fields that the message says as it was shown them stay untouched, as does all that it cannot say.

    ``forwarded`` says where another workflow is started than before: on a Temporal cluster, or as an action of Horae.
    """
    check_token(request.conflict_token, stored)
    schedule = request.schedule
    if schedule.action.start_workflow.workflow_type.name == action_message.workflow_type_of(stored):
        forwarded = action_message.is_forwarded(stored)
    start, original_id = _start(schedule, forwarded=forwarded), schedule.policies.keep_original_workflow_id
    fields: dict[str, Any] = {}
    spec = Spec.parse(stored.spec)
    changed = spec_message.changed_spec(schedule.spec, spec)
    if changed is not None:
        fields["spec"], spec = changed, spec_message.read_spec(schedule.spec)
    action = action_message.changed_action(start, stored, original_id=original_id)
    if action != stored.action:
        fields["action"] = action
    policies = _with_policies(schedule.policies, stored.policies)
    policies = action_message.with_limits(policies, start, action_message.stored_start(stored))
    if policies != stored.policies:
        fields["policies"] = policies
    return Edit(
        paused=schedule.state.paused,
        note=schedule.state.notes,
        remaining_actions=_remaining(schedule.state),
        **fields,
        **_edited_memo(request, stored, start, spec),
    )


def _edited_memo(
    request: UpdateScheduleRequest, stored: Schedule, start: Start, spec: Spec
) -> dict[str, Any]:
    """The memo and search attributes after an update: absent ones stay, empty ones are cleared."""
    before = originals_of(stored.memo)
    schedule = request.schedule
    memo, memo_originals = plain_memo(stored.memo), before.memo
    if request.HasField("memo"):
        memo, memo_originals = read_memo(request.memo)
    fields: dict[str, Any] = {}
    search_originals = before.search
    if request.HasField("search_attributes"):
        fields["search_attributes"], search_originals = read_search(request.search_attributes)
    originals = Originals(
        spec=original_spec(schedule.spec, spec),
        action=original_action(schedule.action.start_workflow, start),
        memo=memo_originals,
        search=search_originals,
    )
    kept = stored_memo(memo, originals)
    return fields if kept == stored.memo else fields | {"memo": kept}


def trigger_of(patch: SchedulePatch, author: str) -> Trigger | None:
    """The trigger of a patch, if it has one."""
    if not patch.HasField("trigger_immediately"):
        return None
    given = patch.trigger_immediately.overlap_policy
    return Trigger(overlap=overlap_of(given, "patch.trigger_immediately.overlap_policy"), author=author)


def backfills_of(given: Iterable[BackfillMessage], author: str) -> tuple[BackfillRequest, ...]:
    """The backfills of a patch."""
    return tuple(
        BackfillRequest(
            start=moment_of(each.start_time, f"patch.backfill_request[{number}].start_time"),
            end=moment_of(each.end_time, f"patch.backfill_request[{number}].end_time"),
            overlap=overlap_of(each.overlap_policy, f"patch.backfill_request[{number}].overlap_policy"),
            author=author,
        )
        for number, each in enumerate(given)
    )

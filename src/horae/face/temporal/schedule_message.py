"""Converts Temporal's requests to what operations take, and stored schedules to Temporal's messages. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import msgspec
from temporalio.api.enums.v1 import ScheduleOverlapPolicy
from temporalio.api.schedule import v1 as messages
from temporalio.api.workflowservice.v1 import CreateScheduleRequest, UpdateScheduleRequest

from horae.app import BackfillRequest, Edit, NewSchedule, Trigger
from horae.app.face_defaults import TEMPORAL
from horae.errors import ConflictTokenMismatchError, InvalidInputError
from horae.face.temporal import action_message, spec_message
from horae.face.temporal.action_message import ORIGINAL_ID, Start
from horae.face.temporal.preserved_messages import (
    originals_of,
    plain_memo,
    read_memo,
    read_search,
    sent_originals,
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
_OVERLAP_MESSAGES = {
    each: ScheduleOverlapPolicy.Value(f"SCHEDULE_OVERLAP_POLICY_{each.name}") for each in Overlap
}
_OVERLAPS: dict[int, Overlap | None] = {number: each for each, number in _OVERLAP_MESSAGES.items()}
_OVERLAPS[ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED] = None
_TOKEN = struct.Struct(">BQQ")
_TOKEN_FORM = 1


def token_of(schedule: Schedule) -> bytes:
    """The conflict token of a schedule, which is opaque to clients."""
    return _TOKEN.pack(_TOKEN_FORM, schedule.generation, schedule.version)


def check_token(token: bytes, schedule: Schedule) -> None:
    """Refuse a token that is not the current one. An empty one fits every version."""
    if token and token != token_of(schedule):
        raise ConflictTokenMismatchError(schedule.id, _version(token), schedule.version)


def _version(token: bytes) -> int:
    return int(_TOKEN.unpack(token)[2]) if len(token) == _TOKEN.size else 0


def overlap_of(number: int, field: str) -> Overlap | None:
    """An overlap policy; ``None`` if the message leaves it to the schedule."""
    if number not in _OVERLAPS:
        raise InvalidInputError(field, f"is {number}, which is no overlap policy")
    return _OVERLAPS[number]


def shown_schedule(schedule: Schedule) -> messages.Schedule:
    """A schedule as Temporal's message."""
    state, policies = schedule.state, schedule.policies
    return messages.Schedule(
        spec=shown_spec(schedule),
        action=messages.ScheduleAction(start_workflow=shown_action(schedule)),
        policies=_shown_policies(policies, original_id=schedule.action.id_format == ORIGINAL_ID),
        state=messages.ScheduleState(
            notes=state.note,
            paused=state.paused,
            limited_actions=state.remaining_actions is not None,
            remaining_actions=state.remaining_actions or 0,
        ),
    )


def _shown_policies(policies: Policies, *, original_id: bool) -> messages.SchedulePolicies:
    window = policies.catch_up.window
    return messages.SchedulePolicies(
        overlap_policy=_OVERLAP_MESSAGES[policies.overlap],
        catchup_window=None if window is None else duration_of(milliseconds(window)),
        pause_on_failure=policies.pause_on_failure,
        keep_original_workflow_id=original_id,
    )


def _with_policies(given: messages.SchedulePolicies, stored: Policies) -> Policies:
    """The stored policies, changed as a message says. A schedule without a window stays so if the message has none.

    A new window is at least ten seconds, as in Temporal's server.
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


def _remaining(state: messages.ScheduleState) -> int | None:
    if not state.limited_actions:
        return None
    if state.remaining_actions < 0:
        raise InvalidInputError("schedule.state.remaining_actions", "must be at least 0")
    return state.remaining_actions


def _start(schedule: messages.Schedule, *, forwarded: bool) -> Start:
    if schedule.action.WhichOneof("action") != "start_workflow":
        raise InvalidInputError("schedule.action.start_workflow", "is not set: it says what to run")
    read = action_message.forwarded_start_of if forwarded else action_message.start_of
    return read(schedule.action.start_workflow)


def new_schedule(request: CreateScheduleRequest, author: str, *, forwarded: bool = False) -> NewSchedule:
    """The schedule that a request creates; with ``forwarded``, a Temporal cluster runs its workflow."""
    schedule = request.schedule
    start, original_id = _start(schedule, forwarded=forwarded), schedule.policies.keep_original_workflow_id
    memo, memo_originals = read_memo(request.memo)
    search, search_originals = read_search(request.search_attributes)
    spec = spec_message.read_spec(schedule.spec)
    originals = sent_originals(schedule, spec, start, memo_originals, search_originals)
    patch = request.initial_patch
    return NewSchedule(
        id=request.schedule_id,
        spec=spec,
        action=action_message.new_action(start, original_id=original_id),
        policies=action_message.with_limits(_with_policies(schedule.policies, TEMPORAL), start),
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
    """The edit that an update makes. Fields that are as they were shown stay untouched, as do those that a message cannot express.

    ``forwarded`` says where a new workflow type runs: on a Temporal cluster, or as an action of Horae.
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
    memo, memo_originals = plain_memo(stored.memo), before.memo
    if request.HasField("memo"):
        memo, memo_originals = read_memo(request.memo)
    fields: dict[str, Any] = {}
    search_originals = before.search
    if request.HasField("search_attributes"):
        fields["search_attributes"], search_originals = read_search(request.search_attributes)
    originals = sent_originals(request.schedule, spec, start, memo_originals, search_originals)
    kept = stored_memo(memo, originals)
    return fields if kept == stored.memo else fields | {"memo": kept}


def trigger_of(patch: messages.SchedulePatch, author: str) -> Trigger | None:
    """The trigger of a patch, if it has one."""
    if not patch.HasField("trigger_immediately"):
        return None
    given = patch.trigger_immediately.overlap_policy
    return Trigger(overlap=overlap_of(given, "patch.trigger_immediately.overlap_policy"), author=author)


def backfills_of(given: Iterable[messages.BackfillRequest], author: str) -> tuple[BackfillRequest, ...]:
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

"""Edits of schedules, and the slots that they leave unstarted: the parts that run within a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import msgspec

from horae.app.field_checks import check_jitter, check_text
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.schedule_draft import stored_action
from horae.app.schedule_fields import (
    STORED,
    GivenFields,
    ScheduleFields,
    SpecLike,
    stored_fields,
    values_of,
    with_fields,
)
from horae.app.schedule_grants import regranted
from horae.checked import Checked, at, changed, converted
from horae.errors import InvalidInputError, SpecTooCostlyError
from horae.executor.action_registry import ActionLike
from horae.model import (
    Action,
    Counts,
    OnResume,
    Policies,
    Reason,
    Schedule,
    State,
    UnstartedRange,
)
from horae.policy import pause
from horae.policy.catch_up import Unstarted, leave_behind, skip_due
from horae.policy.ledger_changes import unstarted_ranges, version_of
from horae.policy.resumption import Resumption, resumption
from horae.policy.spec_change import Edited, change_jitter, change_spec
from horae.policy.undecided_spec import undecided
from horae.spec import SharedCalendar, Spec
from horae.spec.document import read_document
from horae.store.port import Advance

_replace = msgspec.structs.replace


class UpdateFields(GivenFields, total=False):
    """The fields of an :class:`Edit` as they may be given, except the spec."""

    action: ActionLike
    recompute: bool


class EditFields(UpdateFields, total=False):
    """The fields of an :class:`Edit`, as they may be given."""

    spec: SpecLike


@with_fields(ScheduleFields, "unset")
class Edit(Checked, frozen=True, kw_only=True):
    """A change of any fields of a schedule; unset fields keep their values."""

    spec: Any = msgspec.UNSET
    policies: Any = msgspec.UNSET
    """``Policies`` replace all of them, a mapping those that it names."""
    action: Any = msgspec.UNSET
    """A document or an ``Action`` replaces the whole action; an address, or a registered function, replaces its kind and name, and keeps the input and ids."""
    input: Any = msgspec.UNSET
    recompute: bool = False
    """Whether a new spec fires from now on only: overdue undecided slots do not start, even if both specs name them."""

    if TYPE_CHECKING:  # the derived fields

        def __init__(self, **fields: Unpack[EditFields]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policies is not msgspec.UNSET:
            edited_policies(Policies(), self.policies)


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A resumed schedule, and what resuming it starts and does not start."""

    schedule: Schedule
    resumption: Resumption


def edited_policies(old: Policies, given: object) -> Policies:
    """The policies of a schedule after an edit."""
    if not isinstance(given, Mapping):
        return cast("Policies", converted(given, Policies, "policies"))
    try:
        return changed(old, given)
    except InvalidInputError as error:
        raise at("policies", error) from None


async def apply_edit(work: UnitOfWork, old: Schedule, edit: Edit, spec: Spec) -> Schedule:
    """Write a checked edit, and record the slots that it leaves unstarted."""
    scope, now = work.scope, work.now
    check_jitter(spec, scope.config)
    new, unstarted = work.answers.ask(("edited", *standing(old), spec), lambda: _edited(old, edit, spec, now))
    action = _action(scope, old.action, edit)
    if action != old.action:
        new = _replace(new, action=action, permitted_by=scope.permitted_by(action, old.owner))
    new = await regranted(work, old, new)
    await record_unstarted(work, old, unstarted)
    if old.state.remaining_actions == 0 and (new.spec, new.state.remaining_actions) != (old.spec, 0):
        new = await _leave_limit(work, old, new)
    if new.spec != old.spec:
        here = _replace(
            old, cursor_ms=new.cursor_ms
        )  # which ending a pause, or leaving a limit, has advanced
        new = await _change_spec(work, here, new, recompute=edit.recompute)
    if new == old:  # nothing changes, and so the version stays
        return old
    if (new.spec, new.policies) != (old.spec, old.policies) and not old.unreadable:
        await work.transaction.insert_versions([version_of(old, now)])
    return await put_schedule(work, new)


def _action(scope: OwnerScope, old: Action, edit: Edit) -> Action:
    if edit.action is msgspec.UNSET and edit.input is msgspec.UNSET:
        return old
    new = old if edit.action is msgspec.UNSET else scope.executors.read(edit.action)
    if isinstance(edit.action, str) or callable(edit.action):
        same = new.address == old.address
        new = old if same else _replace(old, kind=new.kind, name=new.name, options={})
    if edit.input is not msgspec.UNSET:
        new = _replace(new, input=edit.input)
    new = stored_action(new)
    return new if new.options is old.options else scope.executors.check(new, old)


def _edited(old: Schedule, edit: Edit, spec: Spec, now: int) -> tuple[Schedule, tuple[UnstartedRange, ...]]:
    """A schedule after an edit, except for its action; and the ranges that resuming it leaves unstarted."""
    given = values_of(edit, ScheduleFields)
    if "policies" in given:
        given["policies"] = edited_policies(old.policies, given["policies"])
    given = stored_fields(given)
    new = _replace(old, **{name: given[name] for name in given if name in STORED}, unreadable={})
    unstarted: tuple[UnstartedRange, ...] = ()
    if "managed_by" in given:  # the new manager defines it
        new = _replace(new, state=_replace(new.state, orphaned=False))
    if "remaining_actions" in given:
        left = given["remaining_actions"]
        new = _replace(new, state=_replace(new.state, remaining_actions=left))
        if old.state.remaining_actions == 0 != left:
            new = _replace(new, state=_replace(new.state, completed_at_ms=None))
    paused = given.get("paused", old.state.paused)
    note = given.get("note", "" if is_set_aside(old.state) and not paused else old.state.note)
    if paused and not old.state.paused:
        new = paused_schedule(new, note, None)
    elif old.state.paused and not paused:
        new, unstarted = resumed_schedule(new, note, now)
    elif note != old.state.note:
        new = _replace(new, state=_replace(new.state, note=note))
    return _replace(new, spec=spec.text), unstarted


def is_set_aside(state: State) -> bool:
    """Whether a node has paused a schedule that it could not decide."""
    return state.paused and bool(state.attention) and state.note == state.attention


def _names_the_same(one: Spec, other: Spec) -> bool:
    """Whether two specs name the same times. Jitter only changes when these fire."""
    plain = [Spec.parse(_replace(each.document, jitter=None)) for each in (one, other)]
    return plain[0] == plain[1]


async def _change_spec(
    work: UnitOfWork, old: Schedule, new: Schedule, *, recompute: bool = False
) -> Schedule:
    """Change the spec from now on. Slots that are due and undecided stay due if the new spec names them too."""
    question = partial(_changed, old, new.spec, work.now, recompute=recompute)
    edited, unstarted = work.answers.ask(_changed_key(old, new.spec), question)
    await record_unstarted(work, old, unstarted)
    same = edited.since_ms == old.state.spec_since_ms
    state = _replace(new.state, spec_since_ms=edited.since_ms, carried=edited.carried)
    state = state if same else _replace(state, completed_at_ms=None)
    return _replace(new, state=state, cursor_ms=edited.cursor_ms)


def _changed_key(schedule: Schedule, text: str) -> Hashable:
    return ("changed", *standing(schedule), text)


def _changed(
    schedule: Schedule, text: str, now: int, *, recompute: bool = False
) -> tuple[Edited, tuple[UnstartedRange, ...]]:
    """The effect of another spec on a schedule; if a spec is too costly to evaluate, its slots are unknown."""
    try:
        before, after = Spec.parse(schedule.spec), Spec.parse(text)
        if _names_the_same(before, after):
            edited = change_jitter(schedule, before, after, now)
        else:
            edited = change_spec(schedule, before, after, now, recompute=recompute)
        return edited, _rows(schedule, edited.unstarted, now)
    except SpecTooCostlyError:
        since_ms = max(now // 1000 * 1000, schedule.cursor_ms)
        return Edited(since_ms, since_ms, ()), ()


async def _leave_limit(work: UnitOfWork, old: Schedule, new: Schedule) -> Schedule:
    """Record the slots that fell due while the limit was reached as unstarted; later slots are still to come."""

    def skipped() -> tuple[int, tuple[UnstartedRange, ...]]:
        spec = undecided(old, Spec.parse(old.spec))
        due = skip_due(spec, old.id, new.cursor_ms, work.now, Reason.LIMIT_REACHED)
        return due.cursor_ms, _rows(old, due.unstarted, work.now)

    cursor_ms, unstarted = work.answers.ask(("limit", *standing(old), new.cursor_ms), skipped)
    await record_unstarted(work, old, unstarted)
    return _replace(new, cursor_ms=cursor_ms)


def _rows(schedule: Schedule, unstarted: Sequence[Unstarted], now: int) -> tuple[UnstartedRange, ...]:
    """The ledger rows of the ranges that a change leaves unstarted."""
    spec = undecided(schedule, Spec.parse(schedule.spec))
    return tuple(unstarted_ranges(schedule, spec, each, now) for each in unstarted)


async def rewrite_specs(
    work: UnitOfWork, excluding: Sequence[tuple[Schedule, SharedCalendar]], name: str
) -> int:
    """Update the specs of schedules that exclude a changed shared calendar; return how many specs differ."""
    now = work.now
    texts = work.answers.ask_all(
        [
            (("text", *standing(old), calendar), partial(_rewritten, old, name, calendar))
            for old, calendar in excluding
        ]
    )
    changes = [(old, text) for (old, _), text in zip(excluding, texts, strict=True) if text != old.spec]
    work.answers.ask_all(
        [(_changed_key(old, text), partial(_changed, old, text, now)) for old, text in changes]
    )
    for old, text in changes:
        new = await _change_spec(work, old, _replace(old, spec=text))
        await work.transaction.insert_versions([version_of(old, now)])
        await work.transaction.update_schedules([(next_version(new, now), now)])
    return len(changes)


def _rewritten(schedule: Schedule, name: str, calendar: SharedCalendar) -> str:
    """The spec of a schedule with the current contents of a shared calendar."""
    document = read_document(schedule.spec)
    return msgspec.json.encode(_replace(document, shared={**document.shared, name: calendar})).decode()


async def leave_undecided(work: UnitOfWork, schedule: Schedule, reason: Reason) -> None:
    """Record the slots of a schedule that are due and undecided as unstarted, before the schedule is removed."""
    question = partial(_left, schedule, reason, work.now)
    await record_unstarted(work, schedule, work.answers.ask(("left", *standing(schedule), reason), question))


def _left(schedule: Schedule, reason: Reason, now: int) -> tuple[UnstartedRange, ...]:
    """The due, undecided slots of a schedule; none are known if its spec is too costly to evaluate."""
    try:
        spec = undecided(schedule, Spec.parse(schedule.spec))
        return _rows(schedule, leave_behind(spec, schedule.cursor_ms, now, reason), now)
    except SpecTooCostlyError:
        return ()


def standing(schedule: Schedule) -> tuple[Hashable, ...]:
    """The key of answers about a schedule: its own key, generation, version and cursor."""
    return schedule.key, schedule.generation, schedule.version, schedule.cursor_ms


async def record_unstarted(work: UnitOfWork, schedule: Schedule, unstarted: Sequence[UnstartedRange]) -> None:
    """Record and count slots that a change leaves unstarted."""
    if unstarted:
        await work.transaction.insert_unstarted_ranges(unstarted)
        counts = Counter[Reason]()
        for each in unstarted:
            counts[each.reason] += each.count
        await work.transaction.advance(
            [Advance(schedule.key, schedule.cursor_ms, work.now, counts=Counts(unstarted=counts))]
        )


def paused_schedule(schedule: Schedule, note: str, until: int | None) -> Schedule:
    return _replace(schedule, state=_replace(schedule.state, paused=True, note=note, paused_until_ms=until))


def resumed_schedule(
    schedule: Schedule, note: str, now: int, way: OnResume | None = None
) -> tuple[Schedule, tuple[UnstartedRange, ...]]:
    spec = undecided(schedule, Spec.parse(schedule.spec))
    resumed = pause.resume(schedule, spec, now, note, way=way)
    state = _replace(resumed.state, attention="", attention_reason="")
    unstarted = tuple(unstarted_ranges(schedule, spec, each, now) for each in resumed.unstarted)
    return _replace(schedule, state=state, cursor_ms=resumed.cursor_ms), unstarted


async def resume_schedule(
    scope: OwnerScope, schedule_id: str, note: str, way: OnResume | None, *, dry_run: bool
) -> Resumed:
    """End a pause in one transaction, by the schedule's policy or the given ``way``; with ``dry_run`` only say what that does."""
    check_text("note", note)

    async def resume(work: UnitOfWork) -> Resumed:
        old = await work.locked(schedule_id)
        found = await _resumption(work, old, way)
        if dry_run:
            return Resumed(schedule=old, resumption=found)
        key = ("resumed", *standing(old))
        schedule, unstarted = work.answers.ask(key, lambda: resumed_schedule(old, note, work.now, way))
        changed = await put_schedule(work, schedule)
        await record_unstarted(work, changed, unstarted)
        return Resumed(schedule=changed, resumption=found)

    return await scope.change(resume)


async def _resumption(work: UnitOfWork, schedule: Schedule, way: OnResume | None) -> Resumption:
    """What resuming a locked schedule starts and does not start."""
    runs = await work.transaction.open_runs([schedule.key])
    key = ("resumption", *standing(schedule), *((run.id, run.status) for run in runs))
    limits = work.scope.config.limits
    return work.answers.ask(
        key, lambda: resumption(schedule, Spec.parse(schedule.spec), runs, work.now, limits, way=way)
    )


def next_version(schedule: Schedule, now: int) -> Schedule:
    return _replace(schedule, version=schedule.version + 1, updated_at_ms=now)


async def put_schedule(work: UnitOfWork, schedule: Schedule) -> Schedule:
    """Write a change as a new version, and mark the schedule due."""
    changed = next_version(schedule, work.now)
    await work.transaction.update_schedules([(changed, work.now)])
    await work.transaction.notify()
    return changed

"""New schedules before they are stored: all checks of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Required, Unpack

import msgspec

from horae.app.field_checks import (
    MAX_ID_LENGTH,
    check_id,
    check_jitter,
    check_owner,
    check_text,
    stored_json,
)
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_fields import (
    GIVEN,
    STORED,
    GivenFields,
    ScheduleFields,
    SpecLike,
    stored_fields,
)
from horae.app.triggers_and_backfills import BackfillFields, BackfillRequest, Trigger, TriggerFields
from horae.errors import InvalidInputError, UnknownCalendarError
from horae.executor.action_registry import ActionLike
from horae.model import MAX_ID_FORMAT_LENGTH, Action, Schedule, ScheduleKey, State, schedule_key
from horae.policy.catch_up import fire_instant
from horae.policy.ledger_changes import action_id
from horae.policy.slot_times import next_slot_ms
from horae.spec import SharedCalendar, Spec
from horae.spec.affordability import check_cost
from horae.spec.document import read_document
from horae.store.port import Transaction

MAX_ACTION_ID_LENGTH = 1000
CALENDARS_IN_HINT = 20
"""How many calendars the error for an unknown one compares and names."""
ID_DIRECTIVES = ("%Y", "%m", "%d", "%j", "%H", "%M", "%S", "%s", "%%")
"""The directives for parts of the nominal time, in UTC, that the ids of actions may contain."""
Calendars = Mapping[str, SharedCalendar]


class CreateFields(GivenFields, total=False):
    """The fields of a :class:`NewSchedule` as they may be given, except its id, spec and action."""

    owner: str
    request_id: str
    trigger: Trigger | TriggerFields | None
    backfills: Sequence[BackfillRequest | BackfillFields]


class NewFields(CreateFields, total=False):
    """The fields of a :class:`NewSchedule`, as they may be given."""

    id: Required[str]
    spec: Required[SpecLike]
    action: Required[ActionLike]


class NewSchedule(ScheduleFields, frozen=True, gc=False, kw_only=True):
    """A schedule to be created. ``spec`` is a :class:`Spec`, a document, or a cron expression in UTC."""

    id: str
    spec: Any
    action: Any
    """An address such as ``report``, a document such as ``{"kind": "http", "options": {"url": …}}``, or an ``Action``."""
    input: Any = None
    """The action's input, if its document does not contain it."""
    owner: str = ""
    request_id: str = ""
    """Repeating the request with the same value creates nothing and returns the existing schedule."""
    trigger: Trigger | None = None
    """A trigger right after creation."""
    backfills: tuple[BackfillRequest, ...] = ()
    """Backfills to start right after creation."""

    @property
    def key(self) -> ScheduleKey:
        """What the store will call it."""
        return schedule_key(self.owner, self.id)

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[NewFields]) -> None: ...


def draft(
    new: NewSchedule, action: Action, scope: OwnerScope, now: int, calendars: Calendars
) -> tuple[Schedule, int | None]:
    """A schedule that is not stored yet, and when it is due for a decision. ``action`` is its own, as the executors read it."""
    check_id(new.id)
    check_owner(new.owner)
    check_text("request_id", new.request_id)
    # What is empty is empty in a new schedule too.
    fields = stored_fields({name: value for name in GIVEN if (value := getattr(new, name))})
    spec = read_spec(new.spec, calendars)
    check_jitter(spec, scope.config)
    if new.input is not None:
        action = msgspec.structs.replace(action, input=new.input)
    action = scope.executors.check(stored_action(action), None)
    schedule = Schedule(
        id=new.id, owner=new.owner, request_id=new.request_id, spec=spec.text, action=action, policies=new.policies,
        state=State(paused=new.paused, note=new.note, remaining_actions=new.remaining_actions),
        generation=0, version=1, cursor_ms=now // 1000 * 1000, created_at_ms=now, updated_at_ms=now,
    )  # fmt: skip
    if more := {name: fields[name] for name in fields if name in STORED and name != "policies"}:
        schedule = msgspec.structs.replace(schedule, **more)
    if new.paused:
        return schedule, None
    following = next_slot_ms(spec, schedule.cursor_ms)
    # A schedule without slots is due at once, so that a decision marks it completed.
    if following is None or new.remaining_actions == 0:
        return schedule, now
    return schedule, fire_instant(spec, following, new.id)


def read_spec(spec: SpecLike, calendars: Calendars | None = None) -> Spec:
    """Read a spec in any of its forms; refuse one whose times are too costly to evaluate."""
    if isinstance(spec, str):
        return _cron(spec)
    read = spec if isinstance(spec, Spec) else Spec.parse(spec, calendars=calendars)
    check_cost(read)
    return read


@lru_cache(maxsize=4096)
def _cron(expression: str) -> Spec:
    """The spec of a cron expression; cached, because many schedules share one."""
    return Spec.cron(expression)


async def shared_calendars(
    transaction: Transaction, specs: Iterable[SpecLike], owner: str, *, keep: bool = False
) -> Calendars:
    """The contents of the shared calendars that some specs exclude by name; the owner's take precedence over those that all share.

    With ``keep`` they are locked until the end of the transaction: needed if the contents are stored, so that no change is missed.
    """
    specs = list(specs)
    names = {name for spec in specs for name in calendar_names(spec)}
    if not names:
        return {}
    find = transaction.lock_calendars_named if keep else transaction.calendars_named
    found = {each.name: each.document for each in await find(names, owner)}
    if missing := names - found.keys() - {name for spec in specs for name in _contained(spec)}:
        defined = await transaction.calendars(owner, ("", ""), CALENDARS_IN_HINT)
        raise UnknownCalendarError(min(missing), {each.name for each in defined})
    return found


def _contained(spec: SpecLike) -> Iterable[str]:
    """The names of the shared calendars whose contents a spec has with it."""
    return () if isinstance(spec, (str, Spec)) else read_document(spec).shared


def calendar_names(spec: SpecLike) -> set[str]:
    """The names of the shared calendars that a spec excludes and whose contents it does not contain yet."""
    if isinstance(spec, (str, Spec)):
        return set()
    return {each.calendar for each in read_document(spec).exclude if each.calendar is not None}


def stored_action(action: Action) -> Action:
    """An action as it will be read again; one whose input or ids cannot be stored is refused."""
    _check_action_ids(action.id, action.id_format)
    if action.input is None:
        return action
    return msgspec.structs.replace(action, input=stored_json(action.input))


@lru_cache(maxsize=4096)
def _check_action_ids(given: str | None, form: str) -> None:
    """Require the ids that an action will have to be texts, neither empty nor too long."""
    check_text("action.id", given or "")
    check_text("action.id_format", form)
    if len(form) > MAX_ID_FORMAT_LENGTH or form.count("{id}") > 1:
        reason = f"must have at most {MAX_ID_FORMAT_LENGTH} characters, and {{id}} once"
        raise InvalidInputError("action.id_format", reason)
    for directive in re.findall("%.?", form, re.DOTALL):
        if directive not in ID_DIRECTIVES:
            hint = f"known are {' '.join(ID_DIRECTIVES)}"
            raise InvalidInputError("action.id_format", f"has the unknown directive {directive!r}", hint=hint)
    longest = Action(name="", id=given, id_format=form)
    length = len(action_id(longest, "x" * MAX_ID_LENGTH, nominal_ms=2**42))
    if not 1 <= length <= MAX_ACTION_ID_LENGTH:
        reason = f"and action.id make ids of {length} characters: there must be 1 to {MAX_ACTION_ID_LENGTH}"
        raise InvalidInputError("action.id_format", reason)

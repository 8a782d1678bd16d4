"""The schedules of an app: create, look at, change, pause, trigger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from horae.errors import (
    ConflictTokenMismatchError,
    HoraeError,
    InvalidInputError,
    NaiveTimeError,
    ScheduleExistsError,
    ScheduleNotFoundError,
    UnknownActionError,
)
from horae.executor.function import FunctionExecutor
from horae.model import (
    Action,
    Backfill,
    BackfillStatus,
    Overlap,
    PassedOver,
    Policies,
    Reason,
    Run,
    Schedule,
    State,
    Status,
    Tally,
    Version,
)
from horae.policy import pause
from horae.policy.check import check_policies
from horae.policy.due import Slot, fire_instant, leave_behind
from horae.policy.ledger import new_run, passed_over
from horae.spec import Spec
from horae.store.port import Advance, Filter, Store, Transaction

LONGEST_ID = 500
LONGEST_INPUT = 1024 * 1024
MOST = 1000
SpecLike = Spec | str | Mapping[str, Any]
_replace = msgspec.structs.replace


class NewSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to be created. ``spec`` is a :class:`Spec`, a document, or a cron expression in UTC."""

    id: str
    spec: Any
    action: str
    input: Any = None
    action_id: str | None = None
    action_id_format: str | None = None
    policies: Policies = Policies()
    paused: bool = False
    note: str = ""
    limited_actions: int | None = None
    owner: str = ""
    tags: tuple[str, ...] = ()


class Schedules:
    """The schedules of an app."""

    def __init__(
        self, store: Store, now: Callable[[], int], executor: FunctionExecutor, wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._now = now
        self._executor = executor
        self._wake = wake

    async def create(self, schedule_id: str, spec: SpecLike, action: str, **more: Any) -> Schedule:  # noqa: ANN401 - as NewSchedule names them
        """Create a schedule; it fires from now on. ``more`` are the other fields of :class:`NewSchedule`."""
        try:
            new = NewSchedule(id=schedule_id, spec=spec, action=action, **more)
        except TypeError as error:
            raise InvalidInputError("schedule", f"cannot be read: {error}") from None
        return (await self.create_many([new]))[0]

    async def create_many(self, new: Iterable[NewSchedule]) -> list[Schedule]:
        """Create schedules, all or none of them, in one transaction."""
        now = self._now()
        drafts = [_draft(each, now) for each in new]
        ids = [schedule.id for schedule, _ in drafts]
        if len(set(ids)) < len(ids):
            raise ScheduleExistsError(next(each for each in ids if ids.count(each) > 1))
        await self._check_actions({schedule.action.name for schedule, _ in drafts})
        async with self._store.transaction() as transaction:
            incarnations = await transaction.next_incarnations(ids)
            if taken := await transaction.schedules(ids):
                raise ScheduleExistsError(taken[0].id)
            created = [
                (_replace(schedule, incarnation=incarnations[schedule.id]), next_at)
                for schedule, next_at in drafts
            ]
            await transaction.insert_schedules(created)
            await transaction.notify()
        self._wake()
        return [schedule for schedule, _ in created]

    async def _check_actions(self, actions: set[str]) -> None:
        """An action exists if this program registered it, or a living node announced it."""
        unknown = {each for each in actions if not self._executor.knows(each)}
        if unknown:
            announced = {
                action for node in await self._store.nodes() if node.alive for action in node.actions
            }
            if missing := sorted(unknown - announced):
                raise UnknownActionError(missing[0], sorted({*announced, *self._executor.actions}))

    async def describe(self, schedule_id: str) -> Schedule:
        """A schedule as it stands."""
        async with self._store.transaction() as transaction:
            return one(await transaction.schedules([schedule_id]), schedule_id)

    async def tally(self, schedule_id: str) -> Tally:
        """How often what became of a schedule's starts, since it was created."""
        async with self._store.transaction() as transaction:
            found = await transaction.tallies([schedule_id])
        if schedule_id not in found:
            raise ScheduleNotFoundError(schedule_id)
        return found[schedule_id]

    async def versions(self, schedule_id: str, limit: int = 20) -> list[Version]:
        """What a schedule was before its edits, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.versions(schedule_id, min(limit, MOST))

    async def list(self, only: Filter | None = None, *, after: str = "", limit: int = 100) -> list[Schedule]:
        """A page of schedules in the order of their ids."""
        async with self._store.transaction() as transaction:
            return await transaction.find_schedules(only or Filter(), after, min(limit, MOST))

    async def update(
        self,
        schedule_id: str,
        spec: SpecLike | None = None,
        *,
        action: str | None = None,
        input: Any = msgspec.UNSET,  # noqa: A002, ANN401 - the word that users know; any JSON
        action_id: str | None = None,
        policies: Policies | None = None,
        limited_actions: int | msgspec.UnsetType | None = msgspec.UNSET,
        tags: Iterable[str] | None = None,
        token: int | None = None,
    ) -> Schedule:
        """Change what is given, from now on; what waits is kept. With a ``token``, only if nobody changed it since."""
        document = None if spec is None else read_spec(spec).text
        if limited_actions is not msgspec.UNSET:
            _check_limit(limited_actions)
        if policies is not None:
            check_policies(policies)
        if action is not None:
            await self._check_actions({action})
        now = self._now()
        async with self._store.transaction() as transaction:
            old = one(await transaction.schedules([schedule_id]), schedule_id)
            if token is not None and token != old.token:
                raise ConflictTokenMismatchError(schedule_id, token, old.token)
            new = _replace(
                old,
                spec=old.spec if document is None else document,
                action=_edited(old.action, action, input, action_id),
                policies=old.policies if policies is None else policies,
                state=old.state
                if limited_actions is msgspec.UNSET
                else _replace(old.state, remaining=limited_actions),
                tags=old.tags if tags is None else tuple(tags),
            )
            if new.spec != old.spec:
                new = _replace(new, state=_replace(new.state, spec_since=now // 1000, completed_at=None))
                new = await _leave_behind(transaction, old, new, Reason.EDITED, now)
            elif old.state.remaining == 0 != new.state.remaining:  # time passed at the limit is gone
                new = await _leave_behind(transaction, old, new, Reason.LIMIT_REACHED, now)
            if (new.spec, new.policies) != (old.spec, old.policies):
                await transaction.insert_versions([_version(old, now)])
            changed = await _put(transaction, new, now)
        self._wake()
        return changed

    async def pause(self, schedule_id: str, note: str = "", *, until: datetime | None = None) -> Schedule:
        """Start nothing automatic until resumed, or until a moment; running runs go on, triggers work."""
        if until is not None and until.utcoffset() is None:
            raise NaiveTimeError(until)
        end = None if until is None else int(until.timestamp() * 1000)
        return await self._change(schedule_id, lambda s, _: (_pause(s, note, end), ()))

    async def resume(self, schedule_id: str, note: str = "") -> Schedule:
        """Go on; what fell due in the pause is caught up with or skipped, by policy."""
        return await self._change(schedule_id, lambda s, now: _resume(s, note, now))

    async def skip_next(self, schedule_id: str, number: int = 1) -> Schedule:
        """Pass over the next so many slots; 0 takes that back."""
        if number < 0:
            raise InvalidInputError("number", f"must be at least 0, and is {number}")
        return await self._change(
            schedule_id, lambda s, _: (_replace(s, state=_replace(s.state, skip_next=number)), ())
        )

    async def pause_all(self, only: Filter, note: str = "") -> int:
        """Pause all schedules that a filter lets through, all at once; how many there were."""
        return await self._change_all(only, lambda s, _: (_pause(s, note, None), ()))

    async def resume_all(self, only: Filter, note: str = "") -> int:
        """Resume all schedules that a filter lets through, all at once; how many there were."""
        return await self._change_all(only, lambda s, now: _resume(s, note, now))

    async def trigger(
        self,
        schedule_id: str,
        *,
        overlap: Overlap | None = None,
        input: Any = msgspec.UNSET,  # noqa: A002, ANN401 - the word that users know; any JSON
        author: str = "",
        note: str = "",
    ) -> str:
        """Start a run now, whatever the spec says; the answer is the run's id."""
        now = self._now()
        if input is not msgspec.UNSET:
            _check_input(input)
        async with self._store.transaction() as transaction:
            schedule = one(await transaction.schedules([schedule_id]), schedule_id)
            origin = f"trigger:{await transaction.next_number()}"
            run = new_run(schedule, Slot(now // 1000, now, now), origin, own_overlap(schedule, overlap))
            own = run.input if input is msgspec.UNSET else input
            run = _replace(run, input=own, author=author, note=note)
            await transaction.insert_runs([run])
            await transaction.look_now([schedule_id], now)
            await transaction.notify()
        self._wake()
        return run.id

    async def delete(self, schedule_id: str) -> None:
        """Remove a schedule; its runs stay in the ledger, those that have not begun never do."""
        now = self._now()
        async with self._store.transaction() as transaction:
            schedule = one(await transaction.schedules([schedule_id]), schedule_id)
            await transaction.update_runs(removal(await transaction.open_runs([schedule_id]), now))
            await transaction.update_backfills(
                _ended(each, now) for each in await transaction.open_backfills([schedule_id])
            )
            await transaction.insert_versions([_version(schedule, now)])
            with contextlib.suppress(HoraeError):  # a spec that cannot be read has no slots
                await _leave_behind(transaction, schedule, schedule, Reason.DELETED, now)
            await transaction.delete_schedules([schedule_id])

    async def _change(self, schedule_id: str, change: Change) -> Schedule:
        now = self._now()
        async with self._store.transaction() as transaction:
            schedule, passed = change(one(await transaction.schedules([schedule_id]), schedule_id), now)
            changed = await _put(transaction, schedule, now)
            await _pass(transaction, changed, passed, now)
        self._wake()
        return changed

    async def _change_all(self, only: Filter, change: Change) -> int:
        now = self._now()
        number, after = 0, ""
        async with self._store.transaction() as transaction:
            while page := await transaction.find_schedules(only, after, MOST):
                after = page[-1].id
                locked = await transaction.schedules([each.id for each in page])
                changes = [change(each, now) for each in locked]
                await transaction.update_schedules((_next_token(each, now), now) for each, _ in changes)
                for each, passed in changes:
                    await _pass(transaction, each, passed, now)
                number += len(changes)
            await transaction.notify()
        self._wake()
        return number


Change = Callable[[Schedule, int], tuple[Schedule, tuple[PassedOver, ...]]]


def one(found: list[Schedule], schedule_id: str) -> Schedule:
    """The schedule that was asked for, or an error that says that there is none."""
    if not found:
        raise ScheduleNotFoundError(schedule_id)
    return found[0]


def own_overlap(schedule: Schedule, overlap: Overlap | str | None) -> Overlap:
    """The overlap policy that a start was given, or else the schedule's."""
    if overlap is None:
        return schedule.policies.overlap
    try:
        return Overlap(overlap)
    except ValueError:
        known = ", ".join(Overlap)
        raise InvalidInputError("overlap", f"is none of {known}: {overlap!r}") from None


def removal(runs: Iterable[Run], now: int) -> list[Run]:
    """What becomes of a deleted schedule's open runs: those that go on do, the others never begin, or not again."""
    return [
        _replace(run, status=Status.CANCELLED if run.attempt else Status.DROPPED, reason=Reason.DELETED, ended_at=now)
        for run in runs
        if run.status is not Status.RUNNING
    ]  # fmt: skip


def read_spec(spec: SpecLike) -> Spec:
    """A spec, in whichever form it was given."""
    if isinstance(spec, str):
        return Spec.cron(spec)
    return spec if isinstance(spec, Spec) else Spec.parse(spec)


def _draft(new: NewSchedule, now: int) -> tuple[Schedule, int | None]:
    """A schedule that is not stored yet, and when to look at it; everything that can be wrong is said here."""
    _check_id(new.id)
    _check_input(new.input)
    check_policies(new.policies)
    _check_limit(new.limited_actions)
    spec = read_spec(new.spec)
    action = Action(name=new.action, input=new.input, id=new.action_id)
    if new.action_id_format is not None:
        action = _replace(action, id_format=new.action_id_format)
    schedule = Schedule(
        id=new.id, incarnation=0, spec=spec.text, action=action, policies=new.policies,
        state=State(paused=new.paused, note=new.note, remaining=new.limited_actions), token=1, cursor=now // 1000,
        created_at=now, updated_at=now, owner=new.owner, tags=new.tags,
    )  # fmt: skip
    if new.paused:
        return schedule, None
    following = spec.next_instant(schedule.cursor)
    # One that has nothing to fire is looked at, so that it is known to be finished.
    return schedule, now if following is None else fire_instant(spec, following, new.id)


def _check_id(schedule_id: object) -> None:
    if not isinstance(schedule_id, str) or not 1 <= len(schedule_id) <= LONGEST_ID:
        raise InvalidInputError("id", f"must be a text of 1 to {LONGEST_ID} characters")
    if not schedule_id.isprintable():
        raise InvalidInputError("id", f"has a character that cannot be shown: {schedule_id!r}")


def _check_input(value: object) -> None:
    if value is None:
        return
    try:
        size = len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("input", f"is no JSON: {error}") from None
    if size > LONGEST_INPUT:
        raise InvalidInputError("input", f"has {size} bytes, and {LONGEST_INPUT} are taken at most")


def _edited(action: Action, name: str | None, value: object, base: str | None) -> Action:
    if value is not msgspec.UNSET:
        _check_input(value)
        action = _replace(action, input=value)
    return _replace(action, name=name or action.name, id=action.id if base is None else base)


async def _leave_behind(
    transaction: Transaction, old: Schedule, new: Schedule, reason: Reason, now: int
) -> Schedule:
    """A change is not retroactive: what was due before it and nobody decided yet never fires, and says so."""
    spec, second = Spec.parse(old.spec), now // 1000
    passed = leave_behind(spec, old.cursor, second, reason)
    if passed is not None:
        await _pass(transaction, old, [passed_over(old, spec, passed, now)], now)
    return _replace(new, cursor=max(old.cursor, second))


async def _pass(transaction: Transaction, schedule: Schedule, passed: Sequence[PassedOver], now: int) -> None:
    """Record and count slots that a change passes over."""
    if passed:
        await transaction.insert_passed(passed)
        counted = Tally(skipped=sum(each.count for each in passed))
        await transaction.advance([Advance(schedule.id, schedule.cursor, now, tally=counted)])


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise InvalidInputError("limited_actions", f"must be at least 0, and is {limit}")


def _version(schedule: Schedule, now: int) -> Version:
    return Version(
        schedule_id=schedule.id, incarnation=schedule.incarnation, token=schedule.token, spec=schedule.spec,
        policies=schedule.policies, since=schedule.updated_at, until=now,
    )  # fmt: skip


def _pause(schedule: Schedule, note: str, until: int | None) -> Schedule:
    return _replace(schedule, state=_replace(schedule.state, paused=True, note=note, paused_until=until))


def _resume(schedule: Schedule, note: str, now: int) -> tuple[Schedule, tuple[PassedOver, ...]]:
    spec = Spec.parse(schedule.spec)
    resumed = pause.resume(schedule, spec, now, note)
    state = _replace(resumed.state, attention="")
    passed = tuple(passed_over(schedule, spec, each, now) for each in resumed.passed)
    return _replace(schedule, state=state, cursor=resumed.cursor), passed


def _next_token(schedule: Schedule, now: int) -> Schedule:
    return _replace(schedule, token=schedule.token + 1, updated_at=now)


async def _put(transaction: Transaction, schedule: Schedule, now: int) -> Schedule:
    """Write a change, and have the schedule looked at."""
    changed = _next_token(schedule, now)
    await transaction.update_schedules([(changed, now)])
    await transaction.notify()
    return changed


def _ended(backfill: Backfill, now: int) -> Backfill:
    return _replace(backfill, status=BackfillStatus.CANCELLED, ended_at=now)

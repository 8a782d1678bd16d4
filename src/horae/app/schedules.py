"""The schedules of an app: create, read, change, pause, trigger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Unpack

import msgspec

from horae.app.bulk import Change, change_all
from horae.app.field_checks import check_jitter, check_number, check_text, future_ms, moment, stored_json
from horae.app.operation_arguments import checks_arguments, shows_fields
from horae.app.owner_scope import OwnerScope, UnitOfWork
from horae.app.page import MAX_BYTES, Page, cursor_of, fitting, page_limit, place_of
from horae.app.schedule_creation import Creation, Creator
from horae.app.schedule_descriptions import read_descriptions
from horae.app.schedule_draft import CreateFields, NewSchedule, read_spec, shared_calendars
from horae.app.schedule_edits import (
    Edit,
    Resumed,
    UpdateFields,
    apply_edit,
    edited_policies,
    leave_undecided,
    paused_schedule,
    put_schedule,
    record_unstarted,
    resume_schedule,
    resumed_schedule,
    standing,
)
from horae.app.schedule_fields import GivenFields, SpecLike
from horae.app.schedule_put import DEFAULTS, Put, put
from horae.app.schedule_views import Description, SpecPreview, TimesView, spec_preview, times_view
from horae.app.schedule_warnings import warn_of_input, warn_of_specs
from horae.app.triggers_and_backfills import (
    BackfillRequest,
    Trigger,
    cancelled_backfill,
    given_up,
    slots_of,
    start_backfills,
    start_trigger,
)
from horae.app.unreadable_schedules import faults_of, repaired, unreadable_schedules
from horae.checked import converted
from horae.engine.removed_schedule_grants import revoke_grants
from horae.errors import (
    ConflictTokenMismatchError,
    HoraeError,
    InvalidInputError,
    LimitExceededError,
    ScheduleNotFoundError,
    UnknownActionError,
)
from horae.executor.action_registry import ActionLike
from horae.model import (
    GRAPH,
    Backfill,
    Counts,
    OnResume,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    Version,
    instant,
    owner_and_id,
    schedule_key,
)
from horae.policies import OnResumeName, OverlapName
from horae.policy.ledger_changes import version_of
from horae.spec import SharedCalendar, Spec
from horae.store.port import BEGINNING, NEWEST, Filter

MAX_EXAMINED, CHUNK = 4000, 1000
"""How many schedules one page of a search examines, and one statement."""
_replace = msgspec.structs.replace


class Patched(msgspec.Struct, frozen=True, kw_only=True):
    """The result of several changes in one request."""

    schedule: Schedule
    run_id: str | None = None
    backfills: tuple[Backfill, ...] = ()


@checks_arguments
class Schedules:
    """The schedules of an app."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    @shows_fields(NewSchedule)
    async def create(
        self, schedule_id: str, spec: SpecLike, action: ActionLike, **more: Unpack[CreateFields]
    ) -> Schedule:
        """Create a schedule, which fires from now on. The keywords are the other fields of a :class:`NewSchedule`."""
        return (await self.create_many([NewSchedule(id=schedule_id, spec=spec, action=action, **more)]))[0]

    async def create_many(self, new: Iterable[NewSchedule]) -> list[Schedule]:
        """Create schedules, all or none of them, in one transaction."""
        created = await self.create_once(new)
        if not created.repeated:
            await self._warn(created.schedules)
        return list(created.schedules)

    async def _warn(self, schedules: Sequence[Schedule]) -> None:
        """Warn the calling program about schedules that it stored."""
        await warn_of_specs(self._scope, schedules)
        for each in schedules:
            warn_of_input(self._scope.executors, each)

    async def create_once(self, new: Iterable[NewSchedule], *, dry_run: bool = False) -> Creation:
        """Like :meth:`create_many`, but idempotent by ``request_id``: of several equal requests one creates the schedules, and the
        others get the same schedules. With ``dry_run`` nothing is stored, and the answer is what would be.
        """
        return await Creator(self._scope).create(new, now=self._scope.now(), dry_run=dry_run)

    async def knows_action(self, action: ActionLike) -> bool:
        """Whether an action is registered by this program, or by a live node."""
        try:
            await self._scope.check_actions([self._scope.executors.read(action)])
        except UnknownActionError:
            return False
        return True

    async def get(self, schedule_id: str) -> Schedule:
        """The current version of a schedule."""
        async with self._scope.store.reading() as transaction:
            return await self._scope.read(transaction, schedule_id)

    async def is_of_graph(self, schedule_id: str) -> bool:
        """Whether the schedule exists and runs a graph."""
        try:
            return (await self.get(schedule_id)).action.kind == GRAPH
        except ScheduleNotFoundError:
            return False

    async def last_starts(self, schedules: Sequence[Schedule]) -> Sequence[datetime | None]:
        """When the latest run of each schedule began; ``None`` for schedules that run no graph."""
        keys = [each.key for each in schedules if each.action.kind == GRAPH]
        if not keys:
            return [None] * len(schedules)
        async with self._scope.store.reading() as transaction:
            found = await transaction.last_starts(keys)
        started = [found.get(each.key) for each in schedules]
        return [None if each is None else instant(each) for each in started]

    async def exists(self, schedule_id: str) -> bool:
        """Whether the schedule exists."""
        async with self._scope.store.reading() as transaction:
            return bool(await transaction.read_schedules([await self._scope.key(transaction, schedule_id)]))

    async def meaning(self, spec: SpecLike, limit: int = 10) -> SpecPreview:
        """What a spec means: its canonical form, a sentence, and the next times that it names; nothing is stored."""
        self._check_preview(limit)
        async with self._scope.store.reading() as transaction:
            calendars = await shared_calendars(transaction, [spec], self._scope.owner or "")
        read = await self._scope.evaluate(lambda: read_spec(spec, calendars))
        check_jitter(read, self._scope.config)
        now = self._scope.now()
        return await self._scope.evaluate(lambda: spec_preview(read, now, limit))

    def _check_preview(self, limit: int) -> None:
        most = self._scope.config.preview_limit
        if not 1 <= limit <= most:
            raise LimitExceededError("preview_limit", most, f"{limit} times were asked for")

    async def describe(self, schedule_id: str) -> Description:
        """A schedule with its counts, its latest runs and its next fire times."""
        [found] = await self.describe_many([schedule_id])
        if found is None:
            async with self._scope.store.reading() as transaction:
                raise await self._scope.not_found(transaction, schedule_id)
        return found

    async def describe_many(self, schedule_ids: Sequence[str]) -> Sequence[Description | None]:
        """The descriptions of several schedules, as of one moment; ``None`` for each that does not exist."""
        return await read_descriptions(self._scope, schedule_ids)

    async def recent_runs(self, schedules: Sequence[Schedule], limit: int) -> Sequence[Sequence[Run]]:
        """The latest runs of each schedule, newest first."""
        async with self._scope.store.reading() as transaction:
            found = await transaction.recent_runs([each.key for each in schedules], page_limit(limit))
        return [found[each.key] for each in schedules]

    async def times(
        self,
        schedule_id: str,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int = 1000,
    ) -> TimesView:
        """The times that a schedule names later than ``start`` (now), up to and including ``end``, whether or not it fires then."""
        after_ms = self._scope.now() if start is None else int(moment("start", start).timestamp() // 1) * 1000
        until_ms = None if end is None else int(moment("end", end).timestamp() // 1) * 1000
        if until_ms is not None and until_ms < after_ms:
            raise InvalidInputError("end", f"is before {'now' if start is None else 'start'}")
        self._check_preview(limit)
        schedule = await self.get(schedule_id)
        return await self._scope.evaluate(
            lambda: times_view(Spec.parse(schedule.spec), schedule_id, after_ms, until_ms, limit)
        )

    async def counts(self, schedule_id: str) -> Counts:
        """The counts of a schedule's outcomes since it was created."""
        async with self._scope.store.reading() as transaction:
            schedule = await self._scope.read(transaction, schedule_id)
            return (await transaction.counts_of([schedule.key]))[schedule.key]

    async def versions(
        self, schedule_id: str, limit: int = 20, *, cursor: str | None = None
    ) -> Page[Version]:
        """The earlier versions of a schedule, newest first; also of a deleted schedule."""
        before = NEWEST if cursor is None else place_of(cursor, tuple[int, int])
        return await self._scope.ledger(
            schedule_id, limit,
            lambda transaction, key, number: transaction.version_sizes(key, number, before),
            lambda transaction, key, number: transaction.versions(key, number, before),
        )  # fmt: skip

    async def list(
        self, only: Filter | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Schedule]:
        """Schedules in the order of their ids; those of several owners that have one id, in the order of the owners."""
        limit = page_limit(limit)
        after = BEGINNING if cursor is None else schedule_key(*place_of(cursor, tuple[str, str]))
        async with self._scope.store.reading() as transaction:
            sizes = await transaction.schedule_sizes(self._scope.only(only), after, limit)
            number, more = fitting([size for _, size in sizes], limit)
            found = await transaction.read_schedules([each for each, _ in sizes[:number]])
        return Page(found, cursor_of(*owner_and_id(sizes[number - 1][0])) if more else None)

    async def search(
        self, only: Filter | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Schedule]:
        """Like :meth:`list`, but bounded: a page examines at most 4,000 schedules, so it may have fewer than ``limit`` items, or
        none, and still a ``next``. Paused and completed schedules, and those that need attention, are found through an index.
        """
        only, limit = self._scope.only(only), page_limit(limit)
        if only.along:
            return await self.list(only, cursor=cursor, limit=limit)
        after = BEGINNING if cursor is None else schedule_key(*place_of(cursor, tuple[str, str]))
        keys: list[ScheduleKey] = []
        examined = size = 0
        chunk, more = limit + 1, True
        async with self._scope.store.reading() as transaction:
            while more and len(keys) < limit and examined < MAX_EXAMINED and size < MAX_BYTES:
                found = await transaction.examine_schedules(only, after, chunk)
                more = len(found) == chunk
                for number, (after, bytes_of) in enumerate(found, 1):
                    examined += 1
                    if bytes_of is not None:
                        keys.append(after)
                        size += bytes_of
                    if len(keys) == limit or size >= MAX_BYTES:
                        more = more or number < len(found)
                        break
                chunk = CHUNK
            page = await transaction.read_schedules(keys) if keys else []
        return Page(page, cursor_of(*owner_and_id(after)) if more else None)

    async def soonest(self, limit: int, *, tag: str | None = None) -> Mapping[ScheduleKey, datetime]:
        """The keys of the schedules that are due soonest, and when; only the first 4,000 due schedules are examined."""
        limit = page_limit(limit)
        async with self._scope.store.reading() as transaction:
            # Most callers own much of what is due: the first few usually suffice, and the rest is slow to read.
            for examined in (min(10 * limit, MAX_EXAMINED), MAX_EXAMINED):
                found = await transaction.soonest_schedules(self._scope.owner, tag, examined, limit)
                if len(found) >= limit:
                    break
        return {key: instant(at) for key, at in found}

    async def get_many(self, keys: Iterable[ScheduleKey]) -> Sequence[Schedule]:
        """The given schedules that exist and that the caller may see."""
        mine = [each for each in keys if self._scope.owner in {None, owner_and_id(each)[0]}]
        async with self._scope.store.reading() as transaction:
            return await transaction.read_schedules(mine) if mine else ()

    async def unreadable(self, limit: int = 100) -> Sequence[Schedule]:
        """The schedules whose stored rows cannot be read; ``unreadable`` of each says what is wrong. Reads all schedules to find them."""
        return await unreadable_schedules(self._scope, page_limit(limit))

    async def count(self, only: Filter | None = None) -> int:
        """The number of schedules that match a filter."""
        async with self._scope.store.reading() as transaction:
            return await transaction.count_schedules(self._scope.only(only))

    @shows_fields(Edit)
    async def update(
        self,
        schedule_id: str,
        spec: SpecLike | None = None,
        *,
        version: int | None = None,
        **changes: Unpack[UpdateFields],
    ) -> Schedule:
        """Change the given fields of a schedule, as an :class:`Edit` does; waiting runs stay. With a ``version``, only if that is
        still the current one.
        """
        edit = Edit(**changes) if spec is None else Edit(spec=spec, **changes)
        changed = await self.edit(schedule_id, lambda _: edit, version=version)
        await self._warn([changed])
        return changed

    @shows_fields(Edit, DEFAULTS)
    async def put(
        self,
        schedule_id: str,
        spec: SpecLike,
        action: ActionLike,
        *,
        version: int | None = None,
        **more: Unpack[GivenFields],
    ) -> Put:
        """Create a schedule, or replace the spec, action, policies, description and tags of the existing one from now on; putting the
        same again changes nothing. Whatever else it has, such as a pause, stays unless it is given. With a ``version``, only
        if that is still the current one.
        """
        fields = {**DEFAULTS, **more, "spec": spec, "action": self._scope.executors.read(action)}
        fields["policies"] = edited_policies(Policies(), fields["policies"])
        done = await put(self, schedule_id, fields, own=self, version=version)
        if done.outcome != "unchanged":
            await self._warn([done.schedule])
        return done

    async def edit(
        self,
        schedule_id: str,
        edit_of: Callable[[Schedule], Edit],
        *,
        version: int | None = None,
        dry_run: bool = False,
    ) -> Schedule:
        """Apply an edit to the current version of a schedule, in one transaction; an edit that changes nothing keeps the version.

        With ``dry_run`` nothing is stored, and the answer is what would be.
        """
        # Check that the action exists before taking the lock; the edit is computed again under the lock.
        seen = await self.get(schedule_id)
        planned = edit_of(seen)
        if planned.action is not msgspec.UNSET:
            await self._scope.check_actions(
                [self._scope.executors.read(planned.action)], had=seen.action.address
            )
        named = [] if planned.spec is msgspec.UNSET else [planned.spec]

        async def change(work: UnitOfWork) -> Schedule:
            # Lock calendars before schedules, as a change of a calendar does: otherwise the two would deadlock.
            calendars = await shared_calendars(work.transaction, named, seen.owner, keep=True)
            old = await work.locked(schedule_id, unreadable=True)
            _check_version(old, version)
            edit = edit_of(old)
            if faults := work.answers.ask(("faults", *standing(old)), partial(faults_of, old)):
                old, edit = repaired(old, edit, faults, work.now)
            key = ("spec", old.generation, old.version, *sorted(calendars.items()))
            spec = work.answers.ask(key, lambda: _edited_spec(old, edit, calendars))
            if "spec" in faults:
                old = _replace(old, spec=spec.text)
            return await apply_edit(work, old, edit, spec)

        return await self._scope.change(change, dry_run=dry_run)

    async def patch(
        self,
        schedule_id: str,
        *,
        trigger: Trigger | None = None,
        backfills: Iterable[BackfillRequest] = (),
        pause: str | None = None,
        resume: str | None = None,
        version: int | None = None,
        request_id: str = "",
    ) -> Patched:
        """Trigger, backfill, and pause or resume with a note, in one transaction.

        With a ``request_id`` the request is carried out once: repeated, even to another node, it changes nothing.
        """
        if pause is not None and resume is not None:
            raise InvalidInputError("pause", "cannot go together with resume")
        requests = tuple(backfills)
        edit = None
        if pause is not None or resume is not None:
            edit = Edit(paused=pause is not None, note=pause if pause is not None else resume or "")

        async def act(work: UnitOfWork) -> Patched:
            schedule = await work.locked(schedule_id)
            if request_id and not await work.transaction.insert_patch_request(schedule, request_id, work.now):
                return Patched(schedule=schedule)
            _check_version(schedule, version)
            slots_of(work, [(schedule, each) for each in requests])
            if edit is not None:
                schedule = await apply_edit(work, schedule, edit, work.answers.spec(schedule.spec))
            run = None if trigger is None else await start_trigger(work, schedule, trigger)
            started = await start_backfills(work, schedule, requests)
            return Patched(
                schedule=schedule, run_id=None if run is None else run.id, backfills=tuple(started)
            )

        return await self._scope.change(act)

    async def pause(
        self, schedule_id: str, note: str = "", *, until: datetime | str | None = None
    ) -> Schedule:
        """Stop automatic starts until resumed, or until a given time; running runs continue, triggers work."""
        check_text("note", note)
        end = None if until is None else future_ms("until", until, self._scope.now())
        return await self._change(schedule_id, lambda s, _: (paused_schedule(s, note, end), ()))

    async def resume(
        self,
        schedule_id: str,
        note: str = "",
        *,
        on_resume: OnResume | OnResumeName | None = None,
        dry_run: bool = False,
    ) -> Resumed:
        """End a pause; slots that fell due during it are caught up or skipped, by policy, or this once by ``on_resume``.

        The answer says what starts now and what does not. With ``dry_run`` nothing is changed.
        """
        way = None if on_resume is None else converted(on_resume, OnResume, "on_resume")
        return await resume_schedule(self._scope, schedule_id, note, way, dry_run=dry_run)

    async def skip_next(self, schedule_id: str, number: int = 1) -> Schedule:
        """Skip the next ``number`` slots; 0 withdraws an earlier request."""
        check_number("number", number, 0, 1_000_000)
        return await self._change(
            schedule_id, lambda s, _: (_replace(s, state=_replace(s.state, skip_next=number)), ())
        )

    async def pause_all(self, only: Filter, note: str = "") -> int:
        """Pause all schedules that match a filter, batch by batch; return how many matched."""
        check_text("note", note)
        return await change_all(self._scope, only, lambda s, _: (paused_schedule(s, note, None), ()))

    async def resume_all(self, only: Filter, note: str = "") -> int:
        """Resume all schedules that match a filter, batch by batch; return how many matched."""
        check_text("note", note)
        return await change_all(self._scope, only, lambda s, now: resumed_schedule(s, note, now))

    async def trigger(
        self,
        schedule_id: str,
        *,
        overlap: Overlap | OverlapName | None = None,
        input: Any = msgspec.UNSET,  # noqa: A002, ANN401 - the word that users know; any JSON
        author: str = "",
        note: str = "",
    ) -> str:
        """Start a run now, whatever the spec says; return its id."""
        trigger = Trigger(overlap=overlap, input=input, author=author, note=note)

        async def start(work: UnitOfWork) -> tuple[Schedule, str]:
            schedule = await work.locked(schedule_id)
            return schedule, (await start_trigger(work, schedule, trigger)).id

        schedule, run_id = await self._scope.change(start)
        if input is not msgspec.UNSET:
            warn_of_input(self._scope.executors, schedule, stored_json(input))
        return run_id

    async def delete(self, schedule_id: str, *, version: int | None = None) -> None:
        """Delete a schedule; its runs stay in the ledger, and those that have not begun never start."""

        async def remove(work: UnitOfWork) -> None:
            schedule = await work.locked(schedule_id, unreadable=True)
            _check_version(schedule, version)
            await remove_schedule(work, schedule)

        await self._scope.change(remove)

    async def _change(self, schedule_id: str, change: Change) -> Schedule:
        async def act(work: UnitOfWork) -> Schedule:
            old = await work.locked(schedule_id)
            schedule, unstarted = work.answers.ask(standing(old), lambda: change(old, work.now))
            changed = await put_schedule(work, schedule)
            await record_unstarted(work, changed, unstarted)
            return changed

        return await self._scope.change(act)


def _check_version(schedule: Schedule, version: int | None) -> None:
    """Refuse a change if the current version is not the one that the caller has seen."""
    if version is not None and version != schedule.version:
        raise ConflictTokenMismatchError(schedule.id, version, schedule.version)


async def remove_schedule(work: UnitOfWork, schedule: Schedule) -> None:
    """Delete a locked schedule."""
    transaction, now = work.transaction, work.now
    await transaction.update_runs(given_up(await transaction.open_runs([schedule.key]), Reason.DELETED, now))
    await transaction.update_backfills(
        cancelled_backfill(each, now) for each in await transaction.open_backfills([schedule.key])
    )
    if not work.answers.ask(("faults", *standing(schedule)), partial(faults_of, schedule)):
        await transaction.insert_versions([version_of(schedule, now)])
    await revoke_grants(transaction, [schedule], now)
    with contextlib.suppress(HoraeError):  # a spec that cannot be read has no slots
        await leave_undecided(work, schedule, Reason.DELETED)
    await transaction.delete_schedules([schedule.key])


def _edited_spec(old: Schedule, edit: Edit, calendars: Mapping[str, SharedCalendar]) -> Spec:
    return Spec.parse(old.spec) if edit.spec is msgspec.UNSET else read_spec(edit.spec, calendars)

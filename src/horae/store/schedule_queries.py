"""Transaction methods for schedules, when they are due, and their versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from horae.model import BETWEEN, Counts, Reason, Schedule, ScheduleKey, State, Version, owner_and_id
from horae.store.row_mapping import to_json
from horae.store.statement_execution import NEWEST, Statements
from horae.store.tables import DUE, SCHEDULE, VERSION, Due, RawSchedule

NO_COUNTS = Counts()
_asdict = msgspec.structs.asdict


class Advance(NamedTuple):
    """A schedule after a decision: its cursor, when it is due next, and what to count."""

    schedule_key: ScheduleKey
    cursor_ms: int
    next_at_ms: int | None
    state: State | None = None
    """The new state; ``None`` if it did not change."""
    counts: Counts = NO_COUNTS
    attempted_at_ms: int | None = None
    """When an attempt began, if one did."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the schedules that match every field that is not ``None``."""

    prefix: str | None = None
    """The beginning of their ids."""
    owner: str | None = None
    action: str | None = None
    tag: str | None = None
    paused: bool | None = None
    completed: bool | None = None
    attention: bool | None = None
    managed_by: str | None = None
    orphaned: bool | None = None
    """Whether what manages them no longer defines them."""
    search_key: str | None = None
    """A search attribute whose value, as a text, is ``search_value``."""
    search_value: str | None = None
    text: str | None = None
    """A text in lower case that their id, description, tags, action or workflow contain."""

    @property
    def along(self) -> str | None:
        """The statement that reads along the index of the few schedules that this filter selects, if there is one."""
        if self.attention:
            return "attention_schedule_sizes"
        if self.paused:
            return "paused_schedule_sizes"
        return "completed_schedule_sizes" if self.completed else None


class ScheduleQueries(Statements):
    """Statements on schedules and their versions."""

    async def due(self, now: int, limit: int) -> list[Schedule]:
        """The schedules that are due, the longest overdue first; locked."""
        return await self.find(SCHEDULE, "due", now=now, limit=limit)

    async def unclaimed(self, actions: Sequence[str], limit: int) -> list[Schedule]:
        """The schedules of released runs that wait for a node with one of the given actions; locked."""
        return await self.find(SCHEDULE, "unclaimed", actions=list(actions), limit=limit)

    async def schedules(self, keys: Collection[ScheduleKey]) -> list[Schedule]:
        """The given schedules in the order of their ids and owners; locked."""
        locked = await self.lock(keys)  # one created since then is not locked, and so not read
        return await self.read_schedules(locked) if locked else []

    async def read_schedules(self, keys: Collection[ScheduleKey]) -> list[Schedule]:
        """The given schedules in the order of their ids and owners; not locked."""
        return await self.find(SCHEDULE, "read_schedules", keys=list(keys))

    async def keys_of_id(self, schedule_id: str, limit: int) -> list[ScheduleKey]:
        """The keys of the schedules of all owners that have an id; if none has it, of the deleted schedules that had it."""
        found = await self.column("keys_of_id", id=schedule_id, limit=limit)
        return found or await self.column("known_keys_of_id", id=schedule_id, limit=limit)

    async def find_schedules(self, only: Filter, after: ScheduleKey, limit: int) -> list[Schedule]:
        """A page of the schedules that pass a filter, in the order of their ids and owners."""
        name = "find_schedules" if only.owner is None else "find_owned_schedules"
        return await self.find(SCHEDULE, name, limit=limit, **_after(after), **_parameters(only))

    async def schedule_sizes(
        self, only: Filter, after: ScheduleKey, limit: int
    ) -> list[tuple[ScheduleKey, int]]:
        """The keys of that page, and how many bytes of text each schedule has."""
        if along := only.along:
            return await self.tuples(along, limit=limit, **_after(after), **_asdict(only))
        name = "schedule_sizes" if only.owner is None else "owned_schedule_sizes"
        return await self.tuples(name, limit=limit, **_after(after), **_parameters(only))

    async def examine_schedules(
        self, only: Filter, after: ScheduleKey, limit: int
    ) -> list[tuple[ScheduleKey, int | None]]:
        """The keys of the next schedules, and how many bytes of text each has that passes a filter; ``None`` for the others."""
        name = "examine_schedules" if only.owner is None else "examine_owned_schedules"
        return await self.tuples(name, limit=limit, **_after(after), **_parameters(only))

    async def soonest_schedules(
        self, owner: str | None, tag: str | None, examined: int, limit: int
    ) -> list[tuple[ScheduleKey, int]]:
        """The keys of the schedules that are due soonest, and when; only the first ``examined`` due ones are considered."""
        return await self.tuples("soonest_schedules", owner=owner, tag=tag, examined=examined, limit=limit)

    async def managed_keys(self, managed_by: str, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of the schedules that a program or file defines."""
        return await self.column("managed_keys", managed_by=managed_by, after=after, limit=limit)

    async def count_schedules(self, only: Filter) -> int:
        """How many schedules pass a filter."""
        name = "count_schedules" if only.owner is None else "count_owned_schedules"
        return int(await self.value(name, **_parameters(only)))

    async def schedules_with_spec_text(
        self, text: str, owner: str, after: ScheduleKey, limit: int
    ) -> list[ScheduleKey]:
        """A page of the keys of schedules whose specs contain a text; of all owners if ``owner`` is empty."""
        if owner:
            return await self.column(
                "owned_schedules_with_spec_text", text=text, owner=owner, limit=limit, **_after(after)
            )
        return await self.column("schedules_with_spec_text", text=text, limit=limit, **_after(after))

    async def raw_schedules(self, owner: str, after: str, limit: int) -> list[RawSchedule]:
        """A page of an owner's schedules as they are stored, not decoded; after an id."""
        found = await self.rows("raw_schedules", owner=owner, after=after, limit=limit)
        return [RawSchedule(*row) for row in found]

    async def insert_schedules(self, schedules: Iterable[tuple[Schedule, int | None]]) -> None:
        """Insert new schedules, each with the time at which it is due."""
        created = list(schedules)
        await self.insert(SCHEDULE, [schedule for schedule, _ in created])
        await self.insert(DUE, [_due(schedule, next_at_ms) for schedule, next_at_ms in created])

    async def update_schedules(self, schedules: Iterable[tuple[Schedule, int | None]]) -> None:
        """Update edited schedules, each with the time at which it is due."""
        edited = list(schedules)
        await self.write("update_schedule", [SCHEDULE.parameters(schedule) for schedule, _ in edited])
        await self.write(
            "update_due", [DUE.parameters(_due(schedule, next_at_ms)) for schedule, next_at_ms in edited]
        )

    async def delete_schedules(self, keys: Iterable[ScheduleKey]) -> None:
        """Delete schedules; their ledger stays."""
        if deleted := list(keys):
            for name in ("delete_schedule", "delete_due", "delete_last_outcome", "delete_unstarted_count"):
                await self.rows(name, keys=deleted)

    async def insert_patch_request(self, schedule: Schedule, request_id: str, now: int) -> bool:
        """Record that a patch of a locked schedule is applied; ``False`` if it was applied before."""
        return bool(
            await self.rows(
                "insert_patch_request", schedule_key=schedule.key, generation=schedule.generation, request_id=request_id, now=now
            )
        )  # fmt: skip

    async def prune_patch_requests(self, before_ms: int, limit: int) -> int:
        """Delete patch records from before a moment; return how many."""
        return len(await self.rows("prune_patch_requests", before_ms=before_ms, limit=limit))

    async def next_generations(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, int]:
        """The generations of schedules that are created now; no other transaction can create them until this one ends."""
        return dict(await self.tuples("next_generation", keys=list(keys), between=BETWEEN))

    async def advance(self, steps: Iterable[Advance]) -> None:
        """Write what decisions changed about schedules; each schedule once."""
        prepared = list(steps)
        await self.write(
            "advance",
            [
                {
                    "schedule_key": s.schedule_key, "cursor_ms": s.cursor_ms, "next_at_ms": s.next_at_ms,
                    "attempted_at_ms": s.attempted_at_ms, "started": s.counts.started,
                }
                for s in prepared
            ],
        )  # fmt: skip
        changed = [{"schedule_key": s.schedule_key, "state": to_json(s.state)} for s in prepared if s.state]
        await self.write("update_state", changed)
        await self.write(
            "count_unstarted",
            [
                {"schedule_key": s.schedule_key, "reason": reason, "count": number}
                for s in prepared
                for reason, number in s.counts.unstarted.items()
            ],
        )

    async def mark_due(self, keys: Collection[ScheduleKey], now: int) -> None:
        """Make schedules due, because something happened to them."""
        await self.rows("mark_due", keys=list(keys), now=now)

    async def wake_waiting(self, keys: Collection[ScheduleKey], now: int) -> None:
        """After runs ended, make their schedules due if they have a waiting run, or no due time."""
        await self.rows("wake_waiting", keys=list(keys), now=now)

    async def without_next_time(self, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of schedules without a due time."""
        return await self.column("without_next_time", after=after, limit=limit)

    async def count_due(self, now: int, limit: int) -> int:
        """How many schedules are due, counted up to a limit."""
        return int(await self.value("count_due", now=now, limit=limit))

    async def counts_of(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, Counts]:
        """How many runs each of the given schedules started, and how many slots did not start, by reason."""
        started: dict[ScheduleKey, int] = {}
        unstarted: dict[ScheduleKey, dict[Reason, int]] = defaultdict(dict)
        for key, number, reason, count in await self.rows("counts_of", keys=list(keys)):
            started[key] = number
            if reason is not None:
                unstarted[key][Reason(reason)] = count
        return {each: Counts(started=number, unstarted=unstarted[each]) for each, number in started.items()}

    async def wake_at(self) -> int | None:
        """The earliest time at which a schedule is due."""
        found: int | None = await self.value("wake_at")
        return found

    async def next_number(self) -> int:
        """A number that was never used before, for nodes, triggers and backfills."""
        return int(await self.value("next_number"))

    # Versions of schedules

    async def insert_versions(self, versions: Iterable[Version]) -> None:
        """Store versions of schedules that an edit replaces."""
        await self.insert(VERSION, list(versions))

    async def versions(self, key: ScheduleKey, limit: int, before: tuple[int, int] = NEWEST) -> list[Version]:
        """The replaced versions of a schedule, newest first; only those before the given generation and version."""
        generation, version = before
        return await self.find(
            VERSION, "versions", key=key, limit=limit, generation=generation, version=version
        )

    async def version_sizes(
        self, key: ScheduleKey, limit: int, before: tuple[int, int] = NEWEST
    ) -> list[tuple[int, int, int]]:
        """The generation, version and bytes of text of each of those versions."""
        generation, version = before
        return await self.tuples(
            "version_sizes", key=key, limit=limit, generation=generation, version=version
        )

    async def version_at(self, key: ScheduleKey, moment: int) -> Version | None:
        """The version of a schedule that was in force at a moment, if it was replaced at or after it."""
        return await self.find_one(VERSION, "version_at", key=key, at=moment)

    async def version_before(self, key: ScheduleKey, moment: int) -> Version | None:
        """The last version of a schedule that was replaced before a moment."""
        return await self.find_one(VERSION, "version_before", key=key, at=moment)


def _parameters(only: Filter) -> dict[str, Any]:
    """The parameters of a statement that takes a filter."""
    found = _asdict(only)
    if only.owner is None:
        del found["owner"]
    return found


def _after(key: ScheduleKey) -> dict[str, str]:
    """The parameters of a statement that begins after a schedule, in the order of ids and owners."""
    owner, schedule_id = owner_and_id(key)
    return {"after_id": schedule_id, "after_owner": owner}


def _due(schedule: Schedule, next_at_ms: int | None) -> Due:
    return Due(schedule_key=schedule.key, cursor_ms=schedule.cursor_ms, next_at_ms=next_at_ms)

"""The port: everything that the engine and the operations ask of a database, in transactions.

A store implements the few abstract methods of :class:`Transaction` and :class:`Store`. All other methods are written once, over
statements that :mod:`horae.store.queries` finds by name, and tables that :mod:`horae.store.tables` declares.

Instants are milliseconds since the epoch. "Locked" means until the transaction ends. A *page* is in the order of its keys, begins
after the one that is given, and has at most ``limit`` items.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from datetime import datetime
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import msgspec

from horae.errors import ClockOffError, StoreUnavailableError
from horae.model import (
    BETWEEN,
    OPEN,
    Attempt,
    AttemptResult,
    Backfill,
    Checkpoint,
    Counts,
    LastOutcome,
    LogBatch,
    LogChunk,
    Node,
    Outcome,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
    StoredCalendar,
    StoredWorkflow,
    UnstartedRange,
    Version,
    instant,
    owner_and_id,
)
from horae.store.grant_queries import GrantQueries
from horae.store.mapping import Row, Table, to_json
from horae.store.tables import (
    ATTEMPT,
    ATTEMPT_LOG,
    BACKFILL,
    CALENDAR,
    CHECKPOINT,
    DUE,
    LAST_OUTCOME,
    RUN,
    RUN_WITHOUT_INPUT,
    SCHEDULE,
    UNSTARTED_RANGE,
    VERSION,
    WORKFLOW,
    Due,
    RawSchedule,
)

NO_COUNTS = Counts()
NEWEST = (2**62, 2**62)
"""Greater than every version and every number of the ledger."""
LAST = 10**18 - 1
"""Greater than every instant in milliseconds, and than every number of a ledger that is searched."""
BEGINNING = ScheduleKey("")
"""Before every key: for the first page."""
_FILLER = "-" * 32 * 1024
"""More than the free space of any page."""
_asdict = msgspec.structs.asdict
_log = logging.getLogger("horae")


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
    """Which schedules: those that match every field that is not ``None``."""

    prefix: str | None = None
    """How their ids begin."""
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
    """A search attribute, which has ``search_value`` as a text."""
    search_value: str | None = None
    text: str | None = None
    """What their id, description, tags or action contain, in lower case."""

    @property
    def along(self) -> str | None:
        """The statement that reads along an index of the few schedules that such a filter is about, if there is one."""
        if self.attention:
            return "attention_schedule_sizes"
        if self.paused:
            return "paused_schedule_sizes"
        return "completed_schedule_sizes" if self.completed else None


class LedgerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs and unstarted ranges: those that match every field."""

    owner: str | None = None
    """The owner of their schedules; ``None`` is any."""
    schedule_key: ScheduleKey | None = None
    tag: str | None = None
    """A tag of their schedules, which exist."""
    statuses: tuple[Status, ...] = tuple(Status)
    reason: str | None = None
    since: int = 0
    """When they were decided at the earliest."""
    until: int = LAST
    """They were decided before this moment."""


class ReportableRun(NamedTuple):
    """A run that an external worker may report on, the hash of its report token, and when a report is due."""

    run: Run
    token_hash: str | None
    report_by_ms: int | None


class LatestOutcome(NamedTuple):
    """What became of the latest slot of a schedule, run or not."""

    status: Status
    nominal_ms: int
    decided_at_ms: int
    run_id: str | None
    """Its run; ``None`` if it did not start."""

    @property
    def nominal(self) -> datetime:
        """The nominal time of the slot."""
        return instant(self.nominal_ms)


class RetentionBounds(msgspec.Struct, frozen=True):
    """What the ledger of a schedule keeps: what ended since ``before``, and the latest ``count`` of each kind."""

    schedule_key: ScheduleKey
    before: int
    count: int
    max_rows: int = 500
    """How many rows of each kind one transaction removes."""


class Write(NamedTuple):
    """A statement for many rows of parameters, and what they have in common."""

    name: str
    rows: list[dict[str, Any]]
    shared: Mapping[str, Any] = {}


class Transaction(GrantQueries, ABC):
    """One transaction: all of it is written, or nothing."""

    recorded: list[tuple[AttemptResult, Outcome]] | None = None
    """The ends of attempts that it writes, for observers; ``None`` if there are none."""
    unstarted: list[Run | UnstartedRange] | None = None
    """The slots that it does not start, and the runs that it ends without a start, for observers."""
    on_commit: tuple[Callable[[], None], ...] = ()
    """What is called once it is committed, in order; none of it may raise."""

    # What a store implements

    @abstractmethod
    async def rows(self, name: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement, and return its rows."""

    @abstractmethod
    async def write(self, name: str, rows: list[dict[str, Any]], /, **shared: Any) -> int:  # noqa: ANN401 - what a database takes
        """Execute a statement for each of many rows of parameters; return how many rows it changed.

        What all rows have in common may be given once, as ``shared``: it costs as much as in one row.
        """

    async def write_together(self, *writes: Write) -> list[int]:
        """Execute several statements for many rows each, in one round trip if the database can; return how many rows each changed.

        They see the database as it was before, in no particular order: none may depend on what another one writes.
        """
        return [await self.write(name, rows, **shared) for name, rows, shared in writes]

    @abstractmethod
    async def insert(self, table: Table[Any], values: Sequence[Any]) -> None:
        """Insert new rows. A row whose key exists is an error."""

    @abstractmethod
    async def execute(self, text: str, /, **values: Any) -> Sequence[Row]:  # noqa: ANN401 - what a database takes
        """Execute a statement on tables that are not Horae's own, and return its rows; parameters are named ``:name``."""

    @abstractmethod
    async def notify(self, decider: str = "") -> None:
        """Wake the other nodes when this transaction commits; only one of their deciders, if it is named.

        Who names a decider must wake that of this node itself.
        """

    @abstractmethod
    async def lock(self, keys: Collection[ScheduleKey]) -> Collection[ScheduleKey]:
        """Lock schedules, so that no other node decides for them. Returns those that are locked."""

    async def _value(self, name: str, /, **values: Any) -> Any:  # noqa: ANN401 - what a database has
        """The only value that a statement returns."""
        ((value,),) = await self.rows(name, **values)
        return value

    async def _column(self, name: str, /, **values: Any) -> list[Any]:  # noqa: ANN401 - what a database takes
        """The values of a statement that returns one column."""
        return [value for (value,) in await self.rows(name, **values)]

    # Schedules

    async def due(self, now: int, limit: int) -> list[Schedule]:
        """The schedules that are due, the longest overdue first; locked."""
        return [SCHEDULE.decode(row) for row in await self.rows("due", now=now, limit=limit)]

    async def unclaimed(self, actions: Sequence[str], limit: int) -> list[Schedule]:
        """The schedules of released runs that wait for a node with one of some actions; locked."""
        found = await self.rows("unclaimed", actions=list(actions), limit=limit)
        return [SCHEDULE.decode(row) for row in found]

    async def schedules(self, keys: Collection[ScheduleKey]) -> list[Schedule]:
        """Some schedules in the order of their ids and owners; locked."""
        locked = await self.lock(keys)  # one created since then is not locked, and so not read
        return await self.read_schedules(locked) if locked else []

    async def read_schedules(self, keys: Collection[ScheduleKey]) -> list[Schedule]:
        """Some schedules in the order of their ids and owners; not locked."""
        return [SCHEDULE.decode(row) for row in await self.rows("read_schedules", keys=list(keys))]

    async def keys_of_id(self, schedule_id: str, limit: int) -> list[ScheduleKey]:
        """The keys of the schedules that have an id, of any owner; if there are none, of those that had it and were deleted."""
        found = await self._column("keys_of_id", id=schedule_id, limit=limit)
        return found or await self._column("known_keys_of_id", id=schedule_id, limit=limit)

    async def find_schedules(self, only: Filter, after: ScheduleKey, limit: int) -> list[Schedule]:
        """A page of the schedules that pass a filter, in the order of their ids and owners."""
        name = "find_schedules" if only.owner is None else "find_owned_schedules"
        found = await self.rows(name, limit=limit, **_after(after), **_parameters(only))
        return [SCHEDULE.decode(row) for row in found]

    async def schedule_sizes(
        self, only: Filter, after: ScheduleKey, limit: int
    ) -> list[tuple[ScheduleKey, int]]:
        """The keys of the same page, and how many bytes of text each schedule has."""
        if along := only.along:
            return [
                (key, size)
                for key, size in await self.rows(along, limit=limit, **_after(after), **_asdict(only))
            ]
        name = "schedule_sizes" if only.owner is None else "owned_schedule_sizes"
        found = await self.rows(name, limit=limit, **_after(after), **_parameters(only))
        return [(key, size) for key, size in found]

    async def examine_schedules(
        self, only: Filter, after: ScheduleKey, limit: int
    ) -> list[tuple[ScheduleKey, int | None]]:
        """The keys of the next schedules, and how many bytes of text each has that passes a filter; ``None`` for the others."""
        name = "examine_schedules" if only.owner is None else "examine_owned_schedules"
        found = await self.rows(name, limit=limit, **_after(after), **_parameters(only))
        return [(key, size) for key, size in found]

    async def soonest_schedules(
        self, owner: str | None, tag: str | None, examined: int, limit: int
    ) -> list[tuple[ScheduleKey, int]]:
        """The keys of schedules that are due soonest, among so many that are due first, and when they are due."""
        found = await self.rows("soonest_schedules", owner=owner, tag=tag, examined=examined, limit=limit)
        return [(key, next_at_ms) for key, next_at_ms in found]

    async def managed_keys(self, managed_by: str, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of the schedules that a program or file defines."""
        return await self._column("managed_keys", managed_by=managed_by, after=after, limit=limit)

    async def count_schedules(self, only: Filter) -> int:
        """How many schedules pass a filter."""
        name = "count_schedules" if only.owner is None else "count_owned_schedules"
        return int(await self._value(name, **_parameters(only)))

    async def schedules_with_spec_text(
        self, text: str, owner: str, after: ScheduleKey, limit: int
    ) -> list[ScheduleKey]:
        """A page of the keys of schedules whose specs contain a text; of all owners if ``owner`` is empty."""
        if owner:
            return await self._column(
                "owned_schedules_with_spec_text", text=text, owner=owner, limit=limit, **_after(after)
            )
        return await self._column("schedules_with_spec_text", text=text, limit=limit, **_after(after))

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
        """Remember that a patch of a locked schedule is carried out; ``False`` if it was before."""
        return bool(
            await self.rows(
                "insert_patch_request", schedule_key=schedule.key, generation=schedule.generation, request_id=request_id, now=now
            )
        )  # fmt: skip

    async def prune_patch_requests(self, before_ms: int, limit: int) -> int:
        """Forget patches of before a moment; how many."""
        return len(await self.rows("prune_patch_requests", before_ms=before_ms, limit=limit))

    async def next_generations(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, int]:
        """The generations of schedules that are created now; no other transaction can create them until the end."""
        found = await self.rows("next_generation", keys=list(keys), between=BETWEEN)
        return {key: generation for key, generation in found}  # noqa: C416 - rows are no pairs to mypy

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
        """After runs ended, make those of their schedules due that have a run waiting, or no time to be due at."""
        await self.rows("wake_waiting", keys=list(keys), now=now)

    async def without_next_time(self, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of schedules that have no time to be due at."""
        return await self._column("without_next_time", after=after, limit=limit)

    async def count_due(self, now: int, limit: int) -> int:
        """How many schedules are due, counted up to a limit."""
        return int(await self._value("count_due", now=now, limit=limit))

    async def counts_of(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, Counts]:
        """How many runs some schedules started, and how many slots did not start, by reason."""
        started: dict[ScheduleKey, int] = {}
        unstarted: dict[ScheduleKey, dict[Reason, int]] = defaultdict(dict)
        for key, number, reason, count in await self.rows("counts_of", keys=list(keys)):
            started[key] = number
            if reason is not None:
                unstarted[key][Reason(reason)] = count
        return {each: Counts(started=number, unstarted=unstarted[each]) for each, number in started.items()}

    async def wake_at(self) -> int | None:
        """The earliest time at which a schedule is due."""
        found: int | None = await self._value("wake_at")
        return found

    async def next_number(self) -> int:
        """A number that was never given out before: for nodes, triggers and backfills."""
        return int(await self._value("next_number"))

    # Versions of schedules

    async def insert_versions(self, versions: Iterable[Version]) -> None:
        """Keep versions of schedules that an edit replaces."""
        await self.insert(VERSION, list(versions))

    async def versions(self, key: ScheduleKey, limit: int, before: tuple[int, int] = NEWEST) -> list[Version]:
        """Replaced versions of a schedule, newest first; those before one, by its generation and version."""
        generation, version = before
        found = await self.rows("versions", key=key, limit=limit, generation=generation, version=version)
        return [VERSION.decode(row) for row in found]

    async def version_sizes(
        self, key: ScheduleKey, limit: int, before: tuple[int, int] = NEWEST
    ) -> list[tuple[int, int, int]]:
        """The generations and versions of the same versions, and how many bytes of text each has."""
        generation, version = before
        found = await self.rows("version_sizes", key=key, limit=limit, generation=generation, version=version)
        return [(generation, version, size) for generation, version, size in found]

    async def version_at(self, key: ScheduleKey, moment: int) -> Version | None:
        """The version of a schedule that was in force at a moment, if it was replaced at or after it."""
        found = await self.rows("version_at", key=key, at=moment)
        return VERSION.decode(found[0]) if found else None

    async def version_before(self, key: ScheduleKey, moment: int) -> Version | None:
        """The last version of a schedule that was replaced before a moment."""
        found = await self.rows("version_before", key=key, at=moment)
        return VERSION.decode(found[0]) if found else None

    # Runs

    async def open_runs(self, keys: Collection[ScheduleKey]) -> list[Run]:
        """The open runs of some schedules, oldest first, without their inputs (``NOT_READ``)."""
        return [RUN_WITHOUT_INPUT.decode(row) for row in await self.rows("open_runs", keys=list(keys))]

    async def runs(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[Run]:
        """The latest runs of a schedule, newest first; those before one, by its number."""
        found = await self.rows("runs", key=key, limit=limit, before=before)
        return [RUN.decode(row) for row in found]

    async def recent_runs(self, keys: Collection[ScheduleKey], limit: int) -> dict[ScheduleKey, list[Run]]:
        """The latest runs of each of some schedules, newest first."""
        found: dict[ScheduleKey, list[Run]] = {each: [] for each in keys}
        for row in await self.rows("recent_runs", keys=list(keys), limit=limit):
            run = RUN.decode(row)
            found[run.schedule_key].append(run)
        return found

    async def run_sizes(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[tuple[int, int]]:
        """The numbers of the same runs, and how many bytes of text each has."""
        found = await self.rows("run_sizes", key=key, limit=limit, before=before)
        return [(number, size) for number, size in found]

    async def runs_by_id(self, ids: Collection[str]) -> list[Run]:
        """Some runs."""
        return [RUN.decode(row) for row in await self.rows("runs_by_id", ids=list(ids))]

    async def claims_of(self, ids: Collection[str]) -> list[Run]:
        """Some runs, without their inputs: whose claim they are under, and whether they were asked to stop."""
        return [RUN_WITHOUT_INPUT.decode(row) for row in await self.rows("claims_of", ids=list(ids))]

    async def search_runs(
        self, only: LedgerFilter, before: int, least: int, limit: int
    ) -> list[tuple[int, int, int | None]]:
        """The latest runs before one: their numbers, when they were decided, and how many bytes of text those have that match.

        Those that do not match are among them, so that a search examines as many as it wants to.
        """
        found = await self.rows(
            _along(only, "search_runs", "search_owned_runs", "search_runs_of_schedule"),
            before=before, least=least, limit=limit, **_ledger_parameters(only),
        )  # fmt: skip
        return [(number, decided_at_ms, size) for number, decided_at_ms, size in found]

    async def search_ranges(
        self, only: LedgerFilter, before: tuple[int, int], limit: int
    ) -> list[tuple[UnstartedRange, bool]]:
        """The latest unstarted ranges before one, by when it was decided and its number; and whether each matches."""
        before_ms, number = before
        found = await self.rows(
            _along(only, "search_ranges", "search_owned_ranges", "search_ranges_of_schedule"),
            before_ms=before_ms, before=number, limit=limit, **_ledger_parameters(only),
        )  # fmt: skip
        return [(UNSTARTED_RANGE.decode(columns), bool(matches)) for *columns, matches in found]

    async def runs_numbered(self, numbers: Collection[int]) -> list[Run]:
        """Some runs by their numbers, newest first."""
        return [RUN.decode(row) for row in await self.rows("runs_numbered", numbers=list(numbers))]

    async def run_number_at(self, moment: int) -> int:
        """The number of the first run that was decided at a moment or later.

        Nodes decide at the same time, by clocks that differ a little: the runs of the seconds around it may be on either side.
        """
        return int(await self._value("run_number_at", moment=moment))

    async def runs_at(self, key: ScheduleKey, beginning: str) -> list[Run]:
        """The runs of a schedule at a nominal time, oldest first: those whose ids begin as the ids of that time do.

        ``started_at_ms`` is the start of their first attempt that began.
        """
        # The rest of an id is hexadecimal: in every collation, none of its characters comes after an f.
        found = await self.rows("runs_at", key=key, from_id=beginning, to_id=f"{beginning}g")
        return [
            msgspec.structs.replace(RUN.decode(columns), started_at_ms=started_at_ms)
            for *columns, started_at_ms in found
        ]

    async def claimed(self, epochs: Collection[int], limit: int) -> list[Run]:
        """The runs that some nodes have claimed and not finished, oldest first, without their inputs."""
        found = await self.rows("claimed", epochs=list(epochs), limit=limit)
        return [RUN_WITHOUT_INPUT.decode(row) for row in found]

    async def stopping(self, epoch: int) -> list[Run]:
        """The runs of a node that were asked to stop, without their inputs."""
        return [RUN_WITHOUT_INPUT.decode(row) for row in await self.rows("stopping", epoch=epoch)]

    async def waiting_for_node(self, before: int, limit: int) -> list[tuple[ScheduleKey, str]]:
        """Schedules and actions whose runs have waited for a node since before a moment."""
        found = await self.rows("waiting_for_node", before=before, limit=limit)
        return [(key, action) for key, action in found]

    async def is_node(self, epoch: int, now: int) -> bool:  # noqa: ARG002 - a store with a clock of its own compares it
        """Whether a node is registered and alive; it cannot be removed until the end. Raises if its clock is off."""
        return bool(await self.rows("is_node", epoch=epoch))

    async def open_counts(self, keys: Collection[ScheduleKey]) -> dict[tuple[ScheduleKey, Status], int]:
        """How many open runs some schedules have, by status."""
        found = await self.rows("open_counts", keys=list(keys))
        return {(key, Status(status)): count for key, status, count in found}

    async def count_open(self, limit: int) -> dict[Status, int]:
        """How many runs are open, by status, counted up to a limit."""
        return {Status(status): count for status, count in await self.rows("count_open", limit=limit)}

    async def count_triggers(self, key: ScheduleKey, limit: int) -> int:
        """How many triggers of a schedule wait, counted up to a limit."""
        return int(await self._value("count_triggers", key=key, limit=limit))

    async def count_waiting(self, key: ScheduleKey, limit: int) -> int:
        """How many automatic starts of a schedule wait, counted up to a limit."""
        return int(await self._value("count_waiting", key=key, limit=limit))

    async def insert_runs(self, runs: Iterable[Run]) -> None:
        """Insert new runs. A slot is unique: inserting it twice is an error."""
        created = list(runs)
        await self.insert(RUN, created)
        self._note_ended(created)

    async def update_runs(self, runs: Iterable[Run]) -> None:
        """Update runs that no node works on: released, claimed, or ended without a start."""
        changed = list(runs)
        await self.write(
            "update_run",
            [
                {
                    "id": run.id, "status": run.status, "reason": run.reason, "attempt": run.attempt,
                    "epoch": run.epoch, "started_at_ms": run.started_at_ms, "ended_at_ms": run.ended_at_ms,
                }
                for run in changed
            ],
        )  # fmt: skip
        self._note_ended(changed)

    def _note_ended(self, runs: Iterable[Run]) -> None:
        if self.unstarted is not None:
            self.unstarted += [run for run in runs if run.status not in OPEN]

    async def ask_to_stop(self, runs: Iterable[Run]) -> int:
        """Ask runs to stop, for their nodes to see; return how many of them are running."""
        return await self.write(
            "ask_to_stop", [{"id": run.id, "stop": run.stop, "reason": run.reason} for run in runs]
        )

    async def finish(self, outcomes: Iterable[Outcome]) -> int:
        """Write the outcomes of attempts under their claims. A stale claim writes nothing; return how many were written."""
        succeeded: list[dict[str, Any]] = []
        handed_off: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        for each in outcomes:
            if each.status is Status.SUCCEEDED:
                succeeded.append(
                    {
                        "run_id": each.run_id, "epoch": each.epoch, "attempt": each.attempt,
                        "started_at_ms": each.started_at_ms, "ended_at_ms": each.ended_at_ms, "result": each.result,
                    }
                )  # fmt: skip
            else:
                row = _asdict(each)
                row["ended_at_ms"] = None if each.status is Status.RETRYING else each.ended_at_ms
                (handed_off if each.status is Status.RUNNING else others).append(row)
        return (
            await self.write("succeed", succeeded)
            + await self.write("hand_off", handed_off)
            + await self.write("finish", others)
        )

    # Reports of external workers

    async def keep_token(self, run: Run, token_hash: str) -> bool:
        """Accept reports on an attempt with a token; ``False`` if its claim is stale."""
        row = {"run_id": run.id, "epoch": run.epoch, "attempt": run.attempt, "token_hash": token_hash}
        return bool(await self.write("keep_token", [row]))

    async def reportable_run(self, run_id: str) -> ReportableRun | None:
        """A run, with what a report on it must bring."""
        found = await self.rows("reportable_run", id=run_id)
        return _reportable(RUN, found[0]) if found else None

    async def overdue_reports(self, now: int, limit: int) -> list[ReportableRun]:
        """Runs whose external worker should have reported, the longest overdue first, without their inputs."""
        found = await self.rows("overdue_reports", now=now, limit=limit)
        return [_reportable(RUN_WITHOUT_INPUT, row) for row in found]

    async def expect_reports(self, runs: Iterable[tuple[Run, int]]) -> None:
        """Set when reports on runs are due; a run that was asked to stop gets no more time."""
        rows = [{"id": run.id, "attempt": run.attempt, "report_by_ms": by} for run, by in runs]
        await self.write("expect_report", rows)

    # The rest of the ledger: attempts, checkpoints, last outcomes, slots that did not start

    async def insert_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Keep attempts that did not succeed."""
        await self.write("insert_attempt", [ATTEMPT.parameters(each) for each in attempts])

    async def attempts(self, run_id: str, limit: int) -> list[Attempt]:
        """The latest attempts of a run that did not succeed, in order."""
        return [ATTEMPT.decode(row) for row in await self.rows("attempts", id=run_id, limit=limit)]

    async def save_checkpoints(self, saved: Sequence[tuple[Run, Mapping[str, str]]], now: int) -> list[bool]:
        """Save values of attempts by key, as JSON; returns of each attempt whether its claim was fresh. A stale one saves nothing.

        Of values under one key of one attempt the last is kept. Runs are locked in the order of their ids.
        """
        rows: dict[tuple[str, int, str], dict[str, Any]] = {}
        for run, values in sorted(saved, key=lambda each: each[0].id):
            for key, value in values.items():
                rows[run.id, run.attempt, key] = {
                    "run_id": run.id, "epoch": run.epoch, "attempt": run.attempt, "key": key, "value": value, "saved_at_ms": now,
                }  # fmt: skip
        if await self.write("save_checkpoints", list(rows.values())) == len(rows):
            return [True] * len(saved)
        found = await self.claims_of({run.id for run, _ in saved})
        held = {(each.id, each.epoch, each.attempt) for each in found if each.status is Status.RUNNING}
        return [(run.id, run.epoch, run.attempt) in held for run, _ in saved]

    async def checkpoints(self, run_ids: Collection[str]) -> list[Checkpoint]:
        """What attempts of some runs saved, each run's in the order in which it was saved."""
        return [CHECKPOINT.decode(row) for row in await self.rows("checkpoints", ids=list(run_ids))]

    async def write_logs(self, batches: Iterable[LogBatch]) -> None:
        """Write what attempts logged; a stale claim writes nothing. Chunks that were written before are left as they are."""
        written = list(batches)
        for of_flows, statement in ((False, "append_log"), (True, "append_flow_log")):
            rows = [
                {**ATTEMPT_LOG.parameters(chunk), "epoch": each.epoch}
                for each in written
                if each.flow is of_flows
                for chunk in each.chunks
            ]
            await self.write(statement, rows)
        for each in written:
            if each.dropped:
                await self.rows(
                    "drop_flow_log" if each.flow else "drop_log", run_id=each.run_id, epoch=each.epoch,
                    attempt=each.attempt, numbers=list(each.dropped),
                )  # fmt: skip

    async def log(self, run_id: str, after: tuple[int, int], last: int, limit: int) -> list[LogChunk]:
        """A page of a run's log, up to the attempt ``last``; after a line, by its attempt and number."""
        attempt, number = after
        found = await self.rows("log", run_id=run_id, attempt=attempt, number=number, last=last, limit=limit)
        return [ATTEMPT_LOG.decode(row) for row in found]

    async def log_sizes(self, run_id: str, after: tuple[int, int], last: int, limit: int) -> list[int]:
        """How many bytes of text the chunks of the same page have."""
        attempt, number = after
        return await self._column(
            "log_sizes", run_id=run_id, attempt=attempt, number=number, last=last, limit=limit
        )

    async def last_outcomes(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, LastOutcome]:
        """What the latest runs of some schedules left to the next; a schedule whose runs left nothing may be missing."""
        found = await self.rows("last_outcomes", keys=list(keys))
        return {each.schedule_key: each for each in map(LAST_OUTCOME.decode, found)}

    async def keep_last_outcomes(self, ended: Iterable[tuple[Run, Outcome]]) -> None:
        """Keep what runs leave to the next; a schedule that was created again inherits nothing."""
        successes: dict[tuple[ScheduleKey, int], str | None] = {}
        failures: dict[tuple[ScheduleKey, int], str] = {}
        for run, outcome in ended:
            key = (run.schedule_key, run.generation)
            if outcome.status is Status.SUCCEEDED:
                successes[key] = outcome.result if outcome.result != "null" else None
                failures.pop(key, None)
            else:
                failures[key] = outcome.failure or outcome.reason
        results = [_left(key, result=text) for key, text in successes.items() if text is not None]
        await self.write("put_last_result", results)
        await self.write(
            "clear_last_outcome", [_left(key) for key, text in successes.items() if text is None]
        )
        # After the results: a failure that follows a success is stored too, and keeps the success's result.
        await self.write("put_last_failure", [_left(key, failure=text) for key, text in failures.items()])

    async def insert_unstarted_ranges(self, ranges: Iterable[UnstartedRange]) -> None:
        """Keep ranges of slots that did not start; one that continues the latest of its schedule is joined to it."""
        added = list(ranges)
        rows = [UNSTARTED_RANGE.parameters(each) | {"before_ms": each.before_ms} for each in added]
        await self.write("continue_unstarted_range", rows)
        await self.write("insert_unstarted_range", rows)
        if self.unstarted is not None:
            self.unstarted += added

    async def unstarted_ranges(
        self, key: ScheduleKey, limit: int, before: int = NEWEST[0]
    ) -> list[UnstartedRange]:
        """The latest ranges of a schedule's slots that did not start, newest first; those before one, by its number."""
        found = await self.rows("unstarted_ranges", key=key, limit=limit, before=before)
        return [UNSTARTED_RANGE.decode(row) for row in found]

    async def unstarted_at(self, key: ScheduleKey, nominal_ms: int) -> UnstartedRange | None:
        """The latest range of a schedule that a nominal time lies in, whether or not it is one of its slots."""
        found = await self.rows("unstarted_at", key=key, nominal_ms=nominal_ms)
        return UNSTARTED_RANGE.decode(found[0]) if found else None

    async def latest_outcomes(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, LatestOutcome]:
        """What became of the slot of each of some schedules that was decided last; one that has had none is missing."""
        latest: dict[ScheduleKey, LatestOutcome] = {}
        for key, status, *rest in await self.rows("latest_outcomes", keys=list(keys)):
            found = LatestOutcome(Status(status), *rest)
            if key not in latest or found.decided_at_ms > latest[key].decided_at_ms:
                latest[key] = found
        return latest

    # Backfills

    async def insert_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Insert new backfills."""
        await self.insert(BACKFILL, list(backfills))

    async def update_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Update the progress of backfills that are open; ended ones do not change."""
        await self.write("update_backfill", [BACKFILL.parameters(each) for each in backfills])

    async def open_backfills(self, keys: Collection[ScheduleKey]) -> list[Backfill]:
        """The open backfills of some schedules, oldest first."""
        return [BACKFILL.decode(row) for row in await self.rows("open_backfills", keys=list(keys))]

    async def count_open_backfills(self, key: ScheduleKey, limit: int) -> int:
        """How many backfills of a schedule are open, counted up to a limit."""
        return int(await self._value("count_open_backfills", key=key, limit=limit))

    async def backfills(self, key: ScheduleKey, limit: int, before: int = NEWEST[0]) -> list[Backfill]:
        """The latest backfills of a schedule, newest first; those before one, by its number."""
        found = await self.rows("backfills", key=key, limit=limit, before=before)
        return [BACKFILL.decode(row) for row in found]

    async def backfill_sizes(
        self, key: ScheduleKey, limit: int, before: int = NEWEST[0]
    ) -> list[tuple[int, int]]:
        """The numbers of the same backfills, and how many bytes of text each has."""
        found = await self.rows("backfill_sizes", key=key, limit=limit, before=before)
        return [(number, size) for number, size in found]

    async def backfill(self, backfill_id: str) -> Backfill | None:
        """One backfill."""
        found = await self.rows("backfill", id=backfill_id)
        return BACKFILL.decode(found[0]) if found else None

    # Shared calendars: an owner's own, or public if the owner is empty

    async def calendars(self, owner: str | None, after: tuple[str, str], limit: int) -> list[StoredCalendar]:
        """A page of shared calendars by name and owner: an owner's and the public ones, or all if it is ``None``."""
        name, whose = after
        found = await self.rows("calendars", owner=owner, after_name=name, after_owner=whose, limit=limit)
        return [CALENDAR.decode(row) for row in found]

    async def calendar_sizes(self, owner: str | None, after: tuple[str, str], limit: int) -> list[int]:
        """How many bytes of text the calendars of the same page have."""
        name, whose = after
        return await self._column(
            "calendar_sizes", owner=owner, after_name=name, after_owner=whose, limit=limit
        )

    async def calendars_named(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """The shared calendars of some names that an owner can use: the public ones, then the owner's own."""
        found = await self.rows("calendars_named", names=list(names), owner=owner)
        return [CALENDAR.decode(row) for row in found]

    async def lock_calendars_named(self, names: Collection[str], owner: str) -> list[StoredCalendar]:
        """The same calendars; no other transaction can change or delete them until the end."""
        found = await self.rows("lock_calendars_named", names=list(names), owner=owner)
        return [CALENDAR.decode(row) for row in found]

    async def count_calendars(self, owner: str, limit: int) -> int:
        """How many shared calendars an owner has, counted up to a limit."""
        return int(await self._value("count_calendars", owner=owner, limit=limit))

    async def put_calendar(self, calendar: StoredCalendar) -> None:
        """Insert or replace a shared calendar."""
        await self.write("put_calendar", [CALENDAR.parameters(calendar)])

    async def delete_calendar(self, owner: str, name: str) -> bool:
        """Delete a shared calendar; ``False`` if there is none."""
        return bool(await self.rows("delete_calendar", owner=owner, name=name))

    # Workflows: versions that never change; an owner's own, or of all owners if the owner is empty

    async def lock_workflow(self, owner: str, workflow_id: str) -> None:
        """Let no other transaction deploy a version of a workflow until the end."""
        await self.rows("lock_workflow", name=f"{owner}\n{workflow_id}")

    async def insert_workflow(self, workflow: StoredWorkflow) -> bool:
        """Insert a version of a workflow; ``False``, without a change, if it is there."""
        return bool(await self.write("insert_workflow", [WORKFLOW.parameters(workflow)]))

    async def workflow(
        self, owner: str, workflow_id: str, version: int | None = None
    ) -> StoredWorkflow | None:
        """A version of a workflow that an owner can use, or the latest: their own, or else that of all owners."""
        found = await self.rows("workflow", owner=owner, workflow_id=workflow_id, version=version)
        return WORKFLOW.decode(found[0]) if found else None

    async def workflows(
        self, owner: str | None, after: tuple[str, str, int], limit: int
    ) -> list[tuple[str, str, int, int]]:
        """A page of versions of workflows by id, owner and version, and when each was deployed: an owner's and those of all
        owners, or everything if it is ``None``.
        """
        after_id, after_owner, after_version = after
        found = await self.rows(
            "workflows", owner=owner, after_id=after_id, after_owner=after_owner, after_version=after_version, limit=limit
        )  # fmt: skip
        return [(workflow_id, whose, version, at) for workflow_id, whose, version, at in found]

    async def count_workflows(self, owner: str, limit: int) -> int:
        """How many versions of workflows an owner has, counted up to a limit."""
        return int(await self._value("count_workflows", owner=owner, limit=limit))

    # Retention

    async def known_keys(self, after: ScheduleKey, limit: int) -> list[ScheduleKey]:
        """A page of the keys of all schedules that there ever were; deleted ones have a ledger too."""
        return await self._column("known_keys", after=after, limit=limit)

    async def prune(self, bounds: Iterable[RetentionBounds]) -> int:
        """Delete what is beyond the retention of some schedules; return how many rows were deleted."""
        rows = [_asdict(each) for each in bounds]
        names = ("prune_runs", "prune_unstarted_ranges", "prune_backfills", "prune_versions")
        return sum([await self.write(name, rows) for name in names])


def _parameters(only: Filter) -> dict[str, Any]:
    """The parameters of a statement that takes a filter."""
    found = _asdict(only)
    if only.owner is None:
        del found["owner"]
    return found


def _along(only: LedgerFilter, everything: str, of_owner: str, of_schedule: str) -> str:
    """The statement that reads the part of the ledger that a search is about, along an index."""
    if only.schedule_key is not None:
        return of_schedule
    return of_owner if only.owner else everything


def _after(key: ScheduleKey) -> dict[str, str]:
    """The parameters of a statement that begins after a schedule, in the order of ids and owners."""
    owner, schedule_id = owner_and_id(key)
    return {"after_id": schedule_id, "after_owner": owner}


def _ledger_parameters(only: LedgerFilter) -> dict[str, Any]:
    return _asdict(only) | {"statuses": list(only.statuses)}


def _due(schedule: Schedule, next_at_ms: int | None) -> Due:
    return Due(schedule_key=schedule.key, cursor_ms=schedule.cursor_ms, next_at_ms=next_at_ms)


def _reportable(table: Table[Run], row: Row) -> ReportableRun:
    *columns, token_hash, report_by_ms = row
    return ReportableRun(table.decode(columns), token_hash, report_by_ms)


def _left(lane: tuple[ScheduleKey, int], **outcome: str) -> dict[str, Any]:
    key, generation = lane
    return {"schedule_key": key, "generation": generation, **outcome}


HasClaims = Callable[[Transaction, int], Awaitable[bool]]
"""Whether a node has claimed attempts that have no result yet, by its epoch."""
S = TypeVar("S", bound="Store")
Observe = Callable[
    [], AbstractContextManager[tuple[list[tuple[AttemptResult, Outcome]], list[Run | UnstartedRange]]]
]


def observed(
    begin: Callable[[S], AsyncIterator[Transaction]],
) -> Callable[[S], AbstractAsyncContextManager[Transaction]]:
    """Decorate how a store begins transactions: observers see each, ``on_commit`` is called after the commit, and the log says
    when the database goes away and when it answers again.
    """
    begun = asynccontextmanager(begin)

    @asynccontextmanager
    @wraps(begin)
    async def transaction(store: S) -> AsyncIterator[Transaction]:
        try:
            if store.observe is None:
                async with begun(store) as made:
                    yield made
            else:
                with store.observe() as gathered:
                    async with begun(store) as made:
                        made.recorded, made.unstarted = gathered
                        yield made
        except (StoreUnavailableError, ClockOffError) as error:
            store.tell_trouble(error)
            raise
        if store.is_away:
            store.tell_recovery()
        for tell in made.on_commit:
            tell()

    return transaction


class Store(ABC):
    """A database. It is opened once, and closed."""

    dialect: str
    """What kind of database it is: ``postgresql`` or ``sqlite``."""
    is_away: bool = False
    """Whether the database did not answer, or this machine's clock was off, when it was last used."""
    observe: Observe | None = None
    """A context around every transaction, for observers of how long each takes and of what it commits."""
    lease: float | None = None
    """How many seconds a node is alive without renewing its lease; ``None`` if it needs no lease."""
    parallel_batches: int = 1
    """How many batches a node decides at the same time; with 1, transactions wait for each other."""
    batch: int = 1000
    """How many schedules are decided in one transaction."""

    @abstractmethod
    async def open(self, wake: Callable[..., None], *, setup: bool = True) -> None:
        """Connect, and migrate the schema. ``wake`` is called when another node changed something.

        Without ``setup`` nothing is created or migrated: a database that has no Horae or one of another version is an error.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release all connections and locks."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that writes. It commits at the end; an exception rolls it back."""

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction that only reads: it waits for no writer, and no writer waits for it."""
        return self.transaction()

    @abstractmethod
    async def register_node(self, node: Node) -> bool:
        """Register a node, or update it; ``False``, without a change, if another living node has its name."""

    @abstractmethod
    async def renew(self, epoch: int) -> bool:
        """Renew the lease of a node; ``False`` if it has expired, so that other nodes may have taken its runs."""

    @abstractmethod
    async def nodes(self) -> list[Node]:
        """All registered nodes, and whether each is alive."""

    @abstractmethod
    async def change_mark(self) -> object:
        """A value that differs once another process has changed what readers see; cheap, so that it can be asked each second."""

    @abstractmethod
    async def deregister(self, epochs: Collection[int], has_claims: HasClaims) -> None:
        """Remove nodes that are dead or shutting down, except those that have claims."""

    def tell_trouble(self, error: StoreUnavailableError | ClockOffError) -> None:
        """Log that the database cannot be used: once, and not on every retry."""
        if not self.is_away:
            self.is_away = True
            _log.error("%s", error.for_operator)

    def tell_recovery(self) -> None:
        """Log that it can be used again."""
        self.is_away = False
        _log.info("the database answers again")

    @property
    def gone(self) -> bool:
        """Whether the database that was opened was deleted or replaced, so that nothing can be decided on it."""
        return False

    async def has_newer_schema(self) -> bool:
        """Whether a newer program has migrated the schema since this one opened it."""
        return False

    async def prove(self, epoch: int) -> None:
        """Prove that the database can be written: take space in the row of a node, and release it."""
        async with self.transaction() as transaction:
            await transaction.rows("widen_node", epoch=epoch, filler=_FILLER)
            await transaction.rows("narrow_node", epoch=epoch, filler=len(_FILLER))

    @abstractmethod
    async def time(self) -> int | None:
        """The database's own time, which all nodes share; ``None`` if it has none."""

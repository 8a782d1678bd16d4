"""The composition root: a database, a clock, actions, and the engine that brings them together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from horae.clock import Clock, SystemClock
from horae.engine.engine import Engine
from horae.errors import (
    DatabaseUrlError,
    ScheduleExistsError,
    ScheduleNotFoundError,
    StoreUnavailableError,
    UnknownActionError,
)
from horae.executor.function import ActionFunction, FunctionExecutor
from horae.model import Action, OnResume, Overlap, PassedOver, Policies, Reason, Run, Schedule, State, Status
from horae.policy.decide import run_id
from horae.policy.due import pass_over
from horae.spec import Spec
from horae.store.port import Store

TICK = 1.0
"""Seconds. The longest that a change made by another process goes unnoticed."""

HOUSEKEEPING = 3.0
"""Seconds between renewals of the node's life, and looks for runs that dead nodes left."""

F = TypeVar("F", bound=ActionFunction)


class App:
    """A scheduler in a program: register actions, create schedules, run.

    ``database`` is ``sqlite:///path``, ``postgresql://…`` or ``:memory:``. Use it as an async context manager.
    """

    def __init__(self, database: str = "sqlite:///horae.db", *, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._actions: dict[str, ActionFunction] = {}
        self._woken = asyncio.Event()
        self._offset = 0  # what the store's own clock is ahead of ours
        self._store = _store(database)
        self.executor = FunctionExecutor(self._actions, self.wake)
        self.engine = Engine(self._store, self.executor)
        self.schedules = Schedules(self._store, self.now, self._actions, self.wake)
        self.runs = Runs(self._store)

    def now(self) -> int:
        """The present, in milliseconds, by the clock that all nodes share."""
        return int(self.clock.now().timestamp() * 1000) + self._offset

    def wake(self) -> None:
        """Something changed: do not sleep on."""
        self._woken.set()

    def action(self, name: str) -> Callable[[F], F]:
        """Register a function under a name, for schedules to refer to."""

        def register(function: F) -> F:
            self._actions[name] = function
            return function

        return register

    async def __aenter__(self) -> Self:
        await self._store.open(self.wake)
        await self._set_clock()
        await self.engine.join(self.now())
        return self

    async def _set_clock(self) -> None:
        if (shared := await self._store.time()) is not None:
            self._offset += shared - self.now()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.engine.drain(self.now())
        await self.close()

    async def close(self) -> None:
        """Let go of the database without waiting for anything."""
        await self._store.close()

    async def run(self) -> None:
        """Keep time until cancelled; what is running then is waited for when the context ends."""
        kept = self.now()
        while True:
            self._woken.clear()
            try:
                if self.now() - kept >= HOUSEKEEPING * 1000:
                    await self._set_clock()
                    kept = self.now()
                    await self.engine.keep_house(kept)
                wake = await self.engine.step(self.now())
            except StoreUnavailableError:
                # Nothing is decided while the store is away, and nothing is forgotten: try again.
                wake = None
            pause = TICK if wake is None else min(max(wake - self.now(), 0) / 1000, TICK)
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                continue


def _store(database: str) -> Store:
    """The store of an address; its driver loads when it is asked for."""
    if database.startswith(("postgresql://", "postgres://")):
        from horae.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(database)
    from horae.store.sqlite import SqliteStore  # noqa: PLC0415

    if database == ":memory:":
        return SqliteStore(":memory:", inline=True)
    if database.startswith("sqlite:///") and len(database) > len("sqlite:///"):
        return SqliteStore(database.removeprefix("sqlite:///"))
    raise DatabaseUrlError(database)


class Schedules:
    """The schedules of an app: create, look at, change, trigger."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], int],
        actions: Mapping[str, ActionFunction],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._now = now
        self._actions = actions
        self._wake = wake

    async def create(
        self,
        schedule_id: str,
        spec: Spec | str | Mapping[str, Any],
        action: str,
        *,
        input: Any = None,  # noqa: A002, ANN401 - the word that users know; any JSON
        policies: Policies | None = None,
        paused: bool = False,
        limited_actions: int | None = None,
    ) -> Schedule:
        """Create a schedule; it fires from now on. A string is a cron expression in UTC."""
        if action not in self._actions:
            raise UnknownActionError(action, list(self._actions))
        now = self._now()
        async with self._store.transaction() as transaction:
            if await transaction.schedules([schedule_id]):
                raise ScheduleExistsError(schedule_id)
            schedule = Schedule(
                id=schedule_id,
                incarnation=await transaction.next_incarnation(schedule_id),
                spec=_canonical(spec),
                action=Action(name=action, input=input),
                policies=policies or Policies(),
                state=State(paused=paused, remaining=limited_actions),
                token=1,
                cursor=now // 1000,
                created_at=now,
                updated_at=now,
            )
            await transaction.put_schedule(schedule, now)
            await transaction.notify()
        self._wake()
        return schedule

    async def describe(self, schedule_id: str) -> Schedule:
        """A schedule as it stands."""
        async with self._store.transaction() as transaction:
            found = await transaction.schedules([schedule_id])
        if not found:
            raise ScheduleNotFoundError(schedule_id)
        return found[0]

    async def list(self, after: str = "", limit: int = 100) -> list[Schedule]:
        """A page of schedules in the order of their ids."""
        async with self._store.transaction() as transaction:
            return await transaction.all_schedules(after, min(limit, 1000))

    async def update(self, schedule_id: str, spec: Spec | str | Mapping[str, Any]) -> Schedule:
        """Give a schedule another spec, from now on; what waits is kept."""
        document = _canonical(spec)
        now = self._now()
        return await self._change(
            schedule_id,
            lambda s: msgspec.structs.replace(s, spec=document, cursor=max(s.cursor, now // 1000)),
        )

    async def pause(self, schedule_id: str, note: str = "") -> Schedule:
        """Start nothing automatic until resumed; running runs go on, triggers work."""
        return await self._change(
            schedule_id,
            lambda s: msgspec.structs.replace(
                s, state=msgspec.structs.replace(s.state, paused=True, note=note, paused_until=None)
            ),
        )

    async def resume(self, schedule_id: str, note: str = "") -> Schedule:
        """Go on; what fell due in the pause is caught up with or skipped, by policy."""
        now = self._now()
        async with self._store.transaction() as transaction:
            schedule = _one(await transaction.schedules([schedule_id]), schedule_id)
            cursor = schedule.cursor
            if schedule.state.paused and schedule.policies.on_resume is OnResume.SKIP:
                spec = Spec.parse(schedule.spec)
                due = pass_over(spec, schedule.id, cursor, now, Reason.PAUSED)
                cursor = due.cursor
                await transaction.insert_passed(
                    PassedOver(
                        schedule_id=schedule.id, incarnation=schedule.incarnation, first=p.first, last=p.last,
                        count=p.count, status=Status.SKIPPED, reason=p.reason, decided_at=now,
                    )
                    for p in due.passed
                )  # fmt: skip
            state = msgspec.structs.replace(schedule.state, paused=False, note=note, paused_until=None)
            changed = msgspec.structs.replace(
                schedule, state=state, cursor=cursor, token=schedule.token + 1, updated_at=now
            )
            await transaction.put_schedule(changed, now)
            await transaction.notify()
        self._wake()
        return changed

    async def trigger(
        self,
        schedule_id: str,
        *,
        overlap: Overlap | None = None,
        input: Any = msgspec.UNSET,  # noqa: A002, ANN401 - the word that users know; any JSON
    ) -> str:
        """Start a run now, whatever the spec says; the answer is the run's id."""
        now = self._now()
        async with self._store.transaction() as transaction:
            schedule = _one(await transaction.schedules([schedule_id]), schedule_id)
            origin = f"trigger:{await transaction.next_number()}"
            run = Run(
                id=run_id(schedule.id, schedule.incarnation, now // 1000, origin),
                schedule_id=schedule.id,
                incarnation=schedule.incarnation,
                nominal=now // 1000,
                origin=origin,
                overlap=overlap or schedule.policies.overlap,
                status=Status.PENDING,
                fire_at=now,
                start_at=now,
                input=schedule.action.input if input is msgspec.UNSET else input,
            )
            await transaction.insert_runs([run])
            await transaction.look_now([schedule_id], now)
            await transaction.notify()
        self._wake()
        return run.id

    async def delete(self, schedule_id: str) -> None:
        """Remove a schedule; its runs stay in the ledger."""
        async with self._store.transaction() as transaction:
            _one(await transaction.schedules([schedule_id]), schedule_id)
            waiting = [r for r in await transaction.open_runs([schedule_id]) if r.status is Status.PENDING]
            now = self._now()
            await transaction.update_runs(
                msgspec.structs.replace(r, status=Status.DROPPED, reason=Reason.DELETED, ended_at=now)
                for r in waiting
            )
            await transaction.delete_schedule(schedule_id)

    async def _change(self, schedule_id: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        now = self._now()
        async with self._store.transaction() as transaction:
            schedule = change(_one(await transaction.schedules([schedule_id]), schedule_id))
            changed = msgspec.structs.replace(schedule, token=schedule.token + 1, updated_at=now)
            await transaction.put_schedule(changed, now)
            await transaction.notify()
        self._wake()
        return changed


class Runs:
    """The ledger: what became of slots."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def passed_over(self, schedule_id: str, limit: int = 20) -> list[PassedOver]:
        """The latest ranges of slots that did not run, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.passed_over(schedule_id, min(limit, 1000))

    async def list(self, schedule_id: str, limit: int = 20) -> list[Run]:
        """The latest runs of a schedule, newest first."""
        async with self._store.transaction() as transaction:
            return await transaction.runs(schedule_id, min(limit, 1000))


def _one(found: list[Schedule], schedule_id: str) -> Schedule:
    if not found:
        raise ScheduleNotFoundError(schedule_id)
    return found[0]


def _canonical(spec: Spec | str | Mapping[str, Any]) -> str:
    if isinstance(spec, str):
        spec = Spec.cron(spec)
    elif not isinstance(spec, Spec):
        spec = Spec.parse(spec)
    return msgspec.json.encode(spec.document).decode()

"""The schedules that a program defines beside its functions: checked at the definition, stored when the program starts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import PurePath
from types import FrameType
from typing import Any, TypeVar

import msgspec

from horae.app.bulk import BATCH, change_batch
from horae.app.decorator_options import CatchUpLike, Times, policies_of, spec_of
from horae.app.field_checks import stored_json
from horae.app.operation_arguments import checked_call, needs_parentheses
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_draft import NewSchedule, calendar_names, draft, shared_calendars
from horae.app.schedule_edits import Edit
from horae.app.schedule_fields import SpecLike, Words
from horae.app.schedule_warnings import Place, calling_place, warn_of_specs, warn_program
from horae.app.schedules import Schedules
from horae.errors import (
    DefinitionConflictError,
    InvalidInputError,
    ScheduleExistsError,
    ScheduleNotFoundError,
)
from horae.executor.function_arguments import ActionFunction, name_of, read_signature
from horae.model import Schedule, ScheduleKey, owner_and_id
from horae.policies import Overlap, OverlapName, Policies, PolicyFields
from horae.policy.face_defaults import PROGRAM
from horae.spec import SharedCalendar
from horae.spec.duration import Duration
from horae.spec.zone import ZoneLike
from horae.store.port import BEGINNING

F = TypeVar("F", bound=ActionFunction)
DEFINED = ("spec", "action", "policies", "description", "tags")
"""The fields that a definition determines. Other changes by an operator, such as a pause and its note, stay."""
_replace = msgspec.structs.replace


class Program:
    """The definitions of one program, and what is stored of them."""

    def __init__(self, name: str, scope: OwnerScope) -> None:
        self.name = name
        self.definitions: dict[str, NewSchedule] = {}
        self.running = False
        """Whether the app keeps time: then it is too late for definitions."""
        self.unstored = False
        """Whether there are definitions that the database may not have."""
        self._places: dict[str, Place] = {}
        """The lines of the program that define them."""
        self._scope = scope

    @property
    def label(self) -> str:
        """The manager that the stored schedules name."""
        return f"program:{self.name}"

    @needs_parentheses('write @app.schedule("0 9 * * *"), or @app.schedule(every="5m")')
    @checked_call
    def schedule(
        self,
        spec: SpecLike | None = None,
        *,
        every: Duration | None = None,
        at: Times | None = None,
        timezone: ZoneLike | None = None,
        id: str | None = None,  # noqa: A002 - the word that users know
        input: Any = None,  # noqa: A002, ANN401 - any JSON
        retries: int | None = None,
        overlap: Overlap | OverlapName | None = None,
        catch_up: CatchUpLike | None = None,
        timeout: Duration | None = None,
        description: str = "",
        tags: Words = (),
        policies: Policies | PolicyFields | None = None,
    ) -> Callable[[F], F]:
        """Register a function as an action, and define a schedule for it, which is stored when the app starts.

        ``spec`` is a cron expression, a document or a ``Spec``; ``every`` and ``at`` are alternatives to it. ``id`` defaults to the
        function's name. A mapping of ``policies`` changes some defaults, ``Policies`` replace all; the named options come on top.
        """
        found = spec_of(spec, every, at, timezone)
        chosen = policies_of(
            PROGRAM, policies, retries=retries, overlap=overlap, catch_up=catch_up, timeout=timeout
        )

        def define(function: F) -> F:
            action = self._scope.executors.name_for(function)
            self._scope.executors.register(action, function)
            new = NewSchedule(
                id=name_of(function) if id is None else id, spec=found, action=action, input=stored_json(input), policies=chosen,
                description=description, tags=tags, managed_by=self.label,
            )  # fmt: skip
            self._check(new, function)
            self.definitions[new.id], self._places[new.id] = new, calling_place()
            self.unstored = True
            return function

        return define

    def _check(self, new: NewSchedule, function: ActionFunction) -> None:
        """Refuse a definition that could not be stored, or whose function could not be called with its input."""
        if self.running:
            raise InvalidInputError(
                "schedule",
                f'"{new.id}" is defined too late: the app is running',
                hint="define it before the app runs",
            )
        if new.id in self.definitions:
            reason = f'is that of another schedule of this program: "{new.id}"'
            raise InvalidInputError("id", reason, hint="give each its own id=…")
        read_signature(new.action, function).keywords(new.input)
        action = self._scope.executors.read(new.action)
        if (doubt := self._scope.executors.doubt(_replace(action, input=new.input))) is not None:
            warn_program(new.id, doubt)
        # The contents of shared calendars are in the database.
        calendars = {name: SharedCalendar() for name in calendar_names(new.spec)}
        draft(new, action, self._scope, self._scope.now(), calendars)

    def adopt(self, other: Program) -> None:
        """Take over the definitions of another app of this process; if it has any, also its name."""
        if other.definitions:
            self.name = other.name
            self.definitions |= {
                each.id: _replace(each, managed_by=self.label) for each in other.definitions.values()
            }
            self._places |= other._places
            self.unstored = True

    async def store(self) -> None:
        """Create the defined schedules, update those whose definitions changed, and mark those that are no longer defined."""
        owners = {schedule_id: owner for owner, schedule_id in await self._stored()}
        for new in self.definitions.values():
            # One that was handed over to this program keeps its owner.
            await self._put(_replace(new, owner=owners.get(new.id, "")))

        def mark(schedule: Schedule, _: int) -> tuple[Schedule, tuple[()]]:
            gone = schedule.id not in self.definitions
            return _replace(schedule, state=_replace(schedule.state, orphaned=gone)), ()

        async for keys in self._batches():
            await change_batch(self._scope, keys, mark)
        self.unstored = False

    async def _batches(self) -> AsyncIterator[list[ScheduleKey]]:
        """The keys of the schedules that this program defines or has defined, in batches."""
        after = BEGINNING
        while True:
            async with self._scope.store.reading() as transaction:
                keys = await transaction.managed_keys(self.label, after, BATCH)
            if not keys:
                return
            yield keys
            after = keys[-1]

    async def _stored(self) -> list[tuple[str, str]]:
        """The owners and ids of the same schedules; those without an owner, as programs create them, come last."""
        keys = [key async for batch in self._batches() for key in batch]
        return sorted(map(owner_and_id, keys), reverse=True)

    def _schedules(self, owner: str) -> Schedules:
        return Schedules(self._scope.for_owner(owner))

    async def _put(self, new: NewSchedule) -> None:
        schedules = self._schedules(new.owner)
        async with self._scope.store.reading() as transaction:
            calendars = await shared_calendars(transaction, [new.spec], new.owner)
        now, action = self._scope.now(), self._scope.executors.read(new.action)
        wanted, _ = await self._scope.evaluate(lambda: draft(new, action, self._scope, now, calendars))
        try:
            stored = await schedules.get(new.id)
        except ScheduleNotFoundError:
            with contextlib.suppress(ScheduleExistsError):  # another node of this program was faster
                created = await schedules.create_once([new])
                await warn_of_specs(self._scope, created.schedules, self._places[new.id])
            stored = await schedules.get(new.id)
        if stored.managed_by != self.label:
            raise DefinitionConflictError(new.id, stored.managed_by, self.label)
        changed = [name for name in DEFINED if getattr(wanted, name) != getattr(stored, name)]
        if changed:
            edit = Edit(**{name: getattr(new if name == "spec" else wanted, name) for name in changed})
            edited = await schedules.edit(new.id, lambda _: edit)
            await warn_of_specs(self._scope, [edited], self._places[new.id])

    async def prune_orphans(self) -> list[str]:
        """Delete the schedules of this program that it no longer defines; return their ids."""
        gone = [(owner, each) for owner, each in await self._stored() if each not in self.definitions]
        for owner, schedule_id in gone:
            await self._schedules(owner).delete(schedule_id)
        return sorted(schedule_id for _, schedule_id in gone)


def calling_module() -> str:
    """The name of the module that calls Horae: by default it is the name of the program."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as logging finds its caller
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "horae":
        frame = frame.f_back
    names = {} if frame is None else frame.f_globals
    spec, file = names.get("__spec__"), names.get("__file__")
    if spec is not None:  # imported, or run with python -m
        return str(spec.name).removesuffix(".__main__")
    return "main" if file is None else PurePath(file).stem

"""The scheduler with two methods: ``initialize`` and ``stop``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import tzlocal

from horae.app import App
from horae.app.reconcile import TaskClass
from horae.clock import Clock, SystemClock
from horae.config import VIRTUAL_CLOCK_CONFIG, Config
from horae.errors import (
    ConfigError,
    HoraeError,
    SchedulerAlreadyActiveError,
    SchedulerInitializationError,
    SchedulerStopError,
)
from horae.executor.attempt_context import Context
from horae.face.declarative import events
from horae.face.declarative.registration import Registration, Task, read_registrations
from horae.face.declarative.states import SCHEDULER, SchedulerState
from horae.model import Reason, Run
from horae.spec import load_zone
from horae.spec.zone import ZoneLike

Listener = Callable[[events.Event], object]
UNLIMITED = {"drain_ms": 2**40, "concurrency": 2**31, "max_crashes": 2**31}
"""``stop`` waits for running callbacks without a limit; no task waits for another; an orphaned run is always restarted."""

_log = logging.getLogger("horae.scheduler")


class Scheduler:
    """Runs the tasks that an application lists: strict POSIX cron in local time, durable, one run of a task at a time.

    ``database`` is ``sqlite:///path``, ``postgresql://…`` or ``:memory:``. Applications that share one have a
    ``name`` each, and do not see each other's tasks. ``listener`` is called with each event, in order.
    """

    def __init__(
        self,
        *,
        database: str = "sqlite:///horae.db",
        clock: Clock | None = None,
        timezone: ZoneLike | None = None,
        name: str = "default",
        listener: Listener | None = None,
    ) -> None:
        self._database = database
        self._clock: Clock = clock or SystemClock()
        self._timezone = load_zone(_host_zone() if timezone is None else timezone).name
        self._name = name
        self._owner = f"declarative:{name}"
        self._listener = listener
        self._state = SchedulerState.UNINITIALIZED
        self._tasks: Mapping[str, Task] = {}  # by the ids of their schedules
        self._retrying: dict[str, str] = {}
        """The failed runs that wait for a retry, by the name of the task."""
        self._app: App | None = None
        self._driving: asyncio.Task[None] | None = None
        self._initializing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._stop_requested = False

    def initialize(self, registrations: Sequence[Registration]) -> Awaitable[None]:
        """Make the listed tasks, and no others, the tasks of this scheduler, and run them.

        Errors in the list are raised at once, before anything happens; await the rest.
        """
        if self._state in {SchedulerState.INITIALIZING, SchedulerState.RUNNING, SchedulerState.STOPPING}:
            initializing = self._state is SchedulerState.INITIALIZING
            raise SchedulerAlreadyActiveError("initializing" if initializing else "running")
        self._move(events.SchedulerInitializationStarted)
        try:
            tasks = read_registrations(registrations, self._name, self._timezone)
            loop = asyncio.get_running_loop()
        except HoraeError as error:
            self._fail(error)
            raise
        except Exception as error:
            wrapped = SchedulerInitializationError(error)
            self._fail(wrapped)
            raise wrapped from error
        self._stop_requested = False
        self._initializing = loop.create_task(self._initialize(tasks), name="horae:initialize")
        return self._initializing

    def stop(self) -> Awaitable[None]:
        """Start nothing more, wait for running callbacks, and close the database. May be called at any time, and repeatedly."""
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.get_running_loop().create_task(self._stop(), name="horae:stop")
        return asyncio.shield(self._stopping)

    async def _initialize(self, tasks: dict[str, Task]) -> None:
        app: App | None = None
        try:
            app = App(self._database, clock=self._clock, config=_config(self._clock))
            app.functions.register(self._owner, self._run, accepts=self._is_ours)
            await app.open()
            await app.engine.enter(app.now())
            reconciled = await app.owned_by(self._owner).tasks.reconcile(tasks)
        except BaseException as error:
            if app is not None:
                await _close(app)
            wrapped = error if isinstance(error, HoraeError) else SchedulerInitializationError(error)
            self._fail(wrapped)
            if wrapped is error or not isinstance(error, Exception):
                raise
            raise wrapped from error
        for each in reconciled.forgotten:
            _log.info("the task %s is no longer registered, and is forgotten", each)
        self._tasks = tasks
        self._retrying = dict(reconciled.retrying)
        self._app = app
        if tasks and not self._stop_requested:
            self._emit(events.PollingStarted)
            self._driving = asyncio.create_task(_drive(app), name="horae:polling")
        counts = Counter(reconciled.classes.values())
        self._move(events.SchedulerInitializationCompleted, {str(each): counts[each] for each in TaskClass})

    async def _stop(self) -> None:
        self._stop_requested = True
        if self._initializing is not None and not self._initializing.done():
            await asyncio.wait([self._initializing])
        if self._state is not SchedulerState.RUNNING or self._app is None:
            return
        self._move(events.SchedulerStopRequested)
        try:
            await self._end(self._app)
        except Exception as error:
            raise error if isinstance(error, HoraeError) else SchedulerStopError(error) from error
        finally:
            self._app = self._driving = None
            self._move(events.SchedulerStopped)

    async def _end(self, app: App) -> None:
        if self._driving is not None:
            self._emit(events.PollingStopRequested)
            self._driving.cancel()
            await asyncio.wait([self._driving])
        try:
            await app.__aexit__(None, None, None)
        finally:
            if self._driving is not None:
                self._emit(events.PollingStopped)

    def _is_ours(self, run: Run) -> bool:
        """Whether a run is for a task of this instance; another instance of the same name may have other tasks."""
        return run.schedule_id in self._tasks

    async def _run(self, context: Context) -> dict[str, Any]:
        """The action of all tasks: call the callback of the run's task."""
        task = self._tasks[context.schedule_id]
        name = task.name
        failed = self._retrying.pop(name, None)
        if failed is not None and failed != context.run_id:
            self._emit(events.TaskRetryPreempted, name)
        retries = context.after == Reason.FAILED
        self._emit(events.TaskRetryStarted if retries else events.TaskRunStarted, name)
        try:
            await task.callback()
        except BaseException as error:
            self._retrying[name] = context.run_id
            self._emit(
                events.TaskRunFailed, name, {"error": error, "pendingRetryUntil": self._after(task.delay_ms)}
            )
            # Wrap it, because some exceptions have a special meaning to the engine.
            raise _CallbackFailedError(error) from error
        self._emit(events.TaskRunCompleted, name)
        return {"lastSuccessAt": self._now()}

    def _now(self) -> datetime:
        return self._clock.now().astimezone(UTC)

    def _after(self, milliseconds: int) -> datetime:
        """The time after a delay, or the last that ``datetime`` can express."""
        try:
            return self._now() + timedelta(milliseconds=milliseconds)
        except OverflowError:
            return datetime.max.replace(tzinfo=UTC)

    def _emit(
        self, kind: type[events.Event], task: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        """Send an event to the log and to the listener; an exception of the listener is logged."""
        event = kind(time=self._now(), task=task, details=details or {})
        _log.info("%s%s", event.name, "" if task is None else f": {task}")
        if self._listener is not None:
            try:
                self._listener(event)
            except Exception:
                _log.exception("the listener raised at %s", event.name)

    def _move(self, event: type[events.Event], details: Mapping[str, Any] | None = None) -> None:
        """Change the state by the table, and emit the event."""
        self._state = SchedulerState(
            next(each.after for each in SCHEDULER if (each.before, each.event) == (self._state, event))
        )
        self._emit(event, details=details)

    def _fail(self, error: BaseException) -> None:
        self._move(events.SchedulerInitializationFailed, {"error": error})


class _CallbackFailedError(Exception):
    """A callback raised an exception."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")


async def _drive(app: App) -> None:
    """Take over the runs of dead instances, then run the app."""
    try:
        await app.engine.renew_and_maintain(app.now())
    except Exception:  # maintenance tries again
        _log.exception("the runs of dead instances cannot be taken over now")
    await app.serve()


async def _close(app: App) -> None:
    """Close the app after an initialization that failed."""
    with contextlib.suppress(Exception):
        await app.__aexit__(None, None, None)


def _config(clock: Clock) -> Config:
    config = Config() if isinstance(clock, SystemClock) else VIRTUAL_CLOCK_CONFIG
    return msgspec.structs.replace(config, **UNLIMITED)


def _host_zone() -> str:
    """The name of the host's time zone."""
    try:
        return str(tzlocal.get_localzone_name() or "UTC")
    except Exception as error:
        raise ConfigError(
            "timezone", error, "must be given, since the host's time zone has no name"
        ) from error

"""Reads registrations of four values each, and checks them before anything happens; the first fault is reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from hashlib import sha256

from horae.app.reconcile import DesiredTask
from horae.errors import (
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)
from horae.executor.function_executor import is_coroutine_function
from horae.spec import PosixCron

Callback = Callable[[], Awaitable[object]]
Registration = tuple[str, str, Callback, timedelta] | Sequence[object]


class Task(DesiredTask, frozen=True, kw_only=True):
    """A valid registration."""

    callback: Callback


def read_registrations(registrations: object, scheduler: str, timezone: str) -> dict[str, Task]:
    """The tasks of a list of registrations, by the ids of their schedules."""
    if not isinstance(registrations, list | tuple):
        raise RegistrationsNotArrayError
    tasks: dict[str, Task] = {}
    for index, registration in enumerate(registrations):
        task = _read(index, registration, scheduler, timezone)
        if task.id in tasks:
            raise ScheduleDuplicateTaskError(task.name)
        tasks[task.id] = task
    return tasks


def task_id(scheduler: str, name: str) -> str:
    """The id of a task's schedule."""
    return f"declarative:{sha256(f'{len(scheduler)}:{scheduler}:{name}'.encode()).hexdigest()[:32]}"


def _read(index: int, registration: object, scheduler: str, timezone: str) -> Task:
    if not isinstance(registration, list | tuple) or len(registration) != 4:
        raise RegistrationShapeError(index, registration, "a registration is (name, cron, callback, delay)")
    name, cron, callback, delay = registration
    for fits, hint in (
        (isinstance(name, str), "the name is no text"),
        (isinstance(cron, str), "the cron expression is no text"),
        (
            is_coroutine_function(callback),
            "the callback is no coroutine function: define it with `async def`",
        ),
        (isinstance(delay, timedelta), "the retry delay is no timedelta"),
    ):
        if not fits:
            raise RegistrationShapeError(index, registration, hint)
    _check_name(name)
    spec = _spec(cron, timezone)
    milliseconds = delay / timedelta(milliseconds=1)
    if milliseconds < 0:
        raise NegativeRetryDelayError(milliseconds)
    return Task(
        id=task_id(scheduler, name), name=name, cron=cron, callback=callback, delay_ms=round(milliseconds), spec=spec
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _spec(cron: str, timezone: str) -> str:
    """The canonical document of an expression; cached, because many tasks share one."""
    return PosixCron.registered(cron, timezone).spec.text


def _check_name(name: str) -> None:
    if not name:
        raise InvalidRegistrationError("name", name, "must not be empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidRegistrationError("name", name, "has half a character, which cannot be stored") from None

"""Tells what blocks the event loop: a thread expects it to answer, and looks at what it does when it does not.

A step that holds the global interpreter lock cannot be looked at while it lasts. But the interpreter hands the lock to a thread that
waits for it as soon as the call returns, before the next line: this thread then sees where the loop was. ``faulthandler`` could write
the stack earlier, where nothing could read it earlier. It has one timer for a whole program, and a fork that is made while it is set
never ends.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from horae.app.schedule_fields import about
from horae.clock import Clock, SystemClock, process_seconds, thread_seconds
from horae.engine.schedule_decider import ScheduleDecider
from horae.engine.worker import Worker
from horae.executor.tracebacks import Frame, frames_of, stack_text
from horae.model import Span, instant
from horae.policy.loop_stall import (
    BEATS,
    Blamed,
    Cause,
    Silence,
    Stall,
    advice,
    cause_of,
    stall_text,
    was_told,
)

_log = logging.getLogger("horae")


class LoopBlocked(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which the event loop of a process did not answer."""

    at: Annotated[datetime, about("When it began.")]
    lasted_ms: Annotated[int, about("How long it lasted.")]
    cause: Annotated[
        Cause,
        about(
            "``step``: one step of the loop took long; ``held``: it also held the global interpreter lock; ``steps``: many steps "
            "followed each other; ``thread``: another thread held that lock; ``process``: the process stood still."
        ),
    ]
    schedule: Annotated[str | None, about("The schedule whose run blocked it, if that is known.")] = None
    action: Annotated[str | None, about("The action that blocked it, if that is known.")] = None

    lasted = Span[timedelta]()


class _Answer(msgspec.Struct, frozen=True):
    """An answer of the loop: when, and the processor time that its thread and the process had used."""

    at: float
    worked: float
    process_worked: float


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """What the thread found while the loop owed an answer."""

    after: _Answer
    task: asyncio.Task[Any] | None
    frames: Sequence[Frame]
    blamed: Blamed | None
    same_step: bool
    cause: Cause | None = None
    settled_until: float = 0.0
    """Until when the loop is to tell of it: what this thread could not look at while it lasted is over."""
    logged: bool | None = None
    """Whether the log tells of it; ``None`` while that is not decided."""


class LoopWatchdog:
    """Watches the event loop of an open app, if its clock is the machine's. ``tell`` is called in the loop after each stall."""

    def __init__(
        self,
        clock: Clock,
        threshold_ms: int,
        worker: Worker,
        now: Callable[[], int],
        tell: Callable[[Stall], None],
    ) -> None:
        self._clock = clock
        self._threshold = threshold_ms / 1000
        self._every = self._threshold / BEATS
        self._worker = worker
        self._now = now
        self._tell = tell
        self._told: dict[str, float] = {}
        self._looking = threading.Lock()
        self._ended = threading.Event()
        self._answer: _Answer | None = None
        self._look: _Look | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._count, self._what = 0, ""
        self.last: LoopBlocked | None = None
        """The last time that the loop was blocked."""

    def start(self) -> None:
        """Watch the running event loop until :meth:`stop`."""
        if self._answer is not None or not self._threshold or not isinstance(self._clock, SystemClock):
            return
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        self._loop_seconds = thread_seconds()
        self._ran = self._clock.monotonic()
        self._expect()
        threading.Thread(target=self._watch, name="horae:watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._ended.set()
        if self._beat is not None:
            self._beat.cancel()

    # In the loop

    def _expect(self) -> None:
        """Answer, and ask the loop for the next answer."""
        self._note_answer()
        self._beat = self._loop.call_later(self._every, self._expect)

    def _note_answer(self) -> None:
        before, now = self._answer, self._clock.monotonic()
        answer = _Answer(now, self._loop_seconds(), process_seconds())
        if before is None or self._late(before, now) < self._threshold:
            self._answer = answer
            return
        with self._looking:
            look = self._look if self._look is not None and self._look.after is before else None
            silence = self._silence(before, now, same_step=look is None or look.same_step)
            self._answer = answer
        cause = cause_of(silence, self._threshold) if look is None or look.cause is None else look.cause
        if cause is not None:
            blamed = None if look is None else look.blamed
            self._end(Stall(cause=cause, seconds=silence.seconds, blamed=blamed), look, now)

    def _end(self, stall: Stall, look: _Look | None, now: float) -> None:
        """The loop answers after a stall: tell what is known of it."""
        if look is None or look.logged is None:
            if self._may_log(stall, now):
                self._log(stall, look, lasts=False)
        elif look.logged:
            _log.warning("%s, and answers again", stall_text(stall))
        self._count, self._what = self._count + 1, stall_text(stall)
        lasted_ms = int(stall.seconds * 1000)
        self.last = LoopBlocked(
            at=instant(self._now() - lasted_ms), lasted_ms=lasted_ms, cause=stall.cause,
            schedule=stall.schedule, action=stall.action,
        )  # fmt: skip
        self._tell(stall)

    def mark(self) -> int:
        """A mark to ask :meth:`since` with."""
        return self._count

    def since(self, mark: int) -> str:
        """How the loop was blocked since a mark; empty if it was not. Ask in the loop."""
        if self._answer is not None:
            self._note_answer()
        return self._what if self._count > mark else ""

    # In the thread

    def _watch(self) -> None:
        while not self._ended.wait(self._every) and not self._loop.is_closed():
            now = self._clock.monotonic()
            with self._looking:
                stall = self._look_at(now)
            self._ran = now
            if stall is not None:
                self._log(stall, self._look, lasts=True)

    def _look_at(self, now: float) -> Stall | None:
        """Look at what the loop does if it owes an answer; a stall that the log is to tell of, while it lasts."""
        before = self._answer
        if before is None or self._late(before, now) < self._threshold / 2:
            return None
        if not self._loop.is_running():  # a program that lets it rest is not blocked
            self._answer = msgspec.structs.replace(before, at=now)
            return None
        last = self._look if self._look is not None and self._look.after is before else None
        if last is not None and now < last.settled_until:
            return None
        task = asyncio.current_task(self._loop)
        same_step = last is None or (last.same_step and last.task is task)
        silence = self._silence(before, now, same_step=same_step)
        cause = cause_of(silence, self._threshold)
        self._look = look = _Look(
            after=before, task=task, frames=frames_of(sys._current_frames().get(self._loop_thread)),  # noqa: SLF001 - documented
            blamed=self._blamed(task), same_step=same_step, cause=cause, logged=None if last is None else last.logged,
        )  # fmt: skip
        if cause is None or look.logged is not None:
            return None
        if silence.unwatched >= self._threshold / 2:
            self._look = msgspec.structs.replace(look, settled_until=now + self._threshold)
            return None
        stall = Stall(cause=cause, seconds=silence.seconds, blamed=look.blamed)
        logged = self._may_log(stall, now)
        self._look = msgspec.structs.replace(look, logged=logged)
        return stall if logged else None

    def _blamed(self, task: asyncio.Task[Any] | None) -> Blamed | None:
        if task is None:
            return None
        found = self._worker.attempt_in(task)
        if found is None:
            return Blamed(task=task.get_name())
        decider, run = found
        schedule = run.schedule_id if decider == ScheduleDecider.name else ""
        action = run.action if schedule else run.action_id
        return Blamed(task=task.get_name(), schedule=schedule, action=action, run=run.id, attempt=run.attempt)

    # In both

    def _late(self, before: _Answer, now: float) -> float:
        return now - before.at - self._every

    def _silence(self, before: _Answer, now: float, *, same_step: bool) -> Silence:
        return Silence(
            seconds=self._late(before, now), unwatched=now - self._ran - self._every, worked=self._loop_seconds() - before.worked,
            process_worked=process_seconds() - before.process_worked, same_step=same_step,
        )  # fmt: skip

    def _may_log(self, stall: Stall, now: float) -> bool:
        """Whether the log tells of a stall: once per action and hour."""
        if was_told(stall.key, now, self._told):
            return False
        self._told = {key: at for key, at in self._told.items() if was_told(key, now, self._told)}
        self._told[stall.key] = now
        return True

    def _log(self, stall: Stall, look: _Look | None, *, lasts: bool) -> None:
        """Tell what blocks the loop, with its stack if one step does."""
        stack = f"\n{stack_text(look.frames).rstrip()}" if look is not None and stall.is_one_step else ""
        _log.warning("%s; %s%s", stall_text(stall, lasts=lasts), advice(stall.cause), stack)

"""Why an event loop did not answer: what can be known of it from a thread beside the loop, and how it is told."""

from __future__ import annotations

from enum import StrEnum

import msgspec

BEATS = 5
"""How often a loop answers within the time after which it counts as blocked."""
TOLD_EVERY_S = 60 * 60
"""Seconds in which the log tells of one action, or of one cause that is no action, once."""


class Cause(StrEnum):
    """Why a loop did not answer."""

    STEP = "step"
    """One step of it took long, while other threads could run."""
    HELD = "held"
    """One step of it took long, and held the global interpreter lock."""
    STEPS = "steps"
    """Many steps followed each other."""
    THREAD = "thread"
    """Another thread held the global interpreter lock."""
    PROCESS = "process"
    """The process stood still: it used next to no processor time, and none of its threads could run."""


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a loop that owes an answer; spans are seconds."""

    seconds: float
    """For how long it has owed the answer."""
    unwatched: float
    """For how long the thread that watches could not run either."""
    worked: float
    """The processor time of the loop's thread since the last answer."""
    process_worked: float
    """The processor time of all threads since then."""
    same_step: bool
    """Whether every look at the loop found the same task."""


class Blamed(msgspec.Struct, frozen=True, kw_only=True):
    """What ran in a blocked loop: a task, and what it is an attempt of, if it is one."""

    task: str
    schedule: str = ""
    """Empty for the run of a flow."""
    action: str = ""
    run: str = ""
    attempt: int = 0


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which an event loop did not answer."""

    cause: Cause
    seconds: float
    blamed: Blamed | None = None
    """What the loop was at; it is to blame if one step took long."""

    @property
    def is_one_step(self) -> bool:
        """Whether one step of the loop took long."""
        return self.cause in {Cause.STEP, Cause.HELD}

    @property
    def action(self) -> str | None:
        """The action that blocked the loop, if that is known."""
        return self.blamed.action if self.blamed and self.blamed.action and self.is_one_step else None

    @property
    def schedule(self) -> str | None:
        """The schedule whose run blocked it, if that is known."""
        return self.blamed.schedule if self.blamed and self.blamed.schedule and self.is_one_step else None

    @property
    def key(self) -> str:
        """What the log tells of once in a while: an action, or a cause that is none."""
        return self.cause if self.action is None else f"action {self.action}"


def cause_of(silence: Silence, threshold: float) -> Cause | None:
    """Why a loop does not answer; ``None`` as long as it is not blocked.

    Who holds the global interpreter lock is not to be seen; but its holder works, and a process that stands still does not. What
    may have worked between the last answer and the silence does not count: that was less than two beats.
    """
    if silence.seconds < threshold:
        return None
    if silence.unwatched < threshold / 2:
        return Cause.STEP if silence.same_step else Cause.STEPS
    idle = 2 * threshold / BEATS
    if silence.worked > idle:
        return Cause.HELD
    return Cause.THREAD if silence.process_worked > idle else Cause.PROCESS


def was_told(key: str, now: float, told: dict[str, float]) -> bool:
    """Whether the log told of a key so recently that it is not told again; ``told`` has the last time of each."""
    return now - told.get(key, -TOLD_EVERY_S) < TOLD_EVERY_S


def stall_text(stall: Stall, *, lasts: bool = False) -> str:
    """What happened, for the operator; ``lasts`` if it is not over."""
    span = f"for {stall.seconds:.1f} s"
    was, stood = ("has been", "has stood") if lasts else ("was", "stood")
    match stall.cause:
        case Cause.PROCESS:
            return f"the process {stood} still {span}"
        case Cause.STEPS:
            return f"the event loop {was} busy {span} with many steps"
        case Cause.THREAD:
            return f"the event loop {was} blocked {span} by another thread, which held the global interpreter lock"
        case Cause.STEP | Cause.HELD:
            return f"the event loop {was} blocked {span}{_culprit(stall.blamed)}"


def _culprit(blamed: Blamed | None) -> str:
    if blamed is None:
        return ""
    if not blamed.run:
        return f' by the task "{blamed.task}"'
    what = (
        f'action "{blamed.action}" of schedule "{blamed.schedule}"'
        if blamed.schedule
        else f'the flow run "{blamed.action}"'
    )
    return f" by {what}, attempt {blamed.attempt} of the run {blamed.run}"


def advice(cause: Cause) -> str:
    """What follows from a stall, and what to do."""
    match cause:
        case Cause.STEP:
            return (
                "nothing else in the loop ran meanwhile: define what blocks with `def` instead of `async def`, "
                "or call it with `await asyncio.to_thread(…)`"
            )
        case Cause.HELD | Cause.THREAD:
            return "no other thread ran meanwhile, so a thread would not help: call what works so long in a process of its own"
        case Cause.STEPS:
            return "it has more to do than it can: run less at once (HORAE_CONCURRENCY), or on more nodes"
        case Cause.PROCESS:
            return (
                "it used next to no processor time: it was stopped or suspended, its machine was too busy, "
                "or foreign code waited without releasing the global interpreter lock"
            )

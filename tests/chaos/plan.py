"""What goes wrong, when and for how long: all of it follows from the seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from horae import Overlap
from tests.chaos.fleet import Planned, Rhythm
from tests.support.dice import Dice

NODES = 3
EVERYTHING = -1
"""The node of what concerns all nodes."""

KILL, STOP, RESTART, CUT, SILENCE, DELAY, SKEW, LOCK = (
    "kill", "stop", "restart", "cut", "silence", "delay", "skew", "lock",
)  # fmt: skip
MEANINGS = {
    KILL: "SIGKILL of a node, started again later",
    STOP: "SIGSTOP of a node for longer than the lease",
    RESTART: "immediate restart of the database",
    CUT: "connections of a node cut, new ones refused",
    SILENCE: "connections of a node held: nothing passes, nothing is closed",
    DELAY: "each message of a node delayed",
    SKEW: "a clock an hour off",
    LOCK: "the file locked by another program",
}
WEIGHTS = {
    "postgresql": {KILL: 24, STOP: 15, RESTART: 5, CUT: 15, SILENCE: 15, DELAY: 14, SKEW: 12},
    "sqlite": {KILL: 60, STOP: 25, SKEW: 8, LOCK: 7},
}
LOSING = frozenset({KILL, STOP, CUT, SILENCE})
"""The faults that a node does not work through. At most two of three have one at a time."""
HOUR = 60 * 60 * 1000
STORM, CALM = 60, 20
"""Each minute has its calm, so many seconds in which no new fault begins."""


class Fault(NamedTuple):
    """Something goes wrong, so many seconds after the beginning, for so many seconds."""

    at: float
    lasts: float
    kind: str
    node: int
    amount: int = 0
    """Milliseconds of a delay or a skew."""

    @property
    def until(self) -> float:
        return self.at + self.lasts


class Operation(NamedTuple):
    """The operator does something to a schedule."""

    at: float
    kind: str
    schedule: str
    lasts: float = 0
    """How long a pause is; how far back a backfill goes."""
    overlap: Overlap | None = None
    rhythm: Rhythm | None = None


def plan_faults(seed: int, store: str, seconds: float, lease: float) -> list[Fault]:
    """Faults one upon the other; all are over when the time is up."""
    dice = Dice(f"{seed}:{store}:faults")
    weights = WEIGHTS[store]
    kinds = [kind for kind, weight in weights.items() for _ in range(weight)]
    faults: list[Fault] = []
    at = 2.0
    while (at := at + 0.2 + dice.below(2500) / 1000) < seconds - 1:
        if at % STORM > STORM - CALM:  # what was lost is taken over while the others are left in peace
            continue
        fault = _fault(dice, dice.choice(kinds), at, seconds, lease)
        if store == "sqlite" and fault.kind == SKEW:  # the processes of one machine have one clock
            fault = fault._replace(node=EVERYTHING, amount=-HOUR)
        if _fits(fault, faults):
            faults.append(fault)
    return faults


def _fault(dice: Dice, kind: str, at: float, seconds: float, lease: float) -> Fault:
    share = dice.below(1000) / 1000
    lasts = {
        KILL: share * share * 2 * lease,
        STOP: lease * (1.2 + 1.5 * share),
        RESTART: share * 2,
        CUT: lease * (0.2 + 2.3 * share),
        SILENCE: lease * (0.2 + 2.8 * share),
        DELAY: 2 + 8 * share,
        SKEW: 3 + 12 * share,
        LOCK: 0.5 + 3 * share,
    }[kind]
    amount = {DELAY: 20 + dice.below(400), SKEW: dice.choice((-HOUR, HOUR))}.get(kind, 0)
    node = EVERYTHING if kind in {RESTART, LOCK} else dice.below(NODES)
    return Fault(round(at, 3), round(min(lasts, seconds - at), 3), kind, node, amount)


def _fits(fault: Fault, faults: list[Fault]) -> bool:
    """One fault of a sort on a node at a time, and one node of three is always left to work."""
    going_on = [each for each in faults if each.until + 0.5 > fault.at]
    if any(each.node == fault.node and _sort(each) == _sort(fault) for each in going_on):
        return False
    lost = {each.node for each in going_on if each.kind in LOSING}
    return fault.kind not in LOSING or len(lost | {fault.node}) < NODES


def _sort(fault: Fault) -> str:
    if fault.kind in {KILL, STOP}:
        return "process"
    return "network" if fault.kind in {CUT, SILENCE, DELAY} else fault.kind


def plan_operations(
    seed: int, store: str, seconds: float, schedules: list[Planned], faults: list[Fault]
) -> list[Operation]:
    """What the operator does: often just when something goes wrong, or when a slot falls due."""
    dice = Dice(f"{seed}:{store}:operations")
    operated = [each for each in schedules if each.kind.operation]
    operations = [_operation(dice, dice.choice(operated), at) for at in _moments(dice, seconds, faults)]
    free: dict[str, float] = {}
    fitting = []
    for each in sorted(operations):
        if each.at >= free.get(each.schedule, 0):  # a schedule is not paused or edited twice at once
            free[each.schedule] = each.at + each.lasts + 1 if each.kind == "pause" else each.at
            fitting.append(each)
    return fitting


def _moments(dice: Dice, seconds: float, faults: list[Fault]) -> Iterator[float]:
    at = 1.0
    while (at := at + 0.2 + dice.below(2000) / 1000) < seconds - 1:
        near = [fault.at for fault in faults if abs(fault.at - at) < 3]
        yield dice.choice(near) + dice.below(100) / 1000 if near and dice.chance(40) else at


def _operation(dice: Dice, schedule: Planned, at: float) -> Operation:
    kind = schedule.kind.operation
    if kind == "edit":
        every = dice.choice((2, 3, 4, 5))
        rhythm = Rhythm(every, dice.below(every), cron=dice.chance(50) and 60 % every == 0)
        return Operation(at, kind, schedule.id, rhythm=rhythm)
    overlap = dice.choice((None, Overlap.SKIP, Overlap.ALLOW_ALL, Overlap.BUFFER_ALL))
    return Operation(at, kind, schedule.id, 1 + dice.below(8000) / 1000, overlap)

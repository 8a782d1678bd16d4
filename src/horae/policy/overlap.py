"""Overlap: one first-in-first-out pass over the starts that wait, given what is running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec

from horae.model import Overlap

Id = str | int


class Start(NamedTuple):
    """A start that waits: its identity, and the policy it came with."""

    id: Id
    overlap: Overlap
    expired: bool = False
    """It has waited too long to be released. Until its turn comes it waits like the others."""
    paused: bool = False
    """A pause keeps it from starting; it keeps its place among those that wait."""


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of each start: it is in exactly one of the first five lists."""

    start: tuple[Id, ...]
    keep: tuple[Id, ...]
    skip: tuple[Id, ...]
    replace: tuple[Id, ...]
    expire: tuple[Id, ...] = ()
    cancel: bool = False
    terminate: bool = False


def judge_overlap(
    waiting: Sequence[Start], running: int, max_concurrent: int | None = None, *, free: int = 0
) -> Verdict:
    """Judge the starts in order.

    ``running`` counts the runs that go on and stand in the way, also those still being launched; ``free`` those of
    ``allow_all``, which block nobody, unless ``max_concurrent`` counts them all.
    """
    judge = _Pass(running, free, max_concurrent)
    for start in waiting:
        judge.judge(start)
    return Verdict(
        tuple(judge.chosen), tuple(judge.kept), tuple(judge.skipped), tuple(judge.replaced), tuple(judge.expired),
        judge.cancel, judge.terminate,
    )  # fmt: skip


class _Pass:
    """One pass; the order of the starts is all the state there is."""

    def __init__(self, running: int, free: int, max_concurrent: int | None) -> None:
        self.chosen: list[Id] = []
        self.kept: list[Id] = []
        self.skipped: list[Id] = []
        self.replaced: list[Id] = []
        self.expired: list[Id] = []
        self.cancel = self.terminate = False
        self._running = running
        self._limited = max_concurrent is not None
        self._most = 1 if max_concurrent is None else max_concurrent
        self._blocking = running + free if self._limited else running
        self._replaceable: Id | None = None
        """The start chosen in this pass whose place a later cancel_other or terminate_other takes."""
        self._next: Id | None = None
        """The start that waits for the running one to stop; only the newest such one does."""

    def judge(self, start: Start) -> None:
        allowed = start.overlap is Overlap.ALLOW_ALL
        if start.paused:
            self.kept.append(start.id)
        elif allowed and not self._limited:
            self._choose(start)
        elif self._blocking < self._most:
            if self._choose(start):
                self._blocking += 1
                self._replaceable = self._replaceable if allowed else start.id
        else:
            self._judge_blocked(start)

    def _judge_blocked(self, start: Start) -> None:
        """Judge a start while as many runs go on as may."""
        match start.overlap:
            case Overlap.SKIP:
                self.skipped.append(start.id)
            case Overlap.BUFFER_ONE:
                (self.skipped if self.kept else self.kept).append(start.id)
            case Overlap.BUFFER_ALL | Overlap.ALLOW_ALL:
                self.kept.append(start.id)
            case Overlap.CANCEL_OTHER | Overlap.TERMINATE_OTHER:
                self._replace(start)
            case _:
                assert_never(start.overlap)

    def _choose(self, start: Start) -> bool:
        """Its turn has come. One that waited too long never starts, and leaves its place to the next."""
        (self.expired if start.expired else self.chosen).append(start.id)
        return not start.expired

    def _replace(self, start: Start) -> None:
        """Ask the running one to stop and wait for it, or take the place of what was chosen just now."""
        if self._running:
            self.cancel = self.cancel or start.overlap is Overlap.CANCEL_OTHER
            self.terminate = self.terminate or start.overlap is Overlap.TERMINATE_OTHER
            if self._next is not None:
                self.kept.remove(self._next)
                self.replaced.append(self._next)
            self._next = start.id
            self.kept.append(start.id)
        elif start.expired and self._replaceable is not None:
            self.expired.append(start.id)
        elif self._replaceable is not None:
            self.chosen[self.chosen.index(self._replaceable)] = start.id
            self.replaced.append(self._replaceable)
            self._replaceable = start.id
        else:  # only allow_all runs fill the places there are: wait for one of them
            self.kept.append(start.id)

"""Overlap: one first-in-first-out pass over the waiting starts, given the runs that are running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec

from horae.model import Overlap

Id = str | int


class Start(NamedTuple):
    """A waiting start: its id and its overlap policy."""

    id: Id
    overlap: Overlap
    expired: bool = False
    """Whether it waited too long to be released. It keeps waiting until it is first in line, and then expires."""
    paused: bool = False
    """Whether a pause keeps it from starting; it keeps its place in line."""


class Verdict(msgspec.Struct, frozen=True):
    """What happens to each start: it is in exactly one of the first five lists."""

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

    ``running`` counts the blocking runs, including those that wait for a claim or a retry; ``free`` counts the runs under
    ``allow_all``, which block no start unless ``max_concurrent`` is set and counts all runs.
    """
    judge = _Pass(running, free, max_concurrent)
    for start in waiting:
        judge.judge(start)
    return Verdict(
        tuple(judge.chosen), tuple(judge.kept), tuple(judge.skipped), tuple(judge.replaced), tuple(judge.expired),
        judge.cancel, judge.terminate,
    )  # fmt: skip


class _Pass:
    """The state of one pass over the starts."""

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
        """The start chosen in this pass that a later ``cancel_other`` or ``terminate_other`` replaces."""
        self._next: Id | None = None
        """The start that waits for the running one to stop; only the newest such start waits."""

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
        """Judge a start while the maximum number of runs is running."""
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
        """Choose a start, unless it has expired: then it never starts, and the next one may take its place."""
        (self.expired if start.expired else self.chosen).append(start.id)
        return not start.expired

    def _replace(self, start: Start) -> None:
        """Stop the running runs and wait for them, or replace the start chosen in this pass."""
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
        else:  # only allow_all runs are running, up to the maximum: wait until one ends
            self.kept.append(start.id)

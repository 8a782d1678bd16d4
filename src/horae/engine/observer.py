"""Observers: the engine tells them what happened, once it is durable. Without observers it collects nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from horae.model import AttemptResult, Outcome, Run, Schedule, UnstartedRange
from horae.policy.ledger_changes import Decision
from horae.policy.loop_stall import Stall

if TYPE_CHECKING:
    from horae.engine.maintenance import MaintenanceReport

__all__ = ["Decision", "Observer", "Observers", "Stall"]
_log = logging.getLogger("horae")


class Observer:
    """Base class of observers: override the methods of the events you want; the others do nothing.

    Methods run in the event loop, between two steps: return quickly, and do slow work elsewhere.
    """

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
        """Decisions, each with its schedule as it was before. Slots that did not start are also given to ``unstarted``."""

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
        """This node claimed runs, and launches them, unless its lease may have ended."""

    def launched(self, run: Run, at: int) -> None:
        """The action of a run is called, ``at`` by the clock that all nodes share: the start that its end will record."""

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        """Results of attempts that this program recorded, and what each meant for its run.

        The attempts are this program's own, those of dead nodes, and those that external workers reported on.
        """

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        """Slots that did not start, and runs that ended while no node worked on them.

        The cause is a decision, or a request: an edit, a pause that ends, a deletion, a cancellation.
        """

    def stepped(self, seconds: float) -> None:
        """How long one batch took: to read, decide and write."""

    def stored(self, seconds: float, error: BaseException | None) -> None:
        """How long a transaction took, the engine's or another one, and what error ended it."""

    def maintained(self, report: MaintenanceReport) -> None:
        """What a round of maintenance did."""

    def loop_blocked(self, stall: Stall) -> None:
        """The event loop did not answer for long, and answers again."""

    def lost_lease(self) -> None:
        """This node did not renew its lease in time: other nodes take over its runs, and it rejoins."""


class Observers:
    """All observers; false if there are none. An exception of an observer is logged and has no other effect."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._all: list[Observer] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, observer: Observer) -> None:
        """Add an observer."""
        self._all.append(observer)

    def tell(self, what: Callable[[Observer], None]) -> None:
        """Call ``what`` with each observer."""
        for observer in self._all:
            try:
                what(observer)
            except Exception:
                _log.exception("an observer failed; it is still told what follows")

    def launched(self, run: Run, at: int) -> None:
        """Tell all observers that an action is called."""
        self.tell(lambda each: each.launched(run, at))

    @contextmanager
    def transaction(self) -> Iterator[tuple[list[tuple[AttemptResult, Outcome]], list[Run | UnstartedRange]]]:
        """Observe a transaction: how long it took, the error that ended it, and what it recorded if it committed."""
        begun = self._monotonic()
        error: BaseException | None = None
        recorded: list[tuple[AttemptResult, Outcome]] = []
        unstarted: list[Run | UnstartedRange] = []
        try:
            yield recorded, unstarted
        except BaseException as raised:
            error = raised
            raise
        finally:
            seconds = self._monotonic() - begun
            self.tell(lambda each: each.stored(seconds, error))
            if recorded and error is None:
                self.tell(lambda each: each.ended(recorded))
            if unstarted and error is None:
                self.tell(lambda each: each.unstarted(unstarted))

"""What happened, told to whoever watches, once it is durable. While nobody does, nothing is gathered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from horae.model import AttemptResult, Outcome, Run, Schedule, UnstartedRange
from horae.policy.ledger import Decision

if TYPE_CHECKING:
    from horae.engine.maintenance import MaintenanceReport

__all__ = ["Decision", "Observer", "Observers"]
_log = logging.getLogger("horae")


class Observer:
    """Somebody who wants to know. Derive from it, and say what you want to know; the rest does nothing.

    Called in the event loop, between two steps: be quick, and leave what takes time to somebody else.
    """

    def decided(self, decisions: Sequence[tuple[Schedule, Decision]]) -> None:
        """What was decided for some schedules, each as it was before. What it passed over is told once more, as such."""

    def claimed(self, runs: Sequence[Run], *, launched: bool) -> None:
        """This node took runs, and launches them; or it does not, because its lease may be over."""

    def launched(self, run: Run, at: int) -> None:
        """The action of a run is called now, by the clock that all nodes share: the start that its end will record."""

    def ended(self, ended: Sequence[tuple[AttemptResult, Outcome]]) -> None:
        """How attempts ended whose ends this program recorded, and what that meant for their runs.

        They are its own, those that dead nodes left, and those that others did and reported.
        """

    def unstarted(self, unstarted: Sequence[Run | UnstartedRange]) -> None:
        """Slots that this program passed over, and runs that it ended while nobody worked on them.

        Time has decided so, or somebody: by an edit, a pause that ends, a deletion, a cancellation.
        """

    def stepped(self, seconds: float) -> None:
        """How long it took to read, decide and write."""

    def stored(self, seconds: float, error: BaseException | None) -> None:
        """How long a transaction took, whoever made it, and what ended it early."""

    def maintained(self, report: MaintenanceReport) -> None:
        """What a round of housekeeping did."""

    def lost_lease(self) -> None:
        """This node was late with its sign of life: others have taken its runs, and it joins anew."""


class Observers:
    """All who watch. What one of them raises is logged, and nothing else."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._all: list[Observer] = []

    def add(self, observer: Observer) -> None:
        """One more."""
        self._all.append(observer)

    def tell(self, what: Callable[[Observer], None]) -> None:
        """Tell all of them something."""
        for observer in self._all:
            try:
                what(observer)
            except Exception:
                _log.exception("somebody who watches failed, and time goes on")

    def launched(self, run: Run, at: int) -> None:
        """Tell all of them that an action is called."""
        self.tell(lambda each: each.launched(run, at))

    @contextmanager
    def transaction(self) -> Iterator[tuple[list[tuple[AttemptResult, Outcome]], list[Run | UnstartedRange]]]:
        """Around a transaction: how long it took, how it ended, and what it recorded and passed over if it was written."""
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

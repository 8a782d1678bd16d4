"""How far a backfill is: what of its slots is done, runs or waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from horae.app.views import BackfillView, RunView
from horae.face.console.rendering import number
from horae.face.console.statuses import STATUS_WORDS
from horae.model import OPEN, OriginKind, Reason, Status


class Progress(msgspec.Struct, frozen=True):
    """A backfill as its schedule's page shows it."""

    backfill: BackfillView
    status: str
    done: int
    words: str
    can_be_cancelled: bool


def progress_of(backfill: BackfillView, still_open: Counter[Status], latest: Iterable[RunView]) -> Progress:
    """Count the slots of a backfill; how they ended is told if all of them are among the latest runs."""
    running = still_open[Status.RUNNING] + still_open[Status.STARTING]
    waiting = still_open.total() - running
    own = [
        each for each in latest if each.origin.kind == OriginKind.BACKFILL and each.origin.id == backfill.id
    ]
    ended = Counter(
        "dropped" if each.reason == Reason.BACKFILL_CANCELLED else _ended_word(each.status)
        for each in own
        if each.status not in OPEN
    )
    done = backfill.made - still_open.total()
    left = backfill.total - backfill.made
    if (
        backfill.status == "cancelled" or ended["dropped"]
    ):  # with all slots queued, cancelling drops runs only
        ended["dropped"] += left
        words = _counted(ended) if len(own) == backfill.made else f"{number(left)} never became runs"
        return Progress(backfill, "cancelled", done, words, can_be_cancelled=waiting > 0)
    if backfill.status == "open" or still_open.total():
        rest = _counted(Counter({"running": running, "waiting": waiting + left}))
        words = ", ".join(filter(None, (f"{number(done)} of {number(backfill.total)} done", rest)))
        return Progress(
            backfill, "running", done, words, can_be_cancelled=backfill.status == "open" or waiting > 0
        )
    words = (
        _counted(ended) if len(own) == backfill.made else f"{number(done)} of {number(backfill.total)} slots"
    )
    return Progress(backfill, "completed", done, words, can_be_cancelled=False)


def _ended_word(status: str) -> str:
    return "ran" if status == Status.SUCCEEDED else STATUS_WORDS[status]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number(count)} {word}" for word, count in counts.items() if count)

"""The progress of a backfill: how many of its slots are done, running or waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from horae.app import ScopedOperations
from horae.app.views import BackfillView, RunView
from horae.face.console.rendering import number
from horae.face.console.statuses import status_word
from horae.model import OPEN, BackfillStatus, OriginKind, Reason, Run, Status

MAX_DROPPED = 1000
"""How many dropped runs are counted: a backfill lets fewer wait at once."""


class Progress(msgspec.Struct, frozen=True):
    """A backfill as its schedule's page shows it."""

    backfill: BackfillView
    status: str
    done: int
    words: str
    can_be_cancelled: bool


async def dropped_runs(operations: ScopedOperations, backfill: BackfillView) -> int | None:
    """How many runs of a cancelled backfill were dropped; ``None`` if it has too many to count."""
    until = backfill.ended_at and backfill.ended_at + timedelta(seconds=1)  # no run was made later
    found = await operations.runs.search(
        schedule_id=backfill.schedule_id, reason=Reason.BACKFILL_CANCELLED, since=backfill.created_at, until=until,
        limit=MAX_DROPPED,
    )  # fmt: skip
    own = sum(isinstance(each, Run) and each.origin.id == backfill.id for each in found)
    return own if found.next is None else None


def progress_of(
    backfill: BackfillView,
    still_open: Counter[Status],
    latest: Iterable[RunView],
    dropped: int | None = None,
) -> Progress:
    """Count the slots of a backfill. How they ended is shown if all of them are among the latest runs; for a cancelled backfill, how many
    ran is shown if the number of dropped runs is known.
    """
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
    # With all slots queued, cancelling drops runs only.
    if backfill.status == BackfillStatus.CANCELLED or ended["dropped"] or dropped:
        if len(own) < backfill.made and dropped is not None:
            ended = Counter({"ran": done - dropped, "dropped": dropped})
        known = ended.total() == done
        done -= ended["dropped"]
        ended["dropped"] += left
        ended["running"] = running
        words = _counted(ended) if known else f"{number(left)} never became runs"
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
    return "ran" if status == Status.SUCCEEDED else status_word(status)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number(count)} {word}" for word, count in counts.items() if count)

"""Which runs and slots are problems: what failed, timed out, was missed or dropped, unless a caller asked for it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from horae.model import Reason, Run, ScheduleKey, Status, UnstartedRange

PROBLEMS = (Status.FAILED, Status.TIMED_OUT, Status.MISSED, Status.DROPPED)
ASKED_FOR = (Reason.BACKFILL_CANCELLED, Reason.DELETED, Reason.CANCELLED, Reason.TERMINATED)
"""The reasons of runs and slots that a caller cancelled or deleted: nothing went wrong."""


def is_problem(entry: Run | UnstartedRange) -> bool:
    """Whether something went wrong with a run, or with slots that did not start."""
    return entry.status in PROBLEMS and entry.reason not in ASKED_FOR


def problems_among(entries: Iterable[Run | UnstartedRange]) -> list[Run | UnstartedRange]:
    """The problems among entries of the ledger; a run that was run again counts by its rerun."""
    entries = list(entries)
    repeated = {each.rerun_of for each in entries if isinstance(each, Run)}
    return [
        each for each in entries if is_problem(each) and not (isinstance(each, Run) and each.id in repeated)
    ]


def latest_of_each(problems: Iterable[Run | UnstartedRange]) -> list[tuple[Run | UnstartedRange, int]]:
    """The latest problem of each schedule, of problems that come newest first, and how many slots of it are among them."""
    latest: dict[ScheduleKey, Run | UnstartedRange] = {}
    slots: Counter[ScheduleKey] = Counter()
    for each in problems:
        latest.setdefault(each.schedule_key, each)
        slots[each.schedule_key] += each.count if isinstance(each, UnstartedRange) else 1
    return [(each, slots[key]) for key, each in latest.items()]

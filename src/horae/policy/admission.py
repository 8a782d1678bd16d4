"""Admission: may a claimed run still start?

The worker asks after the claim, right before it calls the action. A denial ends the run as skipped, with the reason; nothing is
charged for it, and it is not retried.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from horae.model import Attempt, Denial, Reason, Run, State

_replace = msgspec.structs.replace


_DELETED = Denial(Reason.DELETED, "the schedule was deleted before the action was called")


class Facts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The facts that decide whether a claimed run may start."""

    deleted: bool = False
    """Whether its schedule was deleted since it was claimed."""
    unreadable: str = ""
    """Why its input cannot be read; empty if it can."""
    by_grant: Denial | None = None
    """Why its grant does not allow it; ``None`` if it does, or needs none."""
    by_executor: Denial | None = None
    """Why the executor of its action denies it; ``None`` if it does not."""


def admit(facts: Facts) -> Denial | None:
    """Why a claimed run must not start; ``None`` admits it."""
    if facts.deleted:
        return _DELETED
    if facts.unreadable:
        return Denial(Reason.NOT_STARTED, f"its input cannot be read: {facts.unreadable}")
    return facts.by_grant or facts.by_executor


def has_begun(earlier: Sequence[Attempt]) -> bool:
    """Whether any of a run's earlier attempts began."""
    return any(each.started_at_ms is not None for each in earlier)


def give_back(state: State, run: Run) -> State:
    """Return the state of a schedule with the start of a run that never began given back to its limit."""
    if not run.is_automatic or state.remaining_actions is None:
        return state
    return _replace(state, remaining_actions=state.remaining_actions + 1)

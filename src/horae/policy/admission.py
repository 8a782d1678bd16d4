"""Admission: may a claimed run still start?

The worker asks after the claim, right before it calls the action. A denial ends the run as skipped, with the reason; nothing is
charged for it, and it is not retried.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from horae.model import Attempt, Denial, Reason, Run, State

_DELETED = Denial(Reason.DELETED, "the schedule was deleted before the action was called")


def admit(
    *,
    deleted: bool = False,
    unreadable: str = "",
    by_grant: Denial | None = None,
    by_executor: Denial | None = None,
) -> Denial | None:
    """Why a claimed run must not start; ``None`` admits it.

    Its schedule may have been deleted since the claim, its input may be ``unreadable`` (the text says why), and its grant or the
    executor of its action may deny it.
    """
    if deleted:
        return _DELETED
    if unreadable:
        return Denial(Reason.NOT_STARTED, f"its input cannot be read: {unreadable}")
    return by_grant or by_executor


def has_begun(earlier: Sequence[Attempt]) -> bool:
    """Whether any of a run's earlier attempts began."""
    return any(each.started_at_ms is not None for each in earlier)


def give_back(state: State, run: Run) -> State:
    """Return the state of a schedule with the start of a run that never began given back to its limit."""
    if not run.is_automatic or state.remaining_actions is None:
        return state
    return msgspec.structs.replace(state, remaining_actions=state.remaining_actions + 1)

"""Admission: may a run that a node has claimed still happen?

Asked after the claim and right before the action is called. "No" ends the run as skipped, with the reason; nothing is charged
for it, and nothing is retried.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from horae.model import Attempt, Denial, Reason, Run, State

_replace = msgspec.structs.replace


_DELETED = Denial(Reason.DELETED, "the schedule was deleted before the action was called")


class Facts(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What bears on whether a claimed run may happen."""

    deleted: bool = False
    """Whether its schedule was deleted since it was claimed."""
    by_executor: Denial | None = None
    """What the executor of its action objects to."""


def admit(facts: Facts) -> Denial | None:
    """Why a claimed run must not happen; ``None`` admits it."""
    return _DELETED if facts.deleted else facts.by_executor


def has_begun(earlier: Sequence[Attempt]) -> bool:
    """Whether any of a run's earlier attempts began."""
    return any(each.started_at is not None for each in earlier)


def give_back(state: State, run: Run) -> State:
    """The state of a schedule after a run that never began: its start is left to another one."""
    if not run.is_automatic or state.remaining_actions is None:
        return state
    return _replace(state, remaining_actions=state.remaining_actions + 1)

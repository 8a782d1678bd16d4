"""The life cycle of a run: one table of transitions, from which the rest is derived."""

from __future__ import annotations

from horae.model import Status

S = Status
TRANSITIONS: dict[Status, frozenset[Status]] = {
    S.PENDING: frozenset({S.STARTING, S.SKIPPED, S.MISSED, S.DROPPED, S.CANCELLED, S.TERMINATED, S.TIMED_OUT}),
    S.RETRYING: frozenset({S.STARTING, S.FAILED, S.DROPPED, S.CANCELLED, S.TERMINATED}),
    S.STARTING: frozenset({S.PENDING, S.RUNNING, S.SKIPPED, S.DROPPED, S.CANCELLED, S.TERMINATED, S.TIMED_OUT}),
    S.RUNNING: frozenset({S.RETRYING, S.SUCCEEDED, S.FAILED, S.CANCELLED, S.TERMINATED, S.TIMED_OUT, S.SKIPPED, S.DROPPED}),
    S.SUCCEEDED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
    S.TERMINATED: frozenset(),
    S.TIMED_OUT: frozenset(),
    S.SKIPPED: frozenset(),
    S.MISSED: frozenset(),
    S.DROPPED: frozenset(),
}  # fmt: skip
"""A pending or retrying run becomes starting when it is released, and running when a node claims it; both happen in one transaction
if the deciding node can run it itself. A running one becomes retrying when an attempt ended and another follows. A starting one goes back
to pending if its schedule is paused before a node claims it. A running one becomes skipped if it is not admitted; its action is not called."""

ENDED = frozenset(status for status, following in TRANSITIONS.items() if not following)


def diagram() -> str:
    """The life cycle of a run as a Mermaid diagram."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    for status, following in TRANSITIONS.items():
        lines += [f"    {status} --> {after}" for after in Status if after in following]
        lines += [f"    {status} --> [*]"] if not following else []
    return "\n".join(lines)

"""What was seen of a campaign: the ledger, what the actions wrote, and what was done to the nodes.

Moments are milliseconds of the machine's monotonic clock, which all processes share, unless they are seconds of Unix time.
"""

from __future__ import annotations

import msgspec

from tests.chaos.fleet import Rhythm

BEGUN, DONE, FAILED, STOPPED = "begun", "done", "failed", "stopped"
OPEN = frozenset({"pending", "retrying", "starting", "running"})
"""The statuses of runs that have not ended."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """What an action wrote: it has begun, or how it ended."""

    word: str
    run_id: str
    attempt: int
    key: str
    at: int
    process: str = ""
    """The process that wrote it, filled in by who reads its file."""


class RunRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of the ledger."""

    id: str
    schedule: str
    nominal: int
    origin: str
    overlap: str
    status: str
    attempt: int
    fire_at: int


class UnstartedRow(msgspec.Struct, frozen=True, array_like=True):
    """A range of slots that did not run."""

    schedule: str
    first: int
    last: int
    count: int
    reason: str


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a schedule has come: the second it was created in, and the last slot that was decided."""

    schedule: str
    created: int
    cursor: int


class BackfillRow(msgspec.Struct, frozen=True, array_like=True):
    """A backfill in the ledger."""

    id: str
    schedule: str
    status: str


class Disturbance(msgspec.Struct, frozen=True, array_like=True):
    """A fault as it happened."""

    kind: str
    node: int
    process: str
    """The process that a node was when it began."""
    began: int
    ended: int


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """A change of rhythm: it came into force between these two seconds of Unix time."""

    schedule: str
    rhythm: Rhythm
    asked: int
    answered: int


class AskedBackfill(msgspec.Struct, frozen=True, array_like=True):
    """A backfill that was accepted; both ends are included."""

    id: str
    schedule: str
    first: int
    last: int


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What ``explain`` says of a slot."""

    schedule: str
    nominal: int
    verdict: str


class Evidence(msgspec.Struct, kw_only=True):
    """All that the checker judges."""

    lease: int
    cutoff: int
    """The second of Unix time at which the last fault was over: slots up to it must be decided."""
    wall: int
    """Milliseconds of Unix time when the monotonic clock was at 0."""
    places: list[Place]
    runs: list[RunRow]
    unstarted: list[UnstartedRow] = []
    backfills: list[BackfillRow] = []
    lines: list[Line] = []
    disturbances: list[Disturbance] = []
    edits: list[Edit] = []
    triggers: list[str] = []
    """The runs that accepted triggers named."""
    asked_backfills: list[AskedBackfill] = []
    answers: list[Answer] = []
    connections: list[list[int]] = []
    """When each node asked the database for connections."""
    ended_by_itself: list[str] = []
    """Processes that ended although they were not asked to, or not as asked."""
    errors: list[str] = []
    """Errors in the logs of nodes that Horae did not expect."""

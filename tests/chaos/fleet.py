"""The schedules of a campaign: all times are plain arithmetic, so that what is expected needs no scheduler.

A slot of a rhythm is each second of Unix time that leaves ``phase`` when it is divided by ``every``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from horae import CatchUp, CatchUpPolicy, OnResume, Overlap, Policies, RetryPolicy, Timeouts


class Rhythm(NamedTuple):
    """Every so many seconds, so many seconds after the full."""

    every: int
    phase: int
    cron: bool = False
    """Given as a cron expression by the second; else as an interval."""

    def names(self, second: int) -> bool:
        return second % self.every == self.phase

    def slots(self, after: int, until: int) -> range:
        """The slots after one second, up to and including another."""
        first = after + 1 + (self.phase - after - 1) % self.every
        return range(first, until + 1, self.every)

    def spec(self, jitter: int) -> dict[str, Any]:
        if self.cron:
            seconds = ",".join(str(second) for second in range(60) if self.names(second))
            spec: dict[str, Any] = {"crons": [f"{seconds} * * * * *"]}
        else:
            spec = {"intervals": [{"every": f"{self.every}s", "phase": f"{self.phase}s"}]}
        return spec | ({"jitter": f"{jitter}s"} if jitter else {})


class Kind(NamedTuple):
    """What schedules of one kind do, and what is watched about them."""

    name: str
    policies: Policies
    seconds: float
    """How long an attempt takes."""
    rhythms: tuple[tuple[int, bool], ...]
    """Every how many seconds, and whether as a cron expression."""
    failures: int = 0
    """How many attempts fail first."""
    jitter: int = 0
    operation: str = ""
    """What the operator does to them: ``pause``, ``edit``, ``trigger``, ``backfill``."""


class Planned(NamedTuple):
    """A schedule of the campaign."""

    id: str
    kind: Kind
    rhythm: Rhythm

    @property
    def at_once(self) -> int | None:
        """How many attempts of its automatic runs may run at once; ``None`` is any number."""
        policies = self.kind.policies
        if policies.max_concurrent is not None:
            return policies.max_concurrent
        return None if policies.overlap is Overlap.ALLOW_ALL else 1

    @property
    def input(self) -> dict[str, Any]:
        return {"seconds": self.kind.seconds, "failures": self.kind.failures}


ALLOW = Policies(overlap=Overlap.ALLOW_ALL)
QUICK_RETRY = RetryPolicy(attempts=3, initial_delay="200ms")
FAST = ((2, True), (3, False), (4, True), (7, False))
CALM = ((3, True), (5, False), (6, True), (11, False))

KINDS = (
    Kind("skip", Policies(overlap=Overlap.SKIP), 0.1, FAST),
    Kind("skip-long", Policies(overlap=Overlap.SKIP), 5, CALM),
    Kind("skip-once", Policies(overlap=Overlap.SKIP, at_most_once=True), 2, CALM),
    Kind("buffer-one", Policies(overlap=Overlap.BUFFER_ONE), 3, CALM),
    Kind("buffer-all", Policies(overlap=Overlap.BUFFER_ALL), 0.3, FAST),
    Kind("allow", ALLOW, 0.1, FAST),
    Kind("allow-long", ALLOW, 6, CALM),
    Kind("allow-once", Policies(overlap=Overlap.ALLOW_ALL, at_most_once=True), 1, FAST),
    Kind("cancel", Policies(overlap=Overlap.CANCEL_OTHER, timeouts=Timeouts(cancel="1s")), 7, CALM),
    Kind("terminate", Policies(overlap=Overlap.TERMINATE_OTHER), 7, CALM),
    Kind("jitter", ALLOW, 0.1, CALM, jitter=4),
    Kind("jitter-skip", Policies(overlap=Overlap.SKIP), 1, CALM, jitter=2),
    Kind("retry", Policies(overlap=Overlap.BUFFER_ALL, retry=QUICK_RETRY), 0.1, CALM, failures=1),
    Kind("fail", Policies(overlap=Overlap.SKIP, retry=QUICK_RETRY), 0.1, CALM, failures=99),
    Kind("two-at-once", Policies(overlap=Overlap.ALLOW_ALL, max_concurrent=2), 1.5, FAST),
    Kind("latest", Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST, grace="1s")), 0.1, FAST),
    Kind("spread", Policies(catch_up=CatchUpPolicy(mode=CatchUp.SPREAD, grace="1s", spread="5s")), 0.1, FAST),
    Kind("in-time", Policies(overlap=Overlap.ALLOW_ALL, catch_up=CatchUpPolicy(window="2s", grace="2s")), 0.1, FAST),
    Kind("paused", ALLOW, 0.1, FAST, operation="pause"),
    Kind("paused-long", Policies(overlap=Overlap.BUFFER_ALL), 1, CALM, operation="pause"),
    Kind("paused-skip", Policies(on_resume=OnResume.SKIP), 0.1, CALM, operation="pause"),
    Kind("edited", ALLOW, 0.1, FAST, operation="edit"),
    Kind("edited-jitter", Policies(overlap=Overlap.BUFFER_ALL), 0.1, CALM, jitter=2, operation="edit"),
    Kind("triggered", Policies(overlap=Overlap.SKIP), 2, CALM, operation="trigger"),
    Kind("backfilled", ALLOW, 0.2, CALM, operation="backfill"),
)  # fmt: skip


def fleet() -> list[Planned]:
    """All schedules: the kinds in their rhythms, each with its own phase."""
    return [
        Planned(f"{kind.name}-{every}", kind, Rhythm(every, place % every, cron))
        for place, kind in enumerate(KINDS)
        for every, cron in kind.rhythms
    ]

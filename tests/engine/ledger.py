"""The ledger that a simulation leaves, and what must hold of it."""

from __future__ import annotations

from collections import Counter

from horae.model import (
    AUTOMATIC,
    BackfillStatus,
    CatchUp,
    Counts,
    Origin,
    OriginKind,
    Overlap,
    Run,
    Schedule,
    ScheduleKey,
    Status,
    Version,
)
from horae.policy.admission import has_begun
from horae.policy.catch_up import fire_instant
from horae.policy.lifecycle import ENDED
from horae.spec import Spec
from tests.engine.simulator import World

KEY = ScheduleKey("s")


class Ledger:
    """Everything the database says about the schedule, read at the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.runs: list[Run] = []
        self.unstarted: list[int] = []
        self.versions: list[Version] = []

    async def read(self) -> None:
        async with self.world.store.transaction() as transaction:
            self.runs = await transaction.runs(KEY, 1_000_000)
            self.ranges = await transaction.unstarted_ranges(KEY, 1_000_000)
            self.versions = await transaction.versions(KEY, 1000)
            self.schedule: Schedule = (await transaction.schedules([KEY]))[0]
            self.backfills = await transaction.backfills(KEY, 1000)
            self.counts: Counts = (await transaction.counts_of([KEY]))[KEY]
            denied = [run.id for run in self.runs if run.status is Status.SKIPPED and run.attempt]
            self.never_began = {
                each for each in denied if not has_begun(await transaction.attempts(each, 1000))
            }
            self.checkpoints = await transaction.checkpoints([run.id for run in self.runs])

    def expected(self) -> list[int]:
        """All slots there were: by the spec that was in force when each was due."""
        created = self.schedule.created_at_ms // 1000
        found: list[int] = []
        after = created
        for version in reversed(self.versions):
            until = version.until_ms // 1000
            found += Spec.parse(version.spec).instants(after, until, 1_000_000)
            after = max(after, until)
        waiting = {
            each.nominal_ms // 1000 for each in self.schedule.state.carried
        }  # an edit left them due, and they were not decided
        found = [nominal for nominal in found if nominal not in waiting]
        return found + Spec.parse(self.schedule.spec).instants(
            after, self.schedule.cursor_ms // 1000, 1_000_000
        )

    def lost_by_edits(self) -> list[int]:
        """Slots that an edit skipped although the new spec has them too, and none is ever too late."""
        catch_up = self.world.policies.catch_up
        if catch_up.window is not None or catch_up.mode is CatchUp.NONE:
            return []
        oldest_first = self.versions[::-1]
        texts = [*(version.spec for version in oldest_first[1:]), self.schedule.spec]
        edits = [
            (version.until_ms, Spec.parse(text)) for version, text in zip(oldest_first, texts, strict=False)
        ]
        lost = []
        for each in self.ranges:
            specs = [spec for until, spec in edits if until == each.decided_at_ms]
            if each.reason == "edited" and specs:
                lost += [
                    n
                    for n in {each.start_ms // 1000, each.end_ms // 1000}
                    if all(s.next_instant(n - 1) == n for s in specs)
                ]
        return lost

    def ahead_of_edits(self) -> set[int]:
        """Slots that jitter brought forward to before an edit, though their nominal time is after it."""
        found = set()
        for version in self.versions:
            spec, until = Spec.parse(version.spec), version.until_ms // 1000
            found |= {
                n
                for n in spec.instants(until, until + 60)
                if fire_instant(spec, n * 1000, "s") <= version.until_ms
            }
        return found

    def unstarted_slots(self) -> list[int]:
        """The slots of all ranges, by the spec that was in force when each was decided."""
        found = []
        for each in self.ranges:
            texts = [v.spec for v in reversed(self.versions) if v.until_ms >= each.decided_at_ms]
            counts = [
                Spec.parse(text).instants(each.start_ms // 1000 - 1, each.end_ms // 1000, 1_000_000)
                for text in [*texts, self.schedule.spec]
            ]
            fitting = [
                slots for slots in counts if len(slots) == each.count and slots[:1] == [each.start_ms // 1000]
            ]
            assert fitting, each
            found += fitting[0]
        return found


def check(world: World, ledger: Ledger) -> None:
    automatic = [run.nominal_ms // 1000 for run in ledger.runs if run.origin == AUTOMATIC]
    # Each slot is decided exactly once, and none is forgotten.
    decided = Counter(automatic + ledger.unstarted_slots())
    expected = Counter(ledger.expected())
    assert expected - decided == Counter()
    assert set(decided - expected) <= ledger.ahead_of_edits()
    assert max(decided.values(), default=1) == 1
    assert ledger.lost_by_edits() == []
    check_runs(world, ledger)
    check_backfills(ledger)
    check_counts(ledger)
    # No attempt was begun twice, and none was begun, or went on, in a node whose lease was over.
    assert all(times == 1 for times in world.calls.values())
    assert world.started_without_lease == []
    assert world.running_without_lease == []


def check_runs(world: World, ledger: Ledger) -> None:
    policies = world.policies
    called = Counter(run_id for run_id, _ in world.calls)
    going_on = any(run.status not in {*ENDED, Status.PENDING} for run in ledger.runs)
    for run in ledger.runs:
        assert called[run.id] <= run.attempt
        assert run.attempt or run.status not in {Status.SUCCEEDED, Status.FAILED, Status.RETRYING}
        assert run.status is not Status.PENDING or not run.attempt
        assert run.status not in ENDED or run.ended_at_ms is not None
        if policies.at_most_once:
            assert called[run.id] <= run.failures + 1
        if policies.retry.attempts is not None:
            assert run.failures <= policies.retry.attempts
        # Everything came to its end, but for what still takes its time or waits behind that.
        if run.status is Status.STARTING:
            assert world.concurrency == 2, f"no node took {run}"
        if run.status is Status.PENDING and not going_on:
            assert run.start_at_ms > world.now(), f"no node released {run}"
    # A schedule never overlaps itself unless it was allowed to, or a node was taken for dead while it lived.
    free = policies.overlap is Overlap.ALLOW_ALL or any(r.overlap is Overlap.ALLOW_ALL for r in ledger.runs)
    if not world.stalled and policies.max_concurrent is not None:
        assert world.most_live <= policies.max_concurrent
    elif not world.stalled and not free:
        assert world.most_live <= 1


def check_backfills(ledger: Ledger) -> None:
    """Each of a backfill's slots has one run, unless it was cancelled or its spec changed before its end."""
    for backfill in ledger.backfills:
        made = sorted(
            run.nominal_ms // 1000
            for run in ledger.runs
            if run.origin == Origin(OriginKind.BACKFILL, backfill.id)
        )
        assert len(made) == backfill.made == len(set(made))
        assert all(backfill.start_ms // 1000 <= nominal <= backfill.end_ms // 1000 for nominal in made)
        if not ledger.versions and backfill.status is BackfillStatus.DONE:
            spec = Spec.parse(ledger.schedule.spec)
            assert made == spec.instants(backfill.start_ms // 1000 - 1, backfill.end_ms // 1000, 1_000_000)
            assert backfill.made == backfill.total


def check_counts(ledger: Ledger) -> None:
    """What was counted on the way is what the ledger holds."""
    found = Counter[str]()
    for each in ledger.ranges:
        found[each.reason] += each.count
    started = [run for run in ledger.runs if run.attempt and run.id not in ledger.never_began]
    found.update(run.reason for run in ledger.runs if run.status in ENDED and run not in started)
    for by_hand in ("cancelled", "terminated", "backfill_cancelled"):  # runs that were stopped manually
        del found[by_hand]
    assert dict(ledger.counts.unstarted) == dict(found)
    assert ledger.counts.started >= len(started)

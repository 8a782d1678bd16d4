"""Judges what was seen of a campaign. What is expected is arithmetic; nothing here asks Horae when something is due."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.evidence import BEGUN, DONE, OPEN, Disturbance, Edit, Evidence, Line, RunRow
from tests.chaos.fleet import Planned, Rhythm
from tests.chaos.plan import EVERYTHING, KILL, LOSING, NODES, STOP

TAKEOVER_BOUND = 5000
"""Milliseconds after the end of a lease within which a living node, undisturbed, has taken over."""
RECOVERY = 3000
"""Milliseconds that a node has to start, or to find the database again, before it counts as undisturbed."""
LETTING_GO = 2000
"""Milliseconds for which a process that stood still may keep running what others took over, once it resumes."""
MAX_EARLY = 1000
"""Milliseconds that a node's clock may be ahead before it notices."""
MAX_CONNECTIONS = 100
"""Connections that a node asks for in one second: a pool is a tenth of it, and each is tried a few times."""
UNANSWERED = frozenset({"undecided", "unknown"})
ENDLESS = 1 << 62


class Findings:
    """What was counted, and what must not be."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.problems: list[str] = []

    def fail(self, name: str, problems: Iterable[str]) -> None:
        """Count what must not be; each is a problem in words."""
        found = list(problems)
        self.counts[name] = len(found)
        self.problems += [f"{name}: {each}" for each in found]


class Attempt(NamedTuple):
    """An attempt as its action wrote it down, from its first line to its last, or to the end of its process."""

    run: RunRow
    number: int
    process: str
    began: int
    ended: int
    word: str
    """How it ended; empty if its process was killed first."""


class Segment(NamedTuple):
    """A span in which an attempt was running, and its process was not standing still."""

    began: int
    ended: int
    attempt: Attempt
    stood_still: bool
    """Its process stood still before."""


def check(evidence: Evidence, schedules: list[Planned]) -> Findings:
    """Everything that is to hold."""
    findings = Findings()
    check_slots(findings, evidence, schedules)
    check_edited(findings, evidence, schedules)
    check_by_hand(findings, evidence, schedules)
    check_begun(findings, evidence, schedules)
    attempts = attempts_of(evidence)
    check_overlap(findings, evidence, schedules, attempts)
    check_takeovers(findings, evidence, attempts)
    check_lateness(findings, evidence, schedules, attempts)
    check_connections(findings, evidence)
    findings.counts["answers of explain"] = len(evidence.answers)
    findings.fail(
        "slots without an answer", (f"{each}" for each in evidence.answers if each.verdict in UNANSWERED)
    )
    findings.fail("processes that ended by themselves", evidence.ended_by_itself)
    findings.fail("unexpected errors in the logs of nodes", evidence.errors)
    return findings  # fmt: skip


def check_slots(findings: Findings, evidence: Evidence, schedules: list[Planned]) -> None:
    """Each slot of a schedule that keeps its rhythm is decided once, up to the end of the campaign at least."""
    decided = decided_slots(evidence, {each.id: each.rhythm for each in schedules})
    places = {place.schedule: place for place in evidence.places}
    expected_number = decided_number = 0
    missing, double, unexpected = [], [], []
    for schedule in schedules:
        if schedule.kind.operation == "edit":
            continue
        place, found = places[schedule.id], decided[schedule.id]
        expected = schedule.rhythm.slots(place.created, max(place.cursor, evidence.cutoff))
        expected_number += len(expected)
        decided_number += sum(found.values())
        missing += [f"{schedule.id} at {slot}" for slot in expected if slot not in found]
        double += [f"{schedule.id} at {slot}, {times} times" for slot, times in found.items() if times > 1]
        unexpected += [f"{schedule.id} at {slot}" for slot in found if slot not in expected]
    findings.counts |= {"slots expected": expected_number, "slots decided": decided_number}
    findings.fail("slots missing", missing)
    findings.fail("slots decided twice", double)
    findings.fail("slots that the spec does not name", unexpected)
    left = [run for run in evidence.runs if run.status in OPEN and run.nominal <= evidence.cutoff]
    findings.fail("runs stuck", (f"{run.schedule} at {run.nominal}, {run.status}, {run.id}" for run in left))
    kept = {each.id for each in schedules if each.kind.operation != "edit"}
    uneven = [
        each for each in evidence.unstarted
        if each.schedule in kept and len(_slots_of(each.schedule, schedules, each.first, each.last)) != each.count
    ]  # fmt: skip
    findings.fail("ranges that count wrongly", (f"{each}" for each in uneven))


def _slots_of(schedule_id: str, schedules: list[Planned], first: int, last: int) -> range:
    (rhythm,) = (each.rhythm for each in schedules if each.id == schedule_id)
    return rhythm.slots(first - 1, last)


def decided_slots(evidence: Evidence, rhythms: dict[str, Rhythm]) -> dict[str, Counter[int]]:
    """How often the ledger has each automatic slot: as a run, or in a range of those that did not run."""
    decided: dict[str, Counter[int]] = defaultdict(Counter)
    for run in evidence.runs:
        if run.origin == "automatic":
            decided[run.schedule][run.nominal] += 1
    for each in evidence.unstarted:
        decided[each.schedule].update(rhythms[each.schedule].slots(each.first - 1, each.last))
    return decided


def check_edited(findings: Findings, evidence: Evidence, schedules: list[Planned]) -> None:
    """Of schedules whose rhythm changes: no slot twice; and while a rhythm was surely in force, each of its slots."""
    missing, double, expected_number = [], [], 0
    places = {place.schedule: place for place in evidence.places}
    for schedule in schedules:
        if schedule.kind.operation != "edit":
            continue
        runs = Counter(
            run.nominal for run in evidence.runs if (run.schedule, run.origin) == (schedule.id, "automatic")
        )
        ranges = [each for each in evidence.unstarted if each.schedule == schedule.id]
        double += [f"{schedule.id} at {slot}" for slot, times in runs.items() if times > 1]
        created = Edit(schedule.id, schedule.rhythm, places[schedule.id].created, places[schedule.id].created)
        for slot in _surely(schedule.id, created, evidence):
            expected_number += 1
            unstarted = any(each.first <= slot <= each.last for each in ranges)
            if slot not in runs and not unstarted:
                missing.append(f"{schedule.id} at {slot}")
            if slot in runs and unstarted:
                double.append(f"{schedule.id} at {slot}")
    findings.counts["slots of edited schedules expected"] = expected_number
    findings.fail("slots of edited schedules missing", missing)
    findings.fail("slots of edited schedules decided twice", double)


def _surely(schedule_id: str, created: Edit, evidence: Evidence) -> Iterator[int]:
    """The slots of each rhythm between the edit that brought it and the one that ended it.

    Of edits that were made at the same time, either may be the later one: neither rhythm is surely in force.
    """
    edits = sorted(
        (each for each in evidence.edits if each.schedule == schedule_id), key=lambda each: each.asked
    )
    end = Edit(schedule_id, created.rhythm, evidence.cutoff, evidence.cutoff)
    for edit, following in pairwise([created, *edits, end]):
        if any(_at_once(edit, each) for each in edits if each is not edit):
            continue
        # The operator's clock and the database's are read a moment apart.
        yield from edit.rhythm.slots(edit.answered + 1, following.asked - 2)


def _at_once(one: Edit, other: Edit) -> bool:
    return one.asked <= other.answered and other.asked <= one.answered


def check_by_hand(findings: Findings, evidence: Evidence, schedules: list[Planned]) -> None:
    """What the operator asked for, and was told is done, is in the ledger."""
    known = {run.id for run in evidence.runs}
    findings.counts["triggers"] = len(evidence.triggers)
    findings.fail("triggers lost", (each for each in evidence.triggers if each not in known))
    states = {each.id: each.status for each in evidence.backfills}
    wrong, slots = [], 0
    for asked in evidence.asked_backfills:
        expected = _slots_of(asked.schedule, schedules, asked.first, asked.last)
        made = sorted(run.nominal for run in evidence.runs if run.origin == f"backfill:{asked.id}")
        slots += len(expected)
        if states.get(asked.id) != "done" or made != list(expected):
            wrong.append(f"{asked}: {states.get(asked.id)}, {len(made)} of {len(expected)} slots")
    findings.counts |= {"backfills": len(evidence.asked_backfills), "slots of backfills expected": slots}
    findings.fail("backfills with slots missing or too many", wrong)


def check_begun(findings: Findings, evidence: Evidence, schedules: list[Planned]) -> None:
    """What actions wrote and what the ledger says of it agree."""
    runs = {run.id: run for run in evidence.runs}
    once = {each.id for each in schedules if each.kind.policies.at_most_once}
    begun = [line for line in evidence.lines if line.word == BEGUN]
    findings.counts["attempts begun"] = len(begun)
    findings.fail("attempts that the ledger does not know", (
        f"{line}" for line in begun
        if line.run_id not in runs or line.attempt > runs[line.run_id].attempt or line.key != _key(runs[line.run_id])
    ))  # fmt: skip
    twice = Counter((line.run_id, line.attempt) for line in begun)
    findings.fail("attempts begun twice", (f"{each}" for each, times in twice.items() if times > 1))
    times = Counter(
        line.run_id for line in begun if line.run_id in runs and runs[line.run_id].schedule in once
    )
    findings.counts["at-most-once runs"] = len(times)
    findings.fail("at-most-once runs begun twice", (f"{runs[each]}" for each, n in times.items() if n > 1))
    done = {(line.run_id, line.attempt) for line in evidence.lines if line.word == DONE}
    succeeded = [run for run in evidence.runs if run.status == "succeeded"]
    findings.counts["runs succeeded"] = len(succeeded)
    findings.fail(
        "runs that succeeded only in the ledger",
        (f"{run}" for run in succeeded if (run.id, run.attempt) not in done),
    )
    findings.fail("runs begun before their time", (
        f"{runs[line.run_id]} by {runs[line.run_id].fire_at - evidence.wall - line.at} ms" for line in begun
        if line.run_id in runs and line.at + evidence.wall < runs[line.run_id].fire_at - MAX_EARLY
    ))  # fmt: skip


def _key(run: RunRow) -> str:
    """The key that the documentation promises: of an automatic slot a hash of the schedule and the second."""
    if run.origin != "automatic":
        return run.id
    return sha256(f"{run.schedule}:{run.nominal}".encode()).hexdigest()


def attempts_of(evidence: Evidence) -> list[Attempt]:
    """The attempts, in the order in which they began."""
    runs = {run.id: run for run in evidence.runs}
    killed = {each.process: each.began for each in evidence.disturbances if each.kind == KILL}
    ends: dict[tuple[str, int, str], Line] = {
        (line.run_id, line.attempt, line.process): line for line in evidence.lines if line.word != BEGUN
    }
    attempts = []
    for line in evidence.lines:
        if line.word != BEGUN or line.run_id not in runs:
            continue
        end = ends.get((line.run_id, line.attempt, line.process))
        ended = max(killed.get(line.process, ENDLESS), line.at) if end is None else end.at
        word = "" if end is None else end.word
        attempts.append(Attempt(runs[line.run_id], line.attempt, line.process, line.at, ended, word))
    return sorted(attempts, key=lambda each: each.began)


def check_overlap(
    findings: Findings, evidence: Evidence, schedules: list[Planned], attempts: list[Attempt]
) -> None:
    """No more attempts of a schedule go on at once than it allows, and of one run never two."""
    stops: dict[str, list[Disturbance]] = defaultdict(list)
    for each in evidence.disturbances:
        if each.kind == STOP:
            stops[each.process].append(each)
    limits = {each.id: each.kind.policies.max_concurrent for each in schedules}
    groups: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for attempt in attempts:
        segments = list(_segments(attempt, stops[attempt.process]))
        limit = limits[attempt.run.schedule]
        groups[f"the run {attempt.run.id} of {attempt.run.schedule}", 1] += segments
        if limit is not None:
            groups[attempt.run.schedule, limit] += segments
        elif attempt.run.overlap != "allow_all":
            groups[attempt.run.schedule, 1] += segments
    overlaps = [each for (name, limit), found in groups.items() for each in _overlaps(name, limit, found)]
    awake = [each for each in overlaps if not each.stood_still]
    after = [each.lasts for each in overlaps if each.stood_still]
    findings.fail("attempts that overlap", (each.words for each in awake))
    findings.counts["longest such overlap, ms"] = max((each.lasts for each in awake), default=0)
    findings.counts["overlaps right after standing still"] = len(after)
    findings.counts["longest after standing still, ms"] = max(after, default=0)
    findings.fail("attempts that did not let go after standing still", (
        each.words for each in overlaps if each.stood_still and each.lasts > LETTING_GO
    ))  # fmt: skip


def _segments(attempt: Attempt, stops: list[Disturbance]) -> Iterator[Segment]:
    """An attempt without the whiles in which its process stood still."""
    began, stood_still = attempt.began, False
    for stop in sorted(stops, key=lambda each: each.began):
        if stop.ended <= attempt.began or stop.began >= attempt.ended:
            continue
        if stop.began > began:
            yield Segment(began, stop.began, attempt, stood_still)
        began, stood_still = max(began, stop.ended), True
    if attempt.ended > began:
        yield Segment(began, attempt.ended, attempt, stood_still)


class Overlapping(NamedTuple):
    """More attempts at once than may be."""

    lasts: int
    stood_still: bool
    words: str


def _overlaps(name: str, limit: int, segments: list[Segment]) -> Iterator[Overlapping]:
    going_on: list[Segment] = []
    for segment in sorted(segments, key=lambda each: each.began):
        going_on = [each for each in going_on if each.ended > segment.began]
        others = [each for each in going_on if each.attempt != segment.attempt]
        if len(others) >= limit:
            lasts = min(segment.ended, max(each.ended for each in others)) - segment.began
            stood_still = segment.stood_still or any(each.stood_still for each in others)
            names = ", ".join(
                f"{each.attempt.run.nominal} attempt {each.attempt.number} in {each.attempt.process}"
                for each in [*others, segment]
            )
            yield Overlapping(lasts, stood_still, f"{name}: {names}, for {lasts} ms from {segment.began}")
        going_on.append(segment)


def check_takeovers(findings: Findings, evidence: Evidence, attempts: list[Attempt]) -> None:
    """What a lost node was doing is begun again by another that is left in peace for a lease and a little."""
    by_run: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_run[attempt.run.id].append(attempt)
    bound = evidence.lease + TAKEOVER_BOUND
    delays, late = [], []
    for held, again in (pair for found in by_run.values() for pair in pairwise(found)):
        fault = _loss(held, again, evidence.disturbances)
        if fault is None:
            continue
        lost = max(held.began, fault.began)
        delays.append(again.began - lost)
        peace = longest_peace(lost, again.began, evidence.disturbances)
        if peace > bound:
            late.append(f"{again.run}: {again.began - lost} ms after {fault}, {peace} ms of them in peace")
    findings.counts["takeovers"] = len(delays)
    findings.counts["longest takeover, ms"] = max(delays, default=0)
    findings.counts[f"takeovers that took longer than {bound} ms"] = sum(delay > bound for delay in delays)
    findings.fail("of these while a node was left in peace for so long", late)


def _loss(held: Attempt, again: Attempt, disturbances: list[Disturbance]) -> Disturbance | None:
    """The fault that an attempt was lost by, if it was: it did not end by itself, and its node was lost in that time."""
    if held.word in {"done", "failed"}:
        return None
    found = [
        each for each in disturbances
        if each.kind in LOSING and each.process == held.process
        and each.began < again.began and each.ended > held.began
    ]  # fmt: skip
    return min(found, key=lambda each: each.began, default=None)


def longest_peace(began: int, ended: int, disturbances: list[Disturbance]) -> int:
    """The longest while between two moments in which some node and the database were not disturbed."""
    longest = 0
    for node in range(NODES):
        reached = began
        for each in sorted(disturbances, key=lambda each: each.began):
            if each.node in {node, EVERYTHING} and each.ended + RECOVERY > reached:
                longest = max(longest, min(each.began, ended) - reached)
                reached = each.ended + RECOVERY
        longest = max(longest, ended - reached)
    return longest


def check_lateness(
    findings: Findings, evidence: Evidence, schedules: list[Planned], attempts: list[Attempt]
) -> None:
    """How late the first attempts of slots began that wait for nothing but a node: a measure, not a promise."""
    prompt = {each.id for each in schedules if each.at_once is None and each.kind.operation != "pause"}
    first: dict[str, int] = {}
    for each in attempts:
        if each.run.origin == "automatic" and each.run.schedule in prompt:
            first.setdefault(each.run.id, each.began + evidence.wall - each.run.fire_at)
    late = sorted(first.values()) or [0]
    for name, share in (("half", 50), ("of 99 in 100", 99), ("at most", 100)):
        findings.counts[f"lateness, {name}, ms"] = late[(len(late) - 1) * share // 100]


def check_connections(findings: Findings, evidence: Evidence) -> None:
    """A node that cannot reach the database tries again, and does not storm it."""
    busiest = [busiest_second(moments) for moments in evidence.connections]
    findings.counts["connections in the busiest second of a node"] = max(busiest, default=0)
    findings.fail("nodes that stormed the database for connections", (
        f"node {node}: {count} in a second" for node, count in enumerate(busiest) if count > MAX_CONNECTIONS
    ))  # fmt: skip


def busiest_second(moments: list[int]) -> int:
    """How many of some moments, in milliseconds and in order, lie within one second at most."""
    most = first = 0
    for place, moment in enumerate(moments):
        while moments[first] <= moment - 1000:
            first += 1
        most = max(most, place - first + 1)
    return most


def faults_by_kind(evidence: Evidence) -> dict[str, int]:
    return dict(sorted(Counter(each.kind for each in evidence.disturbances).items()))

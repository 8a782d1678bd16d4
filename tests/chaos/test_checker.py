"""The checker of the campaign finds what is planted, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import msgspec
import pytest

from horae import Overlap, Policies
from tests.chaos.checker import RECOVERY, busiest_second, check, longest_peace
from tests.chaos.evidence import (
    BEGUN,
    DONE,
    Answer,
    AskedBackfill,
    BackfillRow,
    Disturbance,
    Edit,
    Evidence,
    Line,
    Place,
    RunRow,
    UnstartedRow,
)
from tests.chaos.fleet import Kind, Planned, Rhythm
from tests.chaos.plan import CUT, EVERYTHING, KILL, RESTART, SKEW, STOP

START, CUTOFF = 1_000_000, 1_000_040
WALL = START * 1000
"""The monotonic clock was at 0 when the schedules were created."""
EVERY_TEN = Rhythm(10, 0)
SKIP = Planned("skip", Kind("skip", Policies(overlap=Overlap.SKIP), 5, ()), EVERY_TEN)
ONCE = Planned("once", Kind("once", Policies(overlap=Overlap.ALLOW_ALL, at_most_once=True), 5, ()), EVERY_TEN)
EDITED = Planned(
    "edited", Kind("edited", Policies(overlap=Overlap.ALLOW_ALL), 5, (), operation="edit"), EVERY_TEN
)
SCHEDULES = [SKIP, ONCE, EDITED]  # fmt: skip
SLOTS = [START + 10, START + 20, START + 30, START + 40]


def run_of(schedule: Planned, nominal: int, attempt: int = 1, origin: str = "automatic") -> RunRow:
    overlap = str(schedule.kind.policies.overlap)
    return RunRow(
        f"{schedule.id}@{nominal}",
        schedule.id,
        nominal,
        origin,
        overlap,
        "succeeded",
        attempt,
        nominal * 1000,
    )


def lines_of(
    run: RunRow, began: int, ended: int | None, attempt: int = 1, process: str = "0.1"
) -> list[Line]:
    """What an attempt writes; without an end if it is killed."""
    key = sha256(f"{run.schedule}:{run.nominal}".encode()).hexdigest()
    begun = Line(BEGUN, run.id, attempt, key, began, process)
    return [begun] if ended is None else [begun, Line(DONE, run.id, attempt, key, ended, process)]


def clean() -> Evidence:
    """A campaign in which nothing went wrong: three schedules of every ten seconds, each run takes five."""
    runs = [run_of(schedule, slot) for schedule in SCHEDULES for slot in SLOTS]
    return Evidence(
        lease=4000, cutoff=CUTOFF, wall=WALL,
        places=[Place(schedule.id, START, CUTOFF) for schedule in SCHEDULES],
        runs=runs,
        lines=[
            line for run in runs
            for line in lines_of(run, (run.nominal - START) * 1000, (run.nominal - START) * 1000 + 5000)
        ],
    )  # fmt: skip


def found(evidence: Evidence) -> set[str]:
    """The names of the problems."""
    return {problem.partition(":")[0] for problem in check(evidence, SCHEDULES).problems}


def find_run(evidence: Evidence, schedule: Planned, nominal: int) -> RunRow:
    (run,) = (run for run in evidence.runs if (run.schedule, run.nominal) == (schedule.id, nominal))
    return run


def forget(evidence: Evidence, run: RunRow) -> None:
    """Take a run and its lines out."""
    evidence.runs.remove(run)
    evidence.lines = [line for line in evidence.lines if line.run_id != run.id]


def test_a_campaign_without_faults_is_clean():
    findings = check(clean(), SCHEDULES)
    assert findings.problems == []
    assert (findings.counts["slots expected"], findings.counts["slots decided"]) == (8, 8)
    assert findings.counts["at-most-once runs"] == 4


def test_unstarted_slots_are_decided():
    evidence = clean()
    for slot in (START + 20, START + 30):
        forget(evidence, find_run(evidence, SKIP, slot))
    evidence.unstarted = [UnstartedRow(SKIP.id, START + 20, START + 30, 2, "overlap")]
    assert found(evidence) == set()
    evidence.unstarted = [UnstartedRow(SKIP.id, START + 20, START + 30, 3, "overlap")]
    assert found(evidence) == {"ranges that count wrongly"}


def missing(evidence: Evidence) -> None:
    forget(evidence, find_run(evidence, SKIP, START + 20))


def undecided(evidence: Evidence) -> None:
    forget(evidence, find_run(evidence, SKIP, START + 40))
    evidence.places[0] = Place(SKIP.id, START, START + 30)


def twice(evidence: Evidence) -> None:
    evidence.runs.append(msgspec.structs.replace(find_run(evidence, SKIP, START + 20), id="another"))


def also_passed(evidence: Evidence) -> None:
    evidence.unstarted = [UnstartedRow(SKIP.id, START + 20, START + 20, 1, "late")]


def unnamed(evidence: Evidence) -> None:
    evidence.runs.append(run_of(SKIP, START + 21))


def stuck(evidence: Evidence) -> None:
    run = find_run(evidence, SKIP, START + 20)
    evidence.runs[evidence.runs.index(run)] = msgspec.structs.replace(run, status="running")


def edited_missing(evidence: Evidence) -> None:
    forget(evidence, find_run(evidence, EDITED, START + 30))


def edited_twice(evidence: Evidence) -> None:
    evidence.unstarted = [UnstartedRow(EDITED.id, START + 20, START + 20, 1, "edited")]


def trigger_lost(evidence: Evidence) -> None:
    evidence.triggers = ["an id"]


def backfill_short(evidence: Evidence) -> None:
    evidence.asked_backfills = [AskedBackfill("b", SKIP.id, START + 10, START + 20)]
    evidence.backfills = [BackfillRow("b", SKIP.id, "done")]
    evidence.runs.append(msgspec.structs.replace(run_of(SKIP, START + 10, origin="backfill:b"), id="made"))


def unknown_work(evidence: Evidence) -> None:
    evidence.lines += lines_of(run_of(ONCE, START + 33), 33_000, 34_000)


def begun_twice(evidence: Evidence) -> None:
    evidence.lines += lines_of(find_run(evidence, EDITED, START + 20), 26_000, 27_000, process="1.1")


def once_again(evidence: Evidence) -> None:
    run = find_run(evidence, ONCE, START + 20)
    evidence.runs[evidence.runs.index(run)] = msgspec.structs.replace(run, attempt=2)
    evidence.lines += lines_of(run, 26_000, 27_000, attempt=2)


def never_done(evidence: Evidence) -> None:
    evidence.lines = [line for line in evidence.lines if (line.run_id, line.word) != ("skip@1000020", DONE)]
    evidence.disturbances = [Disturbance(KILL, 0, "0.1", 22_000, 23_000)]


def early(evidence: Evidence) -> None:
    run = find_run(evidence, ONCE, START + 20)
    forget(evidence, run)
    evidence.runs.append(run)
    evidence.lines += lines_of(run, 18_500, 19_000)


def overlap(evidence: Evidence) -> None:
    run = find_run(evidence, SKIP, START + 20)
    forget(evidence, run)
    evidence.runs.append(run)
    evidence.lines += lines_of(run, 20_000, 30_001, process="1.1")
    evidence.disturbances = [Disturbance(CUT, 1, "1.1", 21_000, 29_000)]


def unanswered(evidence: Evidence) -> None:
    evidence.answers = [Answer(SKIP.id, START + 20, "undecided")]


def storm(evidence: Evidence) -> None:
    evidence.connections = [[], [at * 9 for at in range(200)]]


def ended(evidence: Evidence) -> None:
    evidence.ended_by_itself = ["process 0.1"]


def error(evidence: Evidence) -> None:
    evidence.errors = ["a step failed"]


@pytest.mark.parametrize(("plant", "problem"), [
    (missing, "slots missing"),
    (undecided, "slots missing"),
    (twice, "slots decided twice"),
    (also_passed, "slots decided twice"),
    (unnamed, "slots that the spec does not name"),
    (stuck, "runs stuck"),
    (edited_missing, "slots of edited schedules missing"),
    (edited_twice, "slots of edited schedules decided twice"),
    (trigger_lost, "triggers lost"),
    (backfill_short, "backfills with slots missing or too many"),
    (unknown_work, "attempts that the ledger does not know"),
    (begun_twice, "attempts begun twice"),
    (once_again, "at-most-once runs begun twice"),
    (never_done, "runs that succeeded only in the ledger"),
    (early, "runs begun before their time"),
    (overlap, "attempts that overlap"),
    (unanswered, "slots without an answer"),
    (storm, "nodes that stormed the database for connections"),
    (ended, "processes that ended by themselves"),
    (error, "unexpected errors in the logs of nodes"),
])  # fmt: skip
def test_what_is_planted_is_found(plant: Callable[[Evidence], None], problem: str):
    evidence = clean()
    plant(evidence)
    assert problem in found(evidence)


def taken_over(kind: str, again: int, stopped: int | None = None) -> Evidence:
    """A run of which one node loses the first attempt after a second, and another begins the second."""
    evidence = clean()
    run = find_run(evidence, SKIP, START + 20)
    forget(evidence, run)
    run = msgspec.structs.replace(run, attempt=2)
    evidence.runs.append(run)
    evidence.lines += lines_of(run, 20_000, stopped, process="1.1")
    evidence.lines += lines_of(run, again, again + 100, attempt=2, process="2.1")
    evidence.disturbances = [Disturbance(kind, 1, "1.1", 21_000, 28_000)]
    return evidence


def test_a_takeover_is_measured_from_the_loss_of_the_node():
    findings = check(taken_over(KILL, 26_000), SCHEDULES)
    assert findings.problems == []
    assert (findings.counts["takeovers"], findings.counts["longest takeover, ms"]) == (1, 5000)


def test_a_takeover_that_takes_too_long_is_found_unless_no_node_was_left_in_peace():
    evidence = taken_over(KILL, 30_500)
    forget(evidence, find_run(evidence, SKIP, START + 30))
    evidence.unstarted = [UnstartedRow(SKIP.id, START + 30, START + 30, 1, "overlap")]
    assert found(evidence) == {"of these while a node was left in peace for so long"}
    evidence.disturbances.append(Disturbance(CUT, 2, "2.1", 25_000, 27_000))
    assert found(evidence) == {"of these while a node was left in peace for so long"}
    evidence.disturbances.append(Disturbance(SKEW, 0, "0.1", 22_000, 22_500))
    assert found(evidence) == set()


def test_a_restart_of_the_database_interrupts_the_peace_of_every_node():
    restart = Disturbance(RESTART, EVERYTHING, "", 1000, 2000)
    assert longest_peace(0, 12_000, [restart]) == 12_000 - 2000 - RECOVERY
    assert longest_peace(0, 12_000, []) == 12_000


def test_a_stopped_process_does_not_overlap_and_may_stop_its_runs_when_it_resumes():
    evidence = taken_over(STOP, 27_950, stopped=28_010)
    findings = check(evidence, SCHEDULES)
    assert findings.problems == []
    assert findings.counts["overlaps right after standing still"] > 0


def test_an_attempt_that_runs_long_after_its_process_resumed_is_found():
    evidence = taken_over(STOP, 24_000, stopped=36_000)
    assert "attempts that did not let go after standing still" in found(evidence)
    assert "attempts that overlap" not in found(evidence)


def test_the_busiest_second_is_found_wherever_it_begins():
    assert busiest_second([]) == 0
    assert busiest_second([0, 900, 1000, 1800, 1899, 3000]) == 4


def test_an_edited_schedule_is_held_to_a_rhythm_only_while_it_was_surely_in_force():
    evidence = clean()
    forget(evidence, find_run(evidence, EDITED, START + 20))  # the edit came while it was due
    evidence.edits = [Edit(EDITED.id, EVERY_TEN, START + 19, START + 21)]
    assert found(evidence) == set()
    forget(evidence, find_run(evidence, EDITED, START + 30))
    assert found(evidence) == {"slots of edited schedules missing"}


def test_of_two_edits_at_the_same_time_either_may_be_the_later_one():
    evidence = clean()
    other = EVERY_TEN._replace(phase=(EVERY_TEN.phase + 5) % EVERY_TEN.every)
    first = Edit(EDITED.id, EVERY_TEN, START + 1, START + 3)
    second = Edit(EDITED.id, other, START + 2, START + 2)
    evidence.edits = [first, second]
    assert found(evidence) == set()
    evidence.edits = [second]
    assert found(evidence) == {"slots of edited schedules missing"}

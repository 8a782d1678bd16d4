"""Explain why a schedule did or did not run at a moment, or will or will not: a verdict and a sentence.

Decided slots are read from the ledger. For other moments in the past the spec that was in force then answers; for moments
ahead, the current version of the schedule.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from horae.model import (
    AUTOMATIC,
    Instant,
    Origin,
    OriginKind,
    Reason,
    Run,
    Schedule,
    ScheduleKey,
    Span,
    Status,
    UnstartedRange,
    Version,
)
from horae.policy.catch_up import fire_instant
from horae.policy.ledger_changes import run_id
from horae.policy.pause import pause_skips
from horae.policy.reason import SENTENCES
from horae.policy.slot_times import count_slots, is_slot
from horae.policy.undecided_spec import is_undecided, undecided
from horae.policy.upcoming_starts import outlook
from horae.spec import Spec
from horae.spec.duration import duration_text
from horae.spec.why import Code, Standing

_replace = msgspec.structs.replace


class Verdict(StrEnum):
    """The answer in a word."""

    FIRED = "fired"
    """It ran, and succeeded."""
    WAITING = "waiting"
    RUNNING = "running"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    MISSED = "missed"
    DROPPED = "dropped"
    EXCLUDED = "excluded"
    CLOCK_GAP = "clock_gap"
    CLOCK_FOLD = "clock_fold"
    OUT_OF_WINDOW = "out_of_window"
    NOT_SCHEDULED = "not_scheduled"
    BEFORE_CREATION = "before_creation"
    DELETED = "deleted"
    """The schedule no longer exists."""
    PAUSED = "paused"
    """It falls in a pause, and is decided when the pause ends."""
    LIMIT_REACHED = "limit_reached"
    SKIP_NEXT = "skip_next"
    WILL_FIRE = "will_fire"
    UNDECIDED = "undecided"
    """It is due and is not decided yet."""
    UNKNOWN = "unknown"
    """It is older than the ledger's retention."""


_TOO_OLD = "is older than what the ledger keeps of the schedule"
_REASONS = frozenset(str(reason) for reason in Reason)


def _of_status(status: Status) -> tuple[Verdict, str]:
    """The verdict on a slot and its wording, by the status of its run or range."""
    match status:
        case Status.PENDING | Status.RETRYING | Status.STARTING:
            return Verdict.WAITING, "waits"
        case Status.RUNNING:
            return Verdict.RUNNING, "is running"
        case Status.SUCCEEDED:
            return Verdict.FIRED, "succeeded"
        case Status.FAILED | Status.TIMED_OUT:
            return Verdict(status), status.replace("_", " ")
        case Status.CANCELLED | Status.TERMINATED | Status.SKIPPED | Status.MISSED | Status.DROPPED:
            return Verdict(status), f"was {status}"
        case _:
            assert_never(status)


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that did not start, for one reason: both ends, and how many."""

    start_ms: int
    end_ms: int
    count: int

    start = Instant[datetime]()
    end = Instant[datetime]()


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """A run at the requested moment: of the slot itself, of a backfill, or of a trigger."""

    id: str
    origin: Origin
    status: Status
    reason: str
    fire_ms: int
    started_at_ms: int | None
    """When its first attempt began."""
    ended_at_ms: int | None

    fire = Instant[datetime]()
    started_at = Instant[datetime | None]()
    ended_at = Instant[datetime | None]()


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a moment of a schedule did or did not run, or will or will not."""

    verdict: Verdict
    sentence: str
    schedule_id: str
    nominal_ms: int | None
    """The requested time; ``None`` for a wall-clock time that does not exist."""
    local: str
    """What a clock in the schedule's zone shows then."""
    timezone: str
    fire_ms: int | None = None
    late_ms: int | None = None
    """How long after its fire time its first attempt began; for a due slot that is not decided, how late it is now."""
    run_id: str | None = None
    status: Status | None = None
    reason: str = ""
    range: Range | None = None
    by: str = ""
    """The element of the spec that names it, or the exclusion that leaves it out."""
    moved_to_ms: int | None = None
    """The instant that replaces a wall-clock time that does not exist."""
    before_ms: int | None = None
    """The nominal time before it."""
    after_ms: int | None = None
    """The nominal time after it."""
    version: int | None = None
    """The version of the schedule that was in force, if known."""
    decided_at_ms: int | None = None
    runs: tuple[Happened, ...] = ()

    nominal = Instant[datetime | None]()
    fire = Instant[datetime | None]()
    late = Span[timedelta | None]()
    moved_to = Instant[datetime | None]()
    before = Instant[datetime | None]()
    after = Instant[datetime | None]()
    decided_at = Instant[datetime | None]()


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """The spec that is in force at a moment, or why there is none or it is not known."""

    spec: str | None = None
    version: int | None = None
    generation: int | None = None
    current: bool = False
    """Whether it belongs to the current version of the schedule."""
    verdict: Verdict | None = None
    """Before the schedule was created, after it was deleted, or too long ago to know."""
    since: int | None = None
    """When it was created or deleted."""


def in_force(
    nominal_ms: int,
    schedule: Schedule | None,
    version: Version | None,
    before: Version | None,
    kept_since: int,
) -> InForce:
    """Find the spec that a nominal time falls under: an edit applies from the second after its own.

    ``version`` is the first that ended at that second or later, ``before`` the last that ended before it; the ledger still
    has every version that ended after ``kept_since``.
    """
    if version is not None:
        return _earlier(nominal_ms, version, before, kept_since)
    if schedule is None:
        return InForce(verdict=Verdict.DELETED, since=None if before is None else before.until_ms)
    if nominal_ms <= schedule.created_at_ms:
        return InForce(verdict=Verdict.BEFORE_CREATION, since=schedule.created_at_ms)
    if nominal_ms <= schedule.state.spec_since_ms:
        return InForce(verdict=Verdict.UNKNOWN)
    return InForce(spec=schedule.spec, version=schedule.version, generation=schedule.generation, current=True)


def _earlier(nominal_ms: int, version: Version, before: Version | None, kept_since: int) -> InForce:
    """Use an earlier version if it was in force at that time: its ``since`` is the time of its last change, which may be a pause."""
    found = InForce(spec=version.spec, version=version.version, generation=version.generation)
    if nominal_ms <= version.created_at_ms:
        return InForce(verdict=Verdict.BEFORE_CREATION, since=version.created_at_ms)
    follows = before is not None and before.generation == version.generation
    if follows or nominal_ms > version.since_ms or nominal_ms >= kept_since:
        return found
    return InForce(verdict=Verdict.UNKNOWN)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a moment of a schedule."""

    schedule_id: str
    schedule: Schedule | None
    """The current version of the schedule; ``None`` if it was deleted."""
    in_force: InForce
    spec: Spec
    """The spec in force; if none is known, the one whose zone is used to show times."""
    standing: Standing
    runs: tuple[Run, ...] = ()
    """Each with the start of its first attempt."""
    unstarted: UnstartedRange | None = None
    waiting: int = 0
    """How many automatic starts are waiting, if the schedule has a limit."""


def run_ids_at(nominal_ms: int) -> str:
    """The common prefix of the ids of all runs at a nominal time."""
    return run_id(ScheduleKey(""), 0, nominal_ms, AUTOMATIC)[:14]


def explain(facts: Facts, now: int) -> Explanation:
    """Explain a moment with a verdict and one sentence."""
    standing, place = facts.standing, facts.in_force
    blank = Explanation(
        verdict=Verdict.UNKNOWN, sentence="", schedule_id=facts.schedule_id,
        nominal_ms=_ms(standing.instant) if standing.exists else None, local=_label(standing.label),
        timezone=facts.spec.elements.timezone, version=place.version,
        runs=tuple(_happened(run) for run in facts.runs) if standing.exists else (),
    )  # fmt: skip
    if place.verdict is None:
        blank = _replace(
            blank,
            by=standing.by,
            moved_to_ms=_ms(standing.moved_to),
            before_ms=_ms(standing.before),
            after_ms=_ms(standing.after),
        )
    automatic = [run for run in facts.runs if run.is_automatic] if standing.exists else []
    if automatic:
        explanation = _of_run(blank, automatic[-1], facts.schedule)
    elif facts.unstarted is not None and standing.exists:
        explanation = _of_range(blank, facts, facts.unstarted)
    elif (
        facts.schedule is not None
        and standing.exists
        and is_undecided(facts.schedule, standing.instant * 1000)
    ):
        explanation = _of_slot_ahead(blank, facts, facts.schedule, now)
    elif place.verdict is not None:
        explanation = _of_no_spec(blank, place)
    else:
        explanation = _with_sentence(blank, *_of_spec(facts))
    return _replace(explanation, sentence=f"{explanation.sentence}{''.join(map(_by_hand, blank.runs))}.")


def _of_run(blank: Explanation, run: Run, schedule: Schedule | None) -> Explanation:
    """Explain a slot by its own run."""
    late = None if run.started_at_ms is None else max(run.started_at_ms - run.fire_ms, 0)
    found = _replace(
        blank, run_id=run.id, status=run.status, reason=run.reason, fire_ms=run.fire_ms, late_ms=late,
        decided_at_ms=run.ended_at_ms if run.started_at_ms is None else None,
    )  # fmt: skip
    verdict, ending = _of_status(run.status)
    if verdict is Verdict.WAITING:
        return _with_sentence(found, verdict, _waiting(run, late, schedule))
    if late is not None:
        ending = f"started {_late(late)} and {ending}"
    elif run.ended_at_ms:
        ending = f"{ending} before it started"
    return _with_sentence(found, verdict, f"{ending}{_because(run.reason)}")


def _waiting(run: Run, late: int | None, schedule: Schedule | None) -> str:
    if run.attempt:
        began = "could not be started yet" if late is None else f"started {_late(late)}"
        return f"{began} and waits for attempt {run.attempt + 1}"
    if run.status is Status.STARTING:
        return "was released and waits for a node that can run it"
    if schedule is not None and schedule.state.paused:
        return f"is due and waits until the schedule {_end_of_pause(schedule)}"
    return "is due and waits for its turn"


def _of_range(blank: Explanation, facts: Facts, unstarted: UnstartedRange) -> Explanation:
    """Explain a slot by the unstarted range that it belongs to."""
    found = _replace(
        blank, status=unstarted.status, reason=unstarted.reason, decided_at_ms=unstarted.decided_at_ms,
        range=Range(start_ms=unstarted.start_ms, end_ms=unstarted.end_ms, count=unstarted.count),
    )  # fmt: skip
    if facts.in_force.verdict is None:
        fire_ms = fire_instant(facts.spec, facts.standing.instant * 1000, facts.schedule_id)
        found = _replace(found, fire_ms=fire_ms)
    verdict, ending = _of_status(unstarted.status)
    if unstarted.count > 1:
        first, last = _utc(unstarted.start_ms // 1000), _utc(unstarted.end_ms // 1000)
        ending = f"{ending}, one of {unstarted.count} from {first} to {last}"
    return _with_sentence(found, verdict, f"{ending}{_because(unstarted.reason)}")


def _of_no_spec(blank: Explanation, place: InForce) -> Explanation:
    """Explain a moment without a schedule, or one whose version is no longer in the ledger."""
    at = "" if place.since is None else f", at {_utc(place.since // 1000)}"
    if place.verdict is Verdict.BEFORE_CREATION:
        return _with_sentence(blank, Verdict.BEFORE_CREATION, f"is before the schedule was created{at}")
    if place.verdict is Verdict.DELETED:
        return _with_sentence(blank, Verdict.DELETED, f"is after the schedule was deleted{at}")
    return _with_sentence(blank, Verdict.UNKNOWN, _TOO_OLD)


def _of_spec(facts: Facts) -> tuple[Verdict, str]:
    """Explain by the spec in force a moment that the ledger has no record of."""
    standing, elements = facts.standing, facts.spec.elements
    match standing.code:
        case Code.NAMED:
            return Verdict.UNKNOWN, _TOO_OLD
        case Code.EXCLUDED:
            return Verdict.EXCLUDED, f"is excluded by {standing.by or 'the exclusions together'}"
        case Code.GAP:
            return Verdict.CLOCK_GAP, _gap(facts)
        case Code.FOLD:
            kept = "last" if elements.fold == "last" else "first"
            at = "" if standing.other is None else f", {_utc(standing.other)}"
            return Verdict.CLOCK_FOLD, f"occurs twice that day; only the {kept} of the two fires{at}"
        case Code.BEFORE_START:
            start = _utc(elements.start_at or 0)
            return Verdict.OUT_OF_WINDOW, f"is before the schedule's start_at, {start}"
        case Code.AFTER_END:
            return Verdict.OUT_OF_WINDOW, f"is after the schedule's end_at, {_utc(elements.end_at or 0)}"
        case Code.NOT_NAMED:
            missing = "" if standing.exists else "does not exist that day, and "
            return Verdict.NOT_SCHEDULED, f"{missing}is not a time of the schedule{_nearest(standing)}"
        case _:
            assert_never(standing.code)


def _gap(facts: Facts) -> str:
    """Describe what the spec does with a wall-clock time that does not exist."""
    standing = facts.standing
    shown = _label(standing.instant + facts.spec.zone.offset_at(standing.instant))
    instead = "its spec skips such a time" if standing.moved_to is None else "it fires then instead"
    return f"does not exist: clocks went forward to {shown} at {_utc(standing.instant)}; {instead}"


def _nearest(standing: Standing) -> str:
    nearest = ((standing.before, "before"), (standing.after, "after"))
    known = [f"{_utc(at)} {word}" for at, word in nearest if at is not None]
    return f"; the nearest are {' and '.join(known)} it" if known else ", which names no times at all"


def _of_slot_ahead(blank: Explanation, facts: Facts, schedule: Schedule, now: int) -> Explanation:
    """Explain what will happen to a slot that is not decided yet, if nothing changes."""
    nominal_ms, state = facts.standing.instant * 1000, schedule.state
    spec = undecided(schedule, Spec.parse(schedule.spec))
    fire_ms = fire_instant(spec, nominal_ms, schedule.id)
    found = _replace(blank, fire_ms=fire_ms, late_ms=now - fire_ms if fire_ms <= now else None)
    if state.paused and (state.paused_until_ms is None or state.paused_until_ms > fire_ms):
        return _with_sentence(found, Verdict.PAUSED, _pause(schedule))
    if state.remaining_actions == 0:
        fires = "will not fire" if fire_ms > now else "does not fire"
        return _with_sentence(found, Verdict.LIMIT_REACHED, f"{fires}: the schedule has no starts left")
    if fire_ms <= now:
        overdue = _span(now - fire_ms)
        return _with_sentence(found, Verdict.UNDECIDED, f"has been due for {overdue} and is not decided yet")
    ahead = outlook(schedule, Spec.parse(schedule.spec), now, facts.waiting)
    most = ahead.skip + (ahead.left or 0)
    counts = ahead.skip or ahead.left is not None
    place = count_slots(spec, ahead.cursor_ms, nominal_ms, most) if counts else 0
    if ahead.skip and place <= ahead.skip:
        asked = "it" if state.skip_next == 1 else f"the next {state.skip_next}"
        return _with_sentence(found, Verdict.SKIP_NEXT, f"will be skipped: a caller asked to skip {asked}")
    left = state.remaining_actions
    if ahead.left is not None and place > most:
        starts = "the remaining start goes" if left == 1 else f"the {left} remaining starts go"
        return _with_sentence(found, Verdict.LIMIT_REACHED, f"will not fire: {starts} to earlier slots")
    moved = "" if fire_ms == nominal_ms else f" at {_utc_ms(fire_ms)}, its time with jitter"
    limit = "" if left is None else f", if one of the {left} remaining starts is still left then"
    return _with_sentence(found, Verdict.WILL_FIRE, f"will fire{moved}{limit}")


def _pause(schedule: Schedule) -> str:
    state = schedule.state
    note = f' ("{state.note}")' if state.note else ""
    what = "it is skipped" if pause_skips(schedule.policies) else "it is made up like a late slot"
    return f"falls in a pause{note}: when the schedule {_end_of_pause(schedule)}, {what}"


def _end_of_pause(schedule: Schedule) -> str:
    until = schedule.state.paused_until_ms
    return "is resumed" if until is None else f"resumes at {_utc(until // 1000)}"


def _with_sentence(found: Explanation, verdict: Verdict, words: str) -> Explanation:
    """Set the verdict and a sentence that begins with the moment and has no full stop yet."""
    moment = "" if found.nominal_ms is None else _utc(found.nominal_ms // 1000)
    if not moment or found.timezone != "UTC":
        beside = f" ({moment})" if moment else ""
        moment = f"{found.local.replace('T', ' ')} in {found.timezone}{beside}"
    return _replace(found, verdict=verdict, sentence=f"{moment} {words}")


def _because(reason: str) -> str:
    """A reason as a clause; an unknown reason is shown verbatim."""
    if not reason:
        return ""
    return f": {SENTENCES[Reason(reason)] if reason in _REASONS else reason}"


def _by_hand(run: Happened) -> str:
    """The clause for a run that a caller triggered or backfilled."""
    match run.origin.kind:
        case OriginKind.AUTOMATIC:
            return ""
        case OriginKind.TRIGGER:
            word = "triggered"
        case OriginKind.BACKFILL:
            word = "backfilled"
        case OriginKind.RERUN:
            word = "run again"
        case _:
            assert_never(run.origin.kind)
    return f"; it was {word} too, and is {run.status.replace('_', ' ')}"


def _happened(run: Run) -> Happened:
    return Happened(
        id=run.id, origin=run.origin, status=run.status, reason=run.reason, fire_ms=run.fire_ms,
        started_at_ms=run.started_at_ms, ended_at_ms=run.ended_at_ms,
    )  # fmt: skip


def _ms(second: int | None) -> int | None:
    return None if second is None else second * 1000


def _late(milliseconds: int) -> str:
    return f"{_span(milliseconds)} late" if milliseconds else "on time"


def _span(milliseconds: int) -> str:
    return duration_text(milliseconds if milliseconds < 1000 else milliseconds // 1000 * 1000)


def _label(label: int) -> str:
    return datetime.fromtimestamp(label, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _utc(instant: int) -> str:
    return f"{_label(instant)}Z"


def _utc_ms(milliseconds: int) -> str:
    return f"{_label(milliseconds // 1000)}.{milliseconds % 1000:03}Z"


def holds(unstarted: UnstartedRange, nominal_ms: int, spec_then: Spec) -> bool:
    """Whether a slot belongs to a range: one of its ends, or a slot of the spec that the range was decided by."""
    return nominal_ms in {unstarted.start_ms, unstarted.end_ms} or is_slot(spec_then, nominal_ms)

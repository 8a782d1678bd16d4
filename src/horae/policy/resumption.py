"""Resumption: what resuming a schedule starts and what it does not, as data and as a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import assert_never

import msgspec

from horae.errors import SpecTooCostlyError
from horae.model import Instant, Limits, OnResume, Reason, Run, Schedule, Status, instant
from horae.policy import pause
from horae.policy.decide import decide
from horae.policy.lifecycle import ENDED
from horae.policy.reason import SENTENCES
from horae.policy.slot_times import count_slots_within_budget
from horae.policy.undecided_spec import undecided
from horae.spec import Spec


class Slots(msgspec.Struct, frozen=True):
    """A group of slots: their number, the first and the last."""

    count: int
    start_ms: int
    end_ms: int

    start = Instant[datetime]()
    end = Instant[datetime]()


class SlotsNotStarted(Slots, frozen=True):
    """Slots that do not start, for one reason."""

    reason: Reason


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to the slots that fell due in a pause, and to the starts that waited when it began."""

    on_resume: OnResume
    """The way of resuming that was applied."""
    other: OnResume
    """The other way of resuming."""
    starts: Slots | None = None
    """Slots that start now."""
    waits: Slots | None = None
    """Slots that start when other runs have ended, or at a later time."""
    unstarted: tuple[SlotsNotStarted, ...] = ()
    """Slots that never start, by reason."""
    later: int = 0
    """The number of slots that a later decision decides."""
    sentence: str


def resumption(
    schedule: Schedule,
    spec: Spec,
    runs: Sequence[Run],
    now: int,
    limits: Limits,
    *,
    way: OnResume | None = None,
) -> Resumption:
    """Predict what resuming a schedule now does, by its policy or another ``way``. ``runs`` are its open runs, oldest first.

    It is what the next decision will be, if nothing happens in between.
    """
    way = schedule.policies.on_resume if way is None else way
    (other,) = set(OnResume) - {way}
    if not schedule.state.paused:
        return Resumption(on_resume=way, other=other, sentence="It was not paused.")
    try:
        predicted = _predict(schedule, spec, runs, now, limits, way=way, other=other)
    except SpecTooCostlyError:
        sentence = "Its spec is too costly to find out which slots fell due in the pause."
        return Resumption(on_resume=way, other=other, sentence=sentence)
    return msgspec.structs.replace(predicted, sentence=_sentence(predicted))


def _predict(
    schedule: Schedule,
    spec: Spec,
    runs: Sequence[Run],
    now: int,
    limits: Limits,
    *,
    way: OnResume,
    other: OnResume,
) -> Resumption:
    resumed = pause.resume(schedule, undecided(schedule, spec), now, way=way)
    schedule = msgspec.structs.replace(schedule, state=resumed.state, cursor_ms=resumed.cursor_ms)
    decision = decide(schedule, spec, runs, now, limits=limits)
    decided = {run.id: run for run in (*runs, *decision.new, *decision.changed) if run.is_automatic}
    open_before = {run.id for run in runs if run.status is not Status.PENDING}
    after = [run for run in decided.values() if run.id not in open_before]
    ended = [run for run in after if run.status in ENDED]
    left = [
        *(SlotsNotStarted(each.count, each.start_ms, each.end_ms, each.reason) for each in resumed.unstarted),
        *(
            SlotsNotStarted(each.count, each.start_ms, each.end_ms, each.reason)
            for each in decision.unstarted
        ),
        *(SlotsNotStarted(1, run.nominal_ms, run.nominal_ms, Reason(run.reason)) for run in ended),
    ]
    later = 0
    if decision.next_at_ms is not None and decision.next_at_ms <= now:
        later, _ = count_slots_within_budget(undecided(schedule, spec), decision.cursor_ms, now)
    return Resumption(
        on_resume=way, other=other, later=later, sentence="",
        starts=_slots_of(run for run in after if run.status is Status.STARTING),
        waits=_slots_of(run for run in after if run.status is Status.PENDING),
        unstarted=tuple(
            SlotsNotStarted(each.count, each.start_ms, each.end_ms, reason)
            for reason in dict.fromkeys(each.reason for each in left)
            if (each := _together(each for each in left if each.reason is reason)) is not None
        ),
    )  # fmt: skip


def _slots_of(runs: Iterable[Run]) -> Slots | None:
    return _together(Slots(1, run.nominal_ms, run.nominal_ms) for run in runs)


def _together(slots: Iterable[Slots]) -> Slots | None:
    """Merge several slots, or ranges of slots, into one group."""
    parts = list(slots)
    if not parts:
        return None
    first, last = min(each.start_ms for each in parts), max(each.end_ms for each in parts)
    return Slots(sum(each.count for each in parts), first, last)


def _sentence(found: Resumption) -> str:
    parts = []
    if found.starts is not None:
        parts.append(_counted(found.starts, "slot starts now", "slots start now"))
    if found.waits is not None:
        parts.append(_counted(found.waits, "slot waits for its turn", "slots wait for their turn"))
    for each in found.unstarted:
        counted = _counted(each, "slot does not start", "slots do not start")
        parts.append(f"{counted}, because {SENTENCES[each.reason]}")
    if not parts:
        return "No slot fell due in the pause."
    if found.later:
        parts.append(f"{found.later} more are decided after these")
    match found.other:
        case OnResume.SKIP:
            instead = "none of them starts"
        case OnResume.CATCH_UP:
            instead = "they are made up as the policy catch_up says"
        case _:
            assert_never(found.other)
    return f'{"; ".join(parts)}. With on_resume "{found.other}", {instead}.'


def _counted(slots: Slots, one: str, many: str) -> str:
    first, last = (f"{instant(at):%Y-%m-%dT%H:%M:%SZ}" for at in (slots.start_ms, slots.end_ms))
    if slots.count == 1:
        return f"1 {one} ({first})"
    return f"{slots.count} {many} ({first} to {last})"

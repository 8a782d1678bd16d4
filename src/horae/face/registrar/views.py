"""Views of the registrar: a schedule and its ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Annotated

import msgspec

from horae.app.face_defaults import registrar_shows
from horae.app.fire_times import (
    fire_time,
    next_nominal_ms,
    slots_of_range,
    spec_of_range,
    times_ahead,
)
from horae.app.schedule_fields import about
from horae.app.views import sentence_of
from horae.app.workflow_schedules import CATCH_UPS, CRON_TEXT, OVERLAPS
from horae.engine.workflow_executor import workflow_of
from horae.errors import SpecError
from horae.model import CatchUp, Overlap, Run, Schedule, UnstartedRange, Version, instant
from horae.spec import Spec, slot_key

PREVIEW = 5
"""The number of fire times in a view of a schedule."""

_OVERLAP_WORDS: dict[Overlap, str] = {value: word for word, value in OVERLAPS.items()}
_CATCH_UP_WORDS: dict[CatchUp, str] = {value: word for word, value in CATCH_UPS.items()}


NextRunAt = Annotated[
    datetime | None,
    about("The planned time of the next slot; ``None`` while it is paused, and when there is none."),
]


class Upserted(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that was registered."""

    schedule_id: str
    next_run_at: NextRunAt


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the registrar shows it.

    Schedules that other faces created are shown too: fields that the registrar cannot express are ``None``, and policies
    that it does not know have their names in those faces.
    """

    schedule_id: str
    workflow_id: str | None
    version: int | None
    user_id: str
    cron_expr: str | None
    timezone: str
    start_at: datetime | None
    end_at: datetime | None
    jitter_ms: int
    overlap_policy: str
    catchup_policy: str
    paused: bool
    next_run_at: NextRunAt
    updated_at: datetime
    preview: Annotated[
        tuple[datetime, ...], about("The next five fire times, moved by jitter; none while it is paused.")
    ]


class LedgerRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The outcome of a slot."""

    idempotency_key: str
    schedule_id: str
    run_at: Annotated[datetime, about("Its planned time.")]
    status: Annotated[str, about("``ENQUEUED``, ``STARTED``, ``SUCCESS``, ``FAILED`` or ``SKIPPED``.")]
    run_id: Annotated[str | None, about("``None`` if it never became a run.")]
    reason: Annotated[
        str | None,
        about("A word and a sentence: ``overlap: another run of the schedule was still running``."),
    ]
    created_at: Annotated[datetime, about("When it fell due.")]
    updated_at: datetime


def registered(schedule: Schedule, now: int) -> Registered:
    """A schedule in the words of the registrar."""
    spec = Spec.parse(schedule.spec)
    elements, policies = spec.elements, schedule.policies
    workflow = workflow_of(schedule.action)
    return Registered(
        schedule_id=schedule.id,
        workflow_id=None if workflow is None else workflow.workflow_id,
        version=None if workflow is None else workflow.version,
        user_id=schedule.owner,
        cron_expr=_cron_text(schedule, spec),
        timezone=elements.timezone,
        start_at=None if elements.start_at is None else instant(elements.start_at * 1000),
        end_at=None if elements.end_at is None else instant(elements.end_at * 1000),
        jitter_ms=0 if elements.jitter is None else elements.jitter.span_ms,
        overlap_policy=_OVERLAP_WORDS.get(policies.overlap, policies.overlap.value),
        catchup_policy=_CATCH_UP_WORDS.get(policies.catch_up.mode, policies.catch_up.mode.value),
        paused=schedule.state.paused,
        next_run_at=next_run_at(schedule),
        updated_at=schedule.updated_at,
        preview=() if schedule.state.paused else times_ahead(schedule, now, PREVIEW),
    )


def _cron_text(schedule: Schedule, spec: Spec) -> str | None:
    """The expression as it was given, if it still matches the spec; otherwise the spec's form of it; ``None`` if the spec is
    not one cron expression.
    """
    document = spec.document
    others = (document.calendars, document.intervals, document.rrules, document.times, document.exclude)
    if len(document.crons) != 1 or any(others):
        return None
    given = schedule.memo.get(CRON_TEXT)
    return given if isinstance(given, str) and _crons_of(given) == document.crons else document.crons[0]


def _crons_of(text: str) -> tuple[str, ...]:
    """A cron expression in canonical form; empty if the text is not one."""
    try:
        return tuple(Spec.cron(text).document.crons)
    except SpecError:
        return ()


def next_run_at(schedule: Schedule) -> datetime | None:
    """The nominal time of the first undecided slot; ``None`` while paused."""
    following = next_nominal_ms(schedule)
    return None if following is None else instant(following)


def ledger(
    runs: Sequence[Run], unstarted: Sequence[UnstartedRange], specs: Sequence[Spec], limit: int
) -> list[LedgerRow]:
    """The latest slots, newest first: those that became runs, and those of unstarted ranges.

    Ranges are read from their end, and only up to the limit.
    """
    started = sorted((_run_row(run) for run in runs), key=_newest_first)
    others = (row for each in unstarted for row in _range_rows(each, specs))
    return list(islice(merge(started, others, key=_newest_first), limit))


def _newest_first(row: LedgerRow) -> tuple[float, float]:
    return -row.created_at.timestamp(), -row.run_at.timestamp()


def _run_row(run: Run) -> LedgerRow:
    return LedgerRow(
        idempotency_key=run.key,
        schedule_id=run.schedule_id,
        run_at=run.nominal,
        status=registrar_shows(run.status, run.reason),
        run_id=run.id,
        reason=_reason(run.reason, run.failure),
        created_at=run.fire,
        updated_at=max(each for each in (run.ended_at, run.started_at, run.fire) if each is not None),
    )


def _reason(reason: str, failure: str | None) -> str | None:
    if not reason:
        return None
    words = failure or sentence_of(reason)
    return f"{reason}: {words}" if words else reason


def _range_rows(unstarted: UnstartedRange, specs: Iterable[Spec]) -> Iterator[LedgerRow]:
    """The slots of an unstarted range, the last one first."""
    spec = spec_of_range(unstarted, specs)
    for nominal_ms in slots_of_range(unstarted, spec):
        planned = instant(nominal_ms)
        fires = planned if spec is None else fire_time(spec, nominal_ms, unstarted.schedule_id)
        yield LedgerRow(
            idempotency_key=slot_key(unstarted.schedule_id, nominal_ms // 1000),
            schedule_id=unstarted.schedule_id,
            run_at=planned,
            status=registrar_shows(unstarted.status, unstarted.reason),
            run_id=None,
            reason=_reason(unstarted.reason, None),
            created_at=fires,
            updated_at=max(unstarted.decided_at, fires),
        )


def specs_of(schedule: Schedule | None, versions: Sequence[Version]) -> list[Spec]:
    """The specs of a schedule, the current one and those before its edits, newest first."""
    texts = [] if schedule is None else [schedule.spec]
    return [Spec.parse(text) for text in dict.fromkeys([*texts, *(each.spec for each in versions)])]

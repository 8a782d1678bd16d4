"""Answers to "why?": what happened or will happen at a time, what a change would do, and the load ahead."""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import NamedTuple

from horae.app.field_checks import check_number
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope
from horae.app.schedule_descriptions import waiting_starts
from horae.app.schedule_draft import read_spec, shared_calendars
from horae.app.schedule_fields import SpecLike
from horae.app.spec_evaluation import Answers
from horae.errors import InvalidInputError
from horae.model import Schedule, ScheduleKey, UnstartedRange, owner_and_id
from horae.policy.explain import Explanation, Facts, InForce, explain, holds, in_force, run_ids_at
from horae.policy.forecast import Forecast, ForecastBuilder, Preview, compare
from horae.spec import Spec
from horae.spec.civil import DAY, END, START
from horae.spec.clock_change import timeline
from horae.spec.compiled import MAX_JITTER, label_of, resolve
from horae.spec.duration import Duration, duration_text, milliseconds
from horae.spec.why import Code, Standing, why_instant, why_label
from horae.store.port import BEGINNING, Filter, Transaction

MAX_DAYS = 3660
MAX_LISTED = 10_000
MAX_MINUTES = 24 * 60
MAX_SCHEDULES = 100_000
_PAGE = 500


class _Reading(NamedTuple):
    """The reading of one schedule, in one transaction."""

    transaction: Transaction
    answers: Answers
    key: ScheduleKey
    schedule: Schedule | None
    shown: Spec
    """The latest spec: times are shown and read in its zone."""


class _Place(NamedTuple):
    """A second of a schedule: the version that was in force, and whether and why its spec names the second."""

    in_force: InForce
    spec: Spec
    standing: Standing


class _Moment(NamedTuple):
    """The time in question: the seconds that it may mean, and the wall-clock time if that does not exist."""

    instants: list[int]
    missing: int | None = None
    """The wall-clock time, if it falls into a gap and no clock ever shows it."""


@checks_arguments
class Why:
    """Explanations, previews and forecasts of the schedules in a scope."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def explain(self, schedule_id: str, when: datetime | str) -> Explanation:
        """Why a schedule did or did not run at a time, or will or will not.

        A time without an offset is in the schedule's zone. The explanation is of the second that contains the time.
        """
        answers = self._scope.answers()
        facts = await answers.carry_out(lambda: self._facts(schedule_id, when, answers))
        now = self._scope.now()
        return await self._scope.evaluate(lambda: explain(facts, now))

    async def _latest_spec(
        self, transaction: Transaction, key: ScheduleKey, schedule: Schedule | None
    ) -> str:
        if schedule is not None:
            return schedule.spec
        versions = await transaction.versions(key, 1)
        if not versions:
            raise await self._scope.not_found(transaction, owner_and_id(key)[1])
        return versions[0].spec

    async def _facts(self, schedule_id: str, when: datetime | str, answers: Answers) -> Facts:
        """The facts that explain a time."""
        async with self._scope.store.reading() as transaction:
            key = await self._scope.key(transaction, schedule_id)
            schedule = next(iter(await transaction.read_schedules([key])), None)
            shown = answers.spec(await self._latest_spec(transaction, key, schedule))
            reading = _Reading(transaction, answers, key, schedule, shown)
            moment = _read(when, shown)
            places = [await self._place(reading, at) for at in moment.instants]
            if moment.missing is not None and places[0].spec.elements.timezone == shown.elements.timezone:
                label, spec = moment.missing, places[0].spec
                standing = answers.ask(("label", spec, label), lambda: why_label(spec, label))
                places = [places[0]._replace(standing=standing)]
            place = next((each for each in places if each.standing.code is Code.NAMED), places[0])
            nominal_ms = place.standing.instant * 1000
            runs = await transaction.runs_at(key, run_ids_at(nominal_ms))
            unstarted = await self._unstarted(reading, nominal_ms)
            waiting = 0 if schedule is None else await waiting_starts(transaction, schedule)
        return Facts(
            schedule_id=schedule_id, schedule=schedule, in_force=place.in_force, spec=place.spec,
            standing=place.standing, runs=tuple(runs), unstarted=unstarted, waiting=waiting,
        )  # fmt: skip

    async def _place(self, reading: _Reading, second: int) -> _Place:
        """The version that was in force at a second, and whether and why its spec names the second."""
        transaction, answers, key, schedule, shown = reading
        found = await transaction.version_at(key, second * 1000)
        before = await transaction.version_before(key, second * 1000)
        age_ms = None if schedule is None else milliseconds(schedule.policies.retention.age)
        kept_since = self._scope.now() - (self._scope.config.retention_age_ms if age_ms is None else age_ms)
        place = in_force(second * 1000, schedule, found, before, kept_since)
        spec = shown if place.spec is None else answers.spec(place.spec)
        standing = answers.ask(("instant", spec, second), lambda: why_instant(spec, second))
        return _Place(place, spec, standing)

    async def _unstarted(self, reading: _Reading, nominal_ms: int) -> UnstartedRange | None:
        """The unstarted range that a slot belongs to, by the spec that was in force when the range began."""
        unstarted = await reading.transaction.unstarted_at(reading.key, nominal_ms)
        if unstarted is None:
            return None
        spec = (await self._place(reading, unstarted.start_ms // 1000)).spec
        question = ("holds", spec, unstarted.start_ms, unstarted.end_ms, nominal_ms)
        is_its = reading.answers.ask(question, lambda: holds(unstarted, nominal_ms, spec))
        return unstarted if is_its else None

    async def preview(
        self, schedule_id: str, spec: SpecLike, *, days: int = 30, limit: int = 1000
    ) -> Preview:
        """Which fire times another spec would add to a schedule from now on, and which it would remove."""
        check_number("days", days, 1, MAX_DAYS)
        check_number("limit", limit, 1, MAX_LISTED)
        async with self._scope.store.reading() as transaction:
            schedule = await self._scope.read(transaction, schedule_id)
            calendars = await shared_calendars(transaction, [spec], schedule.owner)
        now = self._scope.now()

        def work() -> Preview:
            old, new = Spec.parse(schedule.spec), read_spec(spec, calendars)
            return compare(old, new, schedule_id, now, days=days, limit=limit)

        return await self._scope.evaluate(work)

    async def forecast(
        self,
        *,
        minutes: int = 60,
        jitter: Duration | None = None,
        tag: str | None = None,
        limit: int = MAX_SCHEDULES,
    ) -> Forecast:
        """The number of starts in each minute ahead, over all schedules that are not paused, or those with a tag.

        With ``jitter``, also the number if every schedule had that much. At most ``limit`` schedules and
        :data:`~horae.policy.forecast.MAX_STARTS` fire times are counted; ``truncated`` says whether there were more.
        """
        check_number("minutes", minutes, 1, MAX_MINUTES)
        check_number("limit", limit, 1, MAX_SCHEDULES)
        jitter_ms = milliseconds(jitter, "jitter")
        if jitter_ms is not None and not 1000 <= jitter_ms <= MAX_JITTER * 1000:
            raise InvalidInputError("jitter", f"must be from 1s to 24h, and is {duration_text(jitter_ms)}")
        only = self._scope.only(Filter(paused=False, tag=tag))
        forecast, after, left = ForecastBuilder(self._scope.now(), minutes, jitter_ms), BEGINNING, limit
        while not forecast.is_full:
            async with self._scope.store.reading() as transaction:
                page = await transaction.find_schedules(only, after, min(left, _PAGE) + 1)
            given, more = page[: min(left, _PAGE)], len(page) > min(left, _PAGE)
            await self._scope.evaluate_in_thread(partial(forecast.add, given))
            left -= len(given)
            if not more or not left:
                return forecast.result(truncated=more)
            after = given[-1].key
        return forecast.result(truncated=True)


def _read(when: datetime | str, spec: Spec) -> _Moment:
    """The seconds that a time may mean: one, two if it occurs twice, or the one after the gap if it does not exist."""
    moment = _parsed(when)
    zone = spec.elements.timezone
    margin = 2 * DAY
    seconds = label_of(moment) if moment.tzinfo is None else math.floor(moment.timestamp())
    if not START + margin <= seconds < END - margin:
        raise InvalidInputError("time", "must be between 1900-01-03 and 2199-12-29")
    if moment.tzinfo is not None:
        return _Moment([seconds])
    instants = timeline(zone).instants(seconds)
    if not instants:
        return _Moment([resolve(seconds, zone, last=False)], seconds)
    return _Moment(instants[-1:] if moment.fold else instants)


def _parsed(when: datetime | str) -> datetime:
    if isinstance(when, datetime):
        return when
    try:
        return datetime.fromisoformat(when)
    except (TypeError, ValueError):
        raise InvalidInputError(
            "time", f"cannot be read: {str(when)[:60]!r}",
            hint="ISO 8601, such as 2026-03-08T09:00:00Z, or 2026-03-08T09:00:00 in the schedule's zone",
        ) from None  # fmt: skip

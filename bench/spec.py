"""The measurements: the same questions to Horae and to its peers, in one run.

Every figure is the least of several repeats. The libraries take turns within a repeat, so that a
machine busy with something else disturbs them all alike. What a library does not have to do to
answer (building an object it could have kept, say) is done before the clock starts.
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from time import perf_counter_ns
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import croniter_rs
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

from horae import Spec

EXPRESSIONS = ("* * * * *", "*/5 * * * *", "0 9 * * 1-5", "0 0 29 2 *", "30 2 * * *")
NEW_YORK = ZoneInfo("America/New_York")
ZONES: tuple[tzinfo, ...] = (UTC, NEW_YORK)

# 64 of these steps make a year. Hours and minutes differ from one to the next; the second is never
# 0, because a moment that is itself a match counts for APScheduler and not for the others.
FIRST_MOMENT = datetime(2026, 1, 1, 0, 0, 17, tzinfo=UTC)
STEP = timedelta(minutes=8213)

# The hour before clocks go forward, both passes through the hour that comes twice, and a day ahead.
CLOCK_CHANGES = tuple(
    datetime.fromisoformat(text).astimezone(NEW_YORK)
    for text in (
        "2026-03-07T12:00:17-05:00",
        "2026-03-08T01:56:17-05:00",
        "2026-10-31T12:00:17-04:00",
        "2026-11-01T01:56:17-04:00",
        "2026-11-01T01:26:17-05:00",
    )
)

DISTINCT_DOCUMENTS = 1000


class Effort(NamedTuple):
    """How much is measured."""

    moments: int = 64
    repeats: int = 40
    constructions: int = 16
    minutes: int = 7 * 24 * 60
    seconds: int = 3 * 60 * 60
    dense_repeats: int = 10
    rounds: int = 100


FULL = Effort()
QUICK = Effort(moments=4, repeats=1, constructions=2, minutes=60, seconds=60, dense_repeats=1, rounds=2)


class Row(NamedTuple):
    """One line of a table: microseconds by the name of the library."""

    label: str
    microseconds: dict[str, float]


class Difference(NamedTuple):
    """A moment after which the libraries name different times."""

    expression: str
    moment: datetime
    answers: dict[str, datetime | None]
    """``None`` for the same as Horae's. An answer that came without a zone is left without."""


class Library(ABC):
    """A library under measurement. A schedule's zone is the zone of the moments asked about."""

    name: str
    package: str
    pure_python = True

    @abstractmethod
    def parsing(self, expression: str, zone: tzinfo) -> Callable[[], object]:
        """A function that reads an expression."""

    @abstractmethod
    def first(self, expression: str, moment: datetime) -> Callable[[], object]:
        """A function that reads an expression and finds one time."""

    @abstractmethod
    def following(self, expression: str, moments: Sequence[datetime]) -> Callable[[], list[datetime]]:
        """A function that finds the next time after each moment; the expression is read already."""

    @abstractmethod
    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        """A function that finds many times in a row; the expression is read already."""


class Horae(Library):
    name = package = "horae"

    def parsing(self, expression: str, zone: tzinfo) -> Callable[[], object]:
        forget_specs()
        timezone = str(zone)
        return lambda: Spec.cron(expression, timezone=timezone)

    def first(self, expression: str, moment: datetime) -> Callable[[], object]:
        forget_specs()
        timezone = str(moment.tzinfo)
        return lambda: Spec.cron(expression, timezone=timezone).next_after(moment)

    def following(self, expression: str, moments: Sequence[datetime]) -> Callable[[], list[Any]]:
        ask = Spec.cron(expression, timezone=str(moments[0].tzinfo)).next_after
        return lambda: [ask(moment) for moment in moments]

    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        spec = Spec.cron(expression, timezone=str(after.tzinfo))
        until = after + timedelta(seconds=count * (60 if len(expression.split()) == 5 else 1))
        return lambda: spec.between(after, until, count)


class Croniter(Library):
    name = package = "croniter"
    make: Callable[..., Any] = staticmethod(croniter)

    def parsing(self, expression: str, zone: tzinfo) -> Callable[[], object]:  # noqa: ARG002
        make = self.make
        return lambda: make(expression, 0.0)

    def first(self, expression: str, moment: datetime) -> Callable[[], object]:
        make = self.make
        return lambda: make(expression, moment).get_next(datetime)

    def following(self, expression: str, moments: Sequence[datetime]) -> Callable[[], list[datetime]]:
        ask = self.make(expression, moments[0]).get_next
        return lambda: [ask(datetime, moment) for moment in moments]

    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        ask = self.make(expression, after).get_next
        return lambda: [ask(datetime) for _ in range(count)]


class CroniterRs(Croniter):
    name = package = "croniter-rs"
    pure_python = False
    make = staticmethod(croniter_rs.croniter)

    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        ask = self.make(expression, after).get_next_n
        return lambda: list(ask(count, datetime))


class Cronsim(Library):
    name = package = "cronsim"

    def parsing(self, expression: str, zone: tzinfo) -> Callable[[], object]:
        moment = FIRST_MOMENT.astimezone(zone)
        return lambda: CronSim(expression, moment)

    def first(self, expression: str, moment: datetime) -> Callable[[], object]:
        return lambda: next(CronSim(expression, moment))

    def following(self, expression: str, moments: Sequence[datetime]) -> Callable[[], list[datetime]]:
        iterators = [CronSim(expression, moment) for moment in moments]
        return lambda: [next(iterator) for iterator in iterators]

    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        iterator = CronSim(expression, after)
        return lambda: [next(iterator) for _ in range(count)]


class APScheduler(Library):
    name = "APScheduler"
    package = "apscheduler"

    def parsing(self, expression: str, zone: tzinfo) -> Callable[[], object]:
        text = _monday_first(expression)
        return lambda: CronTrigger.from_crontab(text, timezone=zone)

    def first(self, expression: str, moment: datetime) -> Callable[[], object]:
        text, zone = _monday_first(expression), moment.tzinfo
        return lambda: CronTrigger.from_crontab(text, timezone=zone).get_next_fire_time(None, moment)

    def following(self, expression: str, moments: Sequence[datetime]) -> Callable[[], list[datetime]]:
        ask = _trigger(expression, moments[0].tzinfo).get_next_fire_time
        return lambda: [ask(None, moment) for moment in moments]

    def dense(self, expression: str, after: datetime, count: int) -> Callable[[], list[datetime]]:
        ask = _trigger(expression, after.tzinfo).get_next_fire_time
        start = after + timedelta(seconds=1)  # it counts the starting moment itself

        def run() -> list[datetime]:
            found = [ask(None, start)]
            while len(found) < count:
                found.append(ask(found[-1], found[-1]))
            return found

        return run


def _monday_first(expression: str) -> str:
    """For APScheduler weekday 0 is Monday; names mean the same to all."""
    *others, weekdays = expression.split()
    return " ".join((*others, weekdays.replace("1-5", "mon-fri")))


def _trigger(expression: str, zone: tzinfo | None) -> Any:
    if len(expression.split()) == 5:
        return CronTrigger.from_crontab(_monday_first(expression), timezone=zone)
    names = ("second", "minute", "hour", "day", "month", "day_of_week")
    return CronTrigger(**dict(zip(names, expression.split(), strict=True)), timezone=zone)


LIBRARIES: tuple[Library, ...] = (Horae(), CroniterRs(), Cronsim(), APScheduler(), Croniter())
OURS = LIBRARIES[0].name


# Time zones stay in memory: they are read once in the life of a program, and so are the peers'.
_REMEMBERED: tuple[Callable[[], None], ...] = tuple(
    value.cache_clear
    for name, module in tuple(sys.modules.items())
    if name.startswith("horae.spec.") and name not in {"horae.spec.zone", "horae.spec.clock_change"}
    for value in vars(module).values()
    if hasattr(value, "cache_clear") and value.__module__ == name
)


def forget_specs() -> None:
    """Empty Horae's caches of specs, so that the work is done again."""
    for clear in _REMEMBERED:
        clear()


def moments_in(zone: tzinfo, count: int) -> list[datetime]:
    """Moments spread over a year, the same for all libraries."""
    stride = 64 // count
    return [(FIRST_MOMENT + STEP * stride * number).astimezone(zone) for number in range(count)]


def following_rows(effort: Effort) -> list[Row]:
    """Table 1: the next time after a moment."""
    return [_following(expression, zone, effort) for expression in EXPRESSIONS for zone in ZONES]


def _following(expression: str, zone: tzinfo, effort: Effort) -> Row:
    moments = agreed(expression, moments_in(zone, effort.moments))
    found = _least(effort.repeats, lambda library: library.following(expression, moments))
    return _row(f"`{expression}` {zone}", found, len(moments))


def conversion(effort: Effort) -> float:
    """The cost of converting an answer of Horae, which is in UTC, to local time, in microseconds."""
    moments = moments_in(UTC, effort.moments)
    least = min(
        _nanoseconds(lambda: [moment.astimezone(NEW_YORK) for moment in moments])
        for _ in range(effort.repeats)
    )
    return least / len(moments) / 1000


def parsing_rows(effort: Effort) -> list[Row]:
    """Table 2: reading an expression that was never seen before, some in a row."""
    return [_parsing(expression, effort.repeats, effort.constructions) for expression in EXPRESSIONS]


def lone_parsing_rows(effort: Effort) -> list[Row]:
    """Like ``parsing_rows``, one at a time, each just after the code of the other libraries ran."""
    return [_parsing(expression, effort.repeats * effort.constructions, 1) for expression in EXPRESSIONS]


def _parsing(expression: str, repeats: int, at_a_time: int) -> Row:
    found = _least(repeats, lambda library: library.parsing(expression, UTC), at_a_time)
    return _row(f"`{expression}`", found, 1)


def first_rows(effort: Effort) -> list[Row]:
    """Table 2, second half: reading an expression that was never seen before, and one answer."""
    return [_first(expression, effort) for expression in EXPRESSIONS]


def _first(expression: str, effort: Effort) -> Row:
    found = _least(
        effort.repeats, lambda library: library.first(expression, FIRST_MOMENT), effort.constructions
    )
    return _row(f"`{expression}`", found, 1)


def dense_rows(effort: Effort) -> list[Row]:
    """Table 3: many times in a row."""
    return [
        _dense("* * * * *", effort.minutes, effort.dense_repeats),
        _dense("* * * * * *", effort.seconds, effort.dense_repeats),
    ]


def _dense(expression: str, count: int, repeats: int) -> Row:
    # No clock change is near, where answers may differ.
    after = datetime(2026, 6, 1, 0, 0, 17, tzinfo=NEW_YORK)
    answers = {library.name: library.dense(expression, after, count)() for library in LIBRARIES}
    expected = answers[OURS]
    for name, times in answers.items():
        if len(times) != count or [_instant(at, after) for at in times] != expected:
            raise WrongAnswerError(f"{name} and {OURS} differ about the {count} times of {expression}")
    found = _least(repeats, lambda library: library.dense(expression, after, count))
    return _row(f"`{expression}` {NEW_YORK}, {count:,} times", found, count)


def cache_rows(effort: Effort) -> tuple[list[Row], int, int]:
    """Table 4: documents of few distinct ones; the row, the documents parsed, the objects they made."""
    expressions = [f"{number % 60} {number // 60} * * *" for number in range(DISTINCT_DOCUMENTS)]
    documents = [{"crons": [expression], "timezone": "America/New_York"} for expression in expressions]
    kept: list[Spec] = []

    def prepare(library: Library) -> Callable[[], object]:
        if library.name == OURS:
            return lambda: kept.extend([Spec.parse(document) for document in documents])
        # A peer has no documents and no memory of what it parsed: it reads the expression anew.
        readers = [library.parsing(expression, NEW_YORK) for expression in expressions]
        return lambda: [read() for read in readers]

    forget_specs()
    found = _least(effort.rounds, prepare)
    row = _row(
        f"{DISTINCT_DOCUMENTS:,} distinct documents, {effort.rounds} rounds", found, DISTINCT_DOCUMENTS
    )
    return [row], len(kept), len({id(spec) for spec in kept})


class WrongAnswerError(Exception):
    """A library answers what no clock change explains; it would be timed on a wrong answer."""


def agreed(expression: str, moments: list[datetime]) -> list[datetime]:
    """The moments after which all libraries name the same time; only these are timed.

    At clock changes libraries differ by design. Elsewhere a difference stops the run.
    """
    differing = differences(expression, moments)
    for difference in differing:
        if not any(_near_clock_change(answer) for answer in difference.answers.values() if answer):
            raise WrongAnswerError(f"after {difference.moment}, {expression} is {difference.answers}")
    left_out = {difference.moment for difference in differing}
    return [moment for moment in moments if moment not in left_out]


def differences(expression: str, moments: Sequence[datetime]) -> list[Difference]:
    """The moments after which libraries name different times, with their answers in local time."""
    answers = {library.name: library.following(expression, moments)() for library in LIBRARIES}
    found = []
    for place, moment in enumerate(moments):
        ours = _instant(answers[OURS][place], moment)
        others = {name: answers[name][place] for name in answers if name != OURS}
        differing: dict[str, datetime | None] = {
            name: None if _instant(answer, moment) == ours else answer for name, answer in others.items()
        }
        if any(differing.values()):
            found.append(Difference(expression, moment, {OURS: ours.astimezone(moment.tzinfo), **differing}))
    return found


def all_differences(effort: Effort) -> list[Difference]:
    """The differences at the moments that are timed, and near the clock changes of a year."""
    moments = [*moments_in(NEW_YORK, effort.moments), *CLOCK_CHANGES]
    # Local times of one zone compare by the wall clock, which is ambiguous just where it matters.
    moments.sort(key=datetime.timestamp)
    return [difference for expression in EXPRESSIONS for difference in differences(expression, moments)]


def _instant(answer: datetime, moment: datetime) -> datetime:
    """An answer in UTC. croniter-rs gives a bare wall-clock time; it is read in the moment's favour."""
    if answer.tzinfo is None:
        answer = answer.replace(tzinfo=moment.tzinfo, fold=moment.fold)
    return answer.astimezone(UTC)


def _near_clock_change(answer: datetime) -> bool:
    return (answer - timedelta(days=1)).utcoffset() != (answer + timedelta(days=1)).utcoffset()


def _least(
    repeats: int, prepare: Callable[[Library], Callable[[], object]], at_a_time: int = 1
) -> dict[str, int]:
    """Nanoseconds of the fastest run of each library.

    They take turns within a repeat, each with some runs at a time: a run that is one short call takes
    longer, up to twice as long, right after other code.
    """
    least: dict[str, int] = {}
    with _no_garbage_collection():
        for _ in range(repeats):
            for library in LIBRARIES:
                elapsed = min(_nanoseconds(prepare(library)) for _ in range(at_a_time))
                least[library.name] = min(elapsed, least.get(library.name, elapsed))
    return least


def _nanoseconds(run: Callable[[], object]) -> int:
    started = perf_counter_ns()
    result = run()
    elapsed = perf_counter_ns() - started
    del result  # kept until here, so that freeing it is not measured
    return elapsed


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection would be charged to the contestant that happens to trigger it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _row(label: str, nanoseconds: dict[str, int], calls: int) -> Row:
    return Row(label, {name: found / calls / 1000 for name, found in nanoseconds.items()})

"""Forecasts: which slots a change of spec adds and removes, and how many starts fall in each minute."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from horae.errors import HoraeError
from horae.model import Instant, Schedule
from horae.policy.catch_up import fire_instant
from horae.policy.slot_times import slots_ms
from horae.spec import Spec
from horae.spec.compiled import Jitter

MAX_SLOTS = 100_000
"""The maximum number of slots of each spec in a comparison."""

MAX_STARTS = 250_000
"""The maximum number of fire times that one forecast computes."""

_SPECS_KEPT = 1024
_SLOTS_KEPT = 4096
_MINUTE = 60_000
_DAY = 24 * 60 * _MINUTE


class SlotTime(msgspec.Struct, frozen=True, gc=False):
    """A slot: its nominal time, and when it fires."""

    nominal_ms: int
    fire_ms: int

    nominal = Instant[datetime]()
    fire = Instant[datetime]()


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of spec does to the slots ahead. The lists hold at most the requested number; the counts include all."""

    added: tuple[SlotTime, ...]
    removed: tuple[SlotTime, ...]
    adds: int
    removes: int
    kept: int
    until_ms: int
    """The end of the time span that was compared."""
    sentence: str
    truncated: bool
    """Whether the lists are incomplete, or there were too many slots to compare all of them."""

    until = Instant[datetime]()


def compare(old: Spec, new: Spec, schedule_id: str, now: int, *, days: int, limit: int) -> Preview:
    """Compare the slots of two specs in the days ahead, by their nominal times; jitter does not change these."""
    after = now // 1000 * 1000
    until = wanted = after + days * _DAY
    found = [slots_ms(spec, after, until, MAX_SLOTS) for spec in (old, new)]
    for nominals_ms in found:  # slots beyond the last one found cannot be compared
        if len(nominals_ms) == MAX_SLOTS:
            until = min(until, nominals_ms[-1])
    before, then = ({each for each in nominals_ms if each <= until} for nominals_ms in found)
    added, removed = sorted(then - before), sorted(before - then)
    sentence = _change(len(added), len(removed), days)
    if until < wanted:
        sentence += f", looked at until {datetime.fromtimestamp(until // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    if old.elements.jitter != new.elements.jitter and before & then:
        sentence += "; another jitter moves the others"
    return Preview(
        added=tuple(SlotTime(each, fire_instant(new, each, schedule_id)) for each in added[:limit]),
        removed=tuple(SlotTime(each, fire_instant(old, each, schedule_id)) for each in removed[:limit]),
        adds=len(added), removes=len(removed), kept=len(before & then), until_ms=until, sentence=f"{sentence}.",
        truncated=until < wanted or max(len(added), len(removed)) > limit,
    )  # fmt: skip


def _change(adds: int, removes: int, days: int) -> str:
    span = "the next day" if days == 1 else f"the next {days} days"
    verbs = [f"{verb} {number}" for verb, number in (("adds", adds), ("removes", removes)) if number]
    if not verbs:
        return f"The change neither adds nor removes fire times in {span}"
    times = "fire time" if (removes or adds) == 1 else "fire times"
    return f"The change {' and '.join(verbs)} {times} in {span}"


class Minute(msgspec.Struct, frozen=True, gc=False):
    """How many starts fall in a minute; ``with_jitter`` is how many would with the requested jitter."""

    minute_ms: int
    """The beginning of the minute."""
    starts: int
    with_jitter: int | None = None

    minute = Instant[datetime]()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The starts ahead, minute by minute."""

    start_ms: int
    """The beginning of the first minute; only starts after now are counted in it."""
    minutes: tuple[Minute, ...]
    """The minutes that have any starts."""
    peak: Minute | None
    peak_with_jitter: Minute | None
    total: int
    schedules: int
    """How many schedules were counted."""
    truncated: bool
    """Whether there were more schedules or starts than are counted; the forecast is then too low."""

    start = Instant[datetime]()


class ForecastBuilder:
    """Counts the starts ahead of schedules that are given page by page.

    Schedules with the same spec and no jitter are counted together. Others cost a hash for each fire time, hence the limit.
    """

    def __init__(self, now: int, minutes: int, jitter_ms: int | None = None, most: int = MAX_STARTS) -> None:
        self._now = now
        self._start = now - now % _MINUTE
        self._end = self._start + minutes * _MINUTE
        self._jitter = None if jitter_ms is None else Jitter(jitter_ms, centred=False)
        self._left = most
        self._schedules = 0
        self._cut = False
        self._starts: Counter[int] = Counter()
        self._spread: Counter[int] = Counter()
        self._kept: dict[tuple[str, int, int], list[int]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached, so that no more schedules are counted."""
        return self._left <= 0

    def add(self, schedules: Iterable[Schedule]) -> None:
        """Count the starts of schedules; paused ones, and those without remaining starts, have none."""
        alike: Counter[str] = Counter()
        for schedule in schedules:
            state = schedule.state
            if self.is_full:
                self._cut = True
                break
            self._schedules += 1
            if state.paused or state.remaining_actions == 0:
                continue
            with contextlib.suppress(HoraeError):  # a spec that cannot be read has no slots
                spec = Spec.parse(schedule.spec)
                plain = not state.skip_next and state.remaining_actions is None
                if plain and spec.elements.jitter is None:
                    alike[schedule.spec] += 1
                else:
                    self._count(self._starts, spec, schedule)
                if self._jitter is not None:
                    self._count(self._spread, _with_jitter(schedule.spec, self._jitter), schedule, ahead=True)
        for text, number in alike.items():
            for nominal_ms in self._slots(Spec.parse(text), text):
                if self._now < nominal_ms < self._end:
                    self._starts[nominal_ms // _MINUTE * _MINUTE] += number

    def _count(self, starts: Counter[int], spec: Spec, schedule: Schedule, *, ahead: bool = False) -> None:
        """Count the starts of one schedule by itself; with ``ahead``, leave out slots whose nominal time has passed."""
        state, jitter = schedule.state, spec.elements.jitter
        behind_ms = 0 if ahead or jitter is None else jitter.span_ms
        beyond_ms = jitter.span_ms if jitter is not None and jitter.centred else 0
        slots = self._slots(spec, schedule.spec, behind_ms, beyond_ms)
        # Before an edit there are only the slots that it left due.
        carried = {each.nominal_ms for each in state.carried}
        slots = [each for each in slots if each > state.spec_since_ms or each in carried]
        undecided = [each for each in slots if each > schedule.cursor_ms]
        last = None if state.remaining_actions is None else state.skip_next + state.remaining_actions
        for nominal_ms in undecided[state.skip_next : last]:
            fire_ms = fire_instant(spec, nominal_ms, schedule.id)
            if self._now < fire_ms < self._end:
                starts[fire_ms // _MINUTE * _MINUTE] += 1
        self._left -= len(undecided)

    def _slots(self, spec: Spec, text: str, behind_ms: int = 0, beyond_ms: int = 0) -> list[int]:
        """The slots of a spec from ``behind_ms`` before now to ``beyond_ms`` after the end, cached."""
        key = (text, behind_ms, beyond_ms)
        found = self._kept.get(key)
        if found is None:
            most = max(self._left, 1)
            found = slots_ms(spec, self._now - behind_ms, self._end + beyond_ms, most)
            self._cut = self._cut or len(found) == most
            self._left -= max(len(found), 1)
            if len(self._kept) < _SPECS_KEPT and len(found) <= _SLOTS_KEPT:
                self._kept[key] = found
        return found

    def result(self, *, truncated: bool = False) -> Forecast:
        """The forecast of the schedules added so far; ``truncated`` says that others were not added."""
        spread = None if self._jitter is None else self._spread
        minutes = tuple(
            Minute(minute, self._starts[minute], None if spread is None else spread[minute])
            for minute in sorted({*self._starts, *self._spread})
        )
        return Forecast(
            start_ms=self._start, minutes=minutes, total=self._starts.total(), schedules=self._schedules,
            peak=max(minutes, key=lambda each: each.starts, default=None),
            peak_with_jitter=max(minutes, key=lambda each: each.with_jitter or 0, default=None) if spread else None,
            truncated=truncated or self._cut,
        )  # fmt: skip


@lru_cache(maxsize=_SPECS_KEPT)
def _with_jitter(text: str, jitter: Jitter) -> Spec:
    """A spec with another jitter; cached, so that schedules with the same spec share one compilation."""
    spec = Spec.parse(text)
    elements = msgspec.structs.replace(spec.elements, jitter=jitter)
    return Spec(elements, tuple(spec.document.shared.items()))

"""Every so many seconds, minutes or hours of civil time: on which days a stride hits which times, by arithmetic.

On each day a stride hits the units of one remainder, and from one day to the next the remainder moves by a constant. So the days on
which it hits a given time repeat after a cycle of days, and the next one is found by solving a congruence: an interval of
86,399 seconds that meets 06:45:00 once in 236 years is found without a walk through these years.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from math import gcd
from typing import NamedTuple

from horae.spec.budget import charge
from horae.spec.calendar_bits import decoded
from horae.spec.civil import DAY, every_nth_bit, lowest, members

_FEW = 1024
"""Up to this many remainders the days are solved for; with more, days are tried one by one, because a hit comes soon."""

_KEPT = 32
"""The number of sets of times whose days are cached."""


class _Targets(NamedTuple):
    """The remainders at which a stride hits some times."""

    times: int
    """Kept so that no other object gets the same ``id()``."""
    days: array[int]
    """Solved: the days of the cycle on which it hits, ascending."""
    remainders: bytes
    """Not solved: the remainders as bits."""
    hull: tuple[int, int]
    """Not solved: the lowest and the highest remainder."""


class Stride:
    """The labels whose number of units leaves ``phase`` when divided by ``every``; with all seconds of their units."""

    __slots__ = (
        "_cycle",
        "_divisor",
        "_every",
        "_inverse",
        "_latest",
        "_per_day",
        "_phase",
        "_targets",
        "_unit",
    )

    def __init__(self, every: int, phase: int, unit: int = 1) -> None:
        self._every = every
        self._phase = phase % every
        self._unit = unit
        self._per_day = DAY // unit
        self._divisor = gcd(every, self._per_day)
        self._cycle = every // self._divisor
        self._inverse = pow(self._per_day // self._divisor, -1, self._cycle)
        self._targets: dict[int, _Targets] = {}
        self._latest = (-1, 0)

    @property
    def is_single(self) -> bool:
        """Whether it hits at most one second of a day."""
        return self._unit == 1 and self._every >= self._per_day

    def remainder(self, day: int) -> int:
        """The first unit of a day that is hit; one beyond the day if none is."""
        return (self._phase - day * self._per_day) % self._every

    def hits(self, remainder: int) -> int:
        """The seconds that are hit on a day with a remainder, as bits."""
        if remainder >= self._per_day:
            return 0
        latest = self._latest  # consecutive questions are often about the same day
        if latest[0] == remainder:
            return latest[1]
        starts = every_nth_bit(self._every * self._unit, DAY) << (remainder * self._unit)
        found = starts if self._unit == 1 else (starts << self._unit) - starts
        found &= (1 << DAY) - 1
        self._latest = (remainder, found)
        return found

    def next_day(self, times: int, day: int) -> int | None:
        """A day at or after one before which none of some times is hit; ``None`` if they never are."""
        charge(1)
        targets = self._targets_of(times)
        if targets.remainders:
            ahead = self._ahead(targets.hull, day, -self._per_day)
            return None if ahead is None else day + ahead
        if not targets.days:
            return None
        at = day % self._cycle
        found = bisect_left(targets.days, at)
        following = targets.days[found] if found < len(targets.days) else targets.days[0] + self._cycle
        return day + following - at

    def previous_day(self, times: int, day: int) -> int | None:
        """A day at or before one after which none of some times is hit; ``None`` if they never are."""
        charge(1)
        targets = self._targets_of(times)
        if targets.remainders:
            ahead = self._ahead(targets.hull, day, self._per_day)
            return None if ahead is None else day - ahead
        if not targets.days:
            return None
        at = day % self._cycle
        found = bisect_right(targets.days, at)
        return day - at + (targets.days[found - 1] if found else targets.days[-1] - self._cycle)

    def _ahead(self, hull: tuple[int, int], day: int, step: int) -> int | None:
        """How many days it takes until the remainder, which moves by ``step`` each day, lies between two."""
        at = self.remainder(day)
        if hull[0] <= at <= hull[1]:
            return 0
        low, high = (hull[0] - at) % self._every, (hull[1] - at) % self._every
        return first_multiple(step % self._every, self._every, low, high)

    def days_hit(self, times: int, days: int, first: int) -> int:
        """The days among some (bit 0 for ``first``) on which any of some times is hit."""
        targets = self._targets_of(times)
        if targets.remainders:
            return self._tried(targets.remainders, days, first)
        width = days.bit_length()
        hit = 0
        if self._cycle < width:
            charge(len(targets.days) // 4 + 1)
            bits = every_nth_bit(self._cycle, width)
            for day in targets.days:
                hit |= bits << ((day - first) % self._cycle)
        else:
            for day in self._within(targets.days, first, width):
                hit |= 1 << ((day - first) % self._cycle)
        return hit & days

    def _targets_of(self, times: int) -> _Targets:
        found = self._targets.get(id(times))
        if found is None:
            if len(self._targets) == _KEPT:
                self._targets.clear()
            found = self._targets[id(times)] = self._solved(times)
        return found

    def _within(self, days: array[int], first: int, width: int) -> array[int]:
        """The days of the cycle that lie in a range of days not longer than it."""
        begin = first % self._cycle
        end = begin + width
        found = days[bisect_left(days, begin) : bisect_left(days, end)]
        if end > self._cycle:
            found += days[: bisect_left(days, end - self._cycle)]
        charge(len(found) // 8 + 1)
        return found

    def _tried(self, remainders: bytes, days: int, first: int) -> int:
        """The days with a remainder among many: it is computed for each day."""
        charge(days.bit_count() // 4 + 1)
        hit = 0
        for day in members(days):
            at = self.remainder(first + day)
            if at >> 3 < len(remainders) and remainders[at >> 3] >> (at & 7) & 1:
                hit |= 1 << day
        return hit

    def _solved(self, times: int) -> _Targets:
        """The remainders that hit some times, and if they are few, the days of the cycle that have them."""
        charge(64)
        units = times if self._unit == 1 else _any_in_units(times, self._unit)
        folded = _folded(units, self._per_day, self._every)
        # A remainder differs from the phase by whole steps from day to day, which are multiples of the divisor.
        reachable = (
            every_nth_bit(self._divisor, min(self._every, self._per_day)) << self._phase % self._divisor
        )
        folded &= reachable
        if folded.bit_count() > _FEW:
            length = folded.bit_length()
            table = folded.to_bytes(-(-length // 8), "little")
            return _Targets(times, array("q"), table, (lowest(folded), length - 1))
        charge(folded.bit_count() // 4)
        days = sorted(
            (self._phase - remainder) // self._divisor * self._inverse % self._cycle
            for remainder in decoded(folded)
        )
        return _Targets(times, array("q", days), b"", (0, 0))


def _any_in_units(seconds: int, unit: int) -> int:
    """Which minutes or hours have any of some seconds, as bits."""
    smeared, width = seconds, 1
    while width < unit:  # each bit becomes the OR of those that follow it in its unit, by doubling
        step = min(width, unit - width)
        smeared |= smeared >> step
        width += step
    marks = smeared & every_nth_bit(unit, DAY)
    return sum(1 << place // unit for place in decoded(marks))


def _folded(bits: int, length: int, every: int) -> int:
    """The bits, each at its place modulo ``every``; by halving."""
    while length > every:
        parts = -(-length // every)
        half = -(-parts // 2) * every
        bits = bits & ((1 << half) - 1) | bits >> half
        length = half
    return bits


def first_multiple(factor: int, modulus: int, low: int, high: int) -> int | None:
    """The least k from 0 up for which low ≤ factor · k mod modulus ≤ high; ``None`` if there is none. Euclid's way.

    Without a wrap it is the first multiple from ``low`` on. If that lies beyond ``high``, no multiple lies between the two, and
    the number of wraps that brings one there is the answer to the same question about smaller numbers.
    """
    if low == 0:
        return 0
    if factor == 0:
        return None
    if 2 * factor > modulus:
        return first_multiple(modulus - factor, modulus, modulus - high, modulus - low)
    found = -(-low // factor)
    if factor * found <= high:
        return found
    wraps = first_multiple(modulus % factor, factor, -high % factor, -low % factor)
    return None if wraps is None else -(-(low + modulus * wraps) // factor)

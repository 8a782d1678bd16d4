"""When schedules fire: cron dialects, calendars, intervals, recurrences, zones, clock changes, jitter.

Everything here is an immutable value or a pure function: no clock is read, nothing is random.

The files in reading order:

- ``civil.py``: an *instant* is a UTC second, a *label* is what a wall clock shows. Both are plain integers.
- ``cron_field.py``, ``cron.py``: one cron field as bits; the three dialects. ``calendar_bits.py``: the form that crons and calendars compile to.
- ``document.py``, ``duration.py``, ``compiled.py``: the JSON document that users write; durations; the checked meaning of a document.
- ``canonical.py``, ``english.py``: the canonical form of a spec; its English sentence.
- ``civil_set.py``, ``day_search.py``, ``wall_clock_interval.py``: the labels that match, with the days of a year as one integer; the search by
  windows of days; where an interval meets a set of labels.
- ``rrule_parser.py``, ``rrule_days.py``, ``rrule.py``, ``listed_times.py``: the text, days and times of an RRULE; single times.
- ``zone.py``, ``zone_suggestions.py``: a zone is a list of changes; hints for unknown names. ``clock_change.py``: labels to instants
  under ``gap`` and ``fold``; the effect of a change in words.
- ``interval.py``, ``sources.py``, ``spec.py``: progressions of instants; the sources of a spec; ``Spec`` with ``next_after``, ``previous``
  and ``between``.
- ``budget.py``, ``affordability.py``: the step counter; whether a spec is cheap enough to accept.
- ``why.py``, ``jitter.py``, ``declarative_cron.py``: why a spec names a moment or not; jitter as a hash of the slot; the calculator of the
  declarative scheduler.
"""

from horae.spec.clock_change import Fold, Gap
from horae.spec.cron import DIALECTS, Dialect
from horae.spec.declarative_cron import PosixCron
from horae.spec.document import (
    CalendarDocument,
    ClockChange,
    ExcludeDocument,
    IntervalDocument,
    JitterDocument,
    RangeDocument,
    SharedCalendar,
    SpecDocument,
)
from horae.spec.jitter import slot_key
from horae.spec.spec import Spec
from horae.spec.zone import TZDATA_VERSION, Zone, installed_zones, load_zone

__all__ = [
    "DIALECTS",
    "TZDATA_VERSION",
    "CalendarDocument",
    "ClockChange",
    "Dialect",
    "ExcludeDocument",
    "Fold",
    "Gap",
    "IntervalDocument",
    "JitterDocument",
    "PosixCron",
    "RangeDocument",
    "SharedCalendar",
    "Spec",
    "SpecDocument",
    "Zone",
    "installed_zones",
    "load_zone",
    "slot_key",
]

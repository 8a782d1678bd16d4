"""When schedules fire: cron dialects, calendars, intervals, recurrences, zones, clock changes, jitter.

Everything here is an immutable value or a pure function: no clock is read, nothing is random.
"""

from horae.spec.clock_change import Fold, Gap
from horae.spec.cron import DIALECTS, Dialect
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
from horae.spec.posix_cron import PosixCron
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

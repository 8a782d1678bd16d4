"""The calculator behind declarative tasks: strict POSIX cron, minute by minute, in one zone."""

from __future__ import annotations

import math
from datetime import datetime

from horae.errors import CronCalculationError, CronExpressionInvalidError, InvalidCronExpressionError
from horae.spec.spec import Spec
from horae.spec.zone import ZoneLike

MINUTE = 60


class PosixCron:
    """A POSIX cron expression in a zone: which minutes match, which is next, which was before.

    If there is no next or previous minute, it raises :class:`~horae.errors.CronCalculationError`; within the
    years that Horae computes this happens only near the year 2199, or 1900.
    """

    __slots__ = ("expression", "spec")

    def __init__(self, expression: str, timezone: ZoneLike = "UTC") -> None:
        self.spec = Spec.cron(expression, dialect="posix", timezone=timezone)
        self.expression = expression

    @classmethod
    def registered(cls, expression: str, timezone: ZoneLike = "UTC") -> PosixCron:
        """Create one for a registration: an invalid expression raises :class:`~horae.errors.CronExpressionInvalidError`."""
        try:
            return cls(expression, timezone)
        except InvalidCronExpressionError as error:
            raise CronExpressionInvalidError(error) from error

    def matches(self, moment: datetime) -> bool:
        """Whether the minute that holds a moment matches."""
        second = math.floor(moment.timestamp())
        found = self.spec.previous_instant(second)
        return found is not None and second - found < MINUTE

    def next(self, moment: datetime) -> datetime:
        """The first matching minute after the one that holds a moment."""
        found = self.spec.next_after(moment)
        if found is None:
            raise self._failed(moment, "there is no later occurrence")
        return found

    def previous(self, moment: datetime) -> datetime:
        """The last matching minute at or before a moment."""
        found = self.spec.previous(moment)
        if found is None:
            raise self._failed(moment, "there is no earlier occurrence")
        return found

    def _failed(self, moment: datetime, cause: str) -> CronCalculationError:
        error = CronCalculationError(self.expression, moment.isoformat(), LookupError(cause))
        error.__cause__ = error.details["cause"]
        return error

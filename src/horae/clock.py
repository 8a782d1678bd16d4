"""The only place that asks what time it is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Something that knows the present."""

    def now(self) -> datetime:
        """The present instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Seconds since some moment; they never jump, whatever is done to the clock."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

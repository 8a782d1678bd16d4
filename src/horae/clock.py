"""The only place that asks what time it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Something that knows the present."""

    def now(self) -> datetime:
        """The present instant, aware and in UTC."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

"""Converts Protobuf's durations and timestamps to Horae's texts and milliseconds, and back."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from horae.errors import InvalidInputError
from horae.spec.duration import MAX_MS, duration_text

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_TIME = -62_135_596_800
"""The seconds of Go's zero time, which means no time."""


def milliseconds_of(duration: Duration, field: str) -> int:
    """The whole milliseconds of a duration."""
    total = duration.seconds * 1000 + duration.nanos // 1_000_000
    if not 0 <= total <= MAX_MS:
        raise InvalidInputError(field, "must be from 0s to 36600d, which is a hundred years")
    return total


def text_of(duration: Duration, field: str) -> str:
    """A duration as Horae writes it."""
    return duration_text(milliseconds_of(duration, field))


def duration_of(milliseconds: int) -> Duration:
    """A duration as a message."""
    return Duration(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)


def moment_of(timestamp: Timestamp, field: str) -> datetime:
    """A timestamp as a ``datetime``, to the microsecond."""
    try:
        return timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError(field, "is no time") from None


def timestamp_of(moment: datetime) -> Timestamp:
    """A moment as a message."""
    since = moment - EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def is_set(timestamp: Timestamp) -> bool:
    """Whether a timestamp is a time, not Go's zero time."""
    return timestamp.seconds != NO_TIME

"""Rate limits: a token bucket for each user."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil

from horae.errors import LimitExceededError

MAX_USERS = 10_000
"""How many users are remembered. The user with the oldest request is forgotten first, and starts again with a full bucket."""


class RateLimit:
    """Allows each user ``per_second`` requests a second, and as many at once after a pause."""

    def __init__(self, per_second: int, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._rate = float(per_second)
        self._now = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The requests left for each user and the time of that count; the latest caller is last."""

    def take(self, user: str) -> float:
        """Take one request from a user's bucket and return 0; if it is empty, return the seconds to wait and take nothing."""
        now = self._now()
        left = self._left(user, now)
        wait = self._wait(left)
        self._buckets.pop(user, None)
        self._buckets[user] = (left if wait else left - 1, now)
        if len(self._buckets) > MAX_USERS:
            self._buckets.popitem(last=False)
        return wait

    def check(self, user: str, reason: str) -> None:
        """Take one request from a user's bucket, or refuse it with a reason; ``retryAfter`` has the seconds to wait."""
        self._refuse(self.take(user), reason)

    def check_user(self, user: str) -> None:
        """Take one request from the bucket of an authenticated user, or refuse it."""
        self.check(user, f'the user "{user}" sends requests too fast')

    def check_left(self, user: str, reason: str) -> None:
        """Refuse a request if the user's bucket is empty; take nothing."""
        self._refuse(self._wait(self._left(user, self._now())), reason)

    def _left(self, user: str, now: float) -> float:
        left, since = self._buckets.get(user, (self._rate, now))
        return min(self._rate, left + max(now - since, 0.0) * self._rate)

    def _wait(self, left: float) -> float:
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def _refuse(self, wait: float, reason: str) -> None:
        if wait:
            error = LimitExceededError("requests_per_second", self._per_second, reason)
            error.details["retryAfter"] = ceil(wait)
            raise error

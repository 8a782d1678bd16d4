"""How fast one user may ask: a bucket of requests for each, which fills as time passes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil

from horae.errors import LimitExceededError

MAX_USERS = 10_000
"""How many users are remembered; one who was forgotten has asked for nothing in a long time, and begins with a full bucket."""


class RateLimit:
    """Lets each user ask so many times a second, and so many at once after a pause."""

    def __init__(self, per_second: int, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._rate = float(per_second)
        self._now = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left for each user, and when that was so; who asked last is last."""

    def take(self, user: str) -> float:
        """Take one request of a user: 0 and it may go on, else how many seconds it should wait, and nothing was taken."""
        now = self._now()
        left = self._left(user, now)
        wait = self._wait(left)
        self._buckets.pop(user, None)
        self._buckets[user] = (left if wait else left - 1, now)
        if len(self._buckets) > MAX_USERS:
            self._buckets.popitem(last=False)
        return wait

    def check(self, user: str, reason: str) -> None:
        """Take one request of a user, or refuse it for a reason; ``retryAfter`` says in how many seconds one may go on."""
        self._refuse(self.take(user), reason)

    def check_left(self, user: str, reason: str) -> None:
        """Refuse a request of a user of whom none could be taken now; none is."""
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

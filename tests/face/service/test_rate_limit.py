"""Each user has their own rate limit, whatever the others do."""

from __future__ import annotations

import pytest

from horae.errors import LimitExceededError
from horae.face.service import rate_limit
from horae.face.service.rate_limit import RateLimit


class Watch:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.contract("CRON-19")
def test_as_many_requests_a_second_as_are_allowed():
    watch = Watch()
    limited = RateLimit(10, watch)
    assert [limited.take("ada") for _ in range(10)] == [0] * 10
    assert limited.take("ada") == pytest.approx(0.1)
    assert limited.take("ada") == pytest.approx(0.1)  # a refused request costs nothing
    watch.seconds = 0.1
    assert limited.take("ada") == 0
    assert limited.take("ada") > 0
    watch.seconds = 100
    assert [limited.take("ada") for _ in range(11)] == [0] * 10 + [pytest.approx(0.1)]


def test_waiting_as_long_as_was_said_is_enough():
    watch = Watch()
    limited = RateLimit(3, watch)
    for _ in range(50):
        while (wait := limited.take("ada")) > 0:
            watch.seconds += wait + 1e-9
    assert watch.seconds == pytest.approx((50 - 3) / 3, abs=1e-3)


def test_users_do_not_share_a_pace():
    limited = RateLimit(1, Watch())
    assert limited.take("ada") == 0
    assert limited.take("ada") > 0
    assert limited.take("bob") == 0


def test_asking_whether_something_is_left_takes_nothing():
    watch = Watch()
    limited = RateLimit(1, watch)
    for _ in range(3):
        limited.check_left("ada", "too often")
    assert limited.take("ada") == 0
    with pytest.raises(LimitExceededError) as error:
        limited.check_left("ada", "too often")
    assert error.value.details["retryAfter"] == 1
    watch.seconds = 1
    limited.check_left("ada", "too often")


def test_only_so_many_users_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rate_limit, "MAX_USERS", 3)
    limited = RateLimit(1, Watch())
    for user in ("ada", "bob", "cyd", "ada", "dot"):
        limited.take(user)
    assert limited.take("ada") > 0  # she asked more lately than bob, who is forgotten
    assert limited.take("bob") == 0


def test_a_watch_that_goes_back_gives_nothing_away():
    watch = Watch()
    limited = RateLimit(1, watch)
    watch.seconds = 10
    assert limited.take("ada") == 0
    watch.seconds = 5
    assert limited.take("ada") == pytest.approx(1)

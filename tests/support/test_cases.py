"""Many cases in one test: each is tried, and each failure is named."""

import pytest

from tests.support.cases import each_of


def test_every_case_is_tried_and_each_failure_is_named():
    tried = []

    @each_of(("number", "limit"), [(1, 2), (3, 2), (0, 2), (5, 2)])
    def check(number: int, limit: int) -> None:
        tried.append(number)
        assert number <= limit

    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail") as raised:
        check()
    assert tried == [1, 3, 0, 5]
    notes = [each.__notes__[-1] for each in raised.value.exceptions]
    assert notes == ["case: {'number': 3, 'limit': 2}", "case: {'number': 5, 'limit': 2}"]


def test_no_case_at_all_is_a_failure():
    @each_of("number", [])
    def check(number: int) -> None:
        pass

    with pytest.raises(AssertionError, match="there is no case"):
        check()

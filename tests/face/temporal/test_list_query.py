"""Queries of lists and counts, in the language of Temporal's visibility queries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.workflowservice import v1 as api

import horae
from horae.errors import InvalidInputError
from horae.face.temporal.list_query import query_of
from horae.face.temporal.list_query_parser import MAX_DEPTH
from tests.support.temporal import NAMESPACE, calls_to

ATTRIBUTES: dict[str, dict[str, str | int | float | bool]] = {
    "a": {"Team": "red", "Size": 3, "At": "2026-01-01T00:00:00Z"},
    "b": {"Team": "blue", "Size": 10, "At": "2026-01-01T02:00:00+01:00", "Big": True},
    "c": {"Team": "it's", "Ratio": 0.5},
    "d": {},
    "report-1": {"Team": "red"},
}
"""Of schedules, by id; c is paused."""

ANSWERS = {
    "": "a b c d report-1",
    "Team = 'red'": "a report-1",
    "Team = 'red' OR Team = 'blue'": "a b report-1",
    "Team = 'red' AND Team = 'blue'": "",
    "Team = 'it\\'s'": "c",
    "Team = 'it''s'": "c",
    'Team = "it\'s"': "c",
    "Team != 'red'": "b c",
    "Team <> 'red' and not Team = 'blue'": "c",
    "NOT Team = 'red'": "b c d",
    "NOT (Team = 'red' OR Team IS NULL)": "b c",
    "Team IN ('red', 'blue')": "a b report-1",
    "Team NOT IN ('red','blue')": "c",
    "Team IS NULL": "d",
    "Team IS NOT NULL AND Size >= 3": "a b",
    "Size > 3": "b",
    "Size < 10 OR Ratio <= 0.5": "a c",
    "Size BETWEEN 3 AND 9": "a",
    "Size = 3.0 AND Size = 3": "a",
    "Size > 'x'": "",
    "At >= '2026-01-01T00:30:00Z'": "b",
    "At BETWEEN '2025-12-31T23:00:00-02:00' AND '2026-06-01T00:00:00Z'": "b",
    "Big = true": "b",
    "ScheduleId = 'a'": "a",
    "ScheduleId = 'report'": "",
    "ScheduleId STARTS_WITH 'rep'": "report-1",
    "ScheduleId NOT STARTS_WITH 'rep' AND ScheduleId > 'b'": "c d",
    "ScheduleId STARTS_WITH 'a' OR ScheduleId STARTS_WITH 'b'": "a b",
    "ScheduleId IN ('a', 'd') AND TemporalSchedulePaused = false": "a d",
    "TemporalSchedulePaused = true": "c",
    "TemporalSchedulePaused = 'true' OR `Team` = 'blue'": "b c",
    "TemporalSchedulePaused != true AND (Team = 'red' OR (Size > 5 AND Big = TRUE))": "a b report-1",
    "TemporalScheduleWorkflowType = 'ping' AND ScheduleId < 'c'": "a b",
    "WorkflowType = 'other'": "",
}
WRONG = (
    "Team", "Team =", "= 'a'", "Team LIKE 'a'", "Team = 'a' 'b'", "Team = 'a' OR", "(Team = 'a'", "Team = 'a')", "Team IN ()",
    "Team IN 'a'", "Team BETWEEN 1", "Team NOT = 1", "NOT", "Team IS 3", "Team = 'a' ORDER BY Team", "TemporalOther = 1",
    "TemporalSchedulePaused = 3", "NOT TemporalSchedulePaused = 'maybe'", "x = 'unfinished", "a = #", "y" * 3000,
    "(" * (MAX_DEPTH + 1) + "a = 1" + ")" * (MAX_DEPTH + 1), "NOT " * (MAX_DEPTH + 1) + "a = 1", "(" * 1999,
)  # fmt: skip


@pytest.mark.contract("SCHD-30")
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_lists_and_counts_answer_queries(store: str, request: pytest.FixtureRequest):
    app = horae.App(request.getfixturevalue("postgres") if store == "postgresql" else ":memory:")
    app.action("ping")(lambda: None)
    async with app, calls_to(app) as calls:
        for name, attributes in ATTRIBUTES.items():
            await app.owned_by(NAMESPACE).schedules.create(
                name, "0 9 * * *", "ping", search_attributes=attributes, paused=name == "c"
            )
        for query, answer in ANSWERS.items():
            counted = await calls(api.CountSchedulesRequest(namespace=NAMESPACE, query=query))
            found, token = [], b""
            while True:
                part = await calls(
                    api.ListSchedulesRequest(
                        namespace=NAMESPACE, query=query, maximum_page_size=2, next_page_token=token
                    )
                )
                assert len(part.schedules) <= 2
                found += [each.schedule_id for each in part.schedules]
                if not (token := part.next_page_token):
                    break
            assert (" ".join(found), counted.count) == (answer, len(answer.split())), query


@pytest.mark.parametrize("query", WRONG)
def test_a_query_that_cannot_be_read_says_where(query: str):
    with pytest.raises(InvalidInputError, match="query "):
        query_of(query)


WORDS = st.sampled_from(["Team", "'a'", "=", "AND", "OR", "NOT", "(", ")", "IN", ",", "3", "IS", "NULL", "BETWEEN", "`x`", '"', "\\"])  # fmt: skip


@given(st.lists(WORDS | st.text(max_size=5), max_size=12))
@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
def test_any_text_is_a_query_or_refused(words: list[str]):
    try:
        query_of(" ".join(words))
    except InvalidInputError as error:
        assert error.details["field"] == "query"

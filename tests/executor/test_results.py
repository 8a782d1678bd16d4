"""Results that could be stored and never be shown again: the run fails instead, and says why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from horae.errors import InvalidInputError
from horae.executor.http_executor import _Answer, _result
from horae.json_bounds import MAX_DEPTH, MAX_VALUES
from horae.model import Status
from horae.testing import TimeMachine
from tests.support.service import client_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (nested(965), f"ValueError: the result has values more than {MAX_DEPTH} deep within each other"),
        (nested(5000), f"ValueError: the result has values more than {MAX_DEPTH} deep within each other"),
        ([[]] * MAX_VALUES, f"ValueError: the result has more than {MAX_VALUES} values"),
    ],
    ids=["deep", "deeper than can be encoded", "wide"],
)
async def test_a_run_whose_result_is_too_large_fails_and_can_be_shown(
    machine: TimeMachine, result: Any, reason: str
):
    machine.app.action("work")(lambda: result)
    await machine.app.schedules.create("s", "0 * * * *", "work")
    await machine.advance(minutes=90)
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.failure, run.result) == (Status.FAILED, reason, None)
    async with client_of(machine.app) as client:
        for path in ("/schedules/s", "/schedules/s/runs", f"/runs/{run.id}"):
            assert (await client.get(f"/api/v1{path}")).status_code == 200


async def test_the_deepest_result_can_be_shown_everywhere(machine: TimeMachine):
    machine.app.action("work")(lambda: nested(MAX_DEPTH))
    await machine.app.schedules.create(
        "s", "0 * * * *", "work", input=nested(MAX_DEPTH), memo={"m": nested(99)}
    )
    await machine.advance(minutes=90)
    (run,) = await machine.app.runs.list("s")
    assert (run.status, run.result) == (Status.SUCCEEDED, nested(MAX_DEPTH))
    async with client_of(machine.app) as client:
        for path in ("/schedules/s", "/schedules", "/schedules/s/runs", f"/runs/{run.id}"):
            assert (await client.get(f"/api/v1{path}")).status_code == 200


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 5000])
async def test_every_value_that_is_given_has_the_same_bounds(machine: TimeMachine, levels: int):
    machine.app.action("work")(lambda: None)
    schedules, deep = machine.app.schedules, nested(levels)
    await schedules.create("s", "0 * * * *", "work")
    refused: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("input", lambda: schedules.create("t", "0 * * * *", "work", input=deep)),
        ("memo", lambda: schedules.create("t", "0 * * * *", "work", memo={"m": deep})),
        ("input", lambda: schedules.update("s", input=deep)),
        ("memo", lambda: schedules.update("s", memo={"m": deep})),
        ("input", lambda: schedules.trigger("s", input=deep)),
        ("input", lambda: machine.app.backfills.start("s", START, START, input=deep)),
    ]
    for field, call in refused:
        with pytest.raises(InvalidInputError, match=f"^{field} has values more than {MAX_DEPTH} deep"):
            await call()


def test_an_answer_that_is_too_deep_is_kept_as_text():
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH  # and the result has it within an object
    assert _result(_Answer(200, deep, False)) == {"status": 200, "body": deep.decode()}
    assert _result(_Answer(200, deep[1:-1], False)) == {"status": 200, "body": nested(MAX_DEPTH - 1)}

"""A run that ended is run again, as a new run that names it."""

from __future__ import annotations

from typing import Any

import pytest

from horae import Context, Run, Status
from horae.errors import InvalidInputError, LimitExceededError, RerunRefusedError, RunNotFoundError
from horae.testing import TimeMachine
from tests.support.machine import at


@pytest.fixture
async def failed(machine: TimeMachine) -> Run:
    """A run of the first minute that failed; from the second minute on the action succeeds."""

    @machine.app.action("a")
    async def work(context: Context) -> Any:
        if machine.now < at(2):
            raise RuntimeError("not yet")
        return context.input

    await machine.app.owned_by("ada").schedules.create("s", "1 0 * * *", "a", input="given")
    await machine.advance(minutes=3)
    (run,) = await machine.app.runs.list("s")
    assert run.status is Status.FAILED
    return run


async def test_it_runs_the_same_slot_with_the_same_input(machine: TimeMachine, failed: Run):
    again = await machine.app.runs.rerun(failed.id, author="ada", note="it is repaired")
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(again.id)
    assert (run.status, run.result, run.nominal) == (Status.SUCCEEDED, "given", failed.nominal)
    assert (run.rerun_of, run.author, run.note, run.owner) == (failed.id, "ada", "it is repaired", "ada")
    assert run.key != failed.key
    assert await machine.app.runs.get(failed.id) == failed
    explained = await machine.app.why.explain("s", failed.nominal)
    assert "it was run again too, and is succeeded" in explained.sentence


async def test_it_takes_another_input_and_runs_while_paused(machine: TimeMachine, failed: Run):
    await machine.app.schedules.pause("s")
    await machine.app.schedules.update("s", input="changed")
    other = await machine.app.runs.rerun(failed.id, input={"x": 1})
    await machine.advance(seconds=1)
    assert (await machine.app.runs.get(other.id)).result == {"x": 1}
    again = await machine.app.runs.rerun(other.id)
    assert (again.input, again.rerun_of) == ({"x": 1}, other.id)


async def test_what_cannot_be_run_again_is_refused(machine: TimeMachine, failed: Run):
    app = machine.app
    with pytest.raises(RunNotFoundError):
        await app.owned_by("bob").runs.rerun(failed.id)
    with pytest.raises(RunNotFoundError):
        await app.runs.rerun("none")
    with pytest.raises(InvalidInputError, match="overlap"):
        await app.runs.rerun(failed.id, overlap="sometimes")  # type: ignore[arg-type]
    again = await app.runs.rerun(failed.id)
    with pytest.raises(RerunRefusedError, match="has not ended, and is pending"):
        await app.runs.rerun(again.id)
    await app.schedules.delete("s")
    with pytest.raises(RerunRefusedError, match="was deleted"):
        await app.runs.rerun(failed.id)


async def test_reruns_count_among_the_manual_starts_that_may_wait(machine: TimeMachine, failed: Run):
    most = machine.app.config.max_buffer_size
    for _ in range(most):
        await machine.app.runs.rerun(failed.id)
    with pytest.raises(LimitExceededError):
        await machine.app.runs.rerun(failed.id)

"""The seam to workflows: launchers, what they answer, and what a slot becomes."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from horae import Context, NotStartedError
from horae.model import Status
from horae.policy.face_defaults import registrar_shows
from horae.registrar import Registrar
from horae.spec import slot_key
from horae.testing import TimeMachine
from tests.face.registrar.inputs import GOOD

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
ONCE = GOOD | {
    "schedule_id": "s",
    "cron_expr": "0 9 5 1 *",
    "timezone": "UTC",
    "end_at": "2026-01-06T00:00:00Z",
}
NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Launcher:
    """Answers what it is told to, in order; the last for ever."""

    def __init__(self, machine: TimeMachine, *answers: bool | Exception) -> None:
        self.machine = machine
        self.answers = list(answers)
        self.calls: list[tuple[Any, ...]] = []
        self.times: list[float] = []

    async def start(self, *arguments: Any) -> bool:
        return self.answer(arguments)

    def answer(self, arguments: tuple[Any, ...]) -> bool:
        self.calls.append(arguments)
        self.times.append((self.machine.now - NINE).total_seconds())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Plain(Launcher):
    def start(self, *arguments: Any) -> bool:  # type: ignore[override] # both are launchers
        assert threading.current_thread() is not threading.main_thread()
        return self.answer(arguments)


async def only_row(machine: TimeMachine, launcher: Launcher) -> tuple[str, str | None]:
    registrar = Registrar(machine.app, launcher)
    await registrar.upsert_schedule(ONCE)
    await machine.advance(hours=2)
    (row,) = await registrar.runs("s")
    return row.status, row.reason


@pytest.mark.contract("CRON-11")
async def test_a_launcher_gets_what_to_start(machine: TimeMachine):
    launcher = Launcher(machine, True)
    assert await only_row(machine, launcher) == ("SUCCESS", None)
    assert launcher.calls == [("report", 3, "alice", NINE, slot_key("s", int(NINE.timestamp())))]


@pytest.mark.parametrize("answer", [True, False, ValueError("no")])
@pytest.mark.contract("CRON-11")
async def test_a_launcher_may_be_plain(machine: TimeMachine, answer: bool | Exception):
    launcher = Plain(machine, answer)
    registrar = Registrar(machine.app, launcher)
    await registrar.upsert_schedule(ONCE)
    await machine.advance(hours=1)
    rows = await registrar.runs("s")
    while rows[0].status in {"ENQUEUED", "STARTED"}:
        await asyncio.sleep(0.01)
        await machine.advance(seconds=1)
        rows = await registrar.runs("s")
    assert rows[0].status == ("SUCCESS" if answer is True else "FAILED")
    assert len(launcher.calls) == (3 if isinstance(answer, Exception) else 1)


@pytest.mark.contract("CRON-12", "CRON-13")
async def test_a_launch_that_fails_is_tried_three_times(machine: TimeMachine):
    launcher = Launcher(machine, ConnectionError("nobody there"))
    status, reason = await only_row(machine, launcher)
    assert status == "FAILED"
    assert reason is not None
    assert reason.startswith("not_started: ")
    assert "nobody there" in reason
    assert launcher.times == [0, 1, 3]
    assert len({call[-1] for call in launcher.calls}) == 1  # the same key each time


@pytest.mark.contract("CRON-12")
async def test_a_launch_may_succeed_in_the_end(machine: TimeMachine):
    launcher = Launcher(machine, ValueError("once"), ValueError("twice"), True)
    assert await only_row(machine, launcher) == ("SUCCESS", None)


@pytest.mark.parametrize("answer", [False, NotStartedError("gone for good", permanent=True)])
@pytest.mark.contract("CRON-12", "CRON-13")
async def test_what_is_missing_is_not_tried_again(machine: TimeMachine, answer: bool | Exception):
    launcher = Launcher(machine, answer)
    status, reason = await only_row(machine, launcher)
    assert (status, launcher.times) == ("FAILED", [0])
    assert reason is not None
    assert reason.startswith("not_started: ")


@pytest.mark.contract("CRON-11")
async def test_without_a_launcher_a_workflow_is_an_action_of_the_program(machine: TimeMachine):
    seen: list[Any] = []

    @machine.app.action("report")
    def report(context: Context) -> str:  # a plain function, in a thread
        seen.append((context.input, context.nominal, context.key))
        return "done"

    registrar = Registrar(machine.app)
    await registrar.upsert_schedule(ONCE)
    await machine.advance(hours=1)
    while not seen or machine.app.worker.tasks:
        await machine.advance(seconds=1)
    assert seen == [
        (
            {"workflow_id": "report", "version": 3, "user_id": "alice"},
            NINE,
            slot_key("s", int(NINE.timestamp())),
        )
    ]
    assert [run.result for run in await machine.app.runs.list("s")] == ["done"]


@pytest.mark.contract("CRON-13")
async def test_a_workflow_that_fails_has_failed_once(machine: TimeMachine):
    begun: list[int] = []

    @machine.app.action("report")
    async def report(context: Context) -> None:
        begun.append(context.attempt)
        raise ValueError("no paper")

    registrar = Registrar(machine.app)
    await registrar.upsert_schedule(ONCE)
    await machine.advance(hours=2)
    (row,) = await registrar.runs("s")
    assert (row.status, row.reason, begun) == ("FAILED", "failed: ValueError: no paper", [1])


@pytest.mark.parametrize("workflow", ["never-registered", "workflow", "http", "command:backup"])
@pytest.mark.contract("CRON-12", "CRON-23")
async def test_a_workflow_that_is_not_there(machine: TimeMachine, workflow: str):
    """Actions of other kinds are no workflows either."""
    machine.app.use_builtin()
    registrar = Registrar(machine.app)
    await registrar.upsert_schedule(ONCE | {"workflow_id": workflow})
    await machine.advance(hours=2)
    (row,) = await registrar.runs("s")
    assert (row.status, row.updated_at) == ("FAILED", NINE)
    assert row.reason is not None
    assert f'there is no workflow "{workflow}" of version 3' in row.reason


async def test_an_input_that_another_face_spoiled(machine: TimeMachine):
    registrar = Registrar(machine.app, Launcher(machine, True))
    await registrar.upsert_schedule(ONCE)
    await machine.app.schedules.update("s", input={"workflow_id": 5})
    await machine.advance(hours=2)
    (row,) = await registrar.runs("s")
    assert row.status == "FAILED"
    assert (await registrar.get_schedule("s")).workflow_id is None


async def test_a_second_registrar_leaves_the_launcher(machine: TimeMachine):
    launcher = Launcher(machine, True)
    Registrar(machine.app, launcher)
    registrar = Registrar(machine.app, owner="alice")
    await registrar.upsert_schedule(ONCE)
    await machine.advance(hours=2)
    assert len(launcher.calls) == 1


@pytest.mark.contract("CRON-13")
def test_only_a_launch_that_failed_is_a_failure_among_what_was_dropped():
    for status in Status:
        word = registrar_shows(status, "overlap")
        assert registrar_shows(status, "not_started") == ("FAILED" if status == "dropped" else word)


async def _nothing(context: Context) -> None:
    pass

"""What all hand-offs have in common, with an engine that is a dictionary; each real engine has tests of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from horae import App, Config
from horae.executor.celery_executor import CeleryExecutor
from horae.executor.dask_executor import DaskExecutor
from horae.executor.hand_off import End, Ending, HandOff, HandOffExecutor
from horae.executor.procrastinate_executor import ProcrastinateExecutor
from horae.face.service import Service
from horae.workflow import WorkflowBuilder
from tests.face.cli.command import horae
from tests.support.nodes import ended, keeping_time
from tests.support.wait import PATIENCE, wait_until

DEFAULT: Any = {}
RETRIED = {"retry": {"attempts": 2, "initial_delay": "10ms"}}


class Engine:
    """Work by its id: how often it was submitted, how it ended, and how it was stopped."""

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.ends: dict[str, End] = {}
        self.stops: list[bool] = []
        self.obeys: dict[bool, Ending | None] = {False: Ending.STOPPED, True: Ending.STOPPED}
        self.refusals = 0
        self.asked = 0
        self.away = False
        self.open = asyncio.Event()
        self.open.set()


class DictExecutor(HandOffExecutor):
    kind = "dict"
    engine = "The dictionary"

    def __init__(self, there: Engine) -> None:
        super().__init__(["work"])
        self.there = there

    async def submit(self, work: HandOff) -> str:
        self.there.submitted.append(work.id)
        await self.there.open.wait()
        if self.there.refusals:
            self.there.refusals -= 1
            raise OSError("it is away")
        return "a receipt"

    async def follow(self, work: HandOff) -> End:
        assert work.receipt == "a receipt"
        return await super().follow(work)

    async def ask(self, works: Sequence[HandOff]) -> Mapping[str, End]:
        self.there.asked += 1
        if self.there.away:
            raise OSError("it is away")
        return self.there.ends

    async def stop(self, work: HandOff, *, force: bool) -> None:
        self.there.stops.append(force)
        if (ending := self.there.obeys[force]) is not None:
            self.there.ends[work.id] = End(ending=ending, result="done")
        raise OSError("what it raises does not matter")


@contextlib.asynccontextmanager
async def serving(there: Engine, database: str = ":memory:", policies: Any = DEFAULT) -> AsyncIterator[App]:
    app = App(database, config=Config(tick_ms=20, terminate_ms=300, drain_ms=0))
    app.use(DictExecutor(there))
    async with app, asyncio.timeout(PATIENCE):
        if "work" not in {each.id for each in await app.schedules.list()}:
            await app.schedules.create("work", {}, "dict:work", policies=policies)
        async with keeping_time(app):
            yield app


async def test_a_failure_that_was_not_recorded_is_found_again_and_one_that_was_is_followed_by_other_work(
    tmp_path: Any,
):
    there, database = Engine(), f"sqlite:///{tmp_path}/horae.db"
    async with serving(there, database, RETRIED) as app:
        run_id = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 1)
    first = there.submitted[0]  # the node has stopped, and the work goes on
    assert there.stops == []
    there.ends[first] = End(ending=Ending.FAILED, reason="no")
    async with serving(there, database) as app:
        await wait_until(lambda: len(there.submitted) == 2)
        assert there.submitted[1] != first
        there.ends[there.submitted[1]] = End(ending=Ending.SUCCEEDED, result=5)
        run = await ended(app, run_id)
        assert (run.status, run.result, run.failures) == ("succeeded", 5, 1)
        (attempt, *_) = [each for each in await app.runs.attempts(run_id) if each.reason == "failed"]
        assert attempt.failure == "HandOffFailedError: The dictionary says that work failed: no"
    assert len(there.submitted) == 2


async def test_work_that_was_not_taken_is_submitted_again_under_the_same_id():
    there = Engine()
    there.refusals = 1
    async with serving(there) as app:
        run_id = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 2)
        assert len(set(there.submitted)) == 1
        there.ends[there.submitted[0]] = End(ending=Ending.STOPPED)
        run = await ended(app, run_id)
        assert run.failure == "HandOffFailedError: The dictionary says that work failed: it was stopped there"


async def test_cancelled_work_is_waited_for_and_terminated_when_it_does_not_stop():
    there = Engine()
    async with serving(there) as app:
        first = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 1)
        await app.runs.cancel(first)
        run = await ended(app, first)
        assert (run.status, run.failure, there.stops) == ("cancelled", None, [False])

        there.obeys[False] = None
        await app.schedules.update("work", policies={"timeouts": {"cancel": "100ms"}})
        second = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 2)
        await app.runs.cancel(second)
        assert (await ended(app, second)).status == "terminated"
        assert there.stops == [False, False, True]

        there.obeys[False] = Ending.SUCCEEDED
        await app.schedules.update("work", policies={"timeouts": {"cancel": "1m"}})
        third = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 3)
        await app.runs.cancel(third)
        run = await ended(app, third)  # it ended well before it could be stopped
        assert (run.status, run.result) == ("succeeded", "done")


async def test_a_run_that_is_cancelled_while_its_work_is_handed_over_stops_what_was_taken():
    there = Engine()
    there.open.clear()
    async with serving(there) as app:
        run_id = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 1)
        await app.runs.cancel(run_id)
        await wait_until(app.worker.tasks[0].cancelling)
        there.open.set()
        assert (await ended(app, run_id)).status == "cancelled"
        assert there.stops == [False]

        there.open.clear()
        there.refusals = 1
        run_id = await app.schedules.trigger("work")
        await wait_until(lambda: len(there.submitted) == 2)
        await app.runs.cancel(run_id)
        await wait_until(app.worker.tasks[0].cancelling)
        there.open.set()
        assert (await ended(app, run_id)).status == "cancelled"
        assert (there.stops, (await app.runs.get(run_id)).failure) == ([False], None)  # nothing was taken


async def test_a_node_of_a_workflow_finds_its_work_again_and_another_try_is_other_work(tmp_path: Path):
    there, database = Engine(), f"sqlite:///{tmp_path}/horae.db"
    flow = WorkflowBuilder("w", 1)
    flow.end(after=flow.task("dict:work", id="work", attempts=2, delay="10ms"))
    async with serving(there, database) as app:
        await app.workflows.deploy(flow)
        run_id = (await app.workflows.launch("w")).id
        await wait_until(lambda: len(there.submitted) == 1)
    async with serving(there, database) as app:  # the node has stopped, and the work went on
        there.ends[there.submitted[0]] = End(ending=Ending.FAILED, reason="no")
        await wait_until(lambda: len(there.submitted) == 2)
        there.ends[there.submitted[1]] = End(ending=Ending.SUCCEEDED, result=5)
        run = await ended(app, run_id)
        assert (run.status, len(set(there.submitted)), there.stops) == ("succeeded", 2, [])


async def test_schedules_of_these_kinds_are_created_over_http_and_with_the_command(tmp_path: Path):
    there, database = Engine(), f"sqlite:///{tmp_path}/horae.db"
    async with serving(there, database) as app:
        app.use(CeleryExecutor(object(), ["add"]))
        app.use(DaskExecutor("tcp://nowhere", {"add": "nowhere:add"}))
        app.use(ProcrastinateExecutor(object(), ["add"]))  # type: ignore[arg-type]
        transport = httpx.ASGITransport(Service(app, app.config), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = {}
            for name in ("celery:add", "dask:add", "procrastinate:add", "dict:work"):
                document = {"id": name.replace(":", "-"), "spec": {"crons": ["@daily"]}, "action": name}
                answers[name] = await client.post("/api/v1/schedules", json=document)
        assert {name: each.status_code for name, each in answers.items()} == {
            "celery:add": 201, "dask:add": 201, "procrastinate:add": 422, "dict:work": 201,
        }  # fmt: skip
        assert answers["dask:add"].json()["action"]["kind"] == "dask"
        assert "this one is not PostgreSQL" in answers["procrastinate:add"].text
        create = ("schedules", "create", "by-hand", "--cron", "@daily", "--action", "dict:work")
        done = await asyncio.to_thread(horae, *create, "--database", database)
        assert done.returncode == 0, done.stderr
        for schedule_id in ("dict-work", "by-hand"):
            run_id = await app.schedules.trigger(schedule_id)
            await wait_until(lambda: len(there.submitted) > len(there.ends))
            there.ends[there.submitted[-1]] = End(ending=Ending.SUCCEEDED, result=schedule_id)
            assert (await ended(app, run_id)).result == schedule_id


async def test_an_engine_that_is_away_is_asked_again_and_is_no_sign_of_life():
    there = Engine()
    async with serving(there, policies={"timeouts": {"heartbeat": "1500ms"}}) as app:
        there.away = True
        run_id = await app.schedules.trigger("work")
        await wait_until(lambda: there.asked > 3)
        there.away = False
        there.ends[there.submitted[0]] = End(ending=Ending.SUCCEEDED, result="late")
        assert (await ended(app, run_id)).result == "late"
        there.away = True
        run = await ended(app, await app.schedules.trigger("work"))
        assert (run.status, run.reason) == ("timed_out", "heartbeat_timeout")


async def test_work_whose_time_is_up_is_ended_at_once_and_not_waited_for_longer_than_it_may_take():
    there = Engine()
    there.obeys[True] = None
    async with serving(there, policies={"timeouts": {"run": "50ms"}}) as app:
        run = await ended(app, await app.schedules.trigger("work"))
        assert (run.status, there.stops) == ("timed_out", [True])

"""Old events and runs of flows are removed, but for what an open run or a pending input needs."""

from __future__ import annotations

from horae import App, Config
from horae.flows import LogicError, Prepared
from tests.support.flows import Script, events_of, flow_decider, publish, runs_of
from tests.support.nodes import step
from tests.support.wait import wait_until

DAY = 86_400_000


async def test_what_is_old_goes_and_what_is_needed_stays(database: str):
    script = Script()
    async with App(database, config=Config(flow_retention_age_ms=DAY, flow_retention_count=100)) as app:
        await app.flows.deploy(script.flow)

        async def work(effects: int) -> None:
            async def is_done() -> bool:
                await step(app)
                return len(await events_of(app, "consumed")) >= effects

            await wait_until(is_done)

        await publish(app, "1", "2", "3")
        await work(3)
        decider = flow_decider(app)
        assert await decider.prune(app.now()) == 0
        script.deeds["prepare"] = [LogicError("stuck")]
        await publish(app, "4")

        async def has_failed() -> bool:
            await step(app)
            return (await app.flows.show("f")).status == "Needs attention"

        await wait_until(has_failed)
        assert await decider.prune(app.now() + 2 * DAY) > 3
        assert await events_of(app) == ["4"]
        assert [run.status for run in await runs_of(app)] == ["failed:logic"]
        await app.flows.resume("f")
        await work(1)
        assert script.effects == [["1"], ["2"], ["3"], ["4"]]


async def test_the_number_kept_is_a_bound_too(database: str):
    script = Script(mutates=False, emits=False)
    script.deeds["prepare"] = [lambda ctx: Prepared() for _ in range(4)]
    async with App(database, config=Config(flow_retention_count=2)) as app:
        await app.flows.deploy(script.flow)
        for number in range(4):
            await publish(app, str(number))

            async def has_looked(number: int = number) -> bool:
                await step(app)
                return len(script.calls) > number and not app.worker.tasks and not app.worker.ended()

            await wait_until(has_looked)
        before = len(await app.flows.runs("f"))
        await flow_decider(app).prune(app.now())
        assert len(await app.flows.runs("f")) == 2 < before
        assert len(await events_of(app, "pending")) == 4

"""Runs of workflows: each kind of node, retries, timeouts, loops, joins, errors, limits; and what an attempt takes over from another."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from horae import Context
from horae.config import Config
from horae.errors import LimitExceededError, NodeFailedError
from horae.executor.node_context import NodeContext
from horae.workflow import WorkflowBuilder
from horae.workflow.node_checkpoint import NodeState
from tests.engine.workflow_attempts import Attempts, Crashed
from tests.support.wait import PATIENCE


def attempts(flow: WorkflowBuilder, limits: Config | None = None, **functions: Any) -> Attempts:
    made = Attempts(flow.build(), limits)
    for name, function in {**flow.functions, **functions}.items():
        made.functions.register(name, function)
    return made


def states(made: Attempts) -> dict[str, str]:
    return {place: record.state.value for place, record in made.records.items()}


async def number() -> int:
    return 7


async def boom() -> None:
    raise ValueError("no")


async def echo(x: Any) -> Any:
    return x


@pytest.mark.contract("CRON-14", "CRON-20")
async def test_a_gateway_follows_the_first_edge_whose_condition_holds_or_the_rest():
    for given, taken in ((5, "small"), (50, "large"), (500, "rest")):
        flow = WorkflowBuilder("w", 1)
        gate = flow.choose("gate")
        for name, condition in (("small", "input.n < 10"), ("large", "input.n < 100")):
            flow.task(number, id=name, after=gate.if_(condition))
        flow.task(number, id="rest", after=gate)
        made = attempts(flow)
        await made.run({"n": given})
        assert set(states(made)) == {"start", "gate", taken}
        assert made.records["gate"].output == taken


@pytest.mark.contract("CRON-14")
async def test_an_error_edge_handles_a_failure_and_without_one_the_run_fails():
    flow = WorkflowBuilder("w", 1)
    failing = flow.task(boom)
    flow.task(echo, id="mend", after=failing.failed, input={"x": "nodes.boom.error"})
    flow.task(number, id="well", after=failing)
    flow.task(number, id="either", after=failing.ended)
    made = attempts(flow)
    await made.run()
    assert states(made) == {
        "start": "succeeded",
        "boom": "failed",
        "mend": "succeeded",
        "either": "succeeded",
    }
    assert made.records["mend"].output == "ValueError: no"

    alone = WorkflowBuilder("w", 1)
    alone.task(number, after=alone.task(boom))
    alone.task(number, id="beside")
    made = attempts(alone)
    with pytest.raises(NodeFailedError, match='node "boom" failed: ValueError: no'):
        await made.run()
    assert states(made) == {
        "start": "succeeded",
        "boom": "failed",
        "beside": "succeeded",
    }  # others run to their end


@pytest.mark.contract("CRON-21")
async def test_independent_branches_run_at_once_and_each_node_has_a_key_of_its_own():
    together, keys = asyncio.Barrier(3), dict[str, str]()

    async def meet(context: Context) -> None:
        assert isinstance(context, NodeContext)
        keys[context.place] = context.key
        await asyncio.wait_for(together.wait(), PATIENCE)

    flow = WorkflowBuilder("w", 1)
    branches = [flow.task(meet, id=name) for name in "abc"]
    flow.join("all", after=branches)
    await attempts(flow).run()
    assert len(set(keys.values())) == 3


@pytest.mark.contract("CRON-14")
@pytest.mark.parametrize(("mode", "quorum"), [("any", None), ("quorum", 2)])
async def test_a_join_goes_on_without_branches_that_lost_and_cancels_them(mode: Any, quorum: int | None):
    cancelled = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    flow = WorkflowBuilder("w", 1)
    loser = flow.task(slow)
    behind = flow.task(number, id="behind", after=loser)
    join = flow.join(
        "join", mode=mode, quorum=quorum, after=[behind, flow.task(number, id="a"), flow.task(number, id="b")]
    )
    flow.task(number, id="then", after=join)
    made = attempts(flow)
    await made.run()
    await asyncio.wait_for(cancelled.wait(), PATIENCE)
    assert states(made)["slow"] == "cancelled"
    assert "behind" not in states(made)
    assert states(made)["then"] == "succeeded"
    assert set(made.records["join"].output) <= {"a", "b"}


async def test_a_join_of_all_is_skipped_if_one_branch_does_not_come():
    flow = WorkflowBuilder("w", 1)
    a, b = flow.task(number, id="a"), flow.task(number, id="b")
    join = flow.join("join", after=[a, b.if_("nodes.b.output > 100")])
    flow.task(number, id="then", after=join)
    made = attempts(flow)
    await made.run()
    assert set(states(made)) == {"start", "a", "b"}


@pytest.mark.contract("CRON-14")
async def test_loops_have_items_rounds_and_bounds():
    flow = WorkflowBuilder("w", 1)
    each = flow.foreach("each", "input.list", max_rounds=3, concurrency=2)
    body = flow.task(echo, id="body", after=each, input={"x": "{'item': item, 'index': index}"})
    flow.again(each, after=body)
    until = flow.while_("until", "item == null || item < 3", after=each, max_rounds=9)
    step = flow.task(echo, id="step", after=until, input={"x": "index + 1"})
    flow.again(until, after=step)
    flow.end(after=until, output={"each": each, "until": until})
    made = attempts(flow)
    assert await made.run({"list": ["x", "y"]}) == {
        "each": [{"item": "x", "index": 0}, {"item": "y", "index": 1}], "until": [1, 2, 3],
    }  # fmt: skip
    assert {"each/0/body", "each/1/body", "until/2/step"} <= set(states(made))
    with pytest.raises(NodeFailedError, match="there are 4 items, and max_rounds is 3"):
        await attempts(flow).run({"list": [1, 2, 3, 4]})
    with pytest.raises(NodeFailedError, match="must be a list"):
        await attempts(flow).run({"list": 5})


async def test_a_loop_that_never_ends_fails_at_its_bound():
    flow = WorkflowBuilder("w", 1)
    loop = flow.while_("loop", "true", max_rounds=5)
    flow.again(loop, after=flow.task(number, after=loop))
    with pytest.raises(NodeFailedError, match="it did not end within max_rounds, 5"):
        await attempts(flow).run()


@pytest.mark.contract("CRON-21")
async def test_a_node_is_attempted_as_often_as_its_retry_says_and_counts_on_after_a_crash():
    tries: list[int] = []

    async def third(context: Context) -> str:
        tries.append(context.attempt)
        if context.attempt < 3:
            raise ValueError("again")
        return "done"

    flow = WorkflowBuilder("w", 1)
    flow.task(third, attempts=3, delay="1ms")
    made = attempts(flow)
    made.crash = lambda count: (
        count == 2,
        True,
    )  # the first save is of the start, the second of a failed attempt
    with pytest.raises(Crashed):
        await made.run()
    assert made.records["third"].state is NodeState.RETRYING
    await made.run(after="crashed")
    assert tries == [1, 2, 3]
    assert (made.records["third"].attempts, made.records["third"].output) == (3, "done")


@pytest.mark.contract("CRON-21")
async def test_an_attempt_that_takes_too_long_is_stopped_and_a_thread_is_left_behind():
    free = threading.Event()
    asked: list[bool] = []

    def stubborn(context: Context) -> None:
        free.wait(10)
        asked.append(context.stop_requested())

    async def sleepy() -> None:
        await asyncio.sleep(60)

    flow = WorkflowBuilder("w", 1)
    for function in (stubborn, sleepy):
        task = flow.task(function, timeout="20ms")
        flow.task(number, id=f"after-{function.__name__}", after=task.failed)
    made = attempts(flow)
    await made.run()
    assert states(made)["stubborn"] == states(made)["sleepy"] == "failed"
    assert made.records["sleepy"].failure == "TimeoutError: it took longer than its timeout, 20 ms"
    free.set()


@pytest.mark.contract("CRON-22")
async def test_another_attempt_repeats_no_finished_node_at_whatever_save_the_process_died():
    calls: list[str] = []

    async def work(context: Context) -> str:
        assert isinstance(context, NodeContext)
        calls.append(context.place)
        return context.place

    flow = WorkflowBuilder("w", 1)
    one = flow.task(work, id="one")
    loop = flow.foreach("loop", "[1, 2]", after=one)
    flow.again(loop, after=flow.task(work, id="body", after=loop))
    flow.end(after=flow.task(work, id="last", after=loop), output={"all": loop})
    whole = attempts(flow)
    result, saves = await whole.run(), whole.saves
    for crash_at in range(1, saves + 1):
        for durable in (True, False):
            calls.clear()
            made = attempts(flow)
            made.crash = lambda count, at=crash_at, kept=durable: (count == at, kept)  # type: ignore[misc]
            with pytest.raises(Crashed):
                await made.run()
            ended = {place for place, record in made.records.items() if record.state is NodeState.SUCCEEDED}
            before = len(calls)
            assert await made.run(after="crashed") == result
            assert not ended & set(calls[before:])


async def test_a_run_that_is_attempted_again_runs_its_failed_nodes_again_and_no_others():
    broken, calls = True, list[str]()

    async def fragile() -> str:
        calls.append("fragile")
        if broken:
            raise ValueError("no")
        return "mended"

    async def steady() -> None:
        calls.append("steady")

    flow = WorkflowBuilder("w", 1)
    flow.end(after=flow.task(fragile, after=flow.task(steady)), output={"x": "nodes.fragile.output"})
    made = attempts(flow)
    with pytest.raises(NodeFailedError):
        await made.run()
    with pytest.raises(NodeFailedError):  # the process died after the failure was saved
        await made.run(after="crashed")
    broken = False
    assert await made.run(after="failed") == {"x": "mended"}
    assert calls == ["steady", "fragile", "fragile"]


async def test_an_action_of_a_node_has_checkpoints_of_its_own():
    seen: list[dict[str, Any]] = []

    async def stepwise(context: Context) -> None:
        seen.append(dict(context.checkpoints))
        await context.checkpoint("step", 1)
        if len(seen) < 2:
            raise Crashed

    flow = WorkflowBuilder("w", 1)
    flow.task(number, id="other", after=flow.task(stepwise))
    made = attempts(flow)
    with pytest.raises(Crashed):
        await made.run()
    await made.run(after="crashed")
    assert seen == [{}, {"step": 1}]


async def test_a_cancelled_run_cancels_its_nodes():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    flow = WorkflowBuilder("w", 1)
    flow.task(slow)
    made = attempts(flow)
    running = asyncio.create_task(made.run())
    await asyncio.wait_for(begun.wait(), PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


async def test_a_run_that_is_cancelled_at_any_turn_leaves_no_action_running():
    for turns in range(12):
        running: set[str] = set()

        async def hold(context: Context, running: set[str] = running) -> None:
            assert isinstance(context, NodeContext)
            running.add(context.place)
            try:
                await asyncio.sleep(60)
            finally:
                running.discard(context.place)

        flow = WorkflowBuilder("w", 1)
        for name in "abc":
            flow.task(hold, id=name)
        task = asyncio.create_task(attempts(flow).run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running, turns


@pytest.mark.contract("CRON-21")
async def test_so_many_nodes_of_a_run_run_at_once_and_no_more():
    now = most = 0

    async def work() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(3):
            await asyncio.sleep(0)
        now -= 1

    flow = WorkflowBuilder("w", 1)
    flow.join("all", after=[flow.task(work, id=f"n{number}") for number in range(9)])
    made = attempts(flow, Config(workflow_concurrency=4, terminate_ms=200))
    await made.run()
    assert most == 4
    assert list(states(made).values()) == ["succeeded"] * 11


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"workflow_steps": 20}, "workflow_steps"),
        ({"run_output_bytes": 3000}, "run_output_bytes"),
    ],
)
async def test_a_run_ends_at_its_limits(limits: dict[str, Any], name: str):
    flow = WorkflowBuilder("w", 1)
    loop = flow.while_("loop", "true", max_rounds=100)
    flow.again(loop, after=flow.task(number, after=loop))
    with pytest.raises(LimitExceededError) as raised:
        await attempts(flow, Config(**limits, terminate_ms=200)).run()
    assert raised.value.details["limit"] == name


@pytest.mark.parametrize(
    ("output", "reason"), [("x" * 300_000, "node_output_bytes"), (object(), "cannot hold"), ({1, 2}, "")]
)
async def test_an_output_that_cannot_be_kept_fails_its_node(output: Any, reason: str):
    async def give() -> Any:
        return output

    flow = WorkflowBuilder("w", 1)
    flow.task(give)
    if isinstance(output, set):  # a set is kept as a list
        await attempts(flow).run()
        return
    with pytest.raises(NodeFailedError, match=reason):
        await attempts(flow).run()


async def test_a_faulty_condition_fails_the_run_and_a_faulty_input_its_node():
    flow = WorkflowBuilder("w", 1)
    flow.task(number, id="after", after=flow.task(number).if_("input.missing"))
    with pytest.raises(
        NodeFailedError, match='the condition of the edge "number → after" failed: Key not found'
    ):
        await attempts(flow).run({})
    flow = WorkflowBuilder("w", 1)
    flow.task(number, id="after", after=flow.task(echo, input={"x": "input.missing"}).failed)
    made = attempts(flow)
    await made.run({})
    assert states(made)["after"] == "succeeded"
    flow = WorkflowBuilder("w", 1)
    flow.task(number, id="after", after=flow.task(number).if_("1"))
    with pytest.raises(NodeFailedError, match="must be true or false"):
        await attempts(flow).run({})


async def test_only_the_trigger_that_fired_begins():
    flow = WorkflowBuilder("w", 1)
    for name in ("one", "two"):
        flow.task(number, id=f"after-{name}", after=flow.schedule("0 9 * * *", "UTC", id=name))
    made = attempts(flow)
    await made.run(trigger="one")
    assert set(states(made)) == {"one", "after-one"}

"""Graphs for absent users: one port, a grant checked twice, each slot executed and charged once, in process and over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from horae import App, Filter, Policies
from horae.errors import (
    ExecutionInProgressError,
    GrantExpiredError,
    GrantNotFoundError,
    GrantRevokedError,
    GrantScopeError,
    IdempotencyMismatchError,
    InvalidInputError,
    NoCreditError,
    NotStartedError,
    UnknownActionError,
)
from horae.executor.graph_provider_port import Caller, GraphRouter, UsageEvent, drain, graph_input
from horae.grant_model import ExecutionRequest
from horae.model import Reason, RetryPolicy, Run, Status, Timeouts
from horae.policy.graph_requests import hash_of_request
from horae.store.port import BEGINNING
from horae.store.sqlite import SqliteStore
from horae.testing import TimeMachine
from tests.support.graphs import TestGraphs, ended, pass_time, worker_of
from tests.support.nodes import step
from tests.support.wait import PATIENCE

KEY = "sk-planted-virtual-key"


class Open(Protocol):
    def __call__(self, graphs: TestGraphs, **more: Any) -> AbstractAsyncContextManager[App]: ...


@pytest.fixture(params=["here", "http"])
def worker(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a worker whose executing side is in its process, or behind HTTP; the latter on PostgreSQL."""
    if request.param == "http":
        return partial(worker_of, str(request.getfixturevalue("postgres")), remote=True)
    return partial(worker_of, f"sqlite:///{tmp_path / 'horae.db'}", remote=False)


async def poet(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
    yield {"thinking": len(given["messages"])}
    yield UsageEvent(unit="draft", model=given["model"], input_tokens=3, output_tokens=5, cost=7)
    yield UsageEvent(unit="draft", cost=7)  # the same unit is the same work
    yield {"poem": f"for {caller.user_id}", "run": run_id, "key": caller.virtual_key}


async def run_once(app: App, graph: str = "test:poet", *, owner: str = "ada", **more: Any) -> Run:
    theirs = app.owned_by(owner)
    await theirs.schedules.create("s", "0 0 1 1 *", f"graph:{graph}", **more)
    return await ended(app, await theirs.schedules.trigger("s"))


@pytest.mark.contract("GRNT-01", "GRNT-06", "GRNT-07")
async def test_a_graph_runs_for_an_absent_user_and_is_charged_once(worker: Open):
    async with worker(TestGraphs(poet=poet)) as app:
        await app.accounts.put("ada", virtual_key=KEY, credit=100)
        run = await run_once(app, input={"messages": [{"role": "user", "content": "hi"}]})
        assert run.status is Status.SUCCEEDED, run.failure
        assert run.result == {"poem": "for ada", "run": run.id, "key": "***"}
        (used,) = await app.usage.of_run(run.id)
        assert (used.unit, used.attempt, used.billing_account_id, used.model) == (
            "draft",
            1,
            "ada",
            "default",
        )
        assert (used.input_tokens, used.output_tokens, used.cost) == (3, 5, 7)
        assert (await app.accounts.get("ada")).spent == 7
        (total,) = await app.owned_by("ada").usage.sums()
        assert (total.runs, total.records, total.cost, total.since_ms) == (1, 1, 7, None)
        assert await app.owned_by("eve").usage.sums() == []
        assert await app.owned_by("eve").usage.of_run(run.id) == []
        (by_day,) = await app.usage.sums(by="day")
        assert by_day.since is not None
        lines = [line.message for line in await app.runs.logs(run.id)]
        assert lines[0] == '{"thinking":1}'
        assert KEY not in str(lines)


@pytest.mark.contract("GRNT-01", "GRNT-02")
async def test_events_are_drained_and_the_result_resolves_once_by_the_prefixs_provider():
    graphs = TestGraphs(poet=poet)
    router = GraphRouter()
    router.use(graphs)
    assert router.graphs() == ["test:poet"]
    caller = Caller(user_id="ada", billing_account_id="a", grant_id="g", virtual_key=KEY)
    assert KEY not in repr(caller)
    seen: list[Any] = []

    async def see(event: Any) -> None:
        seen.append(event)

    result = await drain(router.run_graph("r", "test:poet", graph_input(None), caller), see)
    assert (len(seen), result) == (4, {"poem": "for ada", "run": "r", "key": KEY})
    for unknown in ("test:painter", "langgraph:poet", "poet"):
        with pytest.raises(Exception, match="is not known here"):
            router.run_graph("r", unknown, {}, caller)
    assert graph_input(None) == {"messages": [], "model": "default"}
    assert graph_input({"model": "x", "more": 1}) == {"messages": [], "model": "x", "more": 1}
    bad: list[Any] = [[], "text", {"messages": "hi"}, {"model": None}, {"model": ""}]
    for wrong in bad:
        with pytest.raises(InvalidInputError, match="input"):
            graph_input(wrong)


@pytest.mark.contract("GRNT-05")
@pytest.mark.parametrize("fault", ["revoked", "expired", "credit"])
async def test_a_run_that_is_not_granted_is_skipped_and_its_schedule_needs_attention(
    worker: Open, fault: str
):
    calls = []

    async def work(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        calls.append(run_id)
        yield UsageEvent(unit="1", cost=1)

    async with worker(TestGraphs(work=work)) as app:
        ada = app.owned_by("ada")
        retry = Policies(retry=RetryPolicy(attempts=5, initial_delay="0s"))
        schedule = await ada.schedules.create("s", "0 0 1 1 *", "graph:test:work", policies=retry)
        grant_id, reason = schedule.execution_grant_id, f"grant_{fault}"
        if fault == "revoked":
            await ada.grants.revoke(grant_id)
        elif fault == "expired":
            await ada.grants.renew(grant_id, app.clock.now() + timedelta(milliseconds=5))
            await asyncio.sleep(0.01)
        else:
            reason = "no_credit"
            await app.accounts.put("ada", credit=0)
        run = await ended(app, await ada.schedules.trigger("s"))
        assert (run.status, run.reason, run.attempt) == (Status.SKIPPED, reason, 1)
        assert (run.started_at_ms, calls) == (None, [])
        assert await app.usage.sums() == []
        state = (await ada.schedules.get("s")).state
        assert (state.attention_reason, bool(state.attention), state.paused) == (reason, True, False)
        assert [each.id for each in await ada.schedules.list()] == ["s"]
        if fault == "revoked":
            another = await ada.grants.create(["graph:execute:test:work"])
            changed = await ada.schedules.update("s", execution_grant_id=another.id)
            assert (changed.state.attention, changed.state.attention_reason) == ("", "")
        elif fault == "expired":
            await ada.grants.renew(grant_id)
            assert (await ada.schedules.get("s")).state.attention == ""
        else:
            await app.accounts.put("ada", credit=5)
        run = await ended(app, await ada.schedules.trigger("s"))
        assert (run.status, calls) == (Status.SUCCEEDED, [run.id])
        state = (await ada.schedules.get("s")).state
        assert (state.attention, state.attention_reason) == ("", "")


@pytest.mark.contract("GRNT-04", "GRNT-05")
async def test_a_grant_that_is_revoked_between_claim_and_call_is_found_by_the_executing_side(
    worker: Open, monkeypatch: pytest.MonkeyPatch
):
    async with worker(TestGraphs(poet=poet)) as app:
        ada = app.owned_by("ada")
        schedule = await ada.schedules.create("s", "0 0 1 1 *", "graph:test:poet")
        run_id = await ada.schedules.trigger("s")
        launch = app.worker.launch
        held: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(app.worker, "launch", lambda name, start: held.append((name, start)))
            await step(app)
        ((name, start),) = held
        assert (start.denial, start.grant_id) == (
            None,
            schedule.execution_grant_id,
        )  # the worker's own check passed
        await ada.grants.revoke(schedule.execution_grant_id)
        launch(name, start)
        run = await ended(app, run_id)
        assert (run.status, run.reason) == (Status.SKIPPED, "grant_revoked")
        assert await app.usage.sums() == []
        assert (await ada.schedules.get("s")).state.attention_reason == "grant_revoked"
        # and the worker's own: the executing side is not asked at all
        with monkeypatch.context() as patch:
            patch.setattr(app.executors, "run", None)
            run = await ended(app, await ada.schedules.trigger("s"))
        assert (run.status, run.reason) == (Status.SKIPPED, "grant_revoked")


def asked(**fields: Any) -> ExecutionRequest:
    given: dict[str, Any] = {
        "key": "s:2026-01-01T00:00:00.000Z/1", "user_id": "ada", "graph_id": "test:poet", "run_id": "r", "attempt": 1,
        "input": graph_input(None),
    }  # fmt: skip
    return ExecutionRequest(**(given | fields))


class Nobody:
    def event(self, text: str) -> None: ...
    def hide(self, secret: str) -> None: ...


@pytest.mark.contract("GRNT-04", "GRNT-08")
async def test_a_request_is_executed_once_and_its_key_is_checked_before_its_grant(worker: Open):
    gate, calls = asyncio.Event(), []

    async def work(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        calls.append(given)
        await gate.wait()
        if given["model"] == "bad":
            raise ValueError(f"no such model, said {caller.virtual_key}")
        yield "done"

    async with worker(TestGraphs(poet=work)) as app:
        await app.accounts.put("ada", virtual_key=KEY)
        ask: Any = app.executors._kinds["graph"]._execution.execute  # type: ignore[attr-defined]
        grant = await app.owned_by("ada").grants.create(["graph:execute:test:poet"])
        other = await app.owned_by("ada").grants.create(["graph:execute:test:painter"])
        hers = await app.owned_by("eve").grants.create(["graph:execute:*"])
        for wrong, error in (
            ("none", GrantNotFoundError), (hers.id, GrantNotFoundError), (other.id, GrantScopeError),
        ):  # fmt: skip
            with pytest.raises(error):
                await ask(asked(grant_id=wrong), Nobody())
        first = asyncio.create_task(ask(asked(grant_id=grant.id), Nobody()))
        while not calls:
            await asyncio.sleep(0.001)
        with pytest.raises(ExecutionInProgressError):
            await ask(asked(grant_id=grant.id), Nobody())
        with pytest.raises(IdempotencyMismatchError):
            await ask(asked(grant_id=grant.id, input=graph_input({"model": "x"})), Nobody())
        gate.set()
        outcome = await first
        assert (outcome.ok, outcome.result) == (True, "done")
        bad = {"grant_id": grant.id, "key": "other", "input": graph_input({"model": "bad"})}
        failed = await ask(asked(**bad), Nobody())
        assert (failed.ok, failed.code, failed.message) == (
            False,
            "failed",
            "ValueError: no such model, said ***",
        )
        await app.owned_by("ada").grants.revoke(grant.id)
        assert await ask(asked(grant_id=grant.id), Nobody()) == outcome  # stored outcomes outlive the grant
        assert await ask(asked(**bad), Nobody()) == failed
        with pytest.raises(GrantRevokedError):
            await ask(asked(grant_id=grant.id, key="new"), Nobody())
        with pytest.raises(IdempotencyMismatchError):
            await ask(asked(grant_id=grant.id, graph_id="test:painter"), Nobody())
        assert len(calls) == 2


@pytest.mark.contract("GRNT-08")
async def test_an_expired_lease_is_taken_over_and_the_old_holder_writes_nothing(machine: TimeMachine):
    gate = asyncio.Event()

    async def work(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        if not gate.is_set():
            gate.set()
            await asyncio.Event().wait()
        yield "second"

    app = machine.app
    app.use_graphs(TestGraphs(poet=work))
    execution = app.graph_execution
    grant = await app.owned_by("ada").grants.create(["graph:execute:*"])
    request = asked(grant_id=grant.id)
    execution._keep = lambda record, task: asyncio.Event().wait()  # type: ignore[assignment,method-assign,return-value]
    first = asyncio.create_task(execution.execute(request, Nobody()))
    await gate.wait()
    machine.clock.move_to(machine.now + timedelta(milliseconds=app.config.lease_ms - 1))
    with pytest.raises(ExecutionInProgressError):
        await execution.execute(request, Nobody())
    machine.clock.move_to(machine.now + timedelta(milliseconds=1))
    outcome = await execution.execute(request, Nobody())
    assert outcome.result == "second"
    async with app.reading() as transaction:
        record = await transaction.execution("ada", request.key)
    assert record is not None
    async with app.transaction() as transaction:
        stale = record.__class__(
            user_id="ada", key=request.key, request_hash=hash_of_request("x", 1), run_id="r", holder="another",
            status=record.status, lease_until_ms=0, created_at_ms=0,
        )  # fmt: skip
        assert not await transaction.end_execution(stale, outcome)
        assert await transaction.renew_execution(stale, 5) is None
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.contract("GRNT-07", "GRNT-08")
async def test_transport_faults_are_retried_with_the_same_key_and_graph_failures_are_not(worker: Open):
    async def bad(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        yield UsageEvent(unit="1", cost=1)
        raise ValueError("as planned")

    async with worker(TestGraphs(poet=poet, bad=bad)) as app:
        execution: Any = app.executors._kinds["graph"]._execution  # type: ignore[attr-defined]
        plain, asked_for = execution.execute, list[ExecutionRequest]()

        async def shaky(request: ExecutionRequest, watch: Any) -> Any:
            asked_for.append(request)
            outcome = await plain(request, watch)
            if len(asked_for) == 1:
                raise NotStartedError("the answer was lost")
            return outcome

        execution.execute = shaky
        run = await run_once(app)
        assert (run.status, run.attempt, run.failures) == (Status.SUCCEEDED, 2, 0)
        assert len({(each.key, each.run_id) for each in asked_for}) == 1
        assert [used.attempt for used in await app.usage.of_run(run.id)] == [1]
        asked_for.append(asked_for[0])
        policies: Any = {"retry": {"attempts": 2, "initial_delay": "0s"}}
        await app.owned_by("ada").schedules.create("t", "0 0 1 1 *", "graph:test:bad")
        run = await ended(app, await app.owned_by("ada").schedules.trigger("t"))
        assert (run.status, run.reason, run.attempt) == (Status.FAILED, "failed", 1)
        assert "as planned" in (run.failure or "")
        await app.owned_by("ada").schedules.update("t", policies=policies)
        run = await ended(app, await app.owned_by("ada").schedules.trigger("t"))
        assert (run.attempt, [used.attempt for used in await app.usage.of_run(run.id)]) == (2, [1, 2])


@pytest.mark.contract("GRNT-05")
async def test_bad_graphs_end_with_a_code(worker: Open):
    async def no_json(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        yield object()

    async def flood(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        number = 0
        while True:
            number += 1
            yield {"number": number, "text": "x" * 5000}

    async def never(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None

    async with worker(
        TestGraphs(no_json=no_json, flood=flood, never=never), lease_ms=3000, housekeeping_ms=100
    ) as app:
        ada = app.owned_by("ada")
        for name, timeout, status, reason in (
            ("no_json", None, Status.FAILED, Reason.INVALID_RESULT), ("flood", "150ms", Status.TIMED_OUT, Reason.RUN_TIMEOUT),
            ("never", "150ms", Status.TIMED_OUT, Reason.RUN_TIMEOUT),
        ):  # fmt: skip
            policies = Policies(timeouts=Timeouts(run=timeout))
            await ada.schedules.create(name, "0 0 1 1 *", f"graph:test:{name}", policies=policies)
            run = await ended(app, await ada.schedules.trigger(name))
            assert (run.status, run.reason) == (status, reason), run.failure
        with pytest.raises(UnknownActionError):
            await ada.schedules.create("none", "0 0 1 1 *", "graph:test:none")
        with pytest.raises(InvalidInputError, match="input"):
            await ada.schedules.create("none", "0 0 1 1 *", "graph:test:never", input={"messages": 5})


@pytest.mark.contract("GRNT-01")
async def test_events_can_be_read_while_the_graph_runs_here_and_at_its_end_over_http(worker: Open):
    began, gate = asyncio.Event(), asyncio.Event()

    async def slow(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        yield {"step": 1}
        began.set()
        await gate.wait()
        yield {"step": 2}

    async with worker(TestGraphs(slow=slow), attempt_log_flush_ms=10) as app:
        ada = app.owned_by("ada")
        await ada.schedules.create("s", "0 0 1 1 *", "graph:test:slow")
        run_id = await ada.schedules.trigger("s")
        await step(app)
        await asyncio.wait_for(began.wait(), PATIENCE)

        async def events() -> list[str]:
            return [line.message for line in await ada.runs.logs(run_id)]

        if app.executors._kinds["graph"]._execution is app.graph_execution:  # type: ignore[attr-defined]
            async with asyncio.timeout(PATIENCE):
                while not (seen := await events()):
                    await asyncio.sleep(0.005)
            assert seen == ['{"step":1}']
        else:
            await asyncio.sleep(0.05)  # some times the span within which they would be written
            assert await events() == []
        assert (await ada.runs.get(run_id)).ended_at_ms is None
        gate.set()
        assert (await ended(app, run_id)).status is Status.SUCCEEDED
        assert await events() == ['{"step":1}', '{"step":2}']


async def test_a_cancelled_graph_stops_there_too(worker: Open):
    began, stopped = asyncio.Event(), asyncio.Event()

    async def never(given: dict[str, Any], caller: Caller, run_id: str) -> AsyncIterator[Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        yield None

    async with worker(TestGraphs(never=never), lease_ms=3000, housekeeping_ms=100) as app:
        ada = app.owned_by("ada")
        await ada.schedules.create("s", "0 0 1 1 *", "graph:test:never")
        run_id = await ada.schedules.trigger("s")
        await step(app)
        await asyncio.wait_for(began.wait(), PATIENCE)
        await ada.runs.cancel(run_id)
        assert (await ended(app, run_id)).status is Status.CANCELLED
        await asyncio.wait_for(stopped.wait(), PATIENCE)


@pytest.mark.contract("GRNT-13")
async def test_a_schedule_and_its_grant_are_made_and_ended_together(machine: TimeMachine):
    app = machine.app
    app.use_graphs(TestGraphs(poet=poet, painter=poet))
    ada, eve = app.owned_by("ada"), app.owned_by("eve")
    made = await ada.schedules.create("s", "0 9 * * *", "graph:test:poet")
    grant = await ada.grants.get(made.execution_grant_id)
    assert (grant.scopes, grant.user_id, made.policies.backfill_limit) == (
        ("graph:execute:test:poet",),
        "ada",
        0,
    )
    hers = await eve.grants.create(["graph:execute:*"])
    for wrong, error in (
        ({"execution_grant_id": hers.id}, GrantNotFoundError), ({"execution_grant_id": "none"}, GrantNotFoundError),
        ({"action": "graph:test:painter"}, GrantScopeError),
    ):  # fmt: skip
        with pytest.raises(error):
            await ada.schedules.update("s", **wrong)  # type: ignore[arg-type]
        with pytest.raises(error):
            await ada.schedules.create(
                "t",
                "0 9 * * *",
                "graph:test:painter",
                execution_grant_id=wrong.get("execution_grant_id", grant.id),
            )
    with pytest.raises(InvalidInputError, match="owner"):
        await app.schedules.create("t", "0 9 * * *", "graph:test:poet")
    app.action("plain")(lambda: None)
    with pytest.raises(InvalidInputError, match="goes with a graph"):
        await ada.schedules.create("t", "0 9 * * *", "plain", execution_grant_id=grant.id)
    assert len(await ada.grants.list()) == 1
    await ada.schedules.create("t", "0 9 * * *", "graph:test:poet", execution_grant_id=grant.id)
    await ada.schedules.delete("s")
    assert (await ada.grants.get(grant.id)).revoked_at is None  # another schedule has it
    await ada.schedules.delete("t")
    assert (await ada.grants.get(grant.id)).revoked_at is not None
    ended_grant = await ada.grants.create(["graph:execute:*"], expires_at=machine.now + timedelta(seconds=1))
    await machine.advance(seconds=1)
    with pytest.raises(GrantExpiredError):
        await ada.schedules.create("t", "0 9 * * *", "graph:test:poet", execution_grant_id=ended_grant.id)
    await app.accounts.put("ada", credit=0)
    with pytest.raises(NoCreditError):
        await ada.schedules.create("t", "0 9 * * *", "graph:test:poet")
    assert [each.id for each in await ada.grants.list() if each.revoked_at is None] == [ended_grant.id]


@pytest.mark.contract("GRNT-13")
@pytest.mark.parametrize("way", ["finished", "declaration"])
async def test_a_grant_is_revoked_with_its_last_schedule_however_that_goes(machine: TimeMachine, way: str):
    app = machine.app
    app.use_graphs(TestGraphs(poet=poet))
    ada = app.owned_by("ada")
    spec, policies = (
        {"times": [(machine.now + timedelta(minutes=1)).isoformat()]},
        Policies(finished_ttl="1h"),
    )
    made = [
        await ada.schedules.create(name, spec, "graph:test:poet", policies=policies) for name in ("s", "t")
    ]
    shared = made[0].execution_grant_id
    await ada.schedules.create(
        "u", spec, "graph:test:poet", policies=policies, execution_grant_id=made[1].execution_grant_id
    )
    kept = await ada.grants.create(["graph:execute:*"])
    if way == "finished":
        await ada.schedules.create("v", "0 0 * * *", "graph:test:poet", execution_grant_id=shared)
        await pass_time(machine)
        await machine.advance(minutes=61)
        assert [each.id for each in await ada.schedules.list()] == ["v"]
        held = {shared, kept.id}
    else:
        await ada.tasks.reconcile({})
        assert list(await ada.schedules.list()) == []
        held = {kept.id}
    assert {each.id for each in await ada.grants.list() if each.revoked_at is None} == held


@pytest.mark.contract("GRNT-05", "GRNT-10")
async def test_a_schedule_goes_on_ticking_while_its_grant_does_not_hold(machine: TimeMachine):
    app = machine.app
    app.use_graphs(TestGraphs(poet=poet))
    ada = app.owned_by("ada")
    made = await ada.schedules.create("s", "* * * * *", "graph:test:poet")
    await pass_time(machine, 2)
    await ada.grants.renew(made.execution_grant_id, machine.now + timedelta(seconds=30))
    await pass_time(machine, 3)
    runs = await ada.runs.list("s")
    assert [(run.status.value, run.reason) for run in runs] == [("skipped", "grant_expired")] * 3 + [
        ("succeeded", "")
    ] * 2
    assert (await app.schedules.counts("s")).unstarted == {Reason.GRANT_EXPIRED: 3}
    assert (await ada.schedules.list(Filter(attention=True)))[0].id == "s"
    told = await ada.why.explain("s", runs[0].nominal)
    assert "its grant has expired" in told.sentence
    await ada.grants.renew(made.execution_grant_id)
    assert (await ada.schedules.get("s")).state.attention == ""
    await pass_time(machine)
    assert (await ada.runs.list("s"))[0].status is Status.SUCCEEDED
    assert json.dumps((await ada.runs.list("s"))[0].result)


@pytest.mark.contract("GRNT-08", "GRNT-10")
async def test_an_executing_side_that_is_away_for_an_hour_costs_the_slots_of_that_hour_and_no_more(
    machine: TimeMachine,
):
    app = machine.app
    app.use_graphs(TestGraphs(poet=poet))
    execution: Any = app.executors._kinds["graph"]._execution  # type: ignore[attr-defined]
    plain, tries, is_away = execution.execute, list[str](), True

    async def execute(request: ExecutionRequest, watch: Any) -> Any:
        tries.append(request.run_id)
        if is_away:
            raise NotStartedError("the executing side cannot be reached")
        return await plain(request, watch)

    execution.execute = execute
    ada = app.owned_by("ada")
    await ada.schedules.create("s", "*/10 * * * *", "graph:test:poet", policies={"start_attempts": 3})
    await pass_time(machine, 61)
    lost = await ada.runs.list("s")
    assert len(lost) == 6
    assert {(run.status, run.reason) for run in lost} == {(Status.DROPPED, Reason.NOT_STARTED)}
    assert len(tries) == 3 * len(lost)  # each slot under one run id, three times
    assert len(set(tries)) == len(lost)
    assert (await ada.usage.sums()) == []
    is_away = False
    await pass_time(machine, 10)
    assert (await ada.runs.list("s"))[0].status is Status.SUCCEEDED
    (charged,) = await ada.usage.sums()
    assert (charged.runs, charged.records) == (1, 1)


@pytest.mark.contract("GRNT-12")
async def test_a_graph_without_a_next_time_or_with_a_stale_one_is_reported_and_goes_on(machine: TimeMachine):
    app, store = machine.app, machine.app._store
    assert isinstance(store, SqliteStore)
    app.use_graphs(TestGraphs(poet=poet))
    ada = app.owned_by("ada")
    await ada.schedules.create("s", "0 * * * *", "graph:test:poet")
    right = (await ada.schedules.get("s")).state

    async def report(next_at: int | None) -> tuple[int, int]:
        machine.clock.move_to(machine.now + timedelta(minutes=5))
        await store.work(lambda c: c.execute("UPDATE due SET next_at_ms = ?", (next_at,)))
        told = await app.engine.renew_and_maintain(app.now())
        return told.repaired, told.stale

    due = int(app.now())
    assert await report(due + 3_600_000) == (0, 0)
    assert await report(None) == (1, 0)
    await pass_time(machine)
    assert await report(app.now() + 5 * 60_000 - 60_000) == (0, 0)  # late, and not by more than a minute
    assert await report(app.now() + 5 * 60_000 - 60_001) == (0, 1)
    await pass_time(machine, 60 - 21)
    assert (await ada.schedules.get("s")).state == right
    (run,) = await ada.runs.list("s")
    assert (run.status, run.nominal_ms) == (Status.SUCCEEDED, due + 3_600_000)


async def test_old_requests_and_states_are_pruned(database: str):
    async with worker_of(database, TestGraphs(poet=poet), remote=False) as app:
        run = await run_once(app)
        async with app.transaction() as transaction:
            await transaction.put_graph_state(run.id, {"a": "1", "b": "2"}, [], app.now())
            await transaction.put_graph_state(run.id, {"a": "3"}, ["b"], app.now())
            assert await transaction.graph_state(run.id) == {"a": "3"}
            [schedule] = await transaction.find_schedules(Filter(), BEGINNING, 10)
            assert await transaction.insert_patch_request(schedule, "r", app.now())
            assert not await transaction.insert_patch_request(schedule, "r", app.now())
            assert await transaction.prune_patch_requests(app.now() - 60_000, 10) == 0
            assert await transaction.prune_patch_requests(app.now() + 60_000, 10) == 1
            assert await transaction.insert_patch_request(schedule, "r", app.now())
            assert await transaction.prune_executions(app.now() - 60_000, 10) == 0
            assert await transaction.prune_graph_state(app.now() - 60_000, 10) == 0
            assert await transaction.prune_executions(app.now() + 60_000, 10) == 1
            assert await transaction.prune_graph_state(app.now() + 60_000, 10) == 1
            assert await transaction.graph_state(run.id) == {}


async def test_graphs_of_an_adopted_app_run_in_the_app_that_adopted_them(tmp_path: Path):
    """``horae serve --app MODULE`` adopts the app of a module, which is never opened."""
    module = App("sqlite:///never-opened.db")
    module.use_graphs(TestGraphs(poet=poet))
    async with App(f"sqlite:///{tmp_path / 'horae.db'}") as app:
        app.adopt(module)
        app.use_builtin()
        assert (await run_once(app)).status is Status.SUCCEEDED
    assert not Path("never-opened.db").exists()

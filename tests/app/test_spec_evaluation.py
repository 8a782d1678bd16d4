"""Answers about specs: at once if that takes a moment, else beside the event loop, one at a time for each owner, not for ever."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from horae import App, Config, Context, Filter, NewSchedule
from horae.app import schedule_creation, spec_evaluation
from horae.app.schedule_draft import draft
from horae.app.spec_evaluation import AT_ONCE, TRIES, WAITING_PER_OWNER, Answers, Evaluator
from horae.clock import SystemClock
from horae.errors import EvaluationTimeoutError, InvalidInputError, TooManyEvaluationsError
from horae.face.service import Service
from horae.model import OnResume, Policies, ScheduleKey
from horae.spec import Spec, budget
from horae.spec import spec as spec_module
from horae.spec.budget import QUESTION_STEPS, begin_question, charge
from horae.store.port import Transaction


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    evaluator = Evaluator(SystemClock())
    yield evaluator
    evaluator.close()


def question(steps: int = QUESTION_STEPS) -> str:
    """As a spec asks it; says which thread did the work."""
    begin_question()
    charge(steps)
    return threading.current_thread().name


def ask_until(event: threading.Event) -> str:
    """Questions without end; only the thread that works can end them."""
    while not event.is_set():
        question()
    return "ended"


async def test_what_takes_a_moment_is_answered_at_once(evaluator: Evaluator):
    here = threading.current_thread().name
    assert await evaluator.run("ada", lambda: question(AT_ONCE)) == here


async def test_what_takes_longer_is_answered_beside_the_event_loop(evaluator: Evaluator):
    name = await evaluator.run("ada", lambda: question(AT_ONCE * 2))
    assert name.startswith("horae-evaluate")


async def test_handling_errors_does_not_hide_that_it_takes_longer(evaluator: Evaluator):
    """Some answers say of a spec that cannot be evaluated that it has no times; one that takes long has them."""

    def cautious() -> str:
        try:
            return question(AT_ONCE * 2)
        except Exception:
            return "cannot be read"

    assert (await evaluator.run("ada", cautious)).startswith("horae-evaluate")


async def test_the_event_loop_continues_and_other_owners_are_answered(evaluator: Evaluator):
    enough = threading.Event()
    long = asyncio.ensure_future(evaluator.run("ada", lambda: ask_until(enough)))
    for _ in range(3):
        await evaluator.run("bob", lambda: [question() for _ in range(10)])
    assert not long.done()
    enough.set()
    assert await long == "ended"


async def test_one_of_each_owner_at_a_time_in_order(evaluator: Evaluator):
    going_on, most, order = 0, 0, []

    def work(number: int) -> None:
        nonlocal going_on, most
        going_on += 1
        most = max(most, going_on)
        for _ in range(20):
            question()
        order.append(number)
        going_on -= 1

    await asyncio.gather(*(evaluator.in_thread("ada", lambda n=n: work(n)) for n in range(5)))  # type: ignore[misc]
    assert (most, order) == (1, [0, 1, 2, 3, 4])


async def test_an_owner_with_too_many_waiting_is_told_so_and_others_are_not(evaluator: Evaluator):
    enough = threading.Event()
    waiting = [
        asyncio.ensure_future(evaluator.in_thread("ada", lambda: ask_until(enough)))
        for _ in range(WAITING_PER_OWNER)
    ]
    await asyncio.sleep(0)
    with pytest.raises(TooManyEvaluationsError) as error:
        await evaluator.in_thread("ada", question)
    assert error.value.details["retryAfter"] == 1
    await evaluator.in_thread("bob", question)
    enough.set()
    assert set(await asyncio.gather(*waiting)) == {"ended"}
    await evaluator.in_thread("ada", question)


async def test_no_caller_waits_for_ever_and_what_was_given_up_ends(evaluator: Evaluator):
    never = threading.Event()
    with pytest.raises(EvaluationTimeoutError):
        await evaluator.in_thread("ada", lambda: ask_until(never), limit=0.05)
    await evaluator.in_thread("ada", question)  # there is room again
    waiting = asyncio.ensure_future(evaluator.in_thread("ada", lambda: ask_until(never)))
    await asyncio.sleep(0.01)
    waiting.cancel()  # as when a client goes away
    await asyncio.wait([waiting])
    await evaluator.in_thread("ada", question)


async def test_a_transaction_is_undone_for_an_answer_that_takes_long_and_begun_again(evaluator: Evaluator):
    answers, tries = Answers(evaluator, "ada"), 0

    async def act() -> list[str]:
        nonlocal tries
        tries += 1
        cheap = answers.ask("cheap", lambda: question(1))
        return [cheap, *answers.ask_all([("one", question), ("two", question)]), answers.ask("one", question)]

    cheap, *others = await answers.carry_out(act)
    assert cheap == threading.current_thread().name
    assert {each.startswith("horae-evaluate") for each in others} == {True}
    assert tries == 2


async def test_an_error_found_in_a_thread_is_raised_to_the_caller(evaluator: Evaluator):
    def wrong() -> None:
        question(AT_ONCE * 2)
        raise InvalidInputError("spec", "is wrong")

    answers = Answers(evaluator, "ada")

    async def act() -> None:
        answers.ask("wrong", wrong)

    with pytest.raises(InvalidInputError):
        await answers.carry_out(act)


async def test_what_changes_all_the_time_is_answered_all_the_same(evaluator: Evaluator):
    answers, tries = Answers(evaluator, "ada"), 0

    async def act() -> str:
        nonlocal tries
        tries += 1
        return answers.ask(tries, question)

    await answers.carry_out(act)
    assert tries == TRIES + 1


HEAVY = {
    "intervals": [
        {"every": f"{each}s"} for each in (7919, 7907, 7901, 7883, 7879, 7877, 7873, 7867, 7853, 7841)
    ],
    "exclude": [{"hour": "3"}, {"minute": "7"}, {"second": "9"}, {"calendar": "holidays"}],
    "jitter": "30s",
}
"""Legal, and nothing for an event loop."""


async def nothing(context: Context) -> None: ...


@pytest.fixture
async def app(database: str) -> AsyncIterator[App]:
    """An app that nothing drives: only the test's calls happen."""
    app = App(database)
    app.functions.register("x", nothing)
    async with app:
        yield app


@pytest.fixture
def asked_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions about specs that are asked, and the specs that are read, in the event loop with more than a moment to do it."""
    found: list[str] = []

    def watched(*steps: int) -> None:
        begin_question(*steps)
        if threading.current_thread() is threading.main_thread() and not budget._meter.budget.small:
            found.append("".join(traceback.format_stack(limit=8)))

    monkeypatch.setattr(spec_module, "begin_question", watched)
    for remembering in (
        "_parsed_short_text",
        "_parsed_long_text",
    ):  # every text is read as if for the first time
        monkeypatch.setattr(spec_module, remembering, spec_module._parsed_text)
    return found


@pytest.mark.contract("SCHD-08")
async def test_no_request_evaluates_for_long_in_the_event_loop_or_in_a_transaction(
    app: App, asked_in_the_loop: list[str], monkeypatch: pytest.MonkeyPatch
):
    """Every route that evaluates, with a spec that takes longer than a moment each time."""
    monkeypatch.setattr(spec_evaluation, "AT_ONCE", 0)
    monkeypatch.setattr(spec_evaluation, "AT_ONCE_EACH", 0)
    transport = httpx.ASGITransport(app=Service(app, Config()), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def ask(method: str, path: str, body: Any = None, status: int | None = None) -> Any:
            answer = await client.request(method, f"/api/v1{path}", json=body)
            assert answer.status_code < 300 or answer.status_code == status, answer.text
            return answer.json() if answer.content else None

        await ask("PUT", "/calendars/holidays", {"dates": ["2099-12-25"]})
        year = {"start": "2025-01-01T00:00:00Z", "end": "2025-03-01T00:00:00Z"}
        await ask("POST", "/schedules", {"id": "s", "spec": HEAVY, "action": "x", "backfills": [year]})
        many = [{"id": f"m{n}", "spec": HEAVY, "action": "x", "paused": True} for n in range(3)]
        await ask("POST", "/bulk/schedules", {"schedules": many})
        shown = (
            "",
            "/s",
            "/s/times?limit=50",
            "/s/explain?time=2026-01-01T00:00:00Z",
            "/s/runs",
            "/s/versions",
        )
        for path in shown:
            await ask("GET", f"/schedules{path}")
        await ask("POST", "/preview", {"spec": HEAVY})
        await ask("POST", "/schedules/s/preview", {"spec": HEAVY | {"jitter": None}, "days": 1})
        await ask("GET", "/forecast?jitter=10s")
        await ask("POST", "/schedules/s/backfills", year | {"dry_run": True})
        await ask("POST", "/schedules/s/patch", {"pause": "a while", "backfills": [year]})
        policies = {"on_resume": "skip"}
        await ask("PATCH", "/schedules/s", {"policies": policies})
        await ask("POST", "/schedules/s/resume")
        await ask("PATCH", "/schedules/s", {"spec": HEAVY | {"jitter": "20s", "timezone": "Europe/Berlin"}})
        await ask("POST", "/bulk/resume", {"filter": {}})
        await ask("PUT", "/calendars/holidays", {"dates": ["2099-12-26"]})
        await ask("DELETE", "/calendars/holidays", status=409)
        await ask("DELETE", "/schedules/s")
    assert asked_in_the_loop == [], asked_in_the_loop[0]


async def test_too_much_at_once_is_a_problem_with_a_time_to_come_back(
    app: App, monkeypatch: pytest.MonkeyPatch
):
    await app.schedules.create("s", "0 9 * * *", "x")
    enough = threading.Event()
    waiting = [
        asyncio.ensure_future(app.evaluate(lambda: ask_until(enough))) for _ in range(WAITING_PER_OWNER)
    ]
    await asyncio.sleep(0)
    monkeypatch.setattr(spec_evaluation, "AT_ONCE", 0)
    monkeypatch.setattr(spec_evaluation, "AT_ONCE_EACH", 0)
    transport = httpx.ASGITransport(app=Service(app, Config()), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        refused = await client.get("/api/v1/schedules/s/times")
        own = await client.get("/api/v1/schedules?owner=bob")
    enough.set()
    await asyncio.gather(*waiting)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_evaluations")
    assert refused.headers["Retry-After"] == "1"
    assert own.status_code == 200


async def test_a_stored_spec_over_the_budget_can_be_seen_mended_and_removed(app: App):
    """As a row from before there was a budget may have it; it stands in the way of nothing."""
    costly = {"rrules": ["DTSTART:20260101T000000 RRULE:FREQ=SECONDLY;INTERVAL=43201;COUNT=100000"]}
    policies = Policies(on_resume=OnResume.SKIP)
    for name in ("bad", "gone", "good"):
        await app.schedules.create(name, "0 9 * * *", "x", policies=policies, paused=True)
    async with app.transaction() as transaction:
        for stored in await transaction.schedules([ScheduleKey("bad"), ScheduleKey("gone")]):
            spoiled = msgspec.structs.replace(stored, spec=Spec.parse(costly).text)
            await transaction.update_schedules([(spoiled, None)])
    assert (await app.schedules.describe("bad")).next_times == ()
    assert await app.schedules.resume_all(Filter()) == 1
    assert [each.id for each in await app.schedules.list(Filter(paused=False))] == ["good"]
    await app.schedules.update("bad", "0 10 * * *")
    await app.schedules.resume("bad")
    assert len((await app.schedules.describe("bad")).next_times) == 10
    await app.schedules.delete("gone")


async def test_the_drafts_of_many_schedules_are_made_before_the_transaction_that_stores_them(
    app: App, monkeypatch: pytest.MonkeyPatch
):
    """A transaction that stands still is undone after two seconds: it must not wait for thousands of specs to be checked."""
    made: list[str] = []
    open_transactions = 0
    begin = app._limited_store.transaction

    @asynccontextmanager
    async def transaction() -> AsyncIterator[Transaction]:
        nonlocal open_transactions
        async with begin() as begun:
            open_transactions += 1
            yield begun
            open_transactions -= 1

    def watched(new: NewSchedule, *rest: Any) -> Any:
        assert not open_transactions
        made.append(new.id)
        return draft(new, *rest)

    monkeypatch.setattr(app._limited_store, "transaction", transaction)
    monkeypatch.setattr(schedule_creation, "draft", watched)
    new = [NewSchedule(id=f"{number}", spec={"crons": ["0 9 * * *"]}, action="x") for number in range(450)]
    created = await app.schedules.create_many(new)
    assert [each.id for each in created] == made == [f"{number}" for number in range(450)]

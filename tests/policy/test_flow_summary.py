"""What people see of a flow, for every state, in plain words; and why it ran or did not."""

from __future__ import annotations

from typing import Any

import pytest

from horae.flow_model import (
    FlowDefinition,
    FlowRun,
    FlowStatus,
    HandlerDefinition,
    HandlerKind,
    Lane,
    Mark,
    Pause,
    Phase,
    Recovery,
    Trouble,
)
from horae.policy.flow_explain import explain, run_now_refusal
from horae.policy.flow_summary import activity_words, producer_words, schedule_words, words
from tests.support.cases import each_of

S, R = FlowStatus, Recovery
NOW = 1_767_600_000_000
POLL = HandlerDefinition(name="poll", kind=HandlerKind.PRODUCER, publishes=("a",), every="5m")
TAKE = HandlerDefinition(name="take", kind=HandlerKind.CONSUMER, subscribes=("a",))
FLOW = FlowDefinition(name="f", handlers=(POLL, TAKE))


def lane(**fields: Any) -> Lane:
    return Lane(flow_id=1, revision="1", **{"marks": {"poll": Mark(at_ms=NOW + 180_000)}} | fields)


def failed(status: FlowStatus, recovery: Recovery = R.AFRESH, **more: Any) -> Lane:
    issue = more.pop("issue", "the server said 503")
    return lane(
        trouble=Trouble(
            run_id="r", handler="take", status=status, recovery=recovery, since_ms=NOW, issue=issue, **more
        )
    )


STATES = {
    "idle": (lane(), "Idle", None, None),
    "running": (lane(run_id="r"), "Running", None, None),
    "retry is running": (lane(run_id="r", trouble=failed(S.TRANSIENT).trouble), "Running", None, None),
    "paused": (lane(paused=True), "Stopped", "Paused", "Resume it to continue"),
    "paused with a note": (
        lane(paused=True, pauses=(Pause(1, note="holidays"),)), "Stopped", "Paused: holidays", "Resume it to continue",
    ),
    "backoff": (
        failed(S.TRANSIENT, retry_at_ms=NOW + 20_000), "Idle", "A temporary problem: the server said 503",
        "Nothing to do: it tries again in 20 s",
    ),
    "backoff is over": (
        failed(S.TRANSIENT, exhausted=True), "Needs attention", "Still failing after 5 retries: the server said 503",
        "Resume it to try again",
    ),
    "approval": (
        failed(S.APPROVAL, issue="Reconnect Gmail"), "Needs attention", "Waiting for you to reconnect Gmail",
        "Do that, then resolve it as approved",
    ),
    "logic": (
        failed(S.LOGIC), "Needs attention", "Something is wrong with how it works: the server said 503",
        "Deploy a new version, or resolve it with retry",
    ),
    "internal": (
        failed(S.INTERNAL), "Needs attention", "An internal error stopped it: the server said 503", "Resume it to try again",
    ),
    "unknown": (
        failed(S.RECONCILIATION, R.RECONCILE), "Needs attention",
        "It is not known whether the last change was made: the server said 503",
        "Say what happened: resolve it as applied, not_applied or skip",
    ),
    "unknown, being found out": (
        failed(S.RECONCILIATION, R.RECONCILE, retry_at_ms=NOW + 160_000), "Idle",
        "It is not known whether the last change was made: the server said 503", "Nothing to do: it tries again in 3 min",
    ),
    "settled": (
        failed(S.RECONCILIATION, R.EMIT, retry_at_ms=NOW), "Idle", "The last change is being settled: the server said 503",
        "Nothing to do: it tries again now",
    ),
    "crashed": (
        failed(S.CRASHED, retry_at_ms=NOW), "Idle", "It was interrupted: the server said 503", "Nothing to do: it tries again now",
    ),
    "no details": (failed(S.LOGIC, issue=""), "Needs attention", "Something is wrong with how it works: no details",
        "Deploy a new version, or resolve it with retry"),
}  # fmt: skip


@pytest.mark.contract("FLOW-27")
@each_of("state", STATES)
def test_every_state_has_words_and_what_resolves_it(state: str):
    found, status, issue, action = STATES[state]
    said = words(found, FLOW, NOW)
    assert (said.status, said.issue, said.action) == (status, issue, action)
    hidden = ("preparing", "mutating", "emitting", "reservation", "topic", "handler")
    assert not any(word in f"{said.issue} {said.action}" for word in hidden)


@pytest.mark.contract("FLOW-27")
@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ({"every": "5m"}, "Checks every 5 minutes"), ({"every": "1h"}, "Checks every hour"), ({"every": "2d"}, "Checks every 2 days"),
        ({"every": "30s"}, "Checks every 30 seconds"), ({"cron": "0 9 * * *"}, "Runs daily at 9am"),
        ({"cron": "30 12 * * *"}, "Runs daily at 12:30pm"), ({"cron": "5 0 * * *"}, "Runs daily at 12:05am"),
        ({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, "Runs daily at 9am (Europe/Berlin)"),
        ({"cron": "0 * * * *"}, "Runs hourly"), ({"cron": "15 * * * *"}, "Runs hourly at minute 15"),
        ({"cron": "0 9 * * 1-5"}, "Runs at 09:00 on Monday to Friday, UTC time"),
    ],
)  # fmt: skip
def test_schedules_in_words(schedule: dict[str, str], sentence: str):
    assert producer_words(HandlerDefinition(name="p", kind=HandlerKind.PRODUCER, **schedule)).startswith(sentence.removesuffix(", UTC time"))  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.contract("FLOW-27")
def test_the_next_check_in_words():
    def said(**fields: Any) -> str | None:
        return words(lane(**fields), FLOW, NOW).next_check

    assert said() == "Next check in 3 min"
    assert said(marks={"poll": Mark(at_ms=NOW + 7_200_000)}) == "Next check in 2 h"
    assert said(marks={"poll": Mark(at_ms=NOW + 500)}) == "Next check in 1 s"
    assert said(marks={"poll": Mark(at_ms=NOW - 5)}) == "Next check now"
    assert said(marks={"poll": Mark(queued=True)}) == "Next check now"
    assert said(marks={}) is None
    assert said(paused=True) is None
    assert schedule_words(FlowDefinition(name="f", handlers=(TAKE,))) == "Runs when something new arrives"
    both = FlowDefinition(
        name="f", handlers=(POLL, HandlerDefinition(name="q", kind=HandlerKind.PRODUCER, cron="0 9 * * *"))
    )
    assert schedule_words(both) == "Checks every 5 minutes; runs daily at 9am"


def run(status: FlowStatus = S.COMMITTED, began: int = NOW, ended: int | None = NOW, **more: Any) -> FlowRun:
    return FlowRun(
        id="r1", flow_id=1, handler=more.pop("handler", "take"), kind=HandlerKind.CONSUMER, phase=Phase.COMMITTED,
        status=status, created_at_ms=began, updated_at_ms=began, ended_at_ms=ended, **more,
    )  # fmt: skip


@pytest.mark.contract("FLOW-27")
def test_activity_in_words():
    title = "Processed 3 emails → added to spreadsheet"
    assert activity_words(run(title=title, events=3)) == title
    assert activity_words(run(events=1)) == "Processed 1 event"
    assert activity_words(run(events=3, published=2)) == "Processed 3 events → found 2 new events"
    assert activity_words(run(published=1)) == "Found 1 new event"
    assert activity_words(run()) == "Looked, and found nothing to do"


def test_why_run_now_is_refused():
    assert run_now_refusal(lane(), FLOW) is None
    assert run_now_refusal(lane(run_id="r"), FLOW) == "one of its handlers is running"
    assert run_now_refusal(lane(paused=True), FLOW) == "it is paused"
    assert "the server said 503" in (run_now_refusal(failed(S.LOGIC), FLOW) or "")
    assert "no producers" in (run_now_refusal(lane(), FlowDefinition(name="f", handlers=(TAKE,))) or "")


@each_of(
    ("there", "runs", "at", "handler", "sentence"),
    [
        (lane(), [run(began=NOW - 50, ended=NOW + 50)], NOW, "take", '"take" ran at'),
        (lane(), [run(began=NOW + 900, ended=NOW + 950)], NOW, "take", '"take" ran at'),
        (lane(), [run(began=NOW - 9, ended=NOW + 9, handler="poll")], NOW, "take", '"poll" was running'),
        (lane(), [run(S.APPROVAL, NOW - 90, NOW - 80, error="sign in")], NOW, "take", "pauses the whole flow: sign in"),
        (lane(), [run(began=NOW - 90, ended=NOW - 80)], NOW, "take", "no new event had arrived in its topics"),
        (lane(), [], NOW, "poll", "its schedule names another time"),
        (lane(), [], NOW, None, "no producer was due"),
        (lane(marks={"poll": Mark(at_ms=NOW - 60_000)}), [], NOW, "poll", "it has been due since 2026-01-05 07:59:00Z, and no node"),
        (lane(pauses=(Pause(NOW - 5, NOW + 5, "holidays"),)), [], NOW, "take", "paused by hand (holidays)"),
        (lane(), [], NOW + 99_000, "poll", '"poll" runs next in 3 min, at 2026-01-05 08:03:00Z.'),
        (lane(), [], NOW + 99_000, "take", "runs when a new event arrives"),
        (lane(marks={"take": Mark(new=True)}), [], NOW + 99_000, "take", "is due now"),
        (lane(paused=True), [], NOW + 99_000, "take", "unless the flow is resumed"),
        (failed(S.LOGIC), [], NOW + 99_000, "take", "unless its failure is resolved"),
    ],
)  # fmt: skip
def test_why_a_handler_ran_or_did_not(there, runs, at, handler, sentence):
    assert sentence in explain(FLOW, there, runs, at, now=NOW + 10_000, handler=handler)

"""Flows: their status in plain words, the issue and how to resolve it; handlers, topics, events and runs on request."""

from __future__ import annotations

from typing import Any

from horae.app.flow_views import FlowEventView, FlowView, HandlerView
from horae.errors import HoraeError
from horae.face.console.dag import Drawing, draw
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import json_of, moment_of_query, unknown_action
from horae.face.console.page_request import Visit
from horae.face.http.responses import Response
from horae.face.http.routes import get, post

RUNS = EVENTS = INPUTS = 10
"""How many of them the operator's page lists; each list has pages."""
NEEDS_ATTENTION = "Needs attention"
TONES = {"Running": "running", "Idle": "succeeded", NEEDS_ATTENTION: "attention", "Stopped": "paused"}
"""How each status of a flow looks."""
LABELS = {"Stopped": "Stopped: paused"}
"""The label of a status whose name does not say why."""
DECISIONS = {
    "retry": "Try it again", "approved": "It is approved", "applied": "The change was made", "not_applied": "The change was not made",
    "skip": "Skip it",
}  # fmt: skip
"""How a person resolves a failure, as the buttons say it."""
TRIED_AGAIN = {"retry": "It is tried again.", "approved": "Approved: it is tried again."}
"""What follows from these decisions; the others settle the failure."""
TYPED = {"publish", "pause", "applied"}
"""The actions with fields: a refused form is shown again with what was typed."""
EVENT_TONES = {"pending": "pending", "reserved": "running", "consumed": "succeeded", "skipped": "skipped"}
"""How each status of an event looks; those of an input are among them."""


@get("/flows")
async def flows_page(visit: Visit) -> Response[Any]:
    """All flows in plain words."""

    async def build() -> dict[str, Any]:
        found = await visit.operations.flows.list(cursor=visit.cursor)
        return {"flows": found, "next": found.next, "tones": TONES, "labels": LABELS}

    return await visit.live_page("flows.html", build)


@get("/flows/{name}")
async def flow_page(visit: Visit, name: str) -> Response[Any]:
    """One flow: its status, its issue, its recent activity and its pending inputs."""

    async def build() -> dict[str, Any]:
        flow = await visit.operations.flows.show(name)
        chosen = decisions(flow.operator.trouble if flow.operator else None)
        operator = visit.query.get("operator") == "1" and flow.operator is not None
        behind = await _behind(visit, name, flow.operator.handlers) if flow.operator and operator else {}
        return {
            "flow": flow, "tones": TONES, "labels": LABELS, "operator": operator, "decisions": chosen, "event_tones": EVENT_TONES,
            "run_tones": run_tone, "waiting": await _waiting(visit, flow), **await _explained(visit, name), **behind,
        }  # fmt: skip

    return await visit.live_page("flow.html", build)


async def _waiting(visit: Visit, flow: FlowView) -> list[FlowEventView]:
    """The events that the failed handler has not processed, oldest first: those of its run, or else those that it would take next."""
    trouble = flow.operator.trouble if flow.operator else None
    if flow.operator is None or trouble is None:
        return []
    topics = [
        topic for each in flow.operator.handlers if each.name == trouble.handler for topic in each.subscribes
    ]
    found: list[FlowEventView] = []
    for topic in topics:
        for status in flow.operator.events.get(topic, {}):
            found += await visit.operations.flows.events(flow.name, topic=topic, status=status, limit=EVENTS)
    taken = [each for each in found if each.run_id == trouble.run_id]
    return sorted(taken or found, key=lambda each: each.created_at)[:EVENTS]


async def _behind(visit: Visit, name: str, handlers: list[HandlerView]) -> dict[str, Any]:
    """What operators see in addition: handlers and topics as a graph, and the runs, events and inputs that the address selects."""
    flows, query = visit.operations.flows, visit.query
    runs = await flows.runs(
        name, handler=query.get("handler") or None, cursor=query.get("runs") or None, limit=RUNS
    )
    events = await flows.events(
        name, topic=query.get("topic") or None, status=query.get("status") or None,
        cursor=query.get("events") or None, limit=EVENTS,
    )  # fmt: skip
    inputs = await flows.inputs(name, cursor=query.get("inputs") or None, limit=INPUTS)
    topics = sorted({topic for each in handlers for topic in (*each.subscribes, *each.publishes)})
    taken = sorted({topic for each in handlers for topic in each.subscribes})
    drawing = drawn(handlers)
    return {
        "runs": runs,
        "events": events,
        "inputs": inputs,
        "topics": topics,
        "taken": taken,
        "drawing": drawing,
    }


def drawn(handlers: list[HandlerView]) -> Drawing | None:
    """Handlers and the topics between them, as a graph."""
    topics = dict.fromkeys(topic for each in handlers for topic in (*each.publishes, *each.subscribes))
    nodes = [(each.name, each.kind.value) for each in handlers]
    nodes += [(f"# {topic}", "topic") for topic in topics]
    edges = [(each.name, f"# {topic}", "") for each in handlers for topic in each.publishes]
    edges += [(f"# {topic}", each.name, "") for each in handlers for topic in each.subscribes]
    return draw(nodes, edges, {each.name: "due" for each in handlers if each.due})


def run_tone(status: str) -> str:
    """How the status of a flow's run looks."""
    kinds = {"active": "running", "committed": "succeeded", "failed": "failed", "crashed": "failed"}
    return kinds.get(status.partition(":")[0], "attention")


async def _explained(visit: Visit, name: str) -> dict[str, str]:
    """Why the flow, or a handler, did or did not run at the time that the address names."""
    if not visit.query.get("time", "").strip():
        return {"sentence": "", "problem": ""}
    try:
        at = moment_of_query(visit, "time")
        assert at is not None  # noqa: S101 - the field has a text
        sentence = await visit.operations.flows.explain(name, at, handler=visit.query.get("of") or None)
    except HoraeError as error:
        return {"sentence": "", "problem": error_text(error)}
    return {"sentence": sentence, "problem": ""}


@get("/flows/{name}/runs/{run_id}")
async def flow_run_page(visit: Visit, name: str, run_id: str) -> Response[Any]:
    """A run of a flow and the attempts before it, each with its phase, what it prepared and what it changed."""

    async def build() -> dict[str, Any]:
        flow = await visit.operations.flows.show(name)
        chain = await visit.operations.flows.chain(name, run_id)
        return {"flow": flow, "chain": chain, "run_tones": run_tone}

    return await visit.live_page("flow_run.html", build)


def decisions(trouble: Any) -> dict[str, str]:  # noqa: ANN401 - the trouble of a flow, or none
    """The decisions for a failure: whether an unknown effect happened, an approval, or another try."""
    if trouble is None:
        return {}
    if trouble.recovery == "reconcile":
        names = ["applied", "not_applied", "skip"]
    else:
        names = ["approved"] if trouble.status == "paused:approval" else ["retry"]
    return {name: DECISIONS[name] for name in names}


@post("/flows/{name}")
async def act_on_flow(visit: Visit, name: str) -> Response[Any]:
    """Run now, pause, resume, resolve what is wrong, publish an event, or skip an input."""
    here = visit.url("flows", name, operator=visit.query.get("operator"))
    try:
        text = await _act(visit, name)
    except HoraeError as error:
        if visit.form.get("do") in TYPED:
            return await visit.show_again(error, flow_page.fn(visit, name))
        await visit.operations.flows.show(name)  # gone: say that instead
        return visit.refused(here, error)
    return visit.back(here, text)


async def _act(visit: Visit, name: str) -> str:
    """Do what the form asks; return what was done."""
    flows, form = visit.operations.flows, visit.form
    match form.get("do", ""):
        case "run_now":
            await flows.run_now(name)
            return "It runs as soon as it can."
        case "pause":
            await flows.pause(name, note=form.get("note", ""))
            return "Paused."
        case "resume":
            await flows.resume(name)
            return "Resumed."
        case "publish":
            message_id = form.get("message_id", "").strip()
            await flows.publish(name, form.get("topic", ""), message_id, json_of(visit, "payload"))
            return f"Published {message_id}."
        case "skip_input":
            key = (form.get("source", ""), form.get("type", ""), form.get("id", ""))
            number = await flows.skip(name, *key)
            return f"Skipped {key[2]}: {number} of its events will not be processed."
        case decision if decision in DECISIONS:
            result = json_of(visit, "result") if decision == "applied" else None
            await flows.resolve(name, decision, result=result)  # type: ignore[arg-type]  # it is one
            return TRIED_AGAIN.get(decision, "Resolved.")
        case _:
            raise unknown_action(visit)


HANDLERS = [flows_page, flow_page, flow_run_page, act_on_flow]

"""Flows: their status in plain words, the issue and what resolves it; handlers, topics and phases behind a toggle."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, get, post

from horae.errors import HoraeError, InvalidInputError
from horae.face.console.schedule_actions import json_of
from horae.face.console.visit import Visit

RUNS = 30
TONES = {"Running": "running", "Idle": "succeeded", "Needs attention": "attention", "Stopped": "paused"}
"""How each status of a flow looks."""
DECISIONS = {
    "retry": "Try it again", "approved": "It is approved", "applied": "The change was made", "not_applied": "The change was not made",
    "skip": "Skip it",
}  # fmt: skip
"""How a person resolves a failure, as the buttons say it."""


@get("/flows")
async def flows_page(visit: Visit) -> Response[Any]:
    """All flows in plain words."""

    async def build() -> dict[str, Any]:
        found = await visit.there.flows.list(cursor=visit.query.get("cursor") or None)
        return {"flows": list(found), "next": found.next, "tones": TONES}

    return await visit.live_page("flows.html", build)


@get("/flows/{name:str}")
async def flow_page(visit: Visit, name: str) -> Response[Any]:
    """One flow: what it does, what is wrong, what it did lately and what it has not finished."""

    async def build() -> dict[str, Any]:
        flows = visit.there.flows
        flow = await flows.show(name, owner=visit.query.get("owner"))
        operator = visit.query.get("operator") == "1"
        runs = await flows.runs(name, limit=RUNS, owner=visit.query.get("owner")) if operator else []
        chosen = decisions(flow.operator.trouble if flow.operator else None)
        return {"flow": flow, "tones": TONES, "operator": operator, "runs": list(runs), "decisions": chosen}

    return await visit.live_page("flow.html", build)


def decisions(trouble: Any) -> dict[str, str]:  # noqa: ANN401 - the trouble of a flow, or none
    """The decisions that make sense for a failure: about an unknown effect, an approval, or just another try."""
    if trouble is None:
        return {}
    if trouble.recovery == "reconcile":
        names = ["applied", "not_applied", "skip"]
    else:
        names = ["approved"] if trouble.status == "paused:approval" else ["retry"]
    return {name: DECISIONS[name] for name in names}


@post("/flows/{name:str}")
async def act_on_flow(visit: Visit, name: str) -> Response[Any]:
    """Run now, pause, resume, or resolve what is wrong."""
    flows, owner = visit.there.flows, visit.query.get("owner")
    here, todo = visit.url("flows", name, operator=visit.query.get("operator")), visit.form.get("do", "")
    try:
        match todo:
            case "run_now":
                await flows.run_now(name, owner=owner)
                text = "It runs as soon as it can."
            case "pause":
                await flows.pause(name, note=visit.form.get("note", ""), owner=owner)
                text = "Paused."
            case "resume":
                await flows.resume(name, owner=owner)
                text = "Resumed."
            case decision if decision in DECISIONS:
                result = json_of(visit, "result") if decision == "applied" else None
                result = None if result is msgspec.UNSET else result
                await flows.resolve(name, decision, result=result, owner=owner)  # type: ignore[arg-type]  # it is one
                text = "Resolved."
            case other:
                raise InvalidInputError("do", f"is nothing that can be done: {other}")
    except HoraeError as error:
        await flows.show(name, owner=owner)  # gone: say that instead
        return visit.back(here, error.message, "problem")
    return visit.back(here, text)


HANDLERS = [flows_page, flow_page, act_on_flow]

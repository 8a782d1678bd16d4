"""``horae flows``: show flows, run, pause and repair them."""

from __future__ import annotations

from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.api_client import path
from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import Limit, argument, option
from horae.face.cli.printing import utc
from horae.face.cli.render import Json, at, details, listing, short
from horae.face.cli.run_logs import print_logs
from horae.face.cli.schedule_options import read_json

cli = group("flows", "Show, run, pause and repair flows: producers and consumers joined by events.")

Name = Annotated[str, argument("FLOW", "The flow's name.")]
Handler = Annotated[str | None, option("--handler", "NAME", "Only this handler.")]
_table = listing(
    "No flows.",
    {
        "name!": "name", "status": "status", "what": lambda each: each["issue"] or each["next_check"],
        "schedule?": "schedule", "owner?": "owner",
    },
)  # fmt: skip
_details = details(
    {
        "flow": "name", "status": "status", "issue": "issue", "to resolve it": "action", "schedule": "schedule",
        "next": "next_check",
        "pending": lambda flow: ", ".join(each["title"] or each["id"] for each in flow.get("pending_inputs", ())),
    }
)  # fmt: skip
_runs = listing(
    "No runs.",
    {
        "run!": "id", "handler": "handler", "phase": "phase", "status": "status", "events>": "events",
        "published>": "published", "began (UTC)?": at("created_at"), "what?": lambda each: each["error"] or each["title"],
    },
)  # fmt: skip
_events = listing(
    "No events.",
    {
        "topic!": "topic", "message!": "id", "status": "status", "published (UTC)?": at("created_at"),
        "payload?": lambda each: short(each["payload"]),
    },
)  # fmt: skip
_inputs = listing(
    "No inputs.",
    {
        "source": "source", "type": "type", "id!": "id", "title": "title", "status": "status",
        "since (UTC)?": at("created_at"),
    },
)  # fmt: skip


@command(cli, "list")
async def list_flows(session: Session, limit: Limit = 100) -> None:
    """List the flows and their status.

    horae flows list
    """
    await session.show_list("/flows", limit, _table)


@command(cli, "show")
async def show(session: Session, flow: Name) -> None:
    """Show a flow: its status, what is wrong and how to resolve it, and its recent activity.

    horae flows show mail
    """
    session.show(await session.client.get(path("flows", flow)), _shown)


def _shown(flow: Json) -> RenderableType:
    return Group(
        _details(flow), *(Text(f"{utc(each['at'])}  {each['text']}") for each in flow.get("activity", ()))
    )


@command(cli, "runs")
async def runs(session: Session, flow: Name, handler: Handler = None, limit: Limit = 20) -> None:
    """List the runs of a flow, one per attempt, newest first.

    horae flows runs mail --handler Sheet
    """
    await session.show_list(path("flows", flow, "runs"), limit, _runs, order="latest", handler=handler)


@command(cli, "run-now")
async def run_now(session: Session, flow: Name) -> None:
    """Run all producers of a flow now, one after the other.

    horae flows run-now mail
    """
    session.show(await session.client.post(path("flows", flow, "run-now")), _shown)


@command(cli, "pause")
async def pause(
    session: Session, flow: Name, note: Annotated[str, option("--note", "TEXT", "The reason.")] = ""
) -> None:
    """Pause a flow: the current run may finish, and nothing else starts.

    horae flows pause mail --note "until the import is done"
    """
    session.show(await session.client.post(path("flows", flow, "pause"), {"note": note}), _shown)


@command(cli, "resume")
async def resume(session: Session, flow: Name) -> None:
    """Resume a paused flow, or retry the failed run of one that is not paused.

    horae flows resume mail
    """
    session.show(await session.client.post(path("flows", flow, "resume")), _shown)


@command(cli, "resolve")
async def resolve(
    session: Session,
    flow: Name,
    decision: Annotated[str, argument("DECISION", "retry, approved, applied, not_applied or skip.")],
    result: Annotated[
        str | None, option("--result", "JSON|@FILE", "What the applied mutation returned.")
    ] = None,
) -> None:
    """Resolve the failure of a flow.

    [dim]The last change was made after all, as the spreadsheet shows:[/dim]

      horae flows resolve mail applied --result '{"row": 7}'

    [dim]Gmail is connected again:[/dim]

      horae flows resolve mail approved
    """
    body: dict[str, Any] = {"decision": decision}
    if result is not None:
        body["result"] = read_json(result, "--result")
    session.show(await session.client.post(path("flows", flow, "resolve"), body), _shown)


@command(cli, "logs")
async def logs(
    session: Session, flow: Name, run_id: Annotated[str, argument("RUN_ID", "The id of the flow's run.")]
) -> None:
    """Show the log lines of a flow's run. Very long logs keep their first and last lines.

    horae flows logs mail 8f28bf768342b606e643b2585df536a6
    """
    await print_logs(session, path("flows", flow, "runs", run_id, "logs"), "UTC")


@command(cli, "events")
async def events(
    session: Session,
    flow: Name,
    topic: Annotated[str | None, option("--topic", "TOPIC", "Only events of this topic.")] = None,
    status: Annotated[
        str | None,
        option("--status", "STATUS", "Only events in this status: pending, reserved, consumed or skipped."),
    ] = None,
    limit: Limit = 20,
) -> None:
    """List the events of a flow, newest first.

    horae flows events mail --status pending
    """
    place = path("flows", flow, "events")
    await session.show_list(place, limit, _events, order="latest", topic=topic, status=status)


@command(cli, "publish")
async def publish(
    session: Session,
    flow: Name,
    topic: Annotated[str, argument("TOPIC", "One of the flow's topics.")],
    message_id: Annotated[str, argument("MESSAGE_ID", "The event's id, unique in its topic.")],
    payload: Annotated[str, option("--payload", "JSON|@FILE", "The content of the event.")] = "null",
) -> None:
    """Publish an event. Publishing the same message id again updates the event while it is pending.

    horae flows publish mail incoming m-17 --payload '{"subject": "Hello"}'
    """
    body = {"topic": topic, "message_id": message_id, "payload": read_json(payload, "--payload")}
    answer = await session.client.post(path("flows", flow, "events"), body)
    session.show(answer, f"Published {message_id}.")


@command(cli, "inputs")
async def inputs(session: Session, flow: Name, limit: Limit = 20) -> None:
    """List the inputs that the producers of a flow recorded, newest first.

    horae flows inputs mail
    """
    await session.show_list(path("flows", flow, "inputs"), limit, _inputs, order="latest")


@command(cli, "skip")
async def skip(
    session: Session,
    flow: Name,
    source: Annotated[str, argument("SOURCE", "The source of the input, such as gmail.")],
    type: Annotated[str, argument("TYPE", "The type of the input, such as message.")],  # noqa: A002 - the API's word
    id: Annotated[str, argument("ID", "The id of the input.")],  # noqa: A002
) -> None:
    """Skip an input, so that its pending events are not processed.

    horae flows skip mail gmail message m-17
    """
    body = {"source": source, "type": type, "id": id}
    answer = await session.client.post(path("flows", flow, "inputs", "skip"), body)
    session.show(answer, f"Skipped {answer['skipped']} events.")


@command(cli, "explain", lenient=True)
async def explain(
    session: Session,
    flow: Name,
    time: Annotated[str, argument("TIME", "The time, in UTC unless it has an offset.")],
    handler: Handler = None,
) -> None:
    """Explain why a flow, or one of its handlers, did or did not run at a time.

    horae flows explain mail 2026-03-08T09:00 --handler Digest
    """
    at = await session.moment(time, "TIME", None)
    answer = await session.client.get(path("flows", flow, "explain"), time=at, handler=handler)
    session.show(answer, str(answer["sentence"]))

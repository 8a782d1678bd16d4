"""``horae forecast``: how many runs start in each coming minute."""

from __future__ import annotations

from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.cli.command_base import Session, command, group
from horae.face.cli.options import number, option
from horae.face.cli.printing import none, utc
from horae.face.cli.render import Json
from horae.face.cli.tables import table

MAX_BAR_WIDTH = 50
cli = group()


@command(cli, "forecast")
async def forecast(
    session: Session,
    minutes: Annotated[int, number("--minutes", "Look this many minutes ahead.")] = 60,
    jitter: Annotated[
        str | None, option("--jitter", "DURATION", "Also show the starts if every schedule had this jitter.")
    ] = None,
) -> None:
    """Show how many runs start in each coming minute, the peaks, and how jitter would flatten them.

    horae forecast --minutes 120 --jitter 30s
    """
    answer = await session.client.get("/forecast", minutes=minutes, jitter=jitter)
    session.show(answer, _chart)


def _chart(answer: Json) -> RenderableType:
    """The minutes that have starts; a minute without any has no line."""
    counted = answer["minutes"]
    if not counted:
        return none("Nothing starts in this time.")
    most = max(max(each["starts"], each.get("with_jitter") or 0) for each in counted)
    with_jitter = any(each.get("with_jitter") is not None for each in counted)
    rows = []
    for each in counted:
        length = max(1, each["starts"] * MAX_BAR_WIDTH // most) if each["starts"] else 0
        more = [each.get("with_jitter") or 0] if with_jitter else []
        rows.append((utc(each["minute"]), each["starts"], *more, Text("█" * length, style="cyan")))
    columns = ["minute (UTC)", "starts>", *(["with jitter>"] if with_jitter else []), "?"]
    return Group(table(*columns, rows=rows), none(_summary(answer)))


def _summary(answer: Json) -> str:
    text = f"{answer['total']} starts of {answer['schedules']} schedules; at most {answer['peak']['starts']} in a minute"
    if flatter := answer.get("peak_with_jitter"):
        text += f", with jitter {flatter['with_jitter']}"
    return f"{text}.{' Not all schedules were counted.' if answer['truncated'] else ''}"

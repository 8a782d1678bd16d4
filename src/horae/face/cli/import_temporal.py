"""``horae import temporal``: copy schedules between servers that speak Temporal's API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.text import Text

from horae.clock import SystemClock
from horae.extras import import_extra
from horae.face.cli.command_base import Command
from horae.face.cli.options import DryRun, flag, option
from horae.face.cli.tables import table

if TYPE_CHECKING:
    from horae.face.temporal.schedule_transfer import Transferred

HERE = "127.0.0.1:7233"


async def temporal(
    given: Command,
    source: Annotated[
        str, option("--from", "HOST:PORT", "The server to copy from; https://HOST:PORT for TLS.")
    ],
    destination: Annotated[
        str, option("--to", "HOST:PORT", "The server to copy to.", show_default=True)
    ] = HERE,
    schedule: Annotated[
        list[str] | None, option("--schedule", "ID", "Only this schedule. Repeatable.  \\[default: all]")
    ] = None,
    namespace: Annotated[
        str, option("--namespace", "NAME", "The namespace to copy from.", show_default=True)
    ] = "default",
    to_namespace: Annotated[
        str | None, option("--to-namespace", "NAME", "The namespace to copy to.  \\[default: the same]")
    ] = None,
    from_token: Annotated[
        str | None, option("--from-token", "TOKEN", "The token for the server to copy from.")
    ] = None,
    to_token: Annotated[
        str | None, option("--to-token", "TOKEN", "The token for the server to copy to.")
    ] = None,
    take_over: Annotated[bool, flag("--take-over", "Pause each original, then resume its copy.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Copy schedules from a Temporal server to Horae or back, and report what cannot be copied.

    Both servers speak Temporal's API; horae serve does with --temporal-port. The copies are paused. --take-over pauses each original,
    resumes its copy, and backfills what fell due in between. Repeating the command is safe.

      horae import temporal --from temporal.example.org:7233 --dry-run

      horae import temporal --from temporal.example.org:7233 --take-over

    [dim]And back:[/dim]

      horae import temporal --from 127.0.0.1:7233 --to temporal.example.org:7233 --take-over
    """  # fmt: skip
    for module in ("grpc", "temporalio"):
        import_extra(module, "temporal")
    from horae.face.temporal.schedule_transfer import Endpoint, Transfer  # noqa: PLC0415 - an extra

    one, other = Endpoint(source, from_token), Endpoint(destination, to_token)
    try:
        transfer = Transfer(
            one, other, (namespace, to_namespace or namespace), SystemClock().now, take_over=take_over
        )
        ids = schedule or [each async for each in transfer.ids()]
        transferred = [await (transfer.look(each) if dry_run else transfer.move(each)) for each in ids]
    finally:
        await asyncio.gather(one.close(), other.close())
    given.show(
        {"schedules": transferred, "dry_run": dry_run}, lambda _: _report(transferred, dry_run=dry_run)
    )


def _report(transferred: list[Transferred], *, dry_run: bool) -> RenderableType:
    rows = [(each.id, each.outcome, each.state, "; ".join(each.lost)) for each in transferred]
    refused = sum(each.outcome == "refused" for each in transferred)
    counted = f"Carried over: {len(transferred) - refused}. Refused: {refused}."
    note = " This was a dry run: nothing was changed." if dry_run else ""
    return Group(
        table("schedule!", "outcome", "state?", "not carried over~", rows=rows), Text(), Text(counted + note)
    )

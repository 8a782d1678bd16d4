"""What a shell completes beyond commands and options: the ids of schedules."""

from __future__ import annotations

import asyncio

import msgspec
import typer

from horae.face.cli.connection import connected
from horae.face.cli.target import Target

MAX_COMPLETIONS = 50
_SECONDS = 3


def schedule_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with a text; none, in silence, if neither server nor database answers."""
    try:
        before, after = (msgspec.convert(each.params, Target) for each in (context.find_root(), context))
        return asyncio.run(asyncio.wait_for(_ids(before.but(after), incomplete), _SECONDS))
    except Exception:  # whatever it is: a shell that completes is no place for errors
        return []


async def _ids(target: Target, prefix: str) -> list[str]:
    async with connected(target) as client:
        return [
            each["id"] for each in await client.items("/schedules", MAX_COMPLETIONS, prefix=prefix or None)
        ]

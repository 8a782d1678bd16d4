"""What a shell completes beyond commands and options: the ids of schedules."""

from __future__ import annotations

import asyncio
from typing import Any

import typer

from horae.face.cli.client import connected
from horae.face.cli.target import Target

MOST = 50
_SECONDS = 3


def schedule_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin with what stands there; none, in silence, if nobody can be asked."""
    said = [context.find_root().params, context.params]
    before, after = (Target(**{key: each.get(key) for key in ("url", "token", "database")}) for each in said)
    try:
        return asyncio.run(asyncio.wait_for(_ids(before.but(after), incomplete), _SECONDS))
    except Exception:  # whatever it is: a shell that completes is no place for errors
        return []


async def _ids(where: Target, prefix: str) -> list[str]:
    async with connected(where) as client:
        query: dict[str, Any] = {} if not prefix else {"prefix": prefix}
        return [each["id"] async for each in client.items("/schedules", MOST, **query)]

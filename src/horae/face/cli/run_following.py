"""Follow runs by polling the API: one to its end, or all of them live."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import msgspec
import typer
from rich.text import Text

from horae.face.api_client import Client, path
from horae.face.cli.command_base import Session
from horae.face.cli.printing import console, instant, local, word
from horae.face.cli.render import Json, run_panel, took, why
from horae.face.cli.tables import GAP, cell
from horae.model import OPEN, Status

POLL_SECONDS = 0.5
HINT_POLLS = 4
"""How many polls pass between checks that a node is alive."""
NO_NODE = "No node is alive, so the run waits. Start your program, or horae serve. Ctrl-C stops waiting and keeps the run."
MAX_ENTRIES = 5000
"""How many entries of the ledger one poll reads at most."""
LATE = timedelta(seconds=10)
"""How long after its decision an entry may become visible."""

Key = tuple[str, ...]


async def show_run(session: Session, run: Json, *, wait: bool = False) -> None:
    """Show a run; with ``wait`` once it has ended, and the exit status is 1 unless it succeeded."""
    if wait:
        run = await _ended(session, run["id"])
    session.show(run, partial(run_panel, zone=await session.zone(run["schedule_id"], run["owner"])))
    if wait and run["status"] != Status.SUCCEEDED:
        raise typer.Exit(1)


async def _ended(session: Session, run_id: str) -> Json:
    """Wait until a run has ended."""
    screen = console(stderr=True)
    with screen.status(f"waiting for the run {run_id}") if screen.is_terminal else nullcontext():
        hinted = False
        for polls in count():
            run: Json = await session.client.get(path("runs", run_id))
            if run["status"] not in OPEN:
                break
            if not hinted and polls % HINT_POLLS == HINT_POLLS - 1 and not await _is_any_node_alive(session):
                screen.print(NO_NODE, style="yellow")
                hinted = True
            await asyncio.sleep(POLL_SECONDS)
    return run


async def _is_any_node_alive(session: Session) -> bool:
    return any(node["alive"] for node in (await session.client.get("/nodes"))["items"])


async def follow(
    session: Session,
    query: Mapping[str, Any],
    *,
    zone: str,
    statuses: Collection[str] | None,
    reason: str | None,
    limit: int | None,
) -> None:
    """Print a line for each change in the ledger, until interrupted or ``limit`` lines were printed."""
    ledger = _Ledger(session.client, query)
    if query.get("since") is None:
        await ledger.begin()
    printed = 0
    while True:
        for entry in await ledger.changes():
            if (not statuses or entry["status"] in statuses) and reason in (None, entry["reason"]):
                _print(entry, zone, as_json=session.as_json)
                printed += 1
                if printed == limit:
                    return
        await asyncio.sleep(POLL_SECONDS)


class _Ledger:
    """Remembers recent decisions and open runs, so that each change is reported once."""

    def __init__(self, client: Client, query: Mapping[str, Any]) -> None:
        self._client = client
        self._query = query
        self._first = instant(query.get("since"))
        self._latest: datetime | None = None
        self._seen: dict[Key, tuple[object, ...]] = {}

    async def begin(self) -> None:
        """Report only changes from now on."""
        for entry in await self._search(1):
            self._latest = instant(entry["decided_at"])
        for entry in await self._search(MAX_ENTRIES, status=",".join(OPEN)):
            self._seen[_key(entry)] = _state(entry)
        await self.changes()

    async def changes(self) -> list[Json]:
        """The entries that are new or changed since the last call, in the order of their decisions."""
        since = self._first if self._latest is None else self._latest - LATE
        found = {
            _key(entry): entry for entry in await self._search(MAX_ENTRIES, since=since and since.isoformat())
        }
        if open_keys := [
            key for key, (status, *_) in self._seen.items() if status in OPEN and key not in found
        ]:
            still = {_key(entry): entry for entry in await self._search(MAX_ENTRIES, status=",".join(OPEN))}
            ended = {
                key: run
                for key in open_keys
                if key not in still and (run := await self._client.find(path("runs", key[-1]))) is not None
            }
            found = {**found, **{key: still[key] for key in open_keys if key in still}, **ended}
        changed = [entry for key, entry in found.items() if self._seen.get(key) != _state(entry)]
        self._seen = {key: _state(entry) for key, entry in found.items()}
        moments = [self._latest, *(instant(entry["decided_at"]) for entry in found.values())]
        self._latest = max((each for each in moments if each is not None), default=None)
        return sorted(changed, key=lambda entry: str(entry["decided_at"]))

    async def _search(self, limit: int, **more: object) -> list[Json]:
        return await self._client.items("/runs", limit, **{**self._query, **more})


def _key(entry: Json) -> Key:
    return (entry["id"],) if "id" in entry else (entry["owner"], entry["schedule_id"], entry["start"])


def _state(entry: Json) -> tuple[object, ...]:
    return entry["status"], entry.get("attempt"), entry.get("count")


def _print(entry: Json, zone: str, *, as_json: bool) -> None:
    """Print one line at once."""
    if as_json:
        typer.echo(msgspec.json.encode(entry))
        return
    moment = entry.get("ended_at") or entry.get("started_at") or entry["decided_at"]
    status = word(entry["status"])
    status.pad_right(max(map(len, Status)) - len(status))
    parts = [
        local(moment, zone),
        status,
        entry["schedule_id"],
        took(entry),
        why(entry),
        Text(entry.get("id", ""), style="dim"),
    ]
    console().print(Text(GAP).join(filter(None, map(cell, parts))), soft_wrap=True)

"""The registrar over HTTP: the same calls, at the root of the service."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Protocol

from horae.app import App
from horae.app.workflow_schedules import PauseInput, ScheduleInput, convert, read_input
from horae.face.http.arguments import DescribedAs
from horae.face.http.routes import Router, delete, get, post
from horae.face.registrar.registrar import Registrar
from horae.face.registrar.views import LedgerRow, Registered, Upserted


class RegistrarCaller(Protocol):
    """The caller of a request."""

    @property
    def scopes(self) -> Collection[str]:
        """The scopes of the caller."""

    def owner_for(self, named: str | None) -> str | None:
        """The owner to act for: the named one, or the caller; ``None`` means all owners."""

    def owner_of_new(self, named: str | None) -> str:
        """The owner of schedules that the caller registers."""


ScheduleBody = Annotated[
    dict[str, Any], DescribedAs(ScheduleInput)
]  # decoded here, so that every error names its field
PauseBody = Annotated[dict[str, Any], DescribedAs(PauseInput)]


@post("/upsert", status_code=200, summary="Register a schedule, or change it")
async def upsert(app: App, caller: RegistrarCaller, data: ScheduleBody) -> Upserted:
    """The next time stays unless the expression, the zone or the window changed; a paused schedule stays paused."""
    read = read_input(data)
    return await Registrar(
        app, owner=caller.owner_of_new(read.user_id), scopes=caller.scopes
    ).upsert_schedule(read)


@post("/pause", status_code=204, summary="Pause a schedule, or resume it")
async def pause(registrar: Registrar, data: PauseBody) -> None:
    """Slots stop firing at once; a resumed schedule continues by its catch-up policy."""
    wanted = convert(data, PauseInput)
    await registrar.pause_schedule(wanted.schedule_id, wanted.paused)


@delete("/{schedule_id}", status_code=204, summary="Delete a schedule")
async def remove(registrar: Registrar, schedule_id: str) -> None:
    """Its ledger stays."""
    await registrar.delete_schedule(schedule_id)


@get("/{schedule_id}", summary="A schedule and its next fire times")
async def show(registrar: Registrar, schedule_id: str) -> Registered:
    """Every field with its default filled in."""
    return await registrar.get_schedule(schedule_id)


@get("/{schedule_id}/runs", summary="What became of the latest ticks")
async def runs(registrar: Registrar, schedule_id: str, limit: int = 20) -> list[LedgerRow]:
    """Newest first, at most 1,000."""
    return await registrar.runs(schedule_id, limit)


registrar_router = Router(
    "/schedules", route_handlers=[upsert, pause, remove, show, runs], tags=("registrar",)
)
"""The routes of the registrar; the service provides the app, the caller and :func:`registrar_of`."""


def registrar_of(app: App, caller: RegistrarCaller, user_id: str | None = None) -> Registrar:
    """The registrar for a request: of the named user, or else of the caller, or for an admin of all users."""
    return Registrar(app, owner=caller.owner_for(user_id))

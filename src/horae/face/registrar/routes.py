"""The registrar over HTTP: the same calls, at the root of the service."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Protocol

import msgspec
from litestar import Router, delete, get, post
from litestar.di import NamedDependency, Provide
from litestar.enums import RequestEncodingType
from litestar.params import BodyKwarg, FromPath, FromQuery, SkipValidation

from horae.app import App
from horae.app.workflow_schedules import PauseInput, ScheduleInput, convert, read_input
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


def _body(kind: type[msgspec.Struct]) -> BodyKwarg:
    """A body with a schema in the OpenAPI document; handlers decode it, so that every error names its field."""
    shape = msgspec.json.schema_components([kind])[1][kind.__name__]
    return BodyKwarg(
        media_type=RequestEncodingType.JSON,
        schema_extra={
            "title": kind.__name__,
            "properties": shape["properties"],
            "required": shape["required"],
            "additional_properties": False,
        },
    )


ScheduleBody = Annotated[dict[str, Any], _body(ScheduleInput)]
PauseBody = Annotated[dict[str, Any], _body(PauseInput)]
TheApp = NamedDependency[SkipValidation[App]]
TheCaller = NamedDependency[SkipValidation[RegistrarCaller]]
TheRegistrar = NamedDependency[SkipValidation[Registrar]]


@post("/upsert", status_code=200, summary="Register a schedule, or change it")
async def upsert(app: TheApp, caller: TheCaller, data: ScheduleBody) -> Upserted:
    """The next time stays unless the expression, the zone or the window changed; a paused schedule stays paused."""
    read = read_input(data)
    return await Registrar(
        app, owner=caller.owner_of_new(read.user_id), scopes=caller.scopes
    ).upsert_schedule(read)


@post("/pause", status_code=204, summary="Pause a schedule, or resume it")
async def pause(registrar: TheRegistrar, data: PauseBody) -> None:
    """Slots stop firing at once; a resumed schedule continues by its catch-up policy."""
    wanted = convert(data, PauseInput)
    await registrar.pause_schedule(wanted.schedule_id, wanted.paused)


@delete("/{schedule_id:str}", status_code=204, summary="Delete a schedule")
async def remove(registrar: TheRegistrar, schedule_id: FromPath[str]) -> None:
    """Its ledger stays."""
    await registrar.delete_schedule(schedule_id)


@get("/{schedule_id:str}", summary="A schedule and its next fire times")
async def show(registrar: TheRegistrar, schedule_id: FromPath[str]) -> Registered:
    """Every field with its default filled in."""
    return await registrar.get_schedule(schedule_id)


@get("/{schedule_id:str}/runs", summary="What became of the latest ticks")
async def runs(
    registrar: TheRegistrar, schedule_id: FromPath[str], limit: FromQuery[int] = 20
) -> list[LedgerRow]:
    """Newest first, at most 1,000."""
    return await registrar.runs(schedule_id, limit)


def registrar_router() -> Router:
    """The routes of the registrar; the service provides the app and the caller."""
    return Router(
        "/schedules",
        route_handlers=[upsert, pause, remove, show, runs],
        dependencies={"registrar": Provide(_registrar)},
        tags=["registrar"],
    )


async def _registrar(app: TheApp, caller: TheCaller, user_id: FromQuery[str | None] = None) -> Registrar:
    return Registrar(app, owner=caller.owner_for(user_id))

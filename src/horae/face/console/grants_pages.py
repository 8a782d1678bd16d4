"""Grants: which graphs may run for absent users, and until when."""

from __future__ import annotations

from typing import Any

from horae.app.grant_views import GrantView
from horae.app.view_base import page_of
from horae.errors import HoraeError
from horae.face.console.form_fields import moment_of, unknown_action
from horae.face.console.page_request import Visit
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.model import instant


def state_of(grant: GrantView, now: int) -> str:
    """Whether a grant holds: ``active``, ``expired`` or ``revoked``."""
    if grant.revoked_at is not None:
        return "revoked"
    return "expired" if grant.expires_at is not None and grant.expires_at <= instant(now) else "active"


@get("/grants")
async def grants_page(visit: Visit) -> Response[Any]:
    """The grants that the caller sees, including expired and revoked ones."""

    async def build() -> dict[str, Any]:
        page = page_of(GrantView, await visit.operations.grants.list(cursor=visit.cursor))
        shown = [(each, state_of(each, visit.now)) for each in page.items]
        return {"grants": shown, "next": page.next}

    return await visit.live_page("grants.html", build)


def scope_of(text: str) -> str:
    """The scope that a line of the form means: a scope, the id of a graph, which has one colon, or ``*`` for every graph."""
    return f"graph:execute:{text}" if text == "*" or text.count(":") == 1 else text


@post("/grants")
async def new_grant(visit: Visit) -> Response[Any]:
    """Create a grant for the caller, or for the owner that the address names."""
    try:
        scopes = [scope_of(each) for each in visit.form.get("scopes", "").split()]
        grant = await visit.own.grants.create(scopes, expires_at=moment_of(visit, "until"))
    except HoraeError as error:
        return await visit.show_again(error, grants_page.fn(visit))
    return visit.back(visit.url("grants"), f"Created {grant.id}.")


@post("/grants/{grant_id}")
async def act_on_grant(visit: Visit, grant_id: str) -> Response[Any]:
    """Revoke or renew a grant."""
    grants, here = visit.operations.grants, visit.url("grants")
    try:
        match visit.form.get("do"):
            case "revoke":
                await grants.revoke(grant_id)
                text = "Revoked: nothing starts under it any more."
            case "renew":
                until = moment_of(visit, "until")
                await grants.renew(grant_id, until)
                end = "it is revoked" if until is None else f"{until.astimezone(visit.zone):%d %b %Y, %H:%M}"
                text = f"Renewed: it holds until {end}."
            case _:
                raise unknown_action(visit)
    except HoraeError as error:
        await grants.get(grant_id)  # gone: say that instead
        return visit.refused(here, error)
    return visit.back(here, text)


HANDLERS = [grants_page, new_grant, act_on_grant]

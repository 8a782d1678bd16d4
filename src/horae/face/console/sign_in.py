"""Signing in and out, and how a viewer wants pages to look."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import jwt

from horae.errors import AuthenticationError
from horae.face.console.error_text import error_text
from horae.face.console.page_request import THEME, THEMES, ZONE, Visit
from horae.face.console.security import SESSION, headers_of
from horae.face.http.errors import HttpError
from horae.face.http.responses import Cookie, Response
from horae.face.http.routes import get, post
from horae.face.service.route_helpers import READS
from horae.spec import installed_zones

_YEAR = 365 * 24 * 3600
_STRANGERS = READS | {"strangers"}
"""The marks of a page that needs no session."""


@get("/sign-in", marks=_STRANGERS)
async def sign_in_page(visit: Visit) -> Response[bytes]:
    """The form that takes a token."""
    return visit.page("sign_in.html", next=own_address(visit.query.get("next")), problem=None)


@post("/sign-in", marks=_STRANGERS)
async def sign_in(visit: Visit) -> Response[Any]:
    """Check a token as the API does, and open a session that lasts no longer."""
    token, to = visit.form.get("token", "").strip(), own_address(visit.form.get("next"))
    try:
        caller = await visit.console.authenticator.caller(
            [(b"authorization", f"Bearer {token}".encode())], None
        )
    except AuthenticationError as error:
        return visit.page("sign_in.html", 401, next=to, problem=error_text(error))
    expires = jwt.decode(token, options={"verify_signature": False})["exp"]  # it was verified just now
    value, seconds = visit.console.signer.session(caller, expires)
    answer = visit.back(to)
    answer.cookies.append(visit.console.cookie(SESSION, value, seconds))
    return answer


@post("/sign-out", marks=READS)
async def sign_out(visit: Visit) -> Response[Any]:
    """End the session in this browser."""
    answer = visit.back(visit.url("sign-in"))
    answer.cookies.append(Cookie(SESSION, path="/console"))
    return answer


@get("/session")
async def session(visit: Visit) -> Response[bytes]:
    """Whether the session still holds; a page asks when it lost its stream of events."""
    return Response(visit.caller.user.encode(), media_type="text/plain", headers=headers_of())


@post("/theme", marks=READS)
async def choose_theme(visit: Visit) -> Response[Any]:
    """Light, dark, or as the system has it."""
    return _remember(visit, THEME, visit.form.get("theme", ""), THEMES)


@post("/zone", marks=READS)
async def choose_zone(visit: Visit) -> Response[Any]:
    """The zone in which times are shown."""
    return _remember(visit, ZONE, visit.form.get("zone", ""), installed_zones())


def _remember(visit: Visit, name: str, value: str, known: Any) -> Response[Any]:  # noqa: ANN401 - a collection
    answer = visit.back(own_address(visit.form.get("to")))
    if value in known:
        answer.cookies.append(Cookie(name, path="/console", value=value, max_age=_YEAR))
    return answer


def own_address(given: str | None) -> str:
    """The given address if it is one of the console, and not of another site; otherwise the overview."""
    parts = urlsplit(given or "")
    if parts.scheme or parts.netloc or not parts.path.startswith("/console") or "\\" in (given or ""):
        return "/console"
    return str(given)


@get("/{rest}")
async def nowhere(visit: Visit, rest: str) -> Response[bytes]:  # noqa: ARG001 - any other address
    """Any address without a page."""
    raise HttpError(404)


HANDLERS = [sign_in_page, sign_in, sign_out, session, choose_theme, choose_zone, nowhere]

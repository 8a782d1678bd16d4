"""The console of a service: its routes, who may use them, and how errors are shown."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Literal

from horae.app import App
from horae.config import Config
from horae.errors import AuthenticationError, HoraeError, ScheduleAmbiguousError
from horae.face.console import (
    alerts_page,
    calendars_pages,
    create_page,
    documents_pages,
    edit_page,
    explain_page,
    flows_pages,
    grants_pages,
    nodes_page,
    overview,
    runs_pages,
    schedule_actions,
    schedule_page,
    schedules_list,
    sign_in,
    workflows_pages,
)
from horae.face.console.answer_cache import KeptAnswers
from horae.face.console.assets import static_file
from horae.face.console.live_updates import Feed
from horae.face.console.page_request import Visit
from horae.face.console.security import (
    SESSION,
    STRANGER,
    Session,
    Signer,
    check_host,
    check_source,
    headers_of,
)
from horae.face.http.arguments import Made
from horae.face.http.endpoints import Endpoint, Terms
from horae.face.http.errors import HttpError
from horae.face.http.in_process import InProcess
from horae.face.http.requests import Request
from horae.face.http.responses import Cookie, Response
from horae.face.http.routes import Router
from horae.face.service.auth import Authenticator, takes_tokens
from horae.face.service.caller import Caller
from horae.face.service.problems import Problem, on_defect, problem_of
from horae.face.service.rate_limit import RateLimit

_PAGES = (
    sign_in, overview, schedules_list, schedule_page, schedule_actions, runs_pages, explain_page, nodes_page, create_page, edit_page,
    calendars_pages, flows_pages, grants_pages, workflows_pages, alerts_page, documents_pages,
)  # fmt: skip


class Console:
    """What all pages share."""

    def __init__(
        self,
        app: App,
        config: Config,
        authenticator: Authenticator,
        limit: RateLimit,
        api: Callable[[Caller], InProcess],
    ) -> None:
        self.app, self.config, self.authenticator, self.limit = app, config, authenticator, limit
        self.api = api
        """Sends requests of a caller to the API."""
        self.signer = Signer(config, app.now)
        self.feed = Feed(app)
        self.kept = KeptAnswers(app.clock.monotonic)
        self.takes_tokens = takes_tokens(config)

    def router(self) -> Router:
        """The routes of the console; none of them is part of the API."""
        pages = [handler for page in _PAGES for handler in page.HANDLERS]
        return Router("/console", route_handlers=[static_file, *pages])

    def terms(self) -> Terms:
        """What these routes share."""
        return Terms({"visit": Made(_visit)}, self.admit, self.on_error)

    def cookie(self, name: str, value: str, seconds: int, path: str = "/console") -> Cookie:
        """A cookie that scripts cannot read and other sites do not send."""
        same: Literal["strict"] = "strict"
        secure = bool(self.config.tls_certificate) or self.config.public_url.startswith("https:")
        return Cookie(
            name, path=path, value=value, max_age=seconds, httponly=True, samesite=same, secure=secure
        )

    async def admit(self, request: Request, endpoint: Endpoint) -> None:
        """Find the caller, and refuse requests that must not be answered, before a page is rendered."""
        marks = endpoint.route.marks
        if "anonymous" in marks:
            return
        check_host(self.config, request.headers.get("host", ""))
        session = self.signer.read_session(request.cookies.get(SESSION)) if self.takes_tokens else None
        if session is None and "strangers" not in marks:
            peer = request.state.get("peer")
            session = Session(await self.authenticator.caller(request.raw_headers, peer), "")
        session = session or Session(STRANGER, "")
        self.limit.check_user(session.caller.user)
        visit = Visit(self, request, session)
        request.state["visit"] = visit
        if request.method != "GET":
            check_source(request.headers)
            if "reads" not in marks:
                session.caller.check_change()
            visit.read_form(await request.body())
            self.signer.check_form(session, visit.form.get("csrf"))

    def on_error(self, request: Request, error: Exception) -> Response[Any]:
        """The answer to a request that failed."""
        match error:
            case AuthenticationError() if self.takes_tokens:
                return self._on_stranger(request)
            case HoraeError():
                return self._on_horae_error(request, error)
            case HttpError():
                return self._on_http_error(request, error)
            case _:
                return self._on_crash(request, error)

    def _on_stranger(self, request: Request) -> Response[Any]:
        """Without a session, lead to the sign-in page."""
        visit = Visit(self, request, Session(STRANGER, ""))
        to = visit.url("sign-in", next=visit.address if request.method == "GET" else None)
        if "hx-request" in request.headers or "text/event-stream" in request.headers.get("accept", ""):
            return Response(
                b"", status_code=401, headers=headers_of({"HX-Redirect": to}), media_type="text/html"
            )
        return visit.back(to)

    def _on_horae_error(self, request: Request, error: HoraeError) -> Response[Any]:
        """An error that Horae raised deliberately, as a page that says what to do. If several owners have the id, go to the caller's own schedule."""
        visit: Visit | None = request.state.get("visit")
        if (
            visit is not None
            and isinstance(error, ScheduleAmbiguousError)
            and visit.means_own(error.details["owners"])
        ):
            return visit.back(visit.same(owner=visit.caller.user))
        return self._problem(request, problem_of(error))

    def _on_http_error(self, request: Request, error: HttpError) -> Response[Any]:
        """A request that failed before it reached a page."""
        phrase = HTTPStatus(error.status).phrase
        detail = "There is no such page." if error.status == HTTPStatus.NOT_FOUND else error.detail
        return self._problem(
            request, Problem(title=phrase, status=error.status, detail=detail, code="invalid_request")
        )

    def _on_crash(self, request: Request, error: Exception) -> Response[Any]:
        """A defect of ours: logged, and shown without internal details."""
        on_defect(request, error)
        detail = "The page could not be rendered. The log of the service says why."
        return self._problem(
            request, Problem(title="Internal Server Error", status=500, detail=detail, code="internal")
        )

    def _problem(self, request: Request, problem: Problem) -> Response[Any]:
        visit = request.state.get("visit") or Visit(self, request, Session(STRANGER, ""))
        return visit.page("problem.html", problem.status, problem=problem)


def _visit(request: Request) -> Visit:
    found: Visit = request.state["visit"]
    return found

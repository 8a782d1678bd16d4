"""The console of a service: its routes, who may use them, and how errors are shown."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Literal

from litestar import Request, Response, Router
from litestar.datastructures import Cookie
from litestar.di import Provide
from litestar.exceptions import HTTPException

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
from horae.face.service.auth import Authenticator, takes_tokens
from horae.face.service.problems import Problem, on_defect, problem_of
from horae.face.service.rate_limit import RateLimit
from horae.face.service.request_reading import check_address

_PAGES = (
    sign_in, overview, schedules_list, schedule_page, schedule_actions, runs_pages, explain_page, nodes_page, create_page, edit_page,
    calendars_pages, flows_pages, grants_pages, workflows_pages, alerts_page, documents_pages,
)  # fmt: skip


class Console:
    """What all pages share."""

    def __init__(self, app: App, config: Config, authenticator: Authenticator, limit: RateLimit) -> None:
        self.app, self.config, self.authenticator, self.limit = app, config, authenticator, limit
        self.signer = Signer(config, app.now)
        self.feed = Feed(app)
        self.kept = KeptAnswers(app.clock.monotonic)
        self.takes_tokens = takes_tokens(config)

    def __deepcopy__(self, _: dict[int, Any]) -> Console:
        """Litestar copies routers with the objects behind their handlers; the console must stay one object."""
        return self

    def router(self) -> Router:
        """The routes of the console; none of them is part of the API."""
        return Router(
            "/console",
            route_handlers=[static_file, *(handler for page in _PAGES for handler in page.HANDLERS)],
            dependencies={"visit": Provide(_visit, sync_to_thread=False)},
            before_request=self.admit,
            request_class=Request,
            exception_handlers={
                AuthenticationError: self.on_stranger,
                HoraeError: self.on_error,
                HTTPException: self.on_http_error,
                Exception: self.on_crash,
            },
            include_in_schema=False,
        )

    def cookie(self, name: str, value: str, seconds: int, path: str = "/console") -> Cookie:
        """A cookie that scripts cannot read and other sites do not send."""
        same: Literal["strict"] = "strict"
        secure = bool(self.config.tls_certificate) or self.config.public_url.startswith("https:")
        return Cookie(
            name, path=path, value=value, max_age=seconds, httponly=True, samesite=same, secure=secure
        )

    async def admit(self, request: Request[Any, Any, Any]) -> Response[Any] | None:
        """Find the caller, and refuse requests that must not be answered, before a page is rendered."""
        answered = await check_address(request)
        if answered is not None or request.route_handler.opt.get("anonymous"):
            return answered
        headers = {name: request.headers[name] for name in request.headers}
        check_host(self.config, headers.get("host", ""))
        session = self.signer.read_session(request.cookies.get(SESSION)) if self.takes_tokens else None
        if session is None and not request.route_handler.opt.get("strangers"):
            peer = request.scope["state"].get("peer")
            session = Session(await self.authenticator.caller(request.scope["headers"], peer), "")
        session = session or Session(STRANGER, "")
        self.limit.check_user(session.caller.user)
        visit = Visit(self, request, session)
        request.scope["state"]["visit"] = visit
        if request.method not in {"GET", "HEAD"}:
            check_source(headers)
            if not request.route_handler.opt.get("reads"):
                session.caller.check_change()
            visit.read_form(await request.body())
            self.signer.check_form(session, visit.form.get("csrf"))
        return None

    def on_stranger(self, request: Request[Any, Any, Any], error: HoraeError) -> Response[Any]:
        """Without a session, lead to the sign-in page if tokens are accepted."""
        if not self.takes_tokens:
            return self.on_error(request, error)
        visit = Visit(self, request, Session(STRANGER, ""))
        to = visit.url("sign-in", next=visit.address if request.method == "GET" else None)
        if "hx-request" in request.headers or "text/event-stream" in request.headers.get("accept", ""):
            return Response(
                b"", status_code=401, headers=headers_of({"HX-Redirect": to}), media_type="text/html"
            )
        return visit.back(to)

    def on_error(self, request: Request[Any, Any, Any], error: HoraeError) -> Response[Any]:
        """An error that Horae raised deliberately, as a page that says what to do. If several owners have the id, go to the caller's own schedule."""
        visit: Visit | None = request.scope["state"].get("visit")
        if (
            visit is not None
            and isinstance(error, ScheduleAmbiguousError)
            and visit.means_own(error.details["owners"])
        ):
            return visit.back(visit.same(owner=visit.caller.user))
        return self._problem(request, problem_of(error))

    def on_http_error(self, request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        """A request that failed before it reached a page."""
        if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return self.on_crash(request, error)
        phrase = HTTPStatus(error.status_code).phrase
        detail = "There is no such page." if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
        return self._problem(
            request, Problem(title=phrase, status=error.status_code, detail=detail, code="invalid_request")
        )

    def on_crash(self, request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        """A defect of ours: logged, and shown without internal details."""
        on_defect(request, error)
        detail = "The page could not be rendered. The log of the service says why."
        return self._problem(
            request, Problem(title="Internal Server Error", status=500, detail=detail, code="internal")
        )

    def _problem(self, request: Request[Any, Any, Any], problem: Problem) -> Response[Any]:
        visit = request.scope["state"].get("visit") or Visit(self, request, Session(STRANGER, ""))
        return visit.page("problem.html", problem.status, problem=problem)


def _visit(request: Request[Any, Any, Any]) -> Visit:
    found: Visit = request.scope["state"]["visit"]
    return found

"""One request of a page: who asks, what they sent, and how they want to see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from horae.app import ScopedOperations
from horae.errors import HoraeError, InvalidInputError
from horae.face.console.error_text import error_text
from horae.face.console.rendering import render
from horae.face.console.security import NOTICE, Notice, Session, headers_of
from horae.face.http.requests import Request
from horae.face.http.responses import Cookie, Response, redirect
from horae.face.service.caller import READ
from horae.face.service.route_helpers import operations_for, own_operations
from horae.model import instant
from horae.spec import installed_zones

if TYPE_CHECKING:
    from horae.face.console.console import Console

ZONE = "horae_zone"
THEME = "horae_theme"
THEMES = ("auto", "light", "dark")
MAX_FIELDS = 2000
Build = Callable[[], Awaitable[dict[str, Any]]]


class Visit:
    """One request of a page."""

    def __init__(self, console: Console, request: Request, session: Session) -> None:
        self.console, self.request, self.session = console, request, session
        self.caller = session.caller
        self.app = console.app
        self.now = console.app.now()
        self.query = _fields(request.query_string.decode())
        self.form: dict[str, str] = {}
        self.chosen: list[str] = []
        """The values of the form's fields ``chosen``: what was ticked in a list."""
        self.zone = _zone(request.cookies.get(ZONE))
        theme = request.cookies.get(THEME, "auto")
        self.theme = theme if theme in THEMES else "auto"
        self.problem = ""
        """Why the form of this request was refused, if the page shows it again."""
        self.live = False
        """Whether only the part of the page that changes is rendered."""
        self.restless = False
        """Whether the page may change without a change that the feed notices."""

    def read_form(self, body: bytes) -> None:
        """Take the fields of a form."""
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise InvalidInputError("form", f"must be a form with at most {MAX_FIELDS} fields") from None
        if any("\x00" in part for pair in pairs for part in pair):
            raise InvalidInputError("form", "has the character NUL, which no text has")
        self.form = dict(pairs)
        self.chosen = [value for name, value in pairs if name == "chosen"]

    @property
    def token(self) -> str:
        """The token that forms of this page send back."""
        return self.console.signer.form_token(self.session)

    @property
    def may_change(self) -> bool:
        """Whether the caller may change anything."""
        return READ not in self.caller.scopes

    @property
    def operations(self) -> ScopedOperations:
        """The operations on what the page is about: the named owner's, or else the caller's, or for an admin those of all owners."""
        return operations_for(self.app, self.caller, self.query.get("owner"))

    def means_own(self, owners: list[str]) -> bool:
        """Whether a page that names no owner means the caller's own schedule, if several owners have its id."""
        return self.request.method == "GET" and "owner" not in self.query and self.caller.user in owners

    @property
    def own(self) -> ScopedOperations:
        """The operations of one owner, the named one or else the caller, who owns what the page creates."""
        return own_operations(self.app, self.caller, self.query.get("owner"))

    @property
    def now_in_zone(self) -> datetime:
        """The current time in the viewer's zone."""
        return instant(self.now).astimezone(self.zone)

    @property
    def cursor(self) -> str | None:
        """Where the page of a list begins; ``None`` for the first page."""
        return self.query.get("cursor") or None

    @property
    def path(self) -> str:
        """The path of this page, encoded as it came."""
        return self.request.path

    @property
    def address(self) -> str:
        """The address of this page, with its query."""
        query = self.request.query_string.decode()
        return f"{self.path}?{query}" if query else self.path

    def url(self, *parts: str, **query: object) -> str:
        """An address in the console; fields without a value are left out, and the owner stays named."""
        path = "/".join(["/console", *(quote(part, safe="") for part in parts)])
        given = {name: value for name, value in query.items() if value not in {None, ""}}
        if "owner" in self.query and "owner" not in query:
            given["owner"] = self.query["owner"]
        return f"{path}?{urlencode(given)}" if given else path

    def same(self, **changes: object) -> str:
        """The address of this page with some fields of its query changed."""
        given = {**self.query, **changes}
        given = {name: value for name, value in given.items() if value not in {None, ""}}
        return f"{self.path}?{urlencode(given)}" if given else self.path

    def of_schedule(self, schedule: Any, *more: str, **query: object) -> str:  # noqa: ANN401 - a schedule, a run or a view of one
        """The address of a schedule; it names the owner where the caller is another."""
        schedule_id = getattr(schedule, "schedule_id", None) or schedule.id
        return self.of_owner(schedule.owner, "schedules", schedule_id, *more, **query)

    def of_owner(self, owner: str, *parts: str, **query: object) -> str:
        """The address of something that belongs to an owner, whom it names where the caller is another."""
        return self.url(*parts, **query, **({"owner": owner} if owner not in {"", self.caller.user} else {}))

    def page(self, template: str, status: int = 200, /, **context: Any) -> Response[bytes]:  # noqa: ANN401 - what a template shows
        """A page, or a part of one. Only a page shows the notice."""
        is_part = "hx-request" in self.request.headers
        notice = None if is_part else self.console.signer.read_notice(self.request.cookies.get(NOTICE))
        body = render(template, self, notice=notice, **context)
        cookies = [] if notice is None else [Cookie(NOTICE, path="/console")]
        headers = headers_of({"Vary": "Accept, Cookie"})
        return Response(
            body.encode(), status_code=status, media_type="text/html", headers=headers, cookies=cookies
        )  # fmt: skip

    async def live_page(self, template: str, build: Build) -> Response[Any]:
        """A page that changes by itself; asked for events, the stream of its changes."""
        if self.problem or "text/event-stream" not in self.request.headers.get("accept", ""):
            seen, context = self.console.feed.mark, await build()
            status = 422 if self.problem else 200
            return self.page(template, status, **context, seen="behind" if self.restless else seen)
        self.live = True

        async def render_again() -> str:
            self.now = self.app.now()
            return render(template, self, notice=None, **await build())

        key = (self.token, self.zone.key, self.same(seen=None))
        return self.console.feed.stream(
            key, render_again, self.query.get("seen"), self.session.until, lambda: self.restless
        )

    def back(
        self, to: str, text: str = "", kind: str = "done", link: tuple[str, str] = ("", "")
    ) -> Response[Any]:
        """Redirect to a page that shows a notice of what was done; ``link`` is the label and the address of a link in it."""
        cookies = []
        if text:
            value = self.console.signer.notice(Notice(kind, text[:500], *link))
            cookies.append(self.console.cookie(NOTICE, value, 60, path="/console"))
        return redirect(to, headers_of(), cookies)

    def refused(self, to: str, error: HoraeError) -> Response[Any]:
        """Redirect to a page that shows why nothing was done."""
        return self.back(to, error_text(error), "problem")

    async def show_again(self, error: HoraeError, page: Awaitable[Response[Any]]) -> Response[Any]:
        """The page of a refused form, with what was typed and what is wrong with it."""
        self.problem = error_text(error)
        return await page

    def is_refused(self, todo: str) -> bool:
        """Whether the page shows the form of this action again."""
        return bool(self.problem) and self.form.get("do") == todo

    def typed(self, todo: str, name: str, otherwise: str = "") -> str:
        """What was typed into a field of this action's form, if it was refused."""
        return self.form.get(name, "") if self.is_refused(todo) else otherwise


def _fields(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=100))


def _zone(name: str | None) -> ZoneInfo:
    """The zone that a viewer asked for, or UTC."""
    name = (name or "UTC").replace("%2F", "/")
    return ZoneInfo(name if name in installed_zones() else "UTC")

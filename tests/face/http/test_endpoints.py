"""What becomes of a request: its arguments, its answer, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from horae.errors import HoraeError
from horae.face.http.arguments import Constant, Header, Made, Provided, QueryFields, query
from horae.face.http.endpoints import Endpoint, Endpoints, Terms
from horae.face.http.errors import HttpError
from horae.face.http.in_process import InProcess
from horae.face.http.requests import Request
from horae.face.http.responses import Response
from horae.face.http.routes import Router, delete, get, post

Limit = Annotated[int, msgspec.Meta(ge=1, le=9), query("How many.")]
IfMatch = Annotated[str | None, Header("If-Match")]


class Which(msgspec.Struct, frozen=True):
    """A filter."""

    tag: str | None = None
    late: bool | None = None


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body."""

    number: int


@get("/{thing}")
async def show(
    request: Request, thing: str, shop: str, which: Which, limit: Limit = 5, if_match: IfMatch = None
) -> Any:
    return [request.method, thing, shop, which.tag, which.late, limit, if_match]


@get("/{thing}/at")
async def at(time: str, page: int | None = None) -> Any:
    return [time, page]


@post("/")
async def create(data: Body) -> Response[Body]:
    return Response(data, 202, {"X-Number": str(data.number)})


@post("/{thing}/pause")
async def pause(data: Body | None = None) -> Any:
    return data


@delete("/{thing}")
async def remove() -> None:
    """Answers nothing."""


@get("/{thing}/defect")
async def defect() -> None:
    raise ZeroDivisionError


async def refuse_strangers(shop: str) -> None:
    if shop == "closed":
        raise HttpError(403, "closed")


def shop(request: Request, owner: str | None = None) -> str:
    return owner or request.headers.get("x-shop", "ours")


async def admit(request: Request, endpoint: Endpoint) -> None:
    unknown = set(request.query) - set(endpoint.arguments.query_names)
    if unknown:
        raise HttpError(422, f"unknown: {unknown}")


def on_error(request: Request, error: Exception) -> Response[Any]:
    match error:
        case HttpError():
            shown = [error.detail, error.hint, *((each.path, each.message) for each in error.faults)]
            return Response(shown, error.status, error.headers)
        case HoraeError():
            return Response(error.message, 422)
        case _:
            return Response(f"{request.method}: {type(error).__name__}", 500)


ENDPOINTS = Endpoints(on_error)
PROVIDED: dict[str, Provided] = {"shop": Made(shop), "which": QueryFields(Which), "unused": Constant(1)}
ROUTER = Router("/things", [show, at, create, pause, remove, defect], guards=(refuse_strangers,))
ENDPOINTS.add([ROUTER], Terms(PROVIDED, admit, on_error))
CLIENT = InProcess(ENDPOINTS.answer, 100, {})
JSON = {"Content-Type": "application/json"}


async def ask(
    method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    path, _, asked = path.partition("?")
    status, answer = await CLIENT.send(method, path, asked, JSON if headers is None else headers, body)
    return status, msgspec.json.decode(answer) if answer else None


async def test_arguments_come_from_the_path_the_query_headers_and_what_is_provided():
    assert await ask("GET", "/things/a%2Fb") == (200, ["GET", "a/b", "ours", None, None, 5, None])
    asked = "/things/x?limit=9&tag=a%20b&late=True&owner=ada"
    assert await ask("GET", asked, headers={"If-Match": "*"}) == (
        200,
        ["GET", "x", "ada", "a b", True, 9, "*"],
    )
    assert await ask("GET", "/things/x?tag=", headers={"X-Shop": "z"}) == (
        200,
        ["GET", "x", "z", "", None, 5, None],
    )


async def test_every_wrong_argument_is_named():
    assert await ask("GET", "/things/x?limit=0") == (400, ["", None, ["limit", "must be at least 1"]])
    assert await ask("GET", "/things/x?limit=") == (
        400,
        ["", None, ["limit", "must be a whole number, not a text"]],
    )
    assert await ask("GET", "/things/x?late=no") == (422, 'late is "no", and must be one of true, false')
    assert await ask("GET", "/things/x/at?page=2") == (400, ["", None, ["time", "is missing"]])
    wrong = ["", None, ["page", "must be a whole number or nothing, not a text"]]
    assert await ask("GET", "/things/x/at?time=now&page=two") == (400, wrong)
    assert await ask("GET", "/things/%ff") == (422, "thing is not UTF-8 text")
    assert await ask("GET", "/things/%00") == (422, "thing must not contain the character NUL")
    assert await ask("GET", "/things/x?tag=%ff") == (422, "query is not UTF-8 text")
    assert await ask("GET", "/things/x?other=1") == (422, ["unknown: {'other'}", None])


async def test_a_body_is_json_that_is_declared_so():
    assert await ask("POST", "/things", b'{"number": 7.0}') == (202, {"number": 7})
    assert await ask("POST", "/things") == (
        400,
        ["The body is missing", "send a JSON object", ["body", "is missing"]],
    )
    assert await ask("POST", "/things", b'{"nr": 7}') == (400, ["", "known are number", ["nr", "is unknown"]])
    for declared in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/jsonx"}):
        assert (await ask("POST", "/things", b'{"number": 7}', declared))[0] == 415
    for media_type in ("Application/JSON; charset=utf-8", "application/merge-patch+json"):
        assert (await ask("POST", "/things", b'{"number": 7}', {"Content-Type": media_type}))[0] == 202
    assert (await ask("POST", "/things", b'{"number": ' + b" " * 100 + b"7}"))[0] == 422
    assert await ask("POST", "/things/x/pause") == (201, None)
    assert await ask("POST", "/things/x/pause", b'{"number": 7}') == (201, {"number": 7})


async def test_what_has_no_answer_is_refused_before_its_body_is_read():
    assert (await ask("GET", "/nothing"))[0] == 404
    assert (await ask("PUT", "/things/x"))[0] == 405
    assert await ask("OPTIONS", "/things/x") == (204, None)
    assert await ask("DELETE", "/things/x") == (204, None)
    assert await ask("POST", "/things?owner=closed", b"{") == (403, ["closed", None])
    assert await ask("GET", "/things/x/defect") == (500, "GET: ZeroDivisionError")


async def test_the_methods_of_a_path_are_told():
    async def receive() -> dict[str, Any]:
        raise AssertionError

    for method, status in (("OPTIONS", 204), ("PATCH", 405)):
        answer = await ENDPOINTS.answer(Request(method, "/things/x", receive=receive, max_body=0))
        assert answer.status_code == status
        assert answer.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS"

"""The ceiling: the same server and toolkit of routes with a route that does nothing but answer."""

from __future__ import annotations

import socket
import sys

import uvicorn

from horae.face.http.asgi import Send, request_of, send_response
from horae.face.http.endpoints import Endpoint, Endpoints, Terms
from horae.face.http.requests import Message, Receive, Request
from horae.face.http.responses import Response
from horae.face.http.routes import Router, get, post

ANSWER = {"id": "s-000000", "token": 1, "next_time": None}
LONGEST = 10_000_000
"""The longest body that is read, in bytes."""


@get("/schedules/{name}")
async def describe(name: str) -> dict[str, object]:
    return ANSWER | {"id": name}


@get("/schedules")
async def several() -> dict[str, object]:
    return {"items": [ANSWER] * 100, "next": None}


@post("/bulk/schedules")
async def create(data: dict[str, object]) -> dict[str, object]:
    return {"items": [ANSWER] * len(data)}


async def admit(_: Request, __: Endpoint) -> None:
    """Admit every request."""


def on_error(_: Request, error: Exception) -> Response[str]:
    return Response(repr(error), 500)


endpoints = Endpoints(on_error)
endpoints.add([Router("/", [describe, several, create])], Terms({}, admit, on_error))


async def service(scope: Message, receive: Receive, send: Send) -> None:
    answered = await endpoints.answer(request_of(scope, receive, LONGEST))
    await send_response(answered, receive, send)


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"listens on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        server = uvicorn.Server(uvicorn.Config(service, log_config=None, access_log=False, lifespan="off"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()

"""The ceiling: the same server and framework with a route that does nothing but answer."""

from __future__ import annotations

import socket
import sys

import uvicorn
from litestar import Litestar, get, post

ANSWER = {"id": "s-000000", "token": 1, "next_time": None}


@get("/schedules/{name:str}", sync_to_thread=False)
def describe(name: str) -> dict[str, object]:
    return ANSWER | {"id": name}


@get("/schedules", sync_to_thread=False)
def several() -> dict[str, object]:
    return {"items": [ANSWER] * 100, "next": None}


@post("/bulk/schedules", sync_to_thread=False)
def create(data: dict[str, object]) -> dict[str, object]:
    return {"items": [ANSWER] * len(data)}


def main() -> None:
    service = Litestar([describe, several, create], openapi_config=None, logging_config=None)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"listens on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        server = uvicorn.Server(uvicorn.Config(service, log_config=None, access_log=False, lifespan="off"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()

"""Routes, as functions declare them, and routers, which hold those of a part of the paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from horae.face.http.responses import JSON

Handler = Callable[..., Any]
"""An asynchronous function that answers requests."""
Guard = Callable[..., Any]
"""An asynchronous function that refuses a request before its body is read. Its arguments are those of a handler, but for the body."""
REST = "{rest}"
"""The word of a path that is the rest of it."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A function that answers requests of a method and a path."""

    fn: Handler
    method: str
    path: str
    """Each ``{name}`` in it is a parameter; ``{rest}`` at its end is the rest of the path."""
    status_code: int
    summary: str = ""
    media_type: str = JSON
    marks: frozenset[str] = frozenset()
    """What those who check requests know of the route."""
    guards: tuple[Guard, ...] = ()
    tags: tuple[str, ...] = ()
    is_described: bool = True
    """Whether the OpenAPI document has it."""


class _Method:
    """Declares functions as routes of a method."""

    def __init__(self, name: str, status_code: int) -> None:
        self._name, self._status_code = name, status_code

    def __call__(
        self,
        path: str,
        *,
        status_code: int | None = None,
        summary: str = "",
        media_type: str = JSON,
        marks: frozenset[str] = frozenset(),
        guards: tuple[Guard, ...] = (),
        tags: tuple[str, ...] = (),
        is_described: bool = True,
    ) -> Callable[[Handler], Route]:
        status = self._status_code if status_code is None else status_code
        return lambda fn: Route(
            fn=fn, method=self._name, path=path, status_code=status, summary=summary, media_type=media_type, marks=marks,
            guards=guards, tags=tags, is_described=is_described,
        )  # fmt: skip


get, put, patch = _Method("GET", 200), _Method("PUT", 200), _Method("PATCH", 200)
post, delete = _Method("POST", 201), _Method("DELETE", 204)


class Router(msgspec.Struct, frozen=True):
    """Routes below a path, and what they share."""

    path: str
    route_handlers: Sequence[Route]
    tags: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    marks: frozenset[str] = frozenset()

    def routes(self) -> Iterator[Route]:
        """The routes, with their whole paths."""
        for each in self.route_handlers:
            yield msgspec.structs.replace(
                each, path=joined(self.path, each.path), tags=self.tags + each.tags, guards=self.guards + each.guards,
                marks=self.marks | each.marks,
            )  # fmt: skip


def words_of(path: str) -> list[str]:
    """The words of a path; a slash at its end, or next to another, means nothing."""
    return [each for each in path.split("/") if each]


def joined(*paths: str) -> str:
    """Paths after each other, as one."""
    return "/" + "/".join(word for path in paths for word in words_of(path))

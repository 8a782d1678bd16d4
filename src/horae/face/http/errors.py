"""Requests that fail before a handler answers them, or that it refuses by a status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """One fault of a request: where it is, and what is wrong."""

    path: str
    message: str


class HttpError(Exception):
    """A request that is answered with an error status."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        faults: Sequence[Fault] = (),
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, faults)
        self.status, self.detail, self.faults, self.hint = status, detail, faults, hint
        self.headers = headers or {}

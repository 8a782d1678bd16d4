"""Answers: values as JSON, texts, redirects and streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

JSON = "application/json"
_IN_ADDRESSES = "/#%[]=:;$&()+,!?*@'~"
"""What an address keeps as it is; everything else that is not a letter or a digit is percent-encoded."""
T = TypeVar("T")


class Cookie(msgspec.Struct, frozen=True):
    """A cookie. Without a value and a time it is removed from the browser."""

    name: str
    value: str = ""
    max_age: int = 0
    path: str = "/"
    httponly: bool = False
    secure: bool = False
    samesite: Literal["strict", "lax"] = "lax"

    def header(self) -> str:
        """The cookie as the value of the header ``Set-Cookie``."""
        flags = f"{'; HttpOnly' if self.httponly else ''}{'; Secure' if self.secure else ''}"
        value = quote(self.value, safe="/")
        return (
            f"{self.name}={value}; Max-Age={self.max_age}; Path={self.path}; SameSite={self.samesite}{flags}"
        )


class Response(Generic[T]):
    """An answer. Bytes are sent as they are, every other value as JSON."""

    def __init__(
        self,
        value: T,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = JSON,
        cookies: Sequence[Cookie] = (),
    ) -> None:
        self.content = value if isinstance(value, bytes) else msgspec.json.encode(value)
        self.status_code, self.media_type = status_code, media_type
        self.headers = dict(headers or {})
        self.cookies = list(cookies)

    @property
    def has_body(self) -> bool:
        """Whether answers of this status have a body."""
        return self.status_code not in {204, 304}

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers as in ASGI."""
        given = {name.lower(): value for name, value in self.headers.items()}
        if self.has_body:
            is_text = self.media_type.startswith("text/") and "charset" not in self.media_type
            given["content-type"] = f"{self.media_type}; charset=utf-8" if is_text else self.media_type
            given |= self._length()
        raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        return raw + [(b"set-cookie", each.header().encode("latin-1")) for each in self.cookies]

    def _length(self) -> dict[str, str]:
        return {"content-length": str(len(self.content))}


class Stream(Response[Any]):
    """An answer whose parts follow each other until ``parts`` ends, or the client leaves."""

    def __init__(
        self, parts: AsyncGenerator[bytes, None], media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(b"", headers=headers, media_type=media_type)
        self.parts = parts

    def _length(self) -> dict[str, str]:
        return {}


def empty(status_code: int = 204, headers: Mapping[str, str] | None = None) -> Response[None]:
    """An answer without a body."""
    return Response(None, status_code, headers)


def redirect(
    to: str, headers: Mapping[str, str] | None = None, cookies: Sequence[Cookie] = ()
) -> Response[bytes]:
    """An answer that leads a browser to another address, to be read there."""
    there = {"Location": quote(to, safe=_IN_ADDRESSES)}
    return Response(b"", 303, {**there, **(headers or {})}, "text/plain", cookies)

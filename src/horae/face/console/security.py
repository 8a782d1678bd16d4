"""Protection of the console in a browser: headers, the session cookie, and tokens against forged requests."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import jwt
import msgspec

from horae.config import Config
from horae.errors import PermissionDeniedError
from horae.face.service.caller import Caller
from horae.face.service.loopback import is_loopback_name

SESSION = "horae_session"
NOTICE = "horae_notice"
SESSION_HOURS = 12
_AUDIENCE = "horae-console"
_NOTICE_SECONDS = 60
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def headers_of(more: dict[str, str] | None = None) -> dict[str, str]:
    """The headers of an answer of the console, which is not stored unless ``more`` says otherwise."""
    return {**_HEADERS, **(more or {})}


STRANGER = Caller("")
"""The caller of the sign-in page, who is not known yet."""


class Session(msgspec.Struct, frozen=True):
    """Who signed in, and until when; ``id`` ties the tokens of their forms to this session."""

    caller: Caller
    id: str
    until: int | None = None
    """Seconds since 1970; ``None`` where no sign-in is needed."""


class Notice(msgspec.Struct, frozen=True):
    """What the next page says about what was just done."""

    kind: str
    text: str
    label: str = ""
    href: str = ""
    """Where to read more, and what the link says."""


class Signer:
    """Signs sessions, notices and form tokens.

    The key comes from a setting, so that a session holds on every node. Without one it is made when the process starts: pages that
    were open before a restart then have to be loaded again.
    """

    def __init__(self, config: Config, now: Callable[[], int]) -> None:
        secret = config.secret_key or config.jwt_secret
        material = secret.encode() if secret else secrets.token_bytes(32)
        self._key = hmac.new(material, b"horae console", hashlib.sha256).digest()
        self._now = now

    def session(self, caller: Caller, expires: float) -> tuple[str, int]:
        """The cookie of a new session, and the seconds that it lasts: no longer than the token that it was opened with."""
        now = self._now() // 1000
        until = int(min(expires, now + SESSION_HOURS * 3600))
        claims = {
            "sub": caller.user,
            "scopes": sorted(caller.scopes),
            "sid": secrets.token_urlsafe(12),
            "exp": until,
        }
        return self._sign(claims), max(until - now, 0)  # fmt: skip

    def read_session(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if it was signed here and has not ended."""
        claims = self._read(cookie)
        if claims is None or not isinstance(claims.get("sid"), str):
            return None
        return Session(Caller(claims["sub"], frozenset(claims["scopes"])), claims["sid"], claims["exp"])

    def notice(self, notice: Notice) -> str:
        """The cookie of a notice."""
        until = self._now() // 1000 + _NOTICE_SECONDS
        return self._sign({**msgspec.structs.asdict(notice), "exp": until})

    def read_notice(self, cookie: str | None) -> Notice | None:
        """The notice of a cookie."""
        claims = self._read(cookie)
        if claims is None or "text" not in claims:
            return None
        return Notice(claims["kind"], claims["text"], claims.get("label", ""), claims.get("href", ""))

    def form_token(self, session: Session) -> str:
        """The token that a form must send back: only a page that was rendered for this session has it."""
        message = f"{session.caller.user}\0{session.id}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()

    def check_form(self, session: Session, given: str | None) -> None:
        """Refuse a form that does not bring the token of its session."""
        if given is None or not hmac.compare_digest(given.encode(), self.form_token(session).encode()):
            raise PermissionDeniedError(
                "This form comes from an older page, or from another site",
                hint="go back, load the page again and repeat it",
            )

    def _sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode({**claims, "aud": _AUDIENCE}, self._key, "HS256")

    def _read(self, cookie: str | None) -> dict[str, Any] | None:
        if not cookie:
            return None
        try:
            claims: dict[str, Any] = jwt.decode(
                cookie, self._key, algorithms=["HS256"], audience=_AUDIENCE,
                options={"require": ["exp"], "verify_exp": False, "verify_iat": False},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError):
            return None
        return claims if claims["exp"] > self._now() // 1000 else None


def check_host(config: Config, host: str) -> None:
    """Refuse a Host that is neither this machine nor the public address, where that is known."""
    public = urlsplit(config.public_url).netloc
    if public and host.lower() != public.lower() and not is_loopback_name(host):
        raise PermissionDeniedError("The console does not answer to this name", hint=f"use {public}")


def check_source(headers: Mapping[str, str]) -> None:
    """Refuse a change that a page of another site sent."""
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    foreign = origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}
    if foreign or headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise PermissionDeniedError("Pages of other sites may not change anything here")

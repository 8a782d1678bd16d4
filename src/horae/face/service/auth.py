"""Authentication: by a token, by a client certificate, or by being on this machine.

With ``jwt_secret`` or ``jwt_jwks`` set, requests carry a signed token. With ``tls_client_ca`` set, the certificate of the connection
is accepted instead. With neither, the service serves this machine only, and every caller is the user ``local``.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from horae.config import Config, setting_name
from horae.errors import AuthenticationError, ConfigError, PermissionDeniedError
from horae.face.service.caller import ADMIN, SERVICE, Caller
from horae.face.service.loopback import is_loopback, is_loopback_name

if TYPE_CHECKING:
    from horae.face.service.token_verification import Tokens

MAX_TOKEN_LENGTH = 16 * 1024
MAX_USER_LENGTH = 200

LOCAL = Caller("local", frozenset({ADMIN, SERVICE}))
"""The caller of every request, where there is no authentication."""

Headers = Sequence[tuple[bytes, bytes]]
"""Headers as in ASGI: names in lower case, repeated as often as they were sent."""


def takes_tokens(config: Config) -> bool:
    """Whether tokens authenticate callers."""
    return bool(config.jwt_secret or config.jwt_jwks)


def check_start(config: Config) -> None:
    """Refuse settings under which unauthenticated callers could reach the service, or no caller could authenticate."""
    if not (takes_tokens(config) or config.tls_client_ca or is_loopback(config.host)):
        raise ConfigError(
            "HORAE_HOST",
            config.host,
            "must be a loopback address unless HORAE_JWT_SECRET, HORAE_JWT_JWKS or HORAE_TLS_CLIENT_CA is set",
        )
    if takes_tokens(config) and not config.jwt_audience:
        raise ConfigError("HORAE_JWT_AUDIENCE", "", "must name the audience of tokens")
    _tokens(config, lambda: 0)
    _check_tls(config)


def _tokens(config: Config, now: Callable[[], int]) -> Tokens | None:
    """The verifier of tokens, if tokens authenticate callers. It is slow to load."""
    if not takes_tokens(config):
        return None
    from horae.face.service.token_verification import Tokens  # noqa: PLC0415 - only where there are tokens

    return Tokens(config, now)


def _check_tls(config: Config) -> None:
    """Check that the TLS files exist, belong together, and can be used."""
    needed = {"tls_certificate": config.tls_key or config.tls_client_ca, "tls_key": config.tls_certificate}
    for name, because in needed.items():
        if because and not getattr(config, name):
            raise ConfigError(setting_name(name), "", "is needed too: TLS takes a certificate and its key")
    if not config.tls_certificate:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # An empty password prevents a prompt: a key that needs a password is refused.
        context.load_cert_chain(config.tls_certificate, config.tls_key, password="")
    except (OSError, ValueError) as error:
        reason = f"cannot be used with its key {config.tls_key}: {error}"
        raise ConfigError("HORAE_TLS_CERTIFICATE", config.tls_certificate, reason) from None
    try:
        if config.tls_client_ca:
            context.load_verify_locations(config.tls_client_ca)
    except (OSError, ValueError) as error:
        raise ConfigError("HORAE_TLS_CLIENT_CA", config.tls_client_ca, f"cannot be used: {error}") from None


class Authenticator:
    """Finds the caller of a request. ``now`` returns the current time in milliseconds."""

    def __init__(self, config: Config, now: Callable[[], int]) -> None:
        check_start(config)
        self._config = config
        self._tokens = _tokens(config, now)

    async def caller(self, raw_headers: Iterable[tuple[bytes, bytes]], peer: str | None) -> Caller:
        """The caller of a request with these headers; ``peer`` is the name in the connection's verified certificate."""
        headers = list(raw_headers)
        if self._tokens is None and not self._config.tls_client_ca:
            _check_local(headers)
            return LOCAL
        if self._tokens is not None and (token := _bearer(headers)) is not None:
            return _holder(await self._tokens.claims(token))
        if self._config.tls_client_ca and peer is not None:
            _check_origin(headers)
            return Caller(_user(peer), LOCAL.scopes if peer in self._config.tls_admins else frozenset())
        raise AuthenticationError(
            "The connection brought no client certificate"
            if self._tokens is None
            else "The request brought no token"
        )


def _holder(claims: dict[str, Any]) -> Caller:
    scopes = set[str]()
    for name in ("scope", "scopes", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            scopes.update(value.split())
        elif isinstance(value, list):
            scopes.update(each for each in value if isinstance(each, str))
    return Caller(_user(claims["sub"]), frozenset(scopes))


def _bearer(headers: Headers) -> str | None:
    """The bearer token of a request, if it has one."""
    value = _header(headers, b"authorization")
    if value is None:
        return None
    scheme, _, token = value.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise AuthenticationError("The header Authorization must be: Bearer TOKEN")
    if len(token) > MAX_TOKEN_LENGTH:
        raise AuthenticationError(f"The token has more than {MAX_TOKEN_LENGTH} characters")
    if not token.isascii():
        raise AuthenticationError("The token cannot be read")
    return token


def _header(headers: Headers, name: bytes) -> str | None:
    """A header that may occur once; a proxy could read a repeated one differently from us."""
    values = [value for key, value in headers if key.lower() == name]
    if len(values) > 1:
        raise AuthenticationError(f"The header {name.decode().capitalize()} came more than once")
    return values[0].decode("latin-1").strip() if values else None


def _user(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_USER_LENGTH or not name.isprintable():
        raise AuthenticationError(
            f"The user's name must be 1 to {MAX_USER_LENGTH} characters that can be shown"
        )
    return name


def _check_local(headers: Headers) -> None:
    """Without authentication, accept only loopback names as the host: with DNS rebinding, another site's name may lead here."""
    host = _header(headers, b"host")
    if host is None or not is_loopback_name(host):
        raise PermissionDeniedError(
            "Without authentication the service answers to loopback names only",
            hint="use 127.0.0.1 or localhost, or set up authentication (docs/how-to/secure.md)",
        )
    _check_origin(headers)


def _check_origin(headers: Headers) -> None:
    """Refuse pages of other sites: the browser is trusted for its machine or its certificate, the page is not."""
    origin = _header(headers, b"origin")
    if origin is not None and not _is_own(origin, _header(headers, b"host") or ""):
        raise PermissionDeniedError("Pages of other sites may not use the service without a token")


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()

"""Authentication: by a token, by a client certificate, or by being on this machine.

With ``jwt_secret`` or ``jwt_jwks`` set, requests carry a signed token. With ``tls_client_ca`` set, the certificate of the connection
is accepted instead. With neither, the service serves this machine only, and every caller is the user ``local``.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

import jwt
from jwt.algorithms import HMACAlgorithm
from jwt.exceptions import InvalidSubjectError

from horae.config import Config, setting_name
from horae.errors import AuthenticationError, ConfigError, PermissionDeniedError
from horae.face.service.caller import ADMIN, SERVICE, Caller
from horae.face.service.loopback import is_loopback, is_loopback_name
from horae.face.service.token_keys import key_set

LEEWAY = 10
"""Seconds by which the clock of a token's issuer may differ from ours."""
MAX_TOKEN_LENGTH = 16 * 1024
MAX_USER_LENGTH = 200
SHORTEST_SECRET = 32

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
        raise ConfigError("HORAE_JWT_AUDIENCE", "", "must say whom tokens are meant for")
    if config.jwt_secret:
        _check_secret(config.jwt_secret)
    if config.jwt_jwks:
        key_set(config.jwt_jwks, lambda: 0)
    _check_tls(config)


def _check_secret(secret: str) -> None:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigError("HORAE_JWT_SECRET", "***", f"must have at least {SHORTEST_SECRET} characters")
    try:
        HMACAlgorithm(HMACAlgorithm.SHA256).prepare_key(secret)
    except jwt.InvalidKeyError:
        raise ConfigError("HORAE_JWT_SECRET", "***", "must be a secret, and not a public key") from None


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
        self._now = now
        self._takes_tokens = takes_tokens(config)
        self._keys = key_set(config.jwt_jwks, now) if config.jwt_jwks else None
        self._algorithms = {"HS256"} if config.jwt_secret else set[str]()
        if self._keys is not None:
            self._algorithms.add("RS256")

    async def caller(self, raw_headers: Iterable[tuple[bytes, bytes]], peer: str | None) -> Caller:
        """The caller of a request with these headers; ``peer`` is the name in the connection's verified certificate."""
        headers = list(raw_headers)
        if not self._takes_tokens and not self._config.tls_client_ca:
            _check_local(headers)
            return LOCAL
        token = _bearer(headers) if self._takes_tokens else None
        if token is not None:
            return self._holder(await self._claims(token))
        if self._config.tls_client_ca and peer is not None:
            _check_origin(headers)
            return Caller(_user(peer), LOCAL.scopes if peer in self._config.tls_admins else frozenset())
        raise AuthenticationError(
            "The request brought no token"
            if self._takes_tokens
            else "The connection brought no client certificate"
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        """The claims of a token, after its signature, its audience and its times are verified."""
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in self._algorithms:
                raise AuthenticationError(
                    f"The token must be signed with {' or '.join(sorted(self._algorithms))}"
                )
            key = (
                self._config.jwt_secret if algorithm == "HS256" else await self._public_key(header.get("kid"))
            )
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._config.jwt_audience,
                issuer=self._config.jwt_issuer or None,
                # Times are checked below, by the clock that we were given.
                options={
                    "require": ["exp", "aud", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise AuthenticationError(_refusal(error)) from None  # the cause may quote the token
        _check_times(claims, self._now() / 1000)
        return claims

    async def _public_key(self, name: object) -> Any:  # noqa: ANN401 - a key, whose type the library names
        if self._keys is None or not (name is None or isinstance(name, str)):
            raise AuthenticationError("The token names a key in a way that cannot be read")
        key = await self._keys.find(name)
        if key is None:
            raise AuthenticationError(
                "The token names a key that is not known, or none where there are several"
            )
        return key

    def _holder(self, claims: dict[str, Any]) -> Caller:
        scopes = set[str]()
        for name in ("scope", "scopes", "scp"):
            value = claims.get(name)
            if isinstance(value, str):
                scopes.update(value.split())
            elif isinstance(value, list):
                scopes.update(each for each in value if isinstance(each, str))
        return Caller(_user(claims["sub"]), frozenset(scopes))


def _refusal(error: Exception) -> str:
    """What is wrong with a token, in our words: the library's message may quote it."""
    for kind, sentence in _REFUSALS.items():
        if isinstance(error, kind):
            return sentence
    return "The token cannot be read"


_REFUSALS: dict[type[Exception], str] = {
    jwt.InvalidAudienceError: "The token is not meant for this service: its audience is another",
    jwt.InvalidIssuerError: "The token comes from another issuer",
    jwt.MissingRequiredClaimError: "The token lacks one of the claims exp, aud, sub (and iss where it is asked for)",
    InvalidSubjectError: "The token's subject must be a text",
    jwt.InvalidSignatureError: "The token's signature does not hold",
}


def _check_times(claims: dict[str, Any], now: float) -> None:
    """Require the current time to lie between ``nbf``, if the token has it, and ``exp``."""
    expires, begins = claims["exp"], claims.get("nbf", 0)
    for value in (expires, begins):
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_time(value):
            raise AuthenticationError("The token's times must be numbers of seconds")
    if expires + LEEWAY <= now:
        raise AuthenticationError("The token has expired")
    if begins - LEEWAY > now:
        raise AuthenticationError("The token does not hold yet")


def _is_time(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        return False


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

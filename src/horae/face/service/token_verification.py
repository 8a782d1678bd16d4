"""Tokens: their signature, their audience and their times are verified."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import jwt
from jwt.algorithms import HMACAlgorithm
from jwt.exceptions import InvalidSubjectError

from horae.config import Config
from horae.errors import AuthenticationError, ConfigError
from horae.face.service.token_verification_keys import key_set

LEEWAY = 10
"""Seconds by which the clock of a token's issuer may differ from ours."""
SHORTEST_SECRET = 32


class Tokens:
    """Reads tokens that were signed with the secret or a key of the settings. ``now`` returns the current time in milliseconds."""

    def __init__(self, config: Config, now: Callable[[], int]) -> None:
        if config.jwt_secret:
            _check_secret(config.jwt_secret)
        self._config = config
        self._now = now
        self._keys = key_set(config.jwt_jwks, now) if config.jwt_jwks else None
        self._algorithms = {"HS256"} if config.jwt_secret else set[str]()
        if self._keys is not None:
            self._algorithms.add("RS256")

    async def claims(self, token: str) -> dict[str, Any]:
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
            raise AuthenticationError("The token names its key with a value that is not text")
        key = await self._keys.find(name)
        if key is None:
            raise AuthenticationError("The token names an unknown key, or none although there are several")
        return key


def _check_secret(secret: str) -> None:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigError("HORAE_JWT_SECRET", "***", f"must have at least {SHORTEST_SECRET} characters")
    try:
        HMACAlgorithm(HMACAlgorithm.SHA256).prepare_key(secret)
    except jwt.InvalidKeyError:
        raise ConfigError("HORAE_JWT_SECRET", "***", "must be a secret, not a public key") from None


def _refusal(error: Exception) -> str:
    """What is wrong with a token. The library's message is not used: it may quote the token."""
    for kind, sentence in _REFUSALS.items():
        if isinstance(error, kind):
            return sentence
    return "The token cannot be read"


_REFUSALS: dict[type[Exception], str] = {
    jwt.InvalidAudienceError: "The token is not meant for this service: it has another audience",
    jwt.InvalidIssuerError: "The token comes from another issuer",
    jwt.MissingRequiredClaimError: "The token lacks one of the claims exp, aud, sub, or iss if it is required",
    InvalidSubjectError: "The token's subject must be a text",
    jwt.InvalidSignatureError: "The token's signature is wrong",
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
        raise AuthenticationError("The token is not valid yet")


def _is_time(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        return False

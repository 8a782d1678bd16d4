"""``horae token``: tokens signed with the secret that the service has too (HS256)."""

from __future__ import annotations

import importlib
from typing import Annotated

from rich.text import Text

from horae.clock import SystemClock
from horae.config import Config
from horae.errors import AuthenticationError, InvalidInputError
from horae.extras import import_extra
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.options import argument, option
from horae.face.time_parser import instant_of

cli = group("token", "Create tokens that identify callers to a server.")


@command(cli, "create", takes=["as_json"])
async def create(
    given: Command,
    user: Annotated[str, argument("USER", "The user that the token identifies.")],
    scopes: Annotated[
        list[str] | None,
        option("--scope", "SCOPE", "admin or service to do more, read to only read. Repeatable."),
    ] = None,
    expires: Annotated[
        str,
        option(
            "--expires", "TIME", "When the token expires, in UTC unless it has an offset.", show_default=True
        ),
    ] = "in 1d",
) -> None:
    """Create a token, signed with HORAE_JWT_SECRET, and print only the token.

    [dim]For a person, for a day; and for a program that acts for others:[/dim]

      export HORAE_TOKEN="$(horae token create ada)"

      horae token create deploy --scope service --expires 2027-01-01

    [dim]For a dashboard that shows everything and changes nothing:[/dim]

      horae token create wall --scope admin --scope read
    """
    config, now = Config.from_environment(), SystemClock().now()
    if not config.jwt_secret:
        raise InvalidInputError(
            "HORAE_JWT_SECRET", "is not set: the server checks tokens with it",
            hint="set it to the server's value; if an identity provider issues tokens, get one there",
        )  # fmt: skip
    jwt = import_extra("jwt")
    authenticator = importlib.import_module("horae.face.service.auth").Authenticator(
        config, lambda: int(now.timestamp() * 1000)
    )
    end = instant_of(expires, "--expires", "UTC", now)
    claims = {
        "sub": user,
        "aud": config.jwt_audience,
        "iat": int(now.timestamp()),
        "exp": int(end.timestamp()),
    }
    claims |= {"iss": config.jwt_issuer} if config.jwt_issuer else {}
    claims |= {"scope": " ".join(scopes)} if scopes else {}
    token = jwt.encode(claims, config.jwt_secret, "HS256")
    try:
        caller = await authenticator.caller([(b"authorization", b"Bearer " + token.encode())], None)
    except AuthenticationError as error:
        raise InvalidInputError(
            "the token", f"would be refused: {error.message}", hint="see docs/how-to/secure.md"
        ) from None
    shown = {
        "token": token,
        "user": caller.user,
        "scopes": sorted(caller.scopes),
        "expires_at": end.isoformat(),
    }
    given.show(shown, lambda _: Text(token, no_wrap=True, overflow="ignore"))

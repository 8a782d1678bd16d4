"""Connects commands to the API: on a server, or in this process on a database."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from horae.config import Config
from horae.errors import InvalidInputError, StoreUnavailableError
from horae.extras import import_extra
from horae.face.api_client import Client, Network
from horae.face.cli.target import Target

if TYPE_CHECKING:
    from horae.app import App

_SECONDS = 60


@asynccontextmanager
async def connected(target: Target, commands: str | None = None) -> AsyncIterator[Client]:
    """A client of a server, or of the same API in this process on a database.

    ``commands`` overrides the setting for the file that defines commands.
    """
    given, target = target, target.resolved()
    if target.url is None:
        async with _in_process(target, commands) as client:
            yield client
        return
    httpx = import_extra("httpx")
    source = given.source("url")
    headers = (
        {"Authorization": f"Bearer {_token(target.token, given.source('token'))}"} if target.token else {}
    )
    if not target.url.startswith(("http://", "https://")):
        raise InvalidInputError(
            source, f'is "{target.url}", which is no address', hint="such as http://127.0.0.1:8420"
        )
    try:
        http = httpx.AsyncClient(
            base_url=target.url.rstrip("/"), headers=headers, timeout=_SECONDS,
            verify=target.url.startswith("https:"),  # certificates take a while to load
        )  # fmt: skip
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidInputError(
            source, f"cannot be read: {error}", hint="such as http://127.0.0.1:8420"
        ) from None
    async with http:
        yield Client(Network(http), target.url, target.owner, source)


def _token(text: str, source: str) -> str:
    """A token for a header, without surrounding white space."""
    token = text.strip()
    if not token.isascii() or not token.isprintable():
        raise InvalidInputError(source, "has characters that no token has", hint="copy the token again")
    return token


@asynccontextmanager
async def _in_process(target: Target, commands: str | None) -> AsyncIterator[Client]:
    from horae.app import App  # noqa: PLC0415 - loads the engine
    from horae.face.service import Service  # noqa: PLC0415 - loads the routes

    logging.disable(logging.CRITICAL)  # errors are in the answer
    # Callers who can open the database need no token.
    config = settings(target)
    config = msgspec.structs.replace(
        config,
        host="127.0.0.1",
        jwt_secret="",
        jwt_jwks="",
        tls_client_ca="",
        commands=commands or config.commands,
    )
    app = App(config.database_url, config=config)
    app.use_builtin()  # every service can run these, even one that starts later
    await _open(app, target.source("database"))
    try:
        here = Service(app, config).for_this_process()
        yield Client(here, config.database_url.rpartition("@")[2], target.owner)
    finally:
        await app.close()


async def _open(app: App, source: str) -> None:
    import sqlite3  # noqa: PLC0415 - only commands that work on a database need it

    try:
        await app.open(setup=False)  # commands create no database, and migrate none
    except sqlite3.DatabaseError as error:  # the file exists, but is no database
        raise StoreUnavailableError(str(error)) from None
    except StoreUnavailableError as error:
        error.details["source"] = source
        raise


def settings(target: Target) -> Config:
    """The settings of the environment, with the command's database."""
    named = {} if target.database is None else {"database_url": target.database}
    return Config.from_environment(options=named)

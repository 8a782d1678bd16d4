"""``horae migrate``: migrate the database to the version of this program."""

from __future__ import annotations

from horae.app import App
from horae.app.database_inspection import inspect
from horae.clock import SystemClock
from horae.errors import DatabaseVersionError
from horae.face.cli.command_base import Command, command, group
from horae.face.cli.connection import settings

cli = group()


@command(cli, "migrate", takes=["database", "as_json"])
async def migrate(given: Command) -> None:
    """Create the tables, or migrate them to this version of Horae. Does nothing if they are up to date.

    [dim]The service migrates when it starts. Migrate beforehand if its database user may not change tables:[/dim]

      horae migrate --database postgresql://owner@db/horae
    """
    config = settings(given.target)
    clock = SystemClock()
    before = await inspect(config.database_url, config.schema, lambda: int(clock.now().timestamp() * 1000))
    if before.version > before.known:
        raise DatabaseVersionError(config.database_url.rpartition("@")[2], before.version, before.known)
    app = App(config.database_url, config=config)
    await app.open()
    await app.close()
    done = f"Migrated the database from version {before.version} to {before.known}."
    if before.version == before.known:
        done = f"The database is up to date: version {before.known}."
    given.show({"from": before.version, "to": before.known}, done)

"""``horae migrate``: bring the database to the version of this program."""

from __future__ import annotations

import typer

from horae.app import App
from horae.app.database_health import inspect
from horae.clock import SystemClock
from horae.errors import DatabaseVersionError
from horae.face.cli.client import needed, settings
from horae.face.cli.command_base import group, run_to_end
from horae.face.cli.printing import print_json
from horae.face.cli.target import DatabaseOption, JsonOption, Target

cli = group()


@cli.command("migrate")
def migrate(context: typer.Context, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Create the tables, or bring them to the version of this program. Once they are, it does nothing.

    [dim]A service does it when it starts; do it before, where its user may not change tables:[/dim]

      horae migrate --database postgresql://owner@db/horae
    """
    target = (context.obj or Target()).but(Target(database=database))
    run_to_end(_migrate(target, as_json=as_json))


async def _migrate(target: Target, *, as_json: bool) -> None:
    config = settings(target)
    if config.database_url.startswith(("postgresql://", "postgres://")):
        needed("asyncpg", "postgres")
    clock = SystemClock()
    before = await inspect(config.database_url, lambda: int(clock.now().timestamp() * 1000))
    if before.version > before.known:
        raise DatabaseVersionError(config.database_url.rpartition("@")[2], before.version, before.known)
    app = App(config.database_url, config=config)
    await app.open()
    await app.close()
    if as_json:
        print_json({"from": before.version, "to": before.known})
    elif before.version == before.known:
        typer.echo(f"The database is up to date: version {before.known}.")
    else:
        typer.echo(f"Migrated the database from version {before.version} to {before.known}.")

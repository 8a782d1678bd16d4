"""The store of a database address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from horae.clock import Clock, SystemClock
from horae.config import Config
from horae.errors import DatabaseUrlError
from horae.extras import import_extra
from horae.store.port import Store


def shown_address(database: str) -> str:
    """A database address without user, password and options."""
    if not database.startswith(("postgresql://", "postgres://")):
        return database
    parts = urlsplit(database)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def advice_for(database: str) -> str:
    """What may help if the database at an address cannot be opened."""
    if not database.startswith("sqlite:///"):
        return "is it running, and the address right? horae check says more"
    path = Path(database.removeprefix("sqlite:///"))
    if path.is_dir():
        return f"name a file in it: sqlite:///{path}/horae.db"
    if not path.parent.is_dir():
        return f"make the folder {path.parent}, or name another file"
    return "name another file, unless this is the database: then look at who may read and write it and its folder"


def store_of(database: str, config: Config, clock: Clock) -> Store:
    """The store for an address; its driver is imported on demand. With a virtual clock, SQLite runs without a thread."""
    lease = config.lease_ms / 1000
    if database.startswith(("postgresql://", "postgres://")):
        import_extra("asyncpg", "postgres")
        from horae.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(database, schema=config.schema, lease=lease)
    from horae.store.sqlite import SqliteStore  # noqa: PLC0415
    from horae.store.sqlite.leased_store import file_store  # noqa: PLC0415

    if database in {":memory:", "sqlite:///:memory:"}:
        return SqliteStore(":memory:", inline=True)
    if database.startswith("sqlite:///") and len(database) > len("sqlite:///"):
        inline = not isinstance(clock, SystemClock)
        path = database.removeprefix("sqlite:///")
        return file_store(path, lease=lease, inline=inline, monotonic=clock.monotonic)
    raise DatabaseUrlError(database)

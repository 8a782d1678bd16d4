"""SQLite databases in memory, with tables that are copied: most tests need one, and its migrations would take longer than they do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from unittest import mock

from horae.store import sqlite
from horae.store.sqlite import SqliteStore


@contextmanager
def copied_tables() -> Iterator[None]:
    """Migrate one database in memory, and copy it for each new one. Files are migrated as ever."""
    migrate, steps = sqlite._migrate, SqliteStore.schema_steps

    def copy_or_migrate(connection: sqlite3.Connection, path: str, wanted: Sequence[str]) -> None:
        if path == ":memory:" and wanted is steps:
            made.backup(connection)
        else:
            migrate(connection, path, wanted)

    with (
        closing(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)) as made,
        mock.patch.object(sqlite, "_migrate", copy_or_migrate),
    ):
        migrate(made, ":memory:", steps)
        yield

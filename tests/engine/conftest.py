"""Nodes as processes, which end with the test, and what is written to a database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from horae.store.sqlite import SqliteTransaction
from tests.engine.programs import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the statements that wrote rows to SQLite."""
    names: list[str] = []
    write = SqliteTransaction.write

    async def noted(transaction: SqliteTransaction, name: str, rows: list[dict[str, Any]]) -> int:
        names.extend([name] if rows else [])
        return await write(transaction, name, rows)

    monkeypatch.setattr(SqliteTransaction, "write", noted)
    return names

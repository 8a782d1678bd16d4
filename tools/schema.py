"""Writes ``schema.sql`` of each dialect from the migrations; with ``--check`` it only says whether the files are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from horae.store.dialect import Dialect, migrations
from horae.store.postgres.dialect import POSTGRES
from horae.store.sqlite import SQLITE

STORE = Path(__file__).resolve().parent.parent / "src" / "horae" / "store"
HEADING = "-- The schema of this database, made from the migrations by tools/schema.py.\n\n"


def schema(dialect: Dialect) -> str:
    """All migrations of a dialect as one script."""
    return HEADING + "\n".join(step.strip() + "\n" for step in migrations(dialect))


def main() -> int:
    stale, only_check = 0, "--check" in sys.argv
    for dialect in (SQLITE, POSTGRES):
        file = STORE / dialect.name / "schema.sql"
        if file.read_text("utf-8") != schema(dialect):
            stale += 1
            if only_check:
                sys.stdout.write(f"{dialect.name}/{file.name} is not what the migrations make\n")
            else:
                file.write_text(schema(dialect), "utf-8")
                sys.stdout.write(f"{dialect.name}/{file.name} written\n")
    return stale if only_check else 0


if __name__ == "__main__":
    sys.exit(main())

"""What tests of query plans share: a schema in memory, and values as PostgreSQL reads them."""

from __future__ import annotations

import sqlite3

from horae.store.dialect import migrations
from horae.store.sqlite import SQLITE


def make_schema(connection: sqlite3.Connection) -> None:
    for step in migrations(SQLITE):
        for statement in step.split(";\n"):
            connection.execute(statement)


def literal(value: object) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(literal(each) for each in value)}]"
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)

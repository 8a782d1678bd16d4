"""The texts of statements: one for all dialects, or one for each; every one can be used, and is."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import pytest

from horae.store.dialect import Dialect, mark_parameters, query
from horae.store.postgres.dialect import POSTGRES, prepared
from horae.store.sqlite import SQLITE

STORE = resources.files("horae.store")
DIALECTS = {"sqlite": SQLITE, "postgres": POSTGRES}


def names(folder: str) -> set[str]:
    files = (file.name for file in (STORE / folder).iterdir())
    return {name.removesuffix(".sql") for name in files if name.endswith(".sql")} - {"schema"}


def used_in(*files: str) -> set[str]:
    return {name for file in files for name in re.findall(r'"([a-z_]+)"', (STORE / file).read_text("utf-8"))}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_text_has_all_its_phrases(dialect: Dialect):
    for name in names("sql") | names(dialect.name):
        assert not re.search(r"[{}]|^--", query(dialect, name), re.MULTILINE), name


def test_a_dialect_has_only_what_is_really_its_own():
    assert not names("sql") & (names("sqlite") | names("postgres"))
    # Where SQLite has leases, one node at a time holds the file, and ends its lease when it leaves.
    assert names("sqlite") - names("postgres") == {"holder", "end_lease"}
    # PostgreSQL has row locks, notifications, settings of sessions, and a clock of its own.
    assert names("postgres") - names("sqlite") == {
        "lock", "notify", "time", "lock_node", "lock_names", "name_taken", "durability", "lock_migrations",
        "set_session",
    }  # fmt: skip


def test_every_text_is_used():
    queries = [file.name for file in STORE.iterdir() if file.name.endswith("_queries.py")]
    port = used_in("port.py", *queries)
    port |= {"filter", "ledger_filter"}  # parts of several
    for dialect in DIALECTS:
        own = [f"{dialect}/{file.name}" for file in (STORE / dialect).iterdir() if file.name.endswith(".py")]
        used = port | used_in(*own, "inspection.py")
        assert names("sql") | names(dialect) <= used, dialect


def test_a_batch_is_arrays_in_one_dialect_and_parameters_of_a_row_in_the_other():
    assert query(SQLITE, "update_due").split() == (
        [
            "UPDATE",
            "due",
            "SET",
            "cursor_ms",
            "=",
            ":cursor_ms,",
            "next_at_ms",
            "=",
            ":next_at_ms",
            "WHERE",
            "due.schedule_key",
            "=",
            ":schedule_key",
        ]
    )
    assert query(POSTGRES, "update_due").split() == (
        [
            "UPDATE",
            "due",
            "SET",
            "cursor_ms",
            "=",
            "new.cursor_ms,",
            "next_at_ms",
            "=",
            "new.next_at_ms",
            "FROM",
            "unnest(:cursor_ms::text::bigint[],",
            ":next_at_ms::text::bigint[],",
            ":schedule_key::text::text[])",
            "AS",
            "new",
            "(cursor_ms,",
            "next_at_ms,",
            "schedule_key)",
            "WHERE",
            "due.schedule_key",
            "=",
            "new.schedule_key",
        ]
    )


def test_another_dialect_needs_its_own_phrases_only():
    phrases: dict[str, Any] = {"among": "MEMBER OF (:{0})", "bytes": "LENGTH({0})", "new_value": ":{0}"}
    other = Dialect("another", phrases)
    assert query(other, "delete_due").strip() == "DELETE FROM due WHERE schedule_key MEMBER OF (:keys)"
    assert "coalesce(LENGTH(version.spec), 0)" in query(other, "version_sizes")


def test_parameters_are_numbered_in_the_order_of_their_first_use():
    text, parameters = prepared("mark_due")
    assert parameters == ("now", "keys")
    assert ":" not in text.replace("::", "")
    assert "next_at_ms < $1 THEN" in text
    assert "= ANY ($2::text[]::text[])" in text


def test_marks_are_named_in_the_order_of_their_uses():
    assert mark_parameters("SELECT :b, :a::text WHERE x = :b") == (
        "SELECT ?, ?::text WHERE x = ?",
        ("b", "a", "b"),
    )

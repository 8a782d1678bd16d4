"""``horae check`` and ``horae migrate``: on real databases, as they are and as they should not be."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from horae.face.cli.check import about_health, about_zones
from horae.model import Node
from horae.spec import TZDATA_VERSION
from horae.store.dialect import migrations
from horae.store.inspection import Health
from horae.store.postgres.dialect import POSTGRES
from horae.store.sqlite import SQLITE
from tests.face.cli.command import answered, horae
from tests.support.postgres import FragileServer

KNOWN = len(migrations(SQLITE))
EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there, it is only checked


def found(*arguments: str, **environment: Any) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit status, and of each thing its worst level and what was found."""
    ran = horae("check", *arguments, "--json", **environment)
    levels = ["ok", "warn", "fail"]
    things: dict[str, tuple[str, str]] = {}
    for each in json.loads(ran.stdout):
        assert set(each) == {"what", "level", "found", "advice"}
        if each["level"] != "ok":
            assert each["advice"], each
        if levels.index(each["level"]) >= levels.index(things.get(each["what"], ("ok", ""))[0]):
            things[each["what"]] = each["level"], each["found"]
    return ran.returncode, things


def test_all_is_well(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'horae.db'}"
    assert answered("migrate", "--database", database) == {"from": 0, "to": KNOWN}
    assert answered("migrate", "--database", database) == {"from": KNOWN, "to": KNOWN}
    assert "up to date" in horae("migrate", "--database", database).stdout
    status, things = found("--database", database)
    assert status == 0
    assert {level for level, _ in things.values()} == {"ok"}
    assert things["durability"] == ("ok", "journal_mode wal, synchronous FULL")
    assert things["time zones"] == ("ok", f"tzdata {TZDATA_VERSION}")
    table = horae("check", HORAE_DATABASE_URL=database)
    assert table.returncode == 0
    assert table.stdout.splitlines()[1].split("  ")[0] == "ok"


def test_a_database_that_is_not_there_is_found_and_not_made(tmp_path: Path):
    status, things = found("--database", f"sqlite:///{tmp_path / 'none.db'}")
    assert status == 1
    assert things["database"] == ("warn", "it does not exist yet")
    assert list(tmp_path.iterdir()) == []


def test_versions_are_compared_and_nothing_is_migrated(tmp_path: Path):
    file = tmp_path / "horae.db"
    sqlite3.connect(file).execute("CREATE TABLE other (x)").connection.close()
    status, things = found("--database", f"sqlite:///{file}")
    assert (status, things["migrations"][0]) == (1, "warn")
    answered("migrate", "--database", f"sqlite:///{file}")
    connection = sqlite3.connect(file)
    connection.execute("UPDATE horae SET version = 999")
    connection.commit()
    connection.close()
    status, things = found("--database", f"sqlite:///{file}")
    assert (status, things["migrations"][0]) == (1, "fail")
    ran = horae("migrate", "--database", f"sqlite:///{file}")
    assert ran.returncode == 2
    assert "version 999" in ran.stderr


@pytest.mark.parametrize("database", ["sqlite:///{folder}/text", "sqlite:///{folder}", "postgresql://127.0.0.1:1/x", "mysql://x"])  # fmt: skip
def test_a_database_that_cannot_be_used_is_a_failure(tmp_path: Path, database: str):
    (tmp_path / "text").write_text("this is no database, and long enough to be looked at\n" * 50)
    address = database.format(folder=tmp_path)
    status, things = found("--database", address)
    assert (status, things["database"][0]) == (1, "fail")
    for command in (["migrate"], ["schedules", "list"]):
        ran = horae(*command, "--database", address)
        assert ran.returncode == 2
        assert ran.stderr.startswith("error: ")
        assert "\nhint: " in ran.stderr


async def forgo_durability(postgres: str) -> None:
    connection = await asyncpg.connect(postgres)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    await connection.close()


def test_postgresql_is_asked_what_its_commits_are_worth(fragile_server: FragileServer):
    database = fragile_server.address  # those that tests share forgo durability
    assert answered("migrate", "--database", database) == {"from": 0, "to": len(migrations(POSTGRES))}
    status, things = found("--database", database)
    assert status == 0, things
    assert things["durability"] == ("ok", "synchronous_commit on, fsync on, full_page_writes on")
    assert "ms" in things["clock"][1]
    assert answered("schedules", "list", "--database", database) == []
    asyncio.run(forgo_durability(database))
    status, things = found("--database", database)
    assert (status, things["durability"][0]) == (1, "fail")


@pytest.mark.parametrize(
    ("environment", "thing", "level", "words"),
    [
        ({"HORAE_PORT": "many"}, "configuration", "fail", "HORAE_PORT must be a whole number"),
        ({"HORAE_TICK_MS": "0"}, "configuration", "fail", "HORAE_TICK_MS must be at least 1"),
        ({"HORAE_PROT": "8421"}, "configuration", "warn", "there is no setting HORAE_PROT"),
        ({"HORAE_HOST": EVERYWHERE}, "service", "fail", "must be a loopback address"),
        ({"HORAE_HOST": EVERYWHERE, "HORAE_JWT_SECRET": "short"}, "service", "fail", "at least 32 characters"),
        ({"HORAE_HOST": EVERYWHERE, "HORAE_JWT_SECRET": "s" * 32}, "service", "ok", "tokens (HS256)"),
        ({"HORAE_TLS_CERTIFICATE": "/none.pem"}, "service", "fail", "HORAE_TLS_KEY"),
        ({"HORAE_SECRET_KEY": "short"}, "secrets", "warn", "5 characters"),
        ({"HORAE_SECRET_KEY": "k" * 43}, "secrets", "ok", "is set"),
        ({"HORAE_COMMANDS": "/none.json"}, "commands", "fail", "cannot be read"),
        ({}, "permissions", "ok", "all actions: every caller"),
        ({"HORAE_ACTION_PERMISSIONS": '{"*": ["ada", "scope:ops"]}'}, "permissions", "ok", '*: "ada", the scope ops, operators'),
        ({"HORAE_ACTION_PERMISSIONS": "[]"}, "permissions", "fail", "cannot be read"),
        ({"HORAE_DATABASE_URL": "x"}, "database", "fail", "Cannot read the database address"),
    ],
)  # fmt: skip
def test_settings_are_checked(environment: dict[str, str], thing: str, level: str, words: str):
    status, things = found(**environment)
    assert status == 1  # there is no database either
    assert things[thing][0] == level
    assert words in things[thing][1]
    assert all(secret not in str(things) for secret in ("short", "s" * 32, "k" * 43))


def node(tzdata: str, *, alive: bool = True) -> Node:
    return Node(epoch=1, name="n", actions=(), tzdata=tzdata, started_at_ms=0, alive=alive)


def test_zones_of_other_nodes_are_compared():
    assert about_zones([node(TZDATA_VERSION), node("1999a", alive=False)]).level == "ok"
    finding = about_zones([node("2999z")])
    assert finding.level == "warn"
    assert "2999z elsewhere" in finding.found


@pytest.mark.parametrize(("off", "level"), [(0, "ok"), (-200, "ok"), (400, "warn"), (-1500, "fail")])
def test_the_clock_is_compared_with_the_database(off: int, level: str):
    health = Health(version=KNOWN, known=KNOWN, durable=True, durability="x", clock_off=off)
    assert {each.what: each.level for each in about_health(health)}["clock"] == level


def test_a_standby_takes_no_changes():
    health = Health(version=KNOWN, known=KNOWN, durable=True, durability="x", writable=False)
    assert "fail" in {each.level for each in about_health(health)}

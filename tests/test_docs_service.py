"""What the pages on the service say is so: their commands and programs are run against a real ``horae serve``."""

from __future__ import annotations

import configparser
import getpass
import json
import re
import secrets
import shutil
import sqlite3
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import yaml  # type: ignore[import-untyped]
from celery.schedules import crontab, schedule

from horae import App, CatchUp, CatchUpPolicy, Config, Context, Overlap, Policies, Spec
from horae.config import VIRTUAL_CLOCK_CONFIG
from horae.face.service import server
from horae.store.dialect import migrations
from horae.store.postgres.dialect import POSTGRES
from horae.store.sqlite import SQLITE
from horae.testing import VirtualClock
from tests.support.nodes import keeping_time
from tests.support.pages import DOCS, block
from tests.support.process import ROOT
from tests.support.reader import Reader, free_port
from tests.support.shown import Shown
from tests.support.wait import wait_for


@pytest.fixture
def reader(tmp_path: Path, wheel: Path) -> Iterator[Reader]:
    reader = new_reader(tmp_path, wheel)
    yield reader
    reader.kill()


def new_reader(folder: Path, wheel: Path) -> Reader:
    """Someone who has installed the service, and whose commands ask it."""
    reader = Reader(folder, wheel, "horae[service,postgres]")
    reader.environment["HORAE_URL"] = reader.address
    return reader


def assert_shown(shown: str, printed: str) -> None:
    assert Shown(shown).find(printed) is not None, printed


def test_the_extras_that_pages_name_exist():
    known = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE))
    for page in DOCS.rglob("*.md"):
        for named in re.findall(r"(?:horae|\.)\[([\w,]+)\]", page.read_text("utf-8")):
            assert set(named.split(",")) <= known, page


# Deploy


def settings_of(page: str, having: str) -> dict[str, str]:
    """The settings of a page, with secrets in the place of those that are to be replaced."""
    text = re.sub("replace-me", lambda _: secrets.token_urlsafe(48), block(page, "env", having))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_secrets_that_were_not_replaced_are_noticed(reader: Reader):
    told = {
        ("sqlite:////", "horae check"): "HORAE_SECRET_KEY has 10 characters",
        ("postgresql://", "horae serve"): "32 characters",
    }
    for (having, program), sentence in told.items():
        settings = dict(line.split("=", 1) for line in block("how-to/deploy.md", "env", having).splitlines())
        settings["HORAE_DATABASE_URL"] = "sqlite:///horae.db"
        ran = subprocess.run(
            program.split(), env=reader.environment | settings, cwd=reader.folder, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert ran.returncode != 0
        assert sentence in " ".join((ran.stdout + ran.stderr).split())


def test_migrations_only_add():
    for step in (*migrations(SQLITE), *migrations(POSTGRES)):
        assert not re.search(r"\bDROP (TABLE|COLUMN)|RENAME|ALTER COLUMN", step, re.IGNORECASE)


def test_the_unit_is_one(tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / "horae"
    program.symlink_to("/bin/true")
    unit = tmp_path / "horae.service"
    unit.write_text(block("how-to/deploy.md", "ini").replace("/opt/horae/bin/horae", str(program)))
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stderr.replace(str(tmp_path), "")) == (0, "")


def test_the_unit_gives_it_time_to_end():
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block("how-to/deploy.md", "ini"))
    config = Config()
    assert int(unit["Service"]["TimeoutStopSec"]) * 1000 > (
        config.drain_ms + config.terminate_ms + server._GRACE * 1000
    )
    assert unit["Service"]["ExecStart"].startswith("/opt/horae/bin/horae serve")
    assert unit["Service"]["Restart"] == "on-failure"


def test_the_settings_of_one_machine_are_accepted(reader: Reader):
    settings = settings_of("how-to/deploy.md", "sqlite:////")
    settings["HORAE_DATABASE_URL"] = f"sqlite:///{reader.folder}/horae.db"
    reader.serve("horae serve", **settings)
    (reader.folder / "horae.env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    check = block("how-to/deploy.md", "sh", "horae check").replace("/opt/horae/bin/", "")
    reader.run(check.replace("/etc/horae/horae.env", "./horae.env"))  # it fails unless everything is ok
    asked = block("how-to/deploy.md", "sh", "/readyz").replace(":8420", f":{reader.port}")
    printed = re.sub(r"\}\{", "}\n{", reader.run(asked))
    assert_shown(block("how-to/deploy.md", "text"), printed)
    reader.run(
        "curl -sS -X POST $HORAE_URL/api/v1/preview -H 'Content-Type: application/json' -d '{\"spec\": \"@daily\"}'"
    )
    assert all(json.loads(line)["level"] == "info" for line in reader.log)


@pytest.mark.contract("CRON-17")
def test_a_line_of_the_log_is_as_shown(reader: Reader):
    (reader.folder / "jobs.py").write_text(block("tutorial/service.md", "python"))
    reader.serve("horae serve --app jobs", HORAE_LOG_FORMAT="json")
    reader.run("horae schedules create x --cron '* * * * * *' --action greet --input '{\"name\": \"Ada\"}'")
    wait_for(lambda: any('"ended"' in line for line in reader.log))
    ended = next(json.loads(line) for line in reader.log if '"ended"' in line)
    assert list(ended) == list(json.loads(block("how-to/deploy.md", "json")))


def token_for_prometheus(reader: Reader, settings: dict[str, str]) -> str:
    (reader.folder / "make_token.py").write_text(block("how-to/deploy.md", "py"))
    return reader.run("python make_token.py", **settings).strip()


@pytest.mark.contract("CRON-17", "CRON-18")
def test_two_nodes_with_the_settings_of_the_page(reader: Reader, tmp_path: Path, wheel: Path, postgres: str):
    settings = settings_of("how-to/deploy.md", "postgresql://") | {"HORAE_DATABASE_URL": postgres}
    another = new_reader(tmp_path / "another", wheel)
    try:
        for each in (reader, another):
            each.serve("horae serve", **settings)
        assert len(json.loads(reader.run("horae nodes --json", HORAE_TOKEN=admin(settings)))) == 2
        scraped = yaml.safe_load(block("how-to/deploy.md", "yaml"))["scrape_configs"][0]
        token = token_for_prometheus(reader, settings)
        headers = {"Authorization": f"{scraped['authorization']['type']} {token}"}
        for each in (reader, another):
            address = each.environment["HORAE_URL"]
            assert httpx.get(f"{address}/metrics").status_code == 401
            assert "horae_fire_drift_seconds" in httpx.get(f"{address}/metrics", headers=headers).text
            assert {httpx.get(f"{address}/{page}").status_code for page in ("healthz", "readyz")} == {200}
    finally:
        another.kill()


def admin(settings: dict[str, str]) -> str:
    claims = {"sub": "ops", "aud": "horae", "exp": 2**33, "scope": "admin"}
    return jwt.encode(claims, settings["HORAE_JWT_SECRET"], "HS256")


def test_without_its_database_it_exits_so_that_it_is_started_again(reader: Reader):
    gone = f"postgresql://horae@127.0.0.1:{free_port()}/horae"
    ran = subprocess.run(
        ["horae", "serve", "--database", gone], env=reader.environment, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 2
    assert (
        "`RestartSec=5` | Also when the database is not there yet: then the service exits with status 2"
        in (DOCS / "how-to" / "deploy.md").read_text("utf-8")
    )


def test_a_user_who_may_not_change_tables_serves_what_another_one_migrated(
    reader: Reader, postgres_server: Any, empty_postgres: str
):
    page = (DOCS / "how-to" / "deploy.md").read_text("utf-8")
    migrate = re.search(r"`(horae migrate --database \S+)`", page)
    assert migrate is not None
    owner = "postgresql://owner@db.internal/horae"
    said = reader.run(migrate[1].replace(owner, f"'{empty_postgres}'"))
    assert re.search(r"from version 0 to \d+", said)
    assert "up to date" in reader.run(migrate[1].replace(owner, f"'{empty_postgres}'"))
    name = f"u{uuid.uuid4().hex}"
    rights = [
        f"CREATE ROLE {name} LOGIN",
        block("how-to/deploy.md", "sql", "GRANT").replace("TO horae", f"TO {name}"),
    ]
    sql = "; ".join(rights)
    reader.run(
        f"psql '{empty_postgres}' -c '{sql}'", PATH=f"{postgres_server.bin_path}:{reader.environment['PATH']}"
    )
    (reader.folder / "jobs.py").write_text(block("tutorial/service.md", "python"))
    reader.serve(
        "horae serve --app jobs", HORAE_DATABASE_URL=re.sub(r"//[^@/]*@", f"//{name}:@", empty_postgres)
    )
    reader.run("horae schedules create x --cron '* * * * * *' --action greet --input '{\"name\": \"Ada\"}'")
    wait_for(lambda: "succeeded" in reader.statuses("x"))


def test_its_own_tls_is_trusted_as_the_page_says(reader: Reader):
    reader.run(
        "openssl req -x509 -newkey rsa:2048 -noenc -days 1 -subj /CN=localhost -keyout key.pem -out ca.pem "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    )
    reader.serve("horae serve", HORAE_TLS_CERTIFICATE="ca.pem", HORAE_TLS_KEY="key.pem")
    reader.environment["HORAE_URL"] = reader.environment["HORAE_URL"].replace("http:", "https:")
    assert "SSL_CERT_FILE=ca.pem horae" in (DOCS / "how-to" / "deploy.md").read_text("utf-8")
    assert reader.run("SSL_CERT_FILE=ca.pem horae schedules list --json").strip() == "[]"


def test_an_older_program_refuses_a_newer_database(reader: Reader):
    reader.run("horae migrate", HORAE_DATABASE_URL="sqlite:///horae.db")
    assert "up to date" in reader.run("horae migrate", HORAE_DATABASE_URL="sqlite:///horae.db")
    with closing(sqlite3.connect(reader.folder / "horae.db")) as database, database:
        database.execute("UPDATE horae SET version = 99")
    ran = subprocess.run(
        ["horae", "serve"], env=reader.environment, cwd=reader.folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    said = r"The database is of version \d+, and this Horae knows up to \d+"
    assert ran.returncode == 2
    assert re.search(said, " ".join(ran.stderr.split()))
    assert re.search(said, (DOCS / "how-to" / "deploy.md").read_text("utf-8"))


# Back up


def accounted(reader: Reader, schedule_id: str) -> list[str]:
    """Every slot of a schedule, as often as it is in the ledger."""
    address = f"{reader.environment['HORAE_URL']}/api/v1/schedules/{schedule_id}"
    runs = httpx.get(f"{address}/runs", params={"limit": 1000}).json()["items"]
    slots = [run["nominal"] for run in runs]
    for each in httpx.get(f"{address}/unstarted", params={"limit": 1000}).json()["items"]:
        first, last = (datetime.fromisoformat(each[end]) for end in ("first", "last"))
        slots += [
            f"{first + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"
            for second in range(int((last - first).total_seconds()) + 1)
        ]
    return sorted(slots)


def keys(reader: Reader, schedule_id: str) -> dict[str, str]:
    """The idempotency keys of slots."""
    address = f"{reader.environment['HORAE_URL']}/api/v1/schedules/{schedule_id}/runs"
    return {run["nominal"]: run["key"] for run in httpx.get(address, params={"limit": 1000}).json()["items"]}


def every_second(first: str, last: str) -> list[str]:
    begin, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    span = int((end - begin).total_seconds()) + 1
    return [f"{begin + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}" for second in range(span)]


GRACE = 1
"""Seconds of lateness that count as on time."""


def start_load(reader: Reader, *schedules: str, **settings: str) -> None:
    """A service that writes all the time."""
    (reader.folder / "jobs.py").write_text(block("tutorial/service.md", "python"))
    reader.serve("horae serve --app jobs", **settings)
    for name in schedules:
        body = {
            "id": name, "spec": "* * * * * *", "action": {"name": "greet", "input": {"name": name}},
            "policies": {"overlap": "allow_all", "catch_up": {"grace": f"{GRACE}s"}},
        }  # fmt: skip
        httpx.post(f"{reader.environment['HORAE_URL']}/api/v1/schedules", json=body).raise_for_status()
    wait_for(lambda: len(accounted(reader, schedules[0])) > 2)


def assert_it_went_on(reader: Reader, schedule: str, before: dict[str, str]) -> None:
    """What was done after the backup is decided again, once, under the same keys, and nothing is missing."""
    wait_for(lambda: max(accounted(reader, schedule)) > max(before))
    found = accounted(reader, schedule)
    assert found == every_second(found[0], found[-1])
    again = keys(reader, schedule)
    assert {slot: again[slot] for slot in before} == before


@pytest.mark.parametrize("having", ["VACUUM INTO", ".backup"])
def test_a_backup_of_sqlite_under_load_is_restored(reader: Reader, having: str):
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    page = "how-to/back-up.md"

    def here(text: str) -> str:
        user = text.replace("chown horae:", f"chown {getpass.getuser()}:")
        return user.replace("/var/lib/horae", str(reader.folder)).replace(
            "/var/backups", f"{reader.folder}/kept"
        )

    (reader.folder / "kept").mkdir()
    start_load(reader, *(f"load{number}" for number in range(5)))
    reader.run(here(block(page, "sh", having)))
    assert_shown(block(page, "text"), reader.run(here(block(page, "sh", "integrity_check"))))
    backed_up = len(accounted(reader, "load0"))
    wait_for(lambda: len(accounted(reader, "load0")) > backed_up + 2)
    before = keys(reader, "load0")
    reader.kill()
    reader.run(here(block(page, "sh", "chown")))
    reader.run(here(block(page, "sh", "--catch-up none")).replace("greetings", "load1"))
    time.sleep(2 * GRACE)  # so that what was missed is later than what counts as on time
    reader.serve("horae serve --app jobs")
    assert_it_went_on(reader, "load0", before)
    address = f"{reader.environment['HORAE_URL']}/api/v1/schedules/load1/unstarted"
    assert "missed" in {each["status"] for each in httpx.get(address).json()["items"]}


@pytest.mark.parametrize(("at_most_once", "expected"), [(False, ("running", 2)), (True, ("failed", 1))])
def test_what_was_running_when_the_backup_was_made(
    reader: Reader, at_most_once: bool, expected: tuple[str, int]
):
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    page = (DOCS / "how-to" / "back-up.md").read_text("utf-8")
    assert "is attempted again, or has failed if the schedule is `at_most_once`" in page
    (reader.folder / "jobs.py").write_text(
        "import asyncio\nimport horae\n\napp = horae.App()\n\n\n@app.action('rest')\n"
        "async def rest(context):\n    await asyncio.sleep(600)\n"
    )
    settings = {"HORAE_LEASE_MS": "4000", "HORAE_HOUSEKEEPING_MS": "1000"}
    reader.serve("horae serve --app jobs", **settings)
    api = f"{reader.environment['HORAE_URL']}/api/v1/schedules"
    body = {
        "id": "long", "spec": {}, "action": "rest", "policies": {"at_most_once": at_most_once}, "trigger": True,
    }  # fmt: skip
    httpx.post(api, json=body).raise_for_status()

    def run() -> Any:
        (found,) = httpx.get(f"{api}/long/runs").json()["items"]
        return found

    wait_for(lambda: run()["status"] == "running")
    reader.run("""sqlite3 horae.db "VACUUM INTO 'kept.db'" """)
    key = run()["key"]
    reader.kill()
    reader.run("mkdir before; mv horae.db* before/; cp kept.db horae.db")
    reader.serve("horae serve --app jobs", **settings)
    wait_for(lambda: (run()["status"], run()["attempt"]) == expected)
    assert run()["key"] == key


def test_a_dump_of_postgres_is_restored(reader: Reader, postgres_server: Any, postgres: str):
    page = "how-to/back-up.md"
    tools = {"PATH": f"{postgres_server.bin_path}:{reader.environment['PATH']}"}
    restored = f"t{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {restored};")
    place = {
        "postgresql://horae@db.internal/horae": f"'{postgres}'",
        "postgresql://horae@db.internal/restored": f"'{postgres_server.get_uri(database=restored)}'",
        "/var/backups": str(reader.folder),
    }

    def here(text: str) -> str:
        for there, instead in place.items():
            text = text.replace(there, instead)
        return text

    settings = {"HORAE_LEASE_MS": "2000", "HORAE_HOUSEKEEPING_MS": "200"}
    start_load(reader, "load0", "load1", HORAE_DATABASE_URL=postgres, **settings)
    reader.run(here(block(page, "sh", "pg_dump")), **tools)
    backed_up = len(accounted(reader, "load0"))
    wait_for(lambda: len(accounted(reader, "load0")) > backed_up + 2)
    before = keys(reader, "load0")
    reader.kill()
    reader.run(here(block(page, "sh", "pg_restore")), **tools)
    uri = postgres_server.get_uri(database=restored)
    reader.serve("horae serve --app jobs", HORAE_DATABASE_URL=uri, **settings)
    assert_it_went_on(reader, "load0", before)


# Moving over


@pytest.mark.parametrize(
    ("entry", "document"),
    [
        (
            crontab(minute=0, hour=9, day_of_week="mon-fri"),
            {"calendars": [{"hour": "9", "day_of_week": "mon-fri"}]},
        ),
        (crontab(minute="*/15"), {"calendars": [{"minute": "*/15", "hour": "*"}]}),
        (crontab(minute="*/15"), {"crons": ["*/15 * * * *"]}),
        (crontab(), {"crons": ["* * * * *"]}),
        (crontab(minute=[0, 30], hour={8}, month_of_year="1-3"), {"crons": ["0,30 8 * 1-3 *"]}),
        (crontab.from_string("0 4 * * sun"), {"crons": ["0 4 * * 0"]}),
        (30.0, {"intervals": [{"every": "30s"}]}),
        (schedule(30), {"intervals": [{"every": "30s"}]}),
        (timedelta(seconds=30), {"intervals": [{"every": "30s"}]}),
    ],
    ids=str,
)
def test_the_table_for_celery_names_the_same_times(entry: Any, document: dict[str, Any]):
    program = block("how-to/from-celery-beat.md", "python", "asyncio.run")
    functions = re.search(r"^FIELDS.*?(?=^def policies_of)", program, re.MULTILINE | re.DOTALL)
    assert functions is not None
    namespace: dict[str, Any] = {"timedelta": timedelta, "crontab": crontab, "schedule": schedule}
    exec(functions[0], namespace)  # noqa: S102 - it is our own page
    after = datetime(2026, 3, 1, tzinfo=UTC)
    theirs, ours = Spec.parse(namespace["spec_of"](entry, "UTC")), Spec.parse(document)
    span = (after, after + timedelta(days=40))
    assert theirs.between(*span) == ours.between(*span)
    for name in ("crons", "calendars", "intervals"):
        for each in document.get(name, ()):
            shown = each if isinstance(each, str) else json.dumps(each)
            if shown not in ("0,30 8 * 1-3 *", "0 4 * * 0"):
                assert shown in (DOCS / "how-to" / "from-celery-beat.md").read_text("utf-8")


# After a time off


@pytest.mark.parametrize(
    ("options", "made_up"),
    [
        ("--catch-up all --overlap skip", [8]),
        ("--catch-up latest", [11]),
        ("--overlap buffer_all", [8, 9, 10, 11]),
        ("--overlap allow_all", [8, 9, 10, 11]),
        ("--catch-up none", []),
    ],
)
async def test_the_table_of_the_tutorial_on_times_off(tmp_path: Path, options: str, made_up: list[int]):
    assert f"| `{options}` |" in (DOCS / "tutorial/service.md").read_text("utf-8")
    said = dict(re.findall(r"--(catch-up|overlap) (\w+)", options))
    policies = Policies(
        overlap=Overlap(said.get("overlap", Policies().overlap)),
        catch_up=CatchUpPolicy(mode=CatchUp(said.get("catch-up", CatchUpPolicy().mode))),
    )
    clock = VirtualClock(datetime(2026, 3, 1, 7, 30, tzinfo=UTC))
    began: list[int] = []

    async def hours(context: Context) -> None:
        began.append(context.nominal.hour)

    for first in (True, False):
        async with App(f"sqlite:///{tmp_path}/horae.db", clock=clock, config=VIRTUAL_CLOCK_CONFIG) as app:
            app.action("hours")(hours)
            if first:
                await app.schedules.create("hourly", "0 * * * *", "hours", policies=policies)
            else:
                async with keeping_time(app):
                    await clock.advance(minutes=10)
        clock.move_to(datetime(2026, 3, 1, 11, 30, tzinfo=UTC))
    assert began == made_up

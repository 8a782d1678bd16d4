"""The pages are true: each is followed by a reader who has an empty folder, and on whose machine only ``pip install`` was done.

Every block of the README, the tutorials and the how-tos is run as it is written, or is named below with the reason why not. A block that
is neither fails its page. Only ports, and the ids and times of the day, are put in the place of those that a page shows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.pages import DOCS, PAGES, blocks_of, page_name
from tests.support.process import ROOT
from tests.support.reader import Reader

FOLLOWED = [
    "README.md",
    *(page_name(page) for page in PAGES if page.parent in (DOCS / "tutorial", DOCS / "how-to")),
]

LONG = {
    "README.md",
    "docs/tutorial/service.md",
    "docs/tutorial/first-schedule.md",
    "docs/tutorial/flows.md",
    "docs/how-to/django.md",
}
"""The pages that take a reader ten seconds or more."""

STARTED = "docs/how-to/cron-service.md"
"""The page whose programs and service start as its reader's do. Those of other pages begin as forks, which need not load Horae."""

NOT_RUN: dict[str, dict[str, str]] = {
    "README.md": {"make run ": "needs a checkout and a network; make test is what runs this"},
    "docs/how-to/back-up.md": {
        "sqlite3 /var/lib": "test_a_backup_of_sqlite_under_load_is_restored",
        "sqlite3 /var/backups": "test_a_backup_of_sqlite_under_load_is_restored",
        "ok\n": "test_a_backup_of_sqlite_under_load_is_restored",
        "mkdir /var/lib": "test_a_backup_of_sqlite_under_load_is_restored",
        "horae schedules update greetings": "test_a_backup_of_sqlite_under_load_is_restored",
        "pg_dump": "test_a_dump_of_postgres_is_restored",
        "pg_restore": "test_a_dump_of_postgres_is_restored",
    },
    "docs/how-to/failures.md": {
        "the event loop has been": "test_an_action_that_blocks_the_loop_is_told_while_it_does_with_its_stack"
    },
    "docs/how-to/deploy.md": {
        "useradd": "makes a user of the machine",
        "[Unit]": "test_the_unit_is_one",
        "HORAE_DATABASE_URL=sqlite": "test_the_settings_of_one_machine_are_accepted",
        "systemd-analyze": "needs a running systemd; test_the_unit_is_one",
        "set -a": "test_the_settings_of_one_machine_are_accepted",
        "HORAE_DATABASE_URL=postgresql": "test_two_nodes_with_the_settings_of_the_page",
        "curl -sS http://127.0.0.1:8420/healthz": "test_the_settings_of_one_machine_are_accepted",
        '{"status":"ok"}': "test_the_settings_of_one_machine_are_accepted",
        "import os\n": "test_two_nodes_with_the_settings_of_the_page",
        "scrape_configs": "test_two_nodes_with_the_settings_of_the_page",
        '{"event":"ended"': "test_a_line_of_the_log_is_as_shown",
        "GRANT": "test_a_user_who_may_not_change_tables_serves_what_another_one_migrated",
    },
    "docs/how-to/load-balancer.md": dict.fromkeys(
        ("HORAE_PUBLIC_URL", "defaults", "upstream horae", "/opt/horae/bin/pip"),
        "test_a_rolling_upgrade_loses_no_slot_and_no_request",
    ),
    "docs/how-to/schedules-as-files.md": {
        "horae apply -f schedules/ --managed-by billing --prune --dry-run --url": "a pipeline's, on a server; run above on the database",
    },
    "docs/how-to/temporal.md": {
        "$ python manage.py": "prints this, and then its native libraries sometimes abort Python as it exits; tests/face/temporal has the calls",
        "temporal schedule describe": "test_the_command_says_of_horaes_schedules_what_it_says_of_temporals",
        "horae import temporal": "test_the_commands_of_the_how_to_move_schedules_from_temporal_and_back",
    },
    "docs/how-to/celery.md": {
        "horae schedules create nightly": "needs a Celery worker; test_a_task_returns_its_result_or_fails",
    },
    "docs/how-to/temporal-workflows.md": {
        "horae schedules create nightly": "needs a Temporal server; test_a_workflow_returns_its_result_continues_fails_and_is_retried",
    },
    "docs/how-to/dask.md": {
        "horae schedules create nightly": "needs a Dask cluster; test_a_function_returns_its_result_or_fails",
    },
    "docs/how-to/procrastinate.md": {
        "horae schedules create nightly": "needs a worker of Procrastinate; test_jobs_end_fail_are_aborted_and_take_no_longer_than_they_may",
    },
    "docs/how-to/langgraph.md": {
        "pip install": "test_a_worker_asks_a_real_service_and_outlives_it",
        "horae accounts put": "test_grants_and_accounts_on_the_command_line",
        "curl -X POST": "test_a_graph_is_scheduled_changed_and_deleted",
    },
    "docs/how-to/publish-in-your-transaction.md": {
        "SELECT horae.flow_publish": "test_an_application_publishes_with_its_own_commit",
        "async with connection": "test_an_application_publishes_with_its_own_commit",
    },
    "docs/how-to/external-work.md": {'{"report":': "tests/executor: what a receiver gets"},
}
"""The blocks that cannot be run here: page → the beginning of the block → why, or the test that runs it."""


@pytest.fixture
def reader(tmp_path: Path, wheel: Path, page: str) -> Iterator[Reader]:
    reader = Reader(tmp_path, wheel, forks=page != STARTED)
    yield reader
    reader.kill()


def stored(reader: Reader, database: str) -> dict[str, str]:
    """The schedules in a database, and by what each is managed."""
    listed = reader.ask("schedules", "list", f"--database sqlite:///{database}")
    return {each["id"]: each["managed_by"] for each in listed}


def check_web_application(reader: Reader, program: str) -> None:
    again = httpx.post(f"{reader.address}/orders/7/reminder", timeout=30)
    assert again.json() == {"reminder": "reminder-7"}
    assert "the report of today" in reader.printed
    assert stored(reader, "shop.db") == {"report": f"program:{program}", "reminder-7": ""}


def check_django(reader: Reader) -> None:
    assert "1 orders" in reader.printed
    assert "ada has not paid" in reader.printed
    assert httpx.post(f"{reader.address}/orders/nobody", timeout=30).status_code == 500
    assert httpx.post(f"{reader.address}/orders/bob", timeout=30).status_code == 200
    found = stored(reader, "horae.db")
    assert [found[each] for each in ("report", "reminder-1")] == ["program:shop.scheduling", ""]
    assert len(found) == 3  # of two orders, and the report: none of the order that was rolled back


def check_celery(reader: Reader) -> None:
    (first,) = reader.ask("schedules", "times", "'first monday'", "-n", "1")["items"]
    day = datetime.fromisoformat(first["local"])
    assert (day.isoweekday(), day.day <= 7, day.hour, day.minute) == (1, True, 8, 30)
    sweep = reader.ask("schedules", "describe", "sweep")["policies"]
    assert (sweep["timeouts"]["start"], sweep["catch_up"]["mode"], sweep["overlap"]) == ("1m", "latest", "allow_all")  # fmt: skip


CHECKS: dict[str, Callable[[Reader], None]] = {
    "docs/how-to/fastapi.md": partial(check_web_application, program="main"),
    "docs/how-to/flask.md": partial(check_web_application, program="shop"),
    "docs/how-to/django.md": check_django,
    "docs/how-to/from-celery-beat.md": check_celery,
}
"""What else is so when a reader has come to the end of a page."""


@pytest.mark.parametrize(
    "page", [pytest.param(each, marks=pytest.mark.long) if each in LONG else each for each in FOLLOWED]
)
def test_a_page_can_be_followed(reader: Reader, page: str):
    if page.startswith("docs/how-to"):  # its reader has come through a tutorial
        reader.installed.install(["horae"])
    reader.follow(page, NOT_RUN.get(page, {}))
    if page in CHECKS:
        CHECKS[page](reader)
    reader.end()


def test_what_is_not_run_is_there_and_has_a_reason():
    files = (each.read_text("utf-8") for each in (ROOT / "tests").rglob("test_*.py"))
    tests = {name for text in files for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)}
    for page, blocks in NOT_RUN.items():
        for beginning, reason in blocks.items():
            assert any(each.text.startswith(beginning) for each in blocks_of(page)), (page, beginning)
            assert all(name in tests for name in re.findall(r"\btest_\w+", reason)), reason


EXAMPLES = """
import doctest, sys, traceback
lines = traceback.format_exception_only
traceback.format_exception_only = lambda *error: ["".join(lines(*error))]  # early Pythons compare the last line alone, a hint
for page in sys.argv[1:]:
    if doctest.testfile(page, module_relative=False).failed:
        sys.exit(page)
"""


def installs(page: str) -> tuple[str, ...]:
    """What a page lets its reader install: in a block, or, where pages are not followed, in its text."""
    blocks = [each.text for each in blocks_of(page) if each.text.startswith("pip install ")]
    text = "\n".join(blocks) if page in FOLLOWED else (ROOT / page).read_text("utf-8")
    told = re.findall(r"\bpip install ('[^`\n]+)", text) + re.findall(
        r"^pip install ([\w ]+)$", text, re.MULTILINE
    )
    return tuple(sorted({word for each in told for word in shlex.split(each)})) or ("horae",)


def test_examples_of_python_run(tmp_path: Path, wheel: Path):
    """Those of pages that install the same run in one process."""
    pages: dict[tuple[str, ...], list[str]] = {}
    for page in map(page_name, PAGES):
        if any(each.is_doctest for each in blocks_of(page)):
            pages.setdefault(installs(page), []).append(str(ROOT / page))
    assert sum(map(len, pages.values())) > 15
    for number, (requirements, some) in enumerate(pages.items()):
        reader = Reader(tmp_path / str(number), wheel, *requirements)
        (reader.folder / "examples.py").write_text(EXAMPLES)
        reader.run(shlex.join(["python", "examples.py", *some]))

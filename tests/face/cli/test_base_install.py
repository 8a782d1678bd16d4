"""``pip install horae`` without an extra: every command that looks into a local database, or changes it, works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed import Installed, packages_of

PROGRAM = """
import asyncio
import horae

app = horae.App()

@app.action("greet")
def greet(context: horae.Context):
    context.log.info("good morning")

async def main():
    async with app:
        await app.schedules.create("report", "0 9 * * *", "greet")
        serving = asyncio.create_task(app.serve())
        await app.schedules.trigger("report")
        while not await app.runs.search(status=["succeeded", "failed"]):
            await asyncio.sleep(0.01)
        serving.cancel()

asyncio.run(main())
"""
EXTRAS = {"cryptography", "faker", "httpx", "jinja2", "jwt", "litestar", "prometheus_client", "structlog", "uvicorn", "yaml"}  # fmt: skip
Ran = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def run_in(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Callable[..., Ran]:
    """Runs programs in a folder, where only the base is installed."""
    environment = tmp_path_factory.mktemp("base") / "environment"
    installed = Installed(environment, wheel, forks=True)
    installed.install(["horae"])
    assert not EXTRAS & {name for name, _ in packages_of(environment)}
    settings = {"PATH": f"{installed.path}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"}

    def run_in(folder: Path, *command: str) -> Ran:
        return subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=60
        )

    return run_in


@pytest.fixture(scope="module")
def used_folder(tmp_path_factory: pytest.TempPathFactory, run_in: Callable[..., Ran]) -> Path:
    """A folder with the database of a program that ran there."""
    folder = tmp_path_factory.mktemp("used")
    (folder / "program.py").write_text(PROGRAM)
    ran = run_in(folder, "python", "program.py")
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture
def run(tmp_path: Path, used_folder: Path, run_in: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs programs in a copy of the used folder, which a test may change."""
    folder = shutil.copytree(used_folder, tmp_path / "used")
    return partial(run_in, folder)


@pytest.fixture
def answered(run: Callable[..., Ran]) -> Callable[..., Any]:
    """What a command answers as JSON."""

    def answered(*arguments: str) -> Any:
        ran = run("horae", *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return answered


def test_it_looks_into_a_local_database(answered: Callable[..., Any], run: Callable[..., Ran]):
    (schedule,) = answered("schedules", "list")
    assert schedule["id"] == "report"
    assert answered("schedules", "describe", "report")["info"]["recent_runs"][0]["status"] == "succeeded"
    (found,) = answered("runs", "list")
    assert answered("runs", "show", found["id"])["status"] == "succeeded"
    assert "good morning" in run("horae", "runs", "logs", found["id"]).stdout
    assert "will fire" in run("horae", "explain", "report", "2099-01-01T09:00").stdout
    assert "09:00" in run("horae", "explain", "report", "2099-01-01").stdout
    for words in (
        "forecast",
        "nodes",
        "calendars list",
        "workflows list",
        "flows list",
        "grants list",
        "usage",
    ):
        assert run("horae", *words.split()).returncode == 0, words


def test_it_changes_a_local_database(answered: Callable[..., Any], run: Callable[..., Ran], tmp_path: Path):
    answered("schedules", "create", "hourly", "--cron", "0 * * * *", "--http", "https://example.org/")
    answered("schedules", "update", "hourly", "--tag", "team:a")
    answered("schedules", "pause", "hourly")
    assert answered("schedules", "list", "--state", "paused")[0]["tags"] == ["team:a"]
    answered("schedules", "trigger", "hourly")
    answered("schedules", "delete", "hourly", "--yes")
    document = tmp_path / "schedules.json"
    document.write_text(
        json.dumps(
            {
                "id": "nightly",
                "spec": "0 2 * * *",
                "action": {"kind": "http", "options": {"url": "https://example.org/"}},
            }
        )
    )
    assert run("horae", "apply", "--file", str(document)).returncode == 0
    assert {each["id"] for each in answered("schedules", "list")} == {"nightly", "report"}


@pytest.mark.parametrize(
    ("module", "command"),
    [("httpx", "schedules list --url http://127.0.0.1:1"), ("uvicorn", "serve --port 0"), ("yaml", "export")],
)  # fmt: skip
def test_what_needs_the_service_says_how_to_install_it(run: Callable[..., Ran], module: str, command: str):
    ran = run("horae", *command.split())
    assert ran.returncode == 2
    assert f"{module} is not installed" in ran.stderr
    assert "hint: pip install 'horae[service]'" in ran.stderr


def test_the_check_says_that_the_service_is_not_installed(run: Callable[..., Ran]):
    ran = run("horae", "check")
    assert "not installed; programs can use this database without it" in ran.stdout
    assert "fail" not in ran.stdout

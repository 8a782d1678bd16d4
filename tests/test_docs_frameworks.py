"""The pages on web frameworks, followed by a reader: every file is saved, every command is run, with the real frameworks."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pages import DOCS, Reader
from tests.support.process import kill
from tests.support.wait import wait_for

ENDLESS = re.compile(r"uvicorn |flask .* (run|scheduler)\b|python manage.py (runserver|scheduler)")


class Follower:
    """Saves the files of a page and runs its commands; those that do not end, in the background."""

    def __init__(self, folder: Path) -> None:
        self.reader = Reader(folder)
        self.folder = folder
        self.address = f"http://127.0.0.1:{self.reader.port}"
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self.printed = ""

    def follow(self, page: str) -> None:
        """Do what a page says, from its beginning to its end."""
        text = (DOCS / page).read_text("utf-8")
        for before, kind, block in re.findall(
            r"([^`]*(?:`[^`\n]+`[^`]*)*)^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        ):
            if kind == "py":
                self.save(before, block)
            elif kind == "sh" and not block.startswith("pip install"):
                self.run(re.sub(r"\b8000\b", str(self.reader.port), block).strip())

    def save(self, before: str, block: str) -> None:
        told = re.search(r"Save this as `([^`]+)`", before)
        named = re.match(r"# (at the end of )?(\S+\.py)\n", block)
        name = told[1] if told else named[2] if named else ""
        assert name, f"no page says where this belongs:\n{block}"
        file = self.folder / name
        old = file.read_text() if named and named[1] else ""
        file.write_text(old + block)

    def run(self, command: str) -> None:
        if not ENDLESS.match(command):
            self.printed += self.reader.run(command)
            return
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            self.started[command] = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"], cwd=self.folder, env=self.reader.environment, stdout=log, stderr=log
            )  # fmt: skip
        if str(self.reader.port) in command:
            wait_for(self.answers)

    def answers(self) -> bool:
        assert all(each.poll() is None for each in self.started.values()), self.logs
        try:
            return httpx.get(self.address, timeout=10).status_code > 0
        except httpx.HTTPError:
            return False

    @property
    def logs(self) -> str:
        return "".join(each.read_text() for each in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """End what was started as an operator does, and see that none of it complains."""
        for process in self.started.values():
            process.send_signal(signal.SIGINT)
        for process in self.started.values():
            process.wait(60)
        assert "Traceback" not in self.logs, self.logs


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    follower = Follower(tmp_path)
    yield follower
    kill(*follower.started.values())


def stored(follower: Follower, database: str) -> dict[str, Any]:
    listed = follower.reader.run(f"horae schedules list --json --database sqlite:///{database}")
    return {each["id"]: each for each in json.loads(listed)}


@pytest.mark.parametrize(("page", "program"), [("how-to/fastapi.md", "main"), ("how-to/flask.md", "shop")])
def test_fastapi_and_flask(follower: Follower, page: str, program: str):
    follower.follow(page)
    assert '{"reminder":"reminder-7"}' in follower.printed.replace(" ", "")
    assert "the report of today" in follower.printed
    again = httpx.post(f"{follower.address}/orders/7/reminder", timeout=30)
    assert again.json() == {"reminder": "reminder-7"}
    found = stored(follower, "shop.db")
    assert {each: found[each]["managed_by"] for each in found} == {
        "report": f"program:{program}", "reminder-7": "",
    }  # fmt: skip
    follower.end()


def test_django(follower: Follower):
    follower.follow("how-to/django.md")
    assert '{"order": 1}' in follower.printed
    assert "1 orders" in follower.printed
    assert "ada has not paid" in follower.printed
    assert httpx.post(f"{follower.address}/orders/nobody", timeout=30).status_code == 500
    assert httpx.post(f"{follower.address}/orders/bob", timeout=30).status_code == 200
    found = stored(follower, "horae.db")
    assert [found[each]["managed_by"] for each in ("report", "reminder-1")] == ["program:shop.scheduling", ""]
    assert len(found) == 3  # of two orders, and the report: none of the order that was rolled back
    for process in follower.started.values():
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert "Traceback" not in (follower.folder / "0.log").read_text()  # of the scheduler

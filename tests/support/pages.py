"""The pages of the documentation as a reader follows them: files are saved, commands are run."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.support.process import ROOT, Listener, environment

DOCS = ROOT / "docs"


def blocks(page: str, *kinds: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page, in order: their kind and their text."""
    text = (DOCS / page).read_text("utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(kind, block) for kind, block in found if not kinds or kind in kinds]


def block(page: str, kind: str, having: str = "") -> str:
    """The one block of a kind that has a text in it."""
    (found,) = [text for _, text in blocks(page, kind) if having in text]
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Reader:
    """A reader who follows a page in a folder of their own: runs what it shows, in a shell where ``horae`` is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.environment = environment(
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "src"), COLUMNS="200",
            HORAE_PORT=str(self.port), HORAE_URL=f"http://127.0.0.1:{self.port}",
        )  # fmt: skip
        self.serving: Listener | None = None

    @property
    def log(self) -> list[str]:
        return self.serving.lines if self.serving else []

    def start(self, command: str = "horae serve", **settings: str) -> None:
        """Start the service, which is there once it listens."""
        self.serving = Listener(
            ["/bin/sh", "-c", f"exec {command}"], self.folder, self.environment | settings
        )

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.serving is not None:
            self.serving.end(how)

    def run(self, commands: str, **settings: str) -> str:
        """What commands print, all of which must succeed."""
        ran = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, capture_output=True, text=True,
            env=self.environment | settings, timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def ask(self, *arguments: str) -> Any:
        """The answer of a command as JSON."""
        return json.loads(self.run(f"horae {' '.join(arguments)} --json"))

    def statuses(self, schedule_id: str) -> list[str]:
        """What became of a schedule's slots, asked without a command, because waiting asks often."""
        address = f"http://127.0.0.1:{self.port}/api/v1/schedules/{schedule_id}"
        items = [
            each for kind in ("runs", "unstarted") for each in httpx.get(f"{address}/{kind}").json()["items"]
        ]
        return [each["status"] for each in items]

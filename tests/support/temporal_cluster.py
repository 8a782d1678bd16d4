"""Temporal itself: the server for development that its own command has, with a worker, in processes of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.process import ROOT, environment, kill
from tests.support.wait import wait_for

COMMAND = shutil.which(os.environ.get("HORAE_TEMPORAL_COMMAND") or "temporal") or ""
"""The path of the command, which ``.ci/run`` builds."""
ABSENT = "there is no Temporal command, neither where HORAE_TEMPORAL_COMMAND says nor on the PATH"
QUEUE = "tests"
SEARCH_ATTRIBUTES = ("Team=Keyword", "Size=Int", "Tags=KeywordList")
"""Those that the server has besides its own: it refuses names that are not registered."""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class TemporalCommand:
    """The command as a user gives it to the server at an address."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TEMPORAL_ADDRESS": address,
            "GOMAXPROCS": "1", "GOGC": "off",  # it ends before threads and a collector of garbage are worth their start
        }  # fmt: skip

    def tried(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What the command did, right or wrong."""
        return subprocess.run(
            [COMMAND, *arguments, "--color", "never"],
            env=self._environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def __call__(self, *arguments: str) -> str:
        """What the command prints when it succeeds."""
        done = self.tried(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def later(self, *arguments: str) -> str:
        """The same in a thread, for a server that is in this process."""
        return await asyncio.to_thread(self, *arguments)


class TemporalCluster:
    """A server, and a worker of the queue."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.command = TemporalCommand(self.address, folder)
        self.file = folder / "log"
        self.file.touch()
        self._processes: list[subprocess.Popen[Any]] = []
        attributes = [f"--search-attribute={each}" for each in SEARCH_ATTRIBUTES]
        serve = ("server", "start-dev", "--headless", "--ip=127.0.0.1", f"--port={port}", "--log-level=never")
        self._start(COMMAND, *serve, *attributes)
        wait_for(lambda: self.command.tried("operator", "namespace", "describe", "default").returncode == 0)
        self.start_worker(self.address, QUEUE)

    def start_worker(self, address: str, queue: str) -> subprocess.Popen[Any]:
        """A worker of a queue, which asks an address for work: this server's, or that of what stands before it."""
        return self._start(
            sys.executable, "-m", "tests.support.temporal_worker", address, queue, str(self.file)
        )

    def _start(self, *command: str) -> subprocess.Popen[Any]:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._processes.append(process)
        return process

    @property
    def lines(self) -> list[str]:
        """What workflows wrote."""
        return self.file.read_text().splitlines()

    def end(self) -> None:
        kill(*self._processes)

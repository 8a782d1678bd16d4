"""Temporal's own test server, with a worker, in processes of their own. It speaks of workflows; it has no schedules."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.process import ROOT, environment, kill

JARS = os.environ.get("HORAE_TEMPORAL_TEST_SERVER", "")
"""The folder with the Java programs of io.temporal:temporal-test-server, as ``.ci/run`` resolves them."""
ABSENT = (
    "HORAE_TEMPORAL_TEST_SERVER names no folder with Temporal's test server, or there is no java to run it"
)
QUEUE = "tests"


def is_there() -> bool:
    """Whether the server can be started."""
    return (
        bool(JARS) and shutil.which("java") is not None and any(Path(JARS).glob("temporal-test-server-*.jar"))
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class TemporalCluster:
    """A server, and a worker of the queue."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.file = folder / "log"
        self.file.touch()
        self._processes: list[subprocess.Popen[Any]] = []
        java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{JARS}/*"]
        self._start(*java, "io.temporal.testserver.TestServer", self.address.rpartition(":")[2])
        self._wait()
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

    def _wait(self) -> None:
        host, _, port = self.address.partition(":")
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("Temporal's test server does not listen")

    @property
    def lines(self) -> list[str]:
        """What workflows wrote."""
        return self.file.read_text().splitlines()

    def end(self) -> None:
        kill(*self._processes)

"""Processes that begin at once, because a fork server has loaded Horae for them. Each can be asked, interrupted and killed like any other."""

from __future__ import annotations

import atexit
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.support import fork_server


class Forked:
    """A process of a fork server, with the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection, self.pid = connection, pid
        self.returncode: int | None = None

    def __del__(self) -> None:
        self._connection.close()

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(fork_server.read_number(self._connection))
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A process that forks others, in an environment of Python; it ends with this one. It has loaded Horae, and some modules."""

    def __init__(self, python: str, environment: Mapping[str, str], *modules: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="horae-")  # sockets have short names only
        self.address = f"{self._folder}/socket"
        self._process = subprocess.Popen(
            [python, fork_server.__file__, self.address, *modules], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )  # fmt: skip
        atexit.register(self.close)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        output: int = 1,
        errors: int = 2,
    ) -> Forked:
        """Run ``python ARGUMENTS`` with these files as its standard output and error, and an empty input."""
        request = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            pid = fork_server.send_request(connection, request, [nothing.fileno(), output, errors])
        return Forked(connection, pid)

    def start_piped(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> tuple[Forked, IO[str]]:
        """The same, and what it writes to either."""
        reading, writing = os.pipe()
        try:
            forked = self.start(arguments, folder, environment, output=writing, errors=writing)
        finally:
            os.close(writing)
        return forked, os.fdopen(reading, encoding="utf-8")

    def close(self) -> None:
        atexit.unregister(self.close)
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

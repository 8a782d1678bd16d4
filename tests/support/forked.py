"""Processes that begin at once, because a fork server has loaded Horae for them. Each can be asked, interrupted and killed like any other."""

from __future__ import annotations

import atexit
import os
import select
import shutil
import signal
import subprocess
import tempfile
from _socket import socket
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import IO

from tests.support.fork_client import connected, read_number, send_request

SUPPORT = str(Path(__file__).parent)


class Forked:
    """A process of a fork server, with the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, connection: socket, pid: int) -> None:
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
            self.returncode = os.waitstatus_to_exitcode(read_number(self._connection))
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
        self._interpreter = python
        self._folder = tempfile.mkdtemp(prefix="horae-")  # sockets have short names only
        self.address = f"{self._folder}/socket"
        self._process = subprocess.Popen(
            [python, f"{SUPPORT}/fork_server.py", self.address, *modules], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
        request = {
            "arguments": list(arguments), "folder": str(folder), "environment": dict(environment),
            "prefix": str(Path(self._interpreter).parents[1]), "executable": self.python,
        }  # fmt: skip
        connection = connected(self.address)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            pid = send_request(connection, request, [nothing.fileno(), output, errors])
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

    @cached_property
    def python(self) -> str:
        """A program that is Python to those who start it, and runs files and modules in forks."""
        file = Path(self._folder) / "python"
        write_program(
            file, self._interpreter, f"be_python({self.address!r}, {self._interpreter!r}, {str(file)!r})"
        )
        return str(file)


def write_program(file: Path, python: str, call: str) -> None:
    """Make a program that calls ``fork_client``."""
    code = f"import sys\nsys.path.insert(0, {SUPPORT!r})\nimport fork_client\nfork_client.{call}\n"
    file.write_text(run_by(f"{quote(python)} -IS") + code, "utf-8")
    file.chmod(0o755)


def run_by(interpreter: str) -> str:
    """The beginning of a Python program that a command of the shell runs: after ``#!`` a path may have no blanks, and not be long.

    The shell reads the second line as a command, and Python as the beginning of a string.
    """
    return f"#!/bin/sh\n'''exec' {interpreter} \"$0\" \"$@\"\n' '''\n"

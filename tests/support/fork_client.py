"""Have a fork server run a program.

It stands alone, because it also runs in environments without our tests. It starts for every program of the pages, so it does
without ``socket``, ``signal``, ``json`` and ``typing``, which would take twice as long to load as the interpreter.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SIZE = 4
"""Bytes of a number: the length of a request, the id of a process, its wait status."""


def connected(address: str) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(address)
    return connection


def send_request(connection: _socket.socket, request: dict[str, Any], files: Sequence[int]) -> int:
    """Have a program run, with these as its standard files; the id of its process."""
    body = marshal.dumps(request)
    rights = b"".join(each.to_bytes(4, sys.byteorder) for each in files)
    head = len(body).to_bytes(SIZE, "big")
    connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    connection.sendall(body)
    return read_number(connection)


def read_number(connection: _socket.socket) -> int:
    """First the id of the process, then its wait status."""
    found = b""
    while len(found) < SIZE:
        more = connection.recv(SIZE - len(found))
        if not more:
            raise ConnectionError("the fork server has ended")
        found += more
    return int.from_bytes(found, "big")


def run_forked(address: str, arguments: list[str], python: str, forking: str) -> None:
    """Be ``python ARGUMENTS`` in a fork of the fork server, with the packages of this interpreter; ``forking`` is to start its own programs.

    Once the fork server is gone, it starts by itself.
    """
    try:
        connection = connected(address)
    except OSError:
        os.execv(python, [python, *arguments])  # noqa: S606
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
        "prefix": python.rpartition("/bin/")[0],
        "executable": forking,
    }
    child = send_request(connection, request, (0, 1, 2))
    for each in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(each, lambda number, _: os.kill(child, number))
    code = os.waitstatus_to_exitcode(read_number(connection))
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)


def be_python(address: str, python: str, forking: str) -> None:
    """Fork for files and modules, and be a new interpreter for all else."""
    first = sys.argv[1] if sys.argv[1:] else ""
    if first == "-m" or first.endswith(".py"):
        run_forked(address, sys.argv[1:], python, forking)
    os.execv(python, [python, *sys.argv[1:]])  # noqa: S606

"""A process that has loaded Horae and forks for each request: the child runs a Python program, which need not load it again.

``python fork_server.py SOCKET [MODULE …]`` loads these modules too, and serves until its standard input ends. It stands alone, because it also runs in environments without our tests.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import select
import signal
import socket
import struct
import sys
from typing import Any

LEFT_OUT = re.compile(r"temporal|celery|dask|langgraph|procrastinate|__main__")
"""What few programs need, and takes long to import or, like gRPC, does not survive a fork."""
NUMBER = struct.Struct("!i")
STANDARD_FILES = 3


def send_request(connection: socket.socket, request: dict[str, Any], files: list[int]) -> int:
    """Have a program run, with these as its standard files; the id of its process."""
    body = json.dumps(request).encode()
    socket.send_fds(connection, [NUMBER.pack(len(body))], files)
    connection.sendall(body)
    return read_number(connection)


def read_number(connection: socket.socket) -> int:
    """First the id of the process, then its wait status."""
    number: int = NUMBER.unpack(_read(connection, NUMBER.size))[0]
    return number


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionError("the fork server has ended")
        found += more
    return found


def run_forked(path: str, program: str) -> None:
    """Be a program in a fork of the fork server. What serves until it is interrupted is started anew, and so is all once the fork server is gone."""
    endless = sys.argv[1:2] == ["serve"] or sys.argv[1:3] == ["runs", "tail"]
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            if endless:
                raise ConnectionError
            connection.connect(path)
        except OSError:
            os.execv(program, [program, *sys.argv[1:]])  # noqa: S606
        request = {
            "arguments": [program, *sys.argv[1:]],
            "folder": os.getcwd(),  # noqa: PTH109
            "environment": dict(os.environ),
        }
        send_request(connection, request, [0, 1, 2])
        code = os.waitstatus_to_exitcode(read_number(connection))
    sys.exit(code if code >= 0 else 128 - code)


def load_horae(*modules: str) -> None:
    """Import all of Horae that this environment can import, and some modules."""
    import importlib  # noqa: PLC0415 - the client, which starts often, needs none of this
    import pkgutil  # noqa: PLC0415

    import horae  # noqa: PLC0415

    for found in pkgutil.walk_packages(horae.__path__, "horae.", onerror=lambda _: None):
        if not LEFT_OUT.search(found.name):
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(found.name)
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def fork_for_requests(path: str) -> socket.socket | None:
    """Fork for each connection. Returns the connection in the child, and nothing in the fork server, when its work is over."""
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                return connection
            connection.close()
    return None


def _reap(*_: object) -> None:
    """Wait for children that have ended, so that their processor time counts as the fork server's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def start_child(connection: socket.socket) -> dict[str, Any]:
    """Fork once more: the child takes the request, and its parent reports how the child ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(connection, NUMBER.size, STANDARD_FILES)
    request: dict[str, Any] = json.loads(_read(connection, NUMBER.unpack(head)[0]))
    child = os.fork()
    if child:
        for each in files:
            os.close(each)
        with contextlib.suppress(OSError):  # the client was killed
            connection.sendall(NUMBER.pack(child))
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):
            connection.sendall(NUMBER.pack(status))
        os._exit(0)
    connection.close()
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    return request


def run(request: dict[str, Any]) -> None:
    """Be the program: ``-m MODULE`` or a file, with its arguments."""
    import runpy  # noqa: PLC0415
    import time  # noqa: PLC0415

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.path[:0] = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    first, *rest = request["arguments"]
    if first == "-m":
        sys.argv = rest
        sys.path.insert(0, request["folder"])
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path.insert(0, os.path.dirname(first))  # noqa: PTH120
        runpy.run_path(first, run_name="__main__")


def main(path: str, *modules: str) -> None:
    sys.path.pop(0)  # the folder of this file, which is no folder of the programs
    load_horae(*modules)
    connection = fork_for_requests(path)
    if connection is None:
        os.unlink(path)  # noqa: PTH108
    else:
        run(start_child(connection))


if __name__ == "__main__":
    main(*sys.argv[1:])

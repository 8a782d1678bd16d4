"""A process that has loaded Horae and forks for each request: the child runs a Python program, which need not load it again.

``python fork_server.py SOCKET [MODULE …]`` loads these modules too, and serves until its standard input ends. It stands alone, because it also runs in environments without our tests.
``fork_client.py`` has the other side.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import marshal
import os
import re
import select
import signal
import socket
import sys
import threading
from typing import Any

LEFT_OUT = re.compile(r"temporal|celery|dask|langgraph|procrastinate|__main__")
"""What few programs need, and takes long to import or, like gRPC, does not survive a fork."""
SIZE = 4
STANDARD_FILES = 3


def load_horae(*modules: str) -> None:
    """Import all of Horae that this environment can import, and some modules."""
    import importlib  # noqa: PLC0415
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


class Children:
    """The programs that run, and who asked for each."""

    def __init__(self) -> None:
        self._clients: dict[int, socket.socket] = {}
        self._ended, writing = os.pipe()  # is written to when a child ends
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def fork_for_requests(self, path: str) -> dict[str, Any] | None:
        """Fork for each connection. Returns the request in the child, and nothing in the fork server, when its work is over."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(64)
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            while True:
                watched = [listener, sys.stdin, self._ended, *self._clients.values()]
                ready = select.select(watched, [], [])[0]
                if sys.stdin in ready:
                    return None
                if self._ended in ready:
                    self._reap()
                self._end_with_clients(ready)
                if listener in ready and (request := self._take(listener.accept()[0])):
                    return request

    def _reap(self) -> None:
        """Wait for children that have ended, and report how."""
        os.read(self._ended, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                with contextlib.suppress(OSError), self._clients.pop(child) as client:
                    client.sendall(status.to_bytes(SIZE, "big"))

    def _end_with_clients(self, ready: list[Any]) -> None:
        """Kill programs whose clients are gone: nothing else knows them."""
        for child, client in self._clients.items():
            if client in ready:
                os.kill(child, signal.SIGKILL)

    def _take(self, connection: socket.socket) -> dict[str, Any] | None:
        """Fork: the child returns the request, and its parent tells the client who that is."""
        head, files, _, _ = socket.recv_fds(connection, SIZE, STANDARD_FILES)
        request: dict[str, Any] = marshal.loads(_read(connection, int.from_bytes(head, "big")))  # noqa: S302 - of our tests
        child = os.fork()
        if child:
            self._clients[child] = connection
            with contextlib.suppress(OSError):  # the client was killed
                connection.sendall(child.to_bytes(SIZE, "big"))
        else:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for client in (connection, *self._clients.values()):
                client.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
        for file in files:
            os.close(file)
        return None if child else request


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += connection.recv(size - len(found))
    return found


def _install(prefix: str, executable: str) -> None:
    """Have the packages of another environment, which contains this one."""
    place = next(number for number, each in enumerate(sys.path) if each.endswith("site-packages"))
    sys.path[place] = prefix + sys.path[place].removeprefix(sys.prefix)
    sys.prefix = sys.exec_prefix = prefix
    sys.executable = executable


def run(request: dict[str, Any]) -> None:
    """Be the program: ``-m MODULE`` or a file, with its arguments."""
    import runpy  # noqa: PLC0415
    import time  # noqa: PLC0415

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if "executable" in request:
        _install(request["prefix"], request["executable"])
    time.tzset()
    sys.path[:0] = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    first, *rest = request["arguments"]
    if first == "-m":
        sys.argv = rest
        sys.path.insert(0, request["folder"])
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        file = os.path.abspath(first)  # noqa: PTH100 - as in tracebacks of an interpreter
        sys.argv = [file, *rest]
        sys.path.insert(0, os.path.dirname(file))  # noqa: PTH120
        runpy.run_path(file, run_name="__main__")


def run_to_end(request: dict[str, Any]) -> None:
    """Be the program, and exit in order, but leave what it has loaded to the system: to tear it down would copy all that forks share."""
    code = 0
    try:
        run(request)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for each in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has left, or it was closed
            each.flush()
    os._exit(code)


def main(path: str, *modules: str) -> None:
    sys.path.pop(0)  # the folder of this file, which is no folder of the programs
    load_horae(*modules)
    request = Children().fork_for_requests(path)
    if request is None:
        os.unlink(path)  # noqa: PTH108
    else:
        run_to_end(request)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Fresh databases: a file, or a database of a PostgreSQL server of our own."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.herd.contestant import SQLITE
from bench.postgres_server import start_postgres


class Databases:
    """Where the databases are. The server starts when it is first asked for, and ends with the block."""

    def __init__(self) -> None:
        self._server: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @contextmanager
    def fresh(self, kind: str) -> Iterator[str]:
        """The address of an empty database, which is dropped afterwards: else it would keep costing the server."""
        if kind == SQLITE:
            with tempfile.TemporaryDirectory(prefix="herd-") as folder:
                yield f"sqlite:///{folder}/herd.db"
            return
        name = f"herd{uuid.uuid4().hex}"
        self._psql(f"CREATE DATABASE {name};")
        try:
            yield self._server.get_uri(database=name)
        finally:
            self._psql(f"DROP DATABASE {name} WITH (FORCE);")

    def server_pid(self) -> int:
        """The process of the server."""
        return int(self._server.get_pid())

    def server_version(self) -> str:
        found = re.search(r"\d+\.\d+", self._psql("SHOW server_version;"))
        return found[0] if found else "of unknown version"

    def _psql(self, command: str) -> str:
        if self._server is None:
            self._server = self._start()
        output: str = self._server.psql(command)
        return output

    def _start(self) -> Any:
        # Unix sockets have short names only.
        server = start_postgres(Path(tempfile.gettempdir()) / f"herd-{uuid.uuid4().hex[:12]}")
        self._stack.callback(server.cleanup)
        return server

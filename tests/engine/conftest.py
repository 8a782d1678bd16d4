"""Nodes as processes, which end with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.programs import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()

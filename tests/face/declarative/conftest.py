"""What the tests of the declarative scheduler begin with."""

from pathlib import Path

import pytest

from tests.face.declarative import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)

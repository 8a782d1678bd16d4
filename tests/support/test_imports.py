"""What several tests use is in its own module: no test imports from another test, or from a conftest."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_imports_from_another_test_or_a_conftest():
    found = [
        f"{file.relative_to(TESTS)}: {line.strip()}"
        for file in TESTS.rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if re.match(r"\s*(from|import) tests\.([a-z_]+\.)*(test_\w+|conftest)\b", line)
    ]
    assert found == []

"""Prints contract line → the tests that prove it, read from the marks in the tests."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"


def marked_lines(decorators: list[ast.expr]) -> Iterator[str]:
    """The lines that ``@pytest.mark.contract("DECL-05", …)`` names."""
    for decorator in decorators:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.contract":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def proofs() -> dict[str, list[str]]:
    """The tests of each contract line."""
    found = defaultdict(list)
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for line in marked_lines(node.decorator_list):
                    found[line].append(f"{file.relative_to(TESTS.parent)}::{node.name}")
    return dict(sorted(found.items()))


def main() -> None:
    """Print the table, all lines or those whose number begins with an argument."""
    wanted = tuple(sys.argv[1:])
    for line, tests in proofs().items():
        if not wanted or line.startswith(wanted):
            sys.stdout.write(f"{line}\n" + "".join(f"    {test}\n" for test in tests))


if __name__ == "__main__":
    main()

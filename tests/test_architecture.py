"""The shape of the project, kept by tests: folders, imports, lengths, names, the error tree."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import horae
import horae.errors
import horae.spec
from tests.support.process import printed_by

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "horae"
MAX_FUNCTION = 70


def functions() -> Iterator[tuple[str, int]]:
    for file in [*SOURCE.rglob("*.py"), *(ROOT / "bench").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(ROOT)}::{node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_the_folder_list_is_the_architecture():
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE))
    folders = {entry.name for entry in SOURCE.iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert named == folders
    for module in SOURCE.glob("*.py"):
        if not module.name.startswith("__"):
            assert f"`{module.name}`" in page


@pytest.mark.parametrize("folder", ["spec", "policy"])
def test_the_docstring_of_a_package_names_its_files(folder: str):
    told = ast.get_docstring(ast.parse((SOURCE / folder / "__init__.py").read_text("utf-8"))) or ""
    modules = {module.name for module in (SOURCE / folder).glob("*.py") if module.name != "__init__.py"}
    assert set(re.findall(r"``(\w+\.py)``", told)) == modules


def test_the_architecture_fits_on_a_page_and_names_files_that_exist():
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= 100
    for page in ("ARCHITECTURE.md", "docs/explanation/internals.md"):
        for named in re.findall(r"`((?:\w+/)*\w+\.py)`", (ROOT / page).read_text("utf-8")):
            assert (ROOT / named).exists() or [*SOURCE.rglob(named)], named


def test_functions_fit_on_a_screen():
    # A command's options are its signature: typer makes functions of many lines and little code.
    long = {name: length for name, length in functions() if length > MAX_FUNCTION}
    assert set(long) <= {"src/horae/face/cli/next_times.py::next_times"}


def test_public_names_are_pinned():
    assert sorted(horae.__all__) == [
        "Accepted", "App", "Backfill", "CatchUp", "CatchUpPolicy", "Config", "Context", "Executor", "Filter", "HoraeError", "NewSchedule",
        "NotStartedError", "OnResume", "Origin", "OriginKind", "Overlap", "Policies", "Reason", "Retention", "RetryPolicy", "Run", "Schedule",
        "ScheduleWarning", "Scheduler", "Spec", "Status", "SyncApp", "Timeouts", "WhenFull", "__version__",
    ]  # fmt: skip
    assert sorted(horae.spec.__all__) == [
        "CalendarDocument", "ClockChange", "DIALECTS", "Dialect", "ExcludeDocument", "Fold", "Gap",
        "IntervalDocument", "JitterDocument", "PosixCron", "RangeDocument", "SharedCalendar", "Spec",
        "SpecDocument", "TZDATA_VERSION", "Zone", "installed_zones", "load_zone", "slot_key",
    ]  # fmt: skip
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    for name in (set(horae.__all__) | set(horae.spec.__all__)) - {"HoraeError", "__version__"}:
        assert re.search(rf"\b{name}\b", page), name


def error_classes() -> dict[str, type[Exception]]:
    return {
        name: value
        for name, value in vars(horae.errors).items()
        if isinstance(value, type) and issubclass(value, horae.errors.HoraeError)
    }


def test_the_error_tree_is_drawn_and_documented():
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    parents: list[str] = []
    drawn = {}
    for line in (horae.errors.__doc__ or "").splitlines():
        if match := re.match(r"    ((?:│   |    )*(?:[├└]── )?)(\w+Error)$", line):
            depth = len(match[1]) // 4
            parents[depth:] = [match[2]]
            drawn[match[2]] = parents[depth - 1] if depth else "Exception"
    bases = {
        name: next(base.__name__ for base in error.__mro__[1:] if not base.__name__.startswith("_"))
        for name, error in error_classes().items()
        if not name.startswith("_")
    }
    families = {name: base for name, base in bases.items() if base != "HoraeError" or name in bases.values()}
    assert drawn == families
    for name in bases:
        assert f"| `{name}` |" in page


def test_public_things_say_what_they_are():
    for name in ("horae", "horae.spec", "horae.errors", "horae.clock"):
        module = importlib.import_module(name)
        assert module.__doc__
        for exported in getattr(module, "__all__", []):
            value = getattr(module, exported)
            if callable(value) and getattr(value, "__module__", "").startswith("horae"):
                assert value.__doc__, exported


def test_importing_horae_loads_no_face():
    """An embedding program pays for what it uses: no command line, no tables, no server."""
    code = "import sys, horae; horae.App; print([m for m in ('typer', 'rich', 'click', 'sqlite3', 'horae.face') if m in sys.modules])"
    assert printed_by(code).strip() == "[]"


@pytest.mark.parametrize("target", ["run", "test", "check", "bench", "soak", "conformance"])
def test_the_makefile_has_the_promised_targets(target: str):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(rf"^{target}:.*## \w", makefile, re.MULTILINE)
    assert target in (ROOT / "README.md").read_text("utf-8")


def test_conformance_lists_what_proves_a_line():
    tool = [sys.executable, str(ROOT / "tools" / "conformance.py"), "DECL-24"]
    ran = subprocess.run(tool, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.startswith("DECL-24\n    tests/")
    assert "    tests/spec/test_cron_dialects.py::test_posix_" in ran.stdout

"""The environment of ``make run`` and ``make test``, made for a small project: without a network, as wheels come from a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from tools.set_up import EXTRAS, Environment, explained

from tests.support.process import ROOT

PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "small"
version = "1"
"""
BACKEND = """\
import zipfile
def get_requires_for_build_editable(settings=None): return []
def build_editable(folder, settings=None, metadata=None):
    names = ["service", "all", "dev", "bench"]
    told = "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n" + "".join(
        f"Provides-Extra: {each}\\nRequires-Dist: {each}part; extra == '{each}'\\n" for each in names)
    with zipfile.ZipFile(f"{folder}/small-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "")
        wheel.writestr("small-1.dist-info/METADATA", told)
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return "small-1-py3-none-any.whl"
"""


class Project:
    """A small project that is set up by Horae's tool, from wheels in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "set_up.py", folder / "tools")
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "constraints.txt").write_text("")
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        for name in ("service", "all", "dev", "bench"):
            self._provide(f"{name}part")

    def _provide(self, name: str) -> None:
        with zipfile.ZipFile(self.wheels / f"{name}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", "")
            wheel.writestr(
                f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
            )
            wheel.writestr(
                f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{name}-1.dist-info/RECORD", "")

    def begin(self, target: str) -> subprocess.Popen[str]:
        """Set a target up, without a network and so without uv."""
        kept = {each: os.environ[each] for each in ("PATH", "HOME") if each in os.environ}
        alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri(), "PIP_NO_BUILD_ISOLATION": "0"}
        return subprocess.Popen(
            [sys.executable, "tools/set_up.py", target], cwd=self.folder, text=True, env=kept | alone, stderr=subprocess.PIPE
        )  # fmt: skip

    def set_up(self, target: str) -> str:
        """Set a target up to its end; what it said."""
        process = self.begin(target)
        said = process.communicate(timeout=300)[1]
        return said if process.returncode == 0 else f"exit status {process.returncode}: {said}"

    def has(self, *modules: str) -> bool:
        """Whether the environment can import modules."""
        ran = subprocess.run(
            [self.folder / ".venv/bin/python", "-c", f"import {', '.join(modules)}"], check=False
        )
        return ran.returncode == 0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / 'it\'s a "nästy" place')


@pytest.mark.long
def test_each_target_adds_what_it_needs_and_a_change_is_noticed(project: Project):
    assert (
        project.set_up("run") == "Horae: installing the service into .venv; only the first time takes long.\n"
    )
    assert project.has("small", "servicepart")
    assert project.set_up("run") == ""
    assert "installing what the tests need" in project.set_up("test")
    assert project.has("small", "servicepart", "devpart", "allpart")
    assert project.set_up("run") == project.set_up("test") == ""
    hidden = project.wheels.rename(project.wheels.with_name("hidden"))
    said = project.set_up("bench")
    assert said.startswith("exit status 1: ")
    assert "benchpart" in said
    assert said.endswith(f"Horae: {explained('No matching distribution')}.\n")
    hidden.rename(project.wheels)
    assert "making .venv anew: it was left unfinished" in project.set_up("bench")
    assert project.has("small", "benchpart")
    assert_noticed(project)


def assert_noticed(project: Project) -> None:
    """What may happen to an environment, and why it is then made anew."""
    venv, bench = project.folder / ".venv", Environment(project.folder, "bench")
    assert bench.fault() is None
    made_by = (venv / "made-by").read_text("utf-8")
    (venv / "made-by").write_text("Python 3.10 on another machine")
    assert bench.fault() == "was made by Python 3.10 on another machine"
    (venv / "made-by").write_text(made_by, "utf-8")
    [package] = venv.glob("lib/python*/site-packages/benchpart.py")
    package.unlink()
    assert (bench.fault(), bench.is_ready) == ("has lost benchpart.py", False)
    (venv / "bin" / "python").unlink()
    assert bench.fault() == "has lost its interpreter"
    shutil.rmtree(venv)
    venv.write_text("what another program left here")
    assert (bench.fault(), bench.is_ready) == ("is no folder", False)
    venv.unlink()
    venv.symlink_to("nothing")
    assert (bench.fault(), bench.is_ready) == ("is no folder", False)


@pytest.mark.long
def test_killed_at_any_moment_the_next_one_makes_it_whole(project: Project):
    """Each begins with what the one before, which was killed, has left."""
    (project.folder / ".venv").symlink_to("nothing")
    begun = time.perf_counter()
    assert "making .venv anew: it is no folder" in project.set_up("run")
    whole = time.perf_counter() - begun
    for part in (0.9, 0.1, 0.6, 0.05, 0.75, 0.4, 0.2, 0.5, 0.3, 0.15):
        (project.folder / ".venv/ready-run").unlink(missing_ok=True)
        process = project.begin("run")
        time.sleep(whole * part)
        process.kill()
        process.communicate()
        if (project.folder / ".venv/ready-run").exists() and not (
            project.folder / ".venv/unfinished"
        ).exists():
            assert project.has("small", "servicepart")
    assert "exit status" not in project.set_up("run")
    assert project.has("small", "servicepart")
    assert project.set_up("run") == ""


def test_what_fails_is_told_with_what_to_do():
    full = "error: Failed to install: [Errno 28] No space left on device"
    assert explained(full).startswith("the disk is full")
    assert "the same command again" in explained(
        "ERROR: Could not find a version that satisfies the requirement msgspec"
    )
    assert "python3-venv" in explained("ensurepip is not available")
    assert set(EXTRAS) == {"run", "test", "bench"}


@pytest.mark.parametrize(
    ("python", "told"), [("no-such-python", "; no-such-python is not"), ("false", "; false is not")]
)
def test_without_a_python_that_is_new_enough_make_says_so(python: str, told: str):
    ran = subprocess.run(
        ["make", "run", f"PYTHON={python}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert (
        ran.stderr.splitlines()[0]
        == f"Horae needs Python 3.11 or later{told} (make PYTHON=python3.12 names one)."
    )

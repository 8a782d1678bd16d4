"""Machines on which only ``pip install`` was done: with the wheel of this tree, and of other packages what the wheel asks for.

There is no network in tests. What pip would download is linked from the environment that runs the tests, distribution by
distribution, so that a page which forgets an extra fails here as it does for its readers.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from shlex import quote

from packaging.requirements import Requirement

from tests.support.forked import ForkServer, run_by, write_program
from tests.support.process import ROOT


def unpacked_wheel(shared: Path) -> Path:
    """The folder with the unpacked wheel of this tree, built once for all processes that share a folder."""
    unpacked = shared / "horae-wheel"
    with (shared / "horae-wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not unpacked.exists():
            subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", shared / "dist"],
                cwd=ROOT, check=True, capture_output=True, timeout=120,
            )  # fmt: skip
            (wheel,) = (shared / "dist").glob("*.whl")
            zipfile.ZipFile(wheel).extractall(shared / "unpacking")
            (shared / "unpacking").rename(unpacked)
    return unpacked


class Installed:
    """A virtual environment in which nothing is installed, until ``install`` is called.

    It is a link to one that everyone shares who has installed the same.
    """

    def __init__(self, folder: Path, wheel: Path, *, forks: bool) -> None:
        self._link, self._wheel, self._forks = folder, wheel, forks
        self._requirements: set[str] = set()
        self.path = f"{folder}/forking:{folder}/bin" if forks else f"{folder}/bin"
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.install(())

    def install(self, requirements: Iterable[str]) -> None:
        """Do what ``pip install`` does with these requirements."""
        self._requirements |= set(requirements)
        made = made_environment(self._wheel, sorted(self._requirements))
        self._link.unlink(missing_ok=True)
        self._link.symlink_to(made)
        if self._forks and (address := fork_address(self._wheel, made)):
            fork_programs(made, address)


def fork_programs(made: Path, address: str) -> None:
    """Let programs that are installed in an environment, and those of its reader, be forks."""
    python, executable = f"{made}/bin/python", f"{made}/forking/python"
    with locked(made):
        if (made / "forking").exists():
            return
        (made / "forking").mkdir()
        for each in (made / "bin").iterdir():
            if each.is_symlink():
                call = f"be_python({address!r}, {python!r}, {executable!r})"
            else:
                call = f"run_forked({address!r}, [{str(each)!r}, *sys.argv[1:]], {python!r}, {executable!r})"
            write_program(made / "forking" / each.name, python, call)


def fork_address(wheel: Path, made: Path) -> str:
    """The address of a fork server with no more packages than an environment has, started once for all processes."""
    for requirement in ("horae[service]", "horae"):
        base = made_environment(wheel, [requirement])
        if packages_of(base) <= packages_of(made):
            with locked(base):
                address = base / "address"
                if not address.exists():
                    kept = {
                        key: value
                        for key, value in os.environ.items()
                        if not key.startswith(("HORAE_", "PYTHON"))
                    }
                    address.write_text(ForkServer(f"{base}/bin/python", kept).address)
                return address.read_text()
    return ""


def packages_of(environment: Path) -> set[tuple[str, Path]]:
    """What is installed: names, and where they are linked from."""
    found = environment.glob("lib/*/site-packages/*")
    return {(each.name, each.readlink()) for each in found if each.is_symlink()}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from making what is in a folder."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(file: Path, interpreter: str, code: str) -> None:
    file.write_text(f"{run_by(quote(interpreter))}import sys\n{code}\n", "utf-8")
    file.chmod(0o755)


def made_environment(wheel: Path, requirements: list[str]) -> Path:
    """The folder of the environment in which these requirements are installed, made once for all processes."""
    name = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:12]
    folder = wheel.parent / "environments" / name
    folder.parent.mkdir(exist_ok=True)
    with locked(folder):
        if not (folder / "pyvenv.cfg").exists():
            making = Making(folder, wheel)
            for each in requirements:
                making.install(Requirement(each))
            base = Path(sys.base_prefix) / "bin"
            (folder / "pyvenv.cfg").write_text(f"home = {base}\ninclude-system-site-packages = false\n")
    return folder


class Making:
    """An environment that is being made."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._bin = folder / "bin"
        self._packages = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        self._wheel = wheel
        self._done: set[tuple[str, frozenset[str]]] = set()
        self._bin.mkdir(parents=True)
        self._packages.mkdir(parents=True)
        for name in ("python", "python3"):
            (self._bin / name).symlink_to(Path(sys.executable).resolve())

    def install(self, requirement: Requirement) -> None:
        extras = frozenset(requirement.extras)
        if (requirement.name.lower(), extras) in self._done:
            return
        self._done.add((requirement.name.lower(), extras))
        distribution = self._find(requirement.name)
        self._add(distribution)
        for text in distribution.requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
                self.install(needed)

    def _find(self, name: str) -> metadata.Distribution:
        path = [str(self._wheel)] if name == "horae" else sys.path
        found = next(iter(metadata.distributions(name=name, path=path)), None)
        assert found is not None, (
            f"{name} is not installed here, so a page cannot install it: add it to the extra dev"
        )
        return found

    def _add(self, distribution: metadata.Distribution) -> None:
        files = distribution.files or []
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            link = self._packages / top
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(top))).resolve())
        for entry in distribution.entry_points.select(group="console_scripts"):
            code = f"from {entry.module} import {entry.attr}\nsys.exit({entry.attr}())"
            program(self._bin / entry.name, f"{self._bin}/python", code)

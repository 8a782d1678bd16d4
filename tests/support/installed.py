"""Machines on which only ``pip install`` was done: with the wheel of this tree, and of other packages what the wheel asks for.

There is no network in tests. What pip would download is linked from the environment that runs the tests, distribution by
distribution, so that a page which forgets an extra fails here as it does for its readers.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

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
    """A virtual environment in which nothing is installed, until ``install`` is called."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = folder / "bin"
        self._packages = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        self._wheel = wheel
        self._done: set[tuple[str, frozenset[str]]] = set()
        self.bin.mkdir(parents=True)
        self._packages.mkdir(parents=True)
        base = Path(sys.base_prefix) / "bin"
        (folder / "pyvenv.cfg").write_text(f"home = {base}\ninclude-system-site-packages = false\n")
        for name in ("python", "python3"):
            (self.bin / name).symlink_to(Path(sys.executable).resolve())

    def install(self, requirements: Iterable[str]) -> None:
        """Do what ``pip install`` does with these requirements."""
        for each in requirements:
            self._install(Requirement(each))

    def _install(self, requirement: Requirement) -> None:
        extras = frozenset(requirement.extras)
        if (requirement.name.lower(), extras) in self._done:
            return
        self._done.add((requirement.name.lower(), extras))
        distribution = self._find(requirement.name)
        self._link(distribution)
        for text in distribution.requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
                self._install(needed)

    def _find(self, name: str) -> metadata.Distribution:
        path = [str(self._wheel)] if name == "horae" else sys.path
        found = next(iter(metadata.distributions(name=name, path=path)), None)
        assert found is not None, (
            f"{name} is not installed here, so a page cannot install it: add it to the extra dev"
        )
        return found

    def _link(self, distribution: metadata.Distribution) -> None:
        files = distribution.files or []
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            link = self._packages / top
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(top))).resolve())
        for entry in distribution.entry_points.select(group="console_scripts"):
            call = f"import sys\nfrom {entry.module} import {entry.attr}\nsys.exit({entry.attr}())\n"
            (self.bin / entry.name).write_text(f"#!{self.bin}/python\n{call}")
            (self.bin / entry.name).chmod(0o755)

"""Sets up ``.venv`` for a target of the Makefile: ``python tools/set_up.py run|test|bench``.

Targets share one environment, and each adds what it needs. A stamp for each target says what it was set up from, so that nothing is done
twice. An environment that cannot be used is made anew: one that was left unfinished, or belongs to another interpreter, machine or folder.
Only the standard library is needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

EXTRAS = {"run": "service", "test": "all,dev", "bench": "all,bench"}
"""What each target needs besides the base. The living examples need no more than the service."""
WORK = {"run": "the service", "test": "what the tests need", "bench": "what the benchmarks need"}
FULL_DISK = ("No space left on device", "Disk quota exceeded")
UNREACHABLE = (
    "dns error", "Failed to fetch", "Could not find a version", "No matching distribution", "Max retries", "Connection", "timed out",
    "name resolution", "Could not connect",
)  # fmt: skip


class SetupError(Exception):
    """The environment cannot be set up."""


class Environment:
    """The virtual environment of a checkout, for one target."""

    def __init__(self, root: Path, target: str) -> None:
        self._root = root
        self._target = target
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self._unfinished = self.folder / "unfinished"
        self._made_by = self.folder / "made-by"
        self._ready = self.folder / f"ready-{target}"

    @property
    def is_ready(self) -> bool:
        """Whether everything is installed, from the present requirements."""
        return self._is_installed and self.fault() is None

    @property
    def _is_installed(self) -> bool:
        return (_text(self._ready) or "").partition("\n")[0] == self._stamp()

    @property
    def _missing(self) -> list[str]:
        """What was installed for the target, and is gone."""
        if not self._is_installed:
            return []
        kept = set(self._installed())
        return [each for each in (_text(self._ready) or "").splitlines()[1:] if each not in kept]

    def _installed(self) -> list[str]:
        return sorted(each.name for each in self.folder.glob("lib/python*/site-packages/*"))

    def _stamp(self) -> str:
        """What decides which packages are installed, and whether they work here."""
        digest = hashlib.sha256(f"{self._maker()}\n{EXTRAS[self._target]}\n".encode())
        for name in ("pyproject.toml", "constraints.txt"):
            digest.update((self._root / name).read_bytes())
        return digest.hexdigest()

    def _maker(self) -> str:
        """The interpreter, and where its environment is: scripts and links in it name both."""
        machine = f"{sys.platform} {platform.machine()}"
        return f"Python {platform.python_version()} at {_base_python()} for {machine} in {self._root}"

    def fault(self) -> str | None:
        """Why the environment must be made anew, if it must."""
        if not self.folder.is_dir():
            return "is no folder"
        if self._unfinished.exists():
            return "was left unfinished"
        made_by = _text(self._made_by)
        if made_by != self._maker():
            return f"was made by {made_by or 'another program'}"
        if not os.access(self.python, os.X_OK):
            return "has lost its interpreter"
        return f"has lost {', '.join(missing[:3])}" if (missing := self._missing) else None

    def set_up(self) -> None:
        """Install what the target needs."""
        if os.path.lexists(self.folder) and (fault := self.fault()):
            _say(f"making .venv anew: it {fault}")
            if self.folder.is_symlink() or not self.folder.is_dir():
                self.folder.unlink()
            else:
                shutil.rmtree(self.folder)
        _say(f"installing {WORK[self._target]} into .venv; only the first time takes long")
        self.folder.mkdir(exist_ok=True)
        self._unfinished.touch()
        if not self._made_by.exists():
            _run([_base_python(), "-m", "venv", str(self.folder)])
            _write(self._made_by, self._maker())
        self._install()
        _write(self._ready, "\n".join([self._stamp(), *self._installed()]))
        self._unfinished.unlink()

    def _install(self) -> None:
        """Install with uv, which takes seconds; with pip if uv cannot be had or does not succeed, as it reads other settings."""
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        uv = self.folder / "bin" / "uv"
        wanted = ["--constraint", "constraints.txt", "--editable", f".[{EXTRAS[self._target]}]"]
        try:
            if not uv.exists():
                _run(
                    [*pip, "--retries=1", "--only-binary=:all:", "--constraint=constraints.txt", "uv"],
                    self._root,
                )
            _run([str(uv), "pip", "install", "--quiet", "--python", str(self.python), *wanted], self._root)
        except SetupError as error:
            if any(each in str(error) for each in FULL_DISK):
                raise
            _run([*pip, *wanted], self._root)


def _base_python() -> str:
    """The interpreter itself, also if this program runs in an environment of its own, perhaps in the one to be made anew."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _text(file: Path) -> str | None:
    return file.read_text("utf-8", "surrogateescape") if file.exists() else None


def _write(file: Path, text: str) -> None:
    file.write_text(text, "utf-8", "surrogateescape")


def _say(sentence: str) -> None:
    sys.stderr.write(f"Horae: {sentence}.\n")


def _run(command: list[str], folder: Path | None = None) -> None:
    """Run a program to its end; if it fails, raise what it wrote."""
    settings = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    ran = subprocess.run(  # noqa: S603 - our own commands
        command, cwd=folder, env=settings, stdin=subprocess.DEVNULL, close_fds=False, capture_output=True, text=True, errors="replace", check=False
    )  # fmt: skip
    if ran.returncode:
        raise SetupError("\n".join((ran.stderr + ran.stdout).strip().splitlines()[-12:]))


def take_turn(root: Path) -> None:
    """Wait for other targets that are being set up, and for installers that go on although what started them was killed: they inherit the lock."""
    lock = os.open(root, os.O_RDONLY)
    os.set_inheritable(lock, True)  # noqa: FBT003 - it takes no keywords
    fcntl.flock(lock, fcntl.LOCK_EX)


def explained(error: str) -> str:
    """What the failure of an installer means, and what to do."""
    if any(each in error for each in FULL_DISK):
        return "the disk is full; free about 1 GB, and run the same command again"
    if "ensurepip" in error:
        return "this Python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"
    if any(each in error for each in UNREACHABLE):
        return "a package above cannot be downloaded; look at the network, and run the same command again: it goes on where it stopped"
    return "the installer failed as shown above"


def main(target: str, root: Path) -> int:
    environment = Environment(root, target)
    try:
        if environment.is_ready:
            return 0
        take_turn(root)
        if not environment.is_ready:
            environment.set_up()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        _say(explained(str(error)))
        return 1
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        _say(explained(str(error)))
        return 1
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(__file__).resolve().parents[1]))

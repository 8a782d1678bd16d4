"""Runs the tests in checkouts at odd places: other names and paths, users, homes, zones, locales, neighbours.

``python tools/odd_places.py [--ways N] [--list] [TEST …]`` clones the present commit for each combination, and runs all tests there, or the
named ones, in an order of its own. Every N values occur together at least once: 1 tries each value, 2 (the default) each pair of values.
It exits with 1 if any run failed. Run it as root: then half of the checkouts belong to a user without rights.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_ROOT = 65534
PORT = 8420
Place = dict[str, str]
VALUES = {
    "name": ("horae", "src", "tests"),
    "folder": ("plain", "a blank", "ümlaut", "it's", 'a "quote"'),
    "user": ("root", "not root") if os.geteuid() == 0 else ("not root",),
    "home": ("writable", "read-only"),
    "TZ": ("Asia/Kolkata", "unset"),
    "LANG": ("C", "C.UTF-8"),
    "port": ("free", "taken by another program", "taken by make run"),
    "at once": ("one checkout", "two checkouts"),
}


def places(ways: int) -> list[Place]:
    """As few places as a greedy search finds in which every ``ways`` values occur together."""
    names = list(VALUES)
    everything = [dict(zip(names, values, strict=True)) for values in itertools.product(*VALUES.values())]
    missing = set().union(*(_together(each, ways) for each in everything))
    chosen = []
    while missing:
        best = max(everything, key=lambda each: len(missing & _together(each, ways)))
        missing -= _together(best, ways)
        chosen.append(best)
    return chosen


def _together(place: Place, ways: int) -> set[tuple[tuple[str, str], ...]]:
    return set(itertools.combinations(place.items(), ways))


def settings(place: Place, folder: Path, order: str) -> dict[str, str]:
    """The environment of a place, with nothing of ours but the caches of what is downloaded."""
    home = folder / "home"
    home.mkdir()
    caches = Path(tempfile.gettempdir()) / f"horae-odd-places-{place['user'].replace(' ', '-')}"
    caches.mkdir(exist_ok=True)
    found = {
        each: os.environ[each] for each in ("PATH", "PYTHON", "HORAE_TEMPORAL_COMMAND") if each in os.environ
    }
    found |= {
        "LANG": place["LANG"],
        "HORAE_TEST_ORDER": order,
        "UV_CACHE_DIR": f"{caches}/uv",
        "PIP_CACHE_DIR": f"{caches}/pip",
    }
    found["HOME"] = "/proc" if place["home"] == "read-only" else str(home)  # where root cannot write either
    if place["TZ"] != "unset":
        found["TZ"] = place["TZ"]
    if place["user"] == "not root":
        for each in (folder, home, caches):
            os.chown(each, NOT_ROOT, NOT_ROOT)
    return found


class Checkout:
    """A clone of the present commit, in which a user runs commands."""

    def __init__(self, place: Place, folder: Path, order: str) -> None:
        self._environment = settings(place, folder, order)
        self._user = NOT_ROOT if place["user"] == "not root" and os.geteuid() == 0 else None
        self._path = folder / place["folder"] / place["name"]
        self._log = folder.with_suffix(".log")
        """What everything there wrote; it stays if something failed."""
        subprocess.run(["git", "clone", "--quiet", ROOT, self._path], check=True)  # noqa: S603, S607
        if self._user is not None:
            for each in (self._path.parent, *self._path.parent.rglob("*")):
                os.chown(each, self._user, self._user, follow_symlinks=False)

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own commands
                command, cwd=self._path, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                user=self._user, group=self._user, extra_groups=None if self._user is None else (),
            )  # fmt: skip

    def test(self, tests: Sequence[str]) -> subprocess.Popen[bytes]:
        """Begin with all tests as ``make test`` runs them, or with some."""
        some = f'"{PYTHON}" tools/set_up.py test && exec .venv/bin/python -m pytest -n auto --dist worksteal "$@"'
        return self._start(["sh", "-c", some, "sh", *tests] if tests else ["make", "test"])

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """What ``make run`` starts, which must end in order."""
        running = self._start(["make", "run"])
        for _ in range(600):
            time.sleep(0.1)
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz"):
                break
        else:
            raise TimeoutError(f"make run does not answer: {self._log}")
        try:
            yield
        finally:
            for each in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (
                        b"examples.living" in (each / "cmdline").read_bytes()
                        and (each / "cwd").resolve() == self._path
                    ):
                        os.kill(int(each.name), signal.SIGINT)
            running.wait()

    def tell(self, *, passed: bool) -> None:
        """Say the last line of the tests, which tests failed, and where to read why."""
        lines = self._log.read_text("utf-8", "replace").splitlines()
        failed = [each[:200] for each in lines if each.startswith(("FAILED ", "ERROR "))]
        ended = [
            each.strip("= ") for each in lines if re.search(r"\d+ (passed|failed|error)", each)
        ] or lines[-3:]
        if passed:
            self._log.unlink()
        else:
            failed.append(f"read more in {self._log}")
        say("\n".join(f"    {each}" for each in [*ended[-1:], *failed]))


@contextlib.contextmanager
def neighbour(place: Place, checkout: Checkout) -> Iterator[None]:
    """What listens on Horae's port."""
    if place["port"] == "taken by make run":
        with checkout.running():
            yield
    elif place["port"] == "free":
        yield
    else:
        with socket.create_server(("127.0.0.1", PORT)):
            yield


def walk(place: Place, order: str, tests: Sequence[str]) -> bool:
    """Run the tests at a place, once or twice at the same time; return whether they passed."""
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        checkouts = []
        for _ in range(2 if place["at once"] == "two checkouts" else 1):
            folder = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="horae-odd-", ignore_cleanup_errors=True)
                )
            )
            folder.chmod(0o755)
            checkouts.append(Checkout(place, folder, order))
        stack.enter_context(neighbour(place, checkouts[0]))
        codes = [each.wait() for each in [each.test(tests) for each in checkouts]]
        say(
            f"{'failed' if any(codes) else 'passed'} in {time.perf_counter() - begun:.0f} s, order {order}: {', '.join(place.values())}"
        )
        for each in checkouts:
            each.tell(passed=not any(codes))
    return not any(codes)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


PYTHON = os.environ.get("PYTHON") or shutil.which("python3") or sys.executable


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", type=int, default=2, help="how many values must occur together; 2")
    parser.add_argument("--list", action="store_true", help="only say where tests would run")
    parser.add_argument("tests", nargs="*", help="the tests to run; all of them")
    given = parser.parse_args()
    chosen = places(given.ways)
    if given.list:
        for place in chosen:
            say(", ".join(place.values()))
        return 0
    passed = [walk(place, str(number), given.tests) for number, place in enumerate(chosen)]
    say(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A reader who follows a page in an empty folder: installs what it says, saves its files, runs its commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from tests.support.installed import Installed
from tests.support.pages import Block, blocks_of
from tests.support.shown import Shown, as_here
from tests.support.wait import wait_for

PATIENCE = 60
"""Seconds in which what a page says must happen."""
PAUSE = 1
TRIES = int(PATIENCE / PAUSE)
_SERVERS = re.compile(r"(horae serve|uvicorn|flask .* run|python manage.py runserver)\b")
_ENDLESS = re.compile(
    rf"(\w+=\S+ )*({_SERVERS.pattern}|flask .* scheduler|python manage.py scheduler|horae runs tail)\b"
)
_PROGRAM = re.compile(r"python (\S+\.py)")
_KEEPS_TIME = re.compile(r"\b(run|serve|wait)\(\)")
_ASKS = re.compile(
    r"horae (runs (list|show|logs)|explain|schedules (list|describe)|nodes|flows (list|show))\b|curl -sS [^-]|cat sheet"
)
_FIXED = re.compile(r"horae next .*--from ")

LISTENS = Shown("…\n… listens on …")


_ports = count(20_000 + os.getpid() * 37 % 10_000)


def free_port() -> int:
    """A port that is free, and that no program is given by the system before it is used: those have higher numbers."""
    for port in _ports:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError


class Running:
    """A process that a page lets its reader start in a terminal of its own. What it prints is kept as it comes."""

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.command = command
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f"exec env {command}"], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def printed(self) -> str:
        return "".join(self.lines)

    def wait_for(self, shown: Shown) -> dict[str, str]:
        """Wait until it has printed what a page shows."""
        with self._changed:
            self._changed.wait_for(lambda: shown.find(self.printed, more=True) is not None, PATIENCE)
        found = shown.find(self.printed, more=True)
        assert found is not None, f"{self.command} did not print what the page shows, but:\n{self.printed}"
        return found

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """End it, and wait for that; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        return code


class Reader:
    """Someone with an empty folder, and an environment in which nothing is installed yet."""

    def __init__(self, folder: Path, wheel: Path, *requirements: str, forks: bool = True) -> None:
        """``forks``: programs begin as forks of a process that has loaded Horae."""
        self.folder = folder / "reader"
        self.folder.mkdir(parents=True)
        self.installed = Installed(folder / "environment", wheel, forks=forks)
        self.installed.install(requirements)
        self.port, self.temporal_port = free_port(), free_port()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HORAE_", "PYTHON"))
        }
        path = [each for each in os.environ["PATH"].split(":") if each != str(Path(sys.executable).parent)]
        self._programs = folder / "programs"
        self._programs.mkdir()
        self.environment = kept | {
            "PATH": ":".join([str(self._programs), self.installed.path, *path]),
            "COLUMNS": "200", "HORAE_PORT": str(self.port),
        }  # fmt: skip
        self.running: list[Running] = []
        self.printed = ""
        """All that commands printed that ended."""
        self._here: dict[str, str] = {}

    # A page, block by block

    def follow(self, page: str, without: Mapping[str, object]) -> None:
        """Do what a page says, from its beginning to its end; ``without`` names beginnings of blocks to be left out."""
        blocks = [each for each in blocks_of(page) if not each.text.startswith(tuple(without))]
        for number, each in enumerate(blocks):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            shown = after.text if after is not None and after.kind == "text" else ""
            self._take(each, shown, follows=number > 0 and blocks[number - 1].kind == "sh")

    def _take(self, block: Block, shown: str, *, follows: bool) -> None:
        if block.is_doctest or (block.kind == "text" and follows):
            return  # examples of Python are run all at once; this text was compared with what its command printed
        if block.kind == "sh":
            self._do(block.text, shown)
        elif block.kind == "crontab":
            self._has_crontab(block.text)
        elif block.kind == "console":
            for command in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                first, _, rest = command.partition("\n")
                self._do(first, rest)
        else:
            assert block.file, (
                f"{block}\nIs it a file? Then say 'Save this as `NAME`'. Or leave it out, with the reason."
            )
            self._save(block)

    def _save(self, block: Block) -> None:
        file = self.folder / block.file
        file.parent.mkdir(parents=True, exist_ok=True)
        old = file.read_text() if block.text.startswith("# at the end of ") else ""
        file.write_text(old + self._as_here(block.text))

    def _has_crontab(self, text: str) -> None:
        """Let ``crontab -l`` print this instead of the crontab of the user who runs the tests."""
        (self.folder.parent / "crontab").write_text(text)
        program = self._programs / "crontab"
        program.write_text(f"#!/bin/sh\nexec cat {shlex.quote(str(self.folder.parent))}/crontab\n")
        program.chmod(0o755)

    def _as_here(self, text: str) -> str:
        """With the times and ids of the day, the reader's own ports, and on this machine only."""
        text = as_here(text, self._here).replace("--host 0.0.0.0", "--host 127.0.0.1")
        text = re.sub(r"\b7233\b", str(self.temporal_port), text)
        return re.sub(r"\b(8420|8000)\b", str(self.port), text)

    # A block, command by command

    def _do(self, commands: str, shown: str) -> None:
        commands = self._as_here(commands).strip()
        *before, last = commands.split("\n")
        if commands.startswith(("pip install ", "pkill ")):
            assert not before, f"it stands alone in its block: {commands}"
        if last.startswith("pip install "):
            self.installed.install(shlex.split(last)[2:])
        elif last.startswith("pkill -9 -f "):
            self._kill(shlex.split(last)[3])
        elif self._is_endless(last):
            if before:
                self.run("\n".join(before))
            self._start(last, shown)
        else:
            self._run(commands, shown)

    def _is_endless(self, command: str) -> bool:
        if program := _PROGRAM.fullmatch(command):
            return _KEEPS_TIME.search((self.folder / program[1]).read_text()) is not None
        return _ENDLESS.match(command) is not None

    def _start(self, command: str, shown: str) -> None:
        serves = _SERVERS.search(command) is not None
        self._interrupt(  # it is started again, or another one in its place
            each
            for each in self.running
            if each.command == command or (serves and _SERVERS.search(each.command))
        )
        running = self._launch(command, {})
        if shown:
            self._here |= running.wait_for(Shown(shown))
        elif command.endswith("horae serve") or "horae serve " in command:
            running.wait_for(LISTENS)
        elif serves:
            wait_for(lambda: self._answers(running), PATIENCE)
        elif (program := _PROGRAM.fullmatch(command)) and "horae.App()" in (
            self.folder / program[1]
        ).read_text():
            wait_for(lambda: any(self.folder.glob("horae.db.node-*")), PATIENCE)  # it has become a node

    def _launch(self, command: str, settings: dict[str, str]) -> Running:
        self.running.append(Running(command, self.folder, self.environment | settings))
        return self.running[-1]

    def _answers(self, running: Running) -> bool:
        assert running.process.poll() is None, running.printed
        try:
            with socket.create_connection(("127.0.0.1", self.port), 10) as found:
                return bool(found.getsockname() != found.getpeername())  # a free port may connect to itself
        except OSError:
            return False

    def _kill(self, words: str) -> None:
        """Kill what ``pkill -f`` would kill on a machine of one's own."""
        (found,) = [each for each in self.running if words in each.command and each.process.poll() is None]
        found.end(signal.SIGKILL)

    def _run(self, commands: str, shown: str) -> None:
        """Run commands, and compare what they print; those that only ask are repeated until what the page tells has happened."""
        if not shown:
            self.run(commands)
            return
        expected = Shown(shown, exact=_FIXED.match(commands) is not None)
        for _ in range(TRIES if _ASKS.match(commands) else 1):
            ran = self._execute(commands, {})
            assert ran.returncode == 0 or "error:" in shown, f"{commands}\n{ran.stdout}"
            found = expected.find(ran.stdout)
            if found is not None:
                self._here |= found
                return
            time.sleep(PAUSE)
        raise AssertionError(f"$ {commands}\n{ran.stdout}\nThe page shows instead:\n{shown}")

    def run(self, commands: str, **settings: str) -> str:
        """What commands print, all of which must succeed."""
        ran = self._execute(commands, settings)
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}"
        return ran.stdout

    def _execute(self, commands: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run commands in a shell. What they export is kept, as in a terminal."""
        kept = self.folder.parent / "exported"
        script = f"trap 'env -0 > {kept}' EXIT\n{commands}"
        ran = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", script], cwd=self.folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=self.environment | settings, timeout=120, check=False,
        )  # fmt: skip
        exported = dict(each.split("=", 1) for each in kept.read_text().split("\0")[:-1])
        self.environment |= {name: exported[name] for name in exported if name not in settings}
        self.printed += ran.stdout
        return ran

    # What tests ask besides

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, *arguments: str) -> Any:
        """The answer of a command as JSON."""
        return json.loads(self.run(f"horae {' '.join(arguments)} --json"))

    def serve(self, command: str = "horae serve", **settings: str) -> None:
        """Start the service, which is there once it says where it listens."""
        self._launch(command, settings).wait_for(LISTENS)

    @property
    def log(self) -> list[str]:
        """What the latest of its processes printed."""
        return self.running[-1].lines

    def end(self) -> None:
        """Interrupt what still runs."""
        self._interrupt(self.running)

    def _interrupt(self, running: Iterable[Running]) -> None:
        """Do what Ctrl-C does, and see that they end in order."""
        for each in running:
            if each.process.poll() is None:
                before = len(each.lines)
                code = each.end()
                said = "".join(each.lines[before:])
                # 130: interrupted right after it began to listen, before it handled signals itself
                assert code in {0, 130}, f"{each.command} ended with {code}:\n{each.printed}"
                assert "Traceback" not in said, said

    def kill(self) -> None:
        """Kill what still runs."""
        for each in self.running:
            each.end(signal.SIGKILL)

    def statuses(self, schedule_id: str) -> list[str]:
        """What became of a schedule's slots, asked without a command, because waiting asks often."""
        address = f"{self.address}/api/v1/schedules/{schedule_id}"
        return [
            each["status"]
            for kind in ("runs", "unstarted")
            for each in httpx.get(f"{address}/{kind}").json()["items"]
        ]

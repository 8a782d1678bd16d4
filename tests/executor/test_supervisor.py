"""What a node starts ends with it: real services and commands, killed and stopped, on both databases."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from horae.executor import supervisor_program
from horae.executor.supervisor_program import BEGUN, MESSAGE
from tests.executor.harness import gone, is_alive
from tests.face.service.requests import create, ended_runs
from tests.support.nodes import end_leases
from tests.support.process import ROOT, Server, environment
from tests.support.wait import PATIENCE, wait_for

pytestmark = pytest.mark.contract("SCHD-17")

NIGHTLY = """
import os, pathlib, signal, sys, time
folder, attempt = pathlib.Path(sys.argv[1]), os.environ["HORAE_ATTEMPT"]
def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
signal.signal(signal.SIGTERM, signal.SIG_IGN)
beside = [each.name for each in folder.glob("*.begun") if alive(each.stem.split("-")[1])]
(folder / f"{attempt}-{os.getpid()}.begun").write_text(str(beside))
if attempt == "1":
    time.sleep(600)
(folder / f"{attempt}.ended").write_text("")
"""
"""A command that notes which earlier attempts run beside it. Its first attempt takes long, and does not end when it is asked to."""


class Nights:
    """Services with a command that takes long, and what its attempts noted."""

    def __init__(self, folder: Path, database: str) -> None:
        self.database, self.folder = database, folder / "noted"
        self.folder.mkdir()
        (folder / "nightly.py").write_text(NIGHTLY)
        nightly = [sys.executable, "-IS", str(folder / "nightly.py"), str(self.folder)]
        commands = {
            "nightly": nightly,
            "in_shell": ["/bin/sh", "-c", '"$@" & wait', "sh", *nightly],
            "leaving": ["/bin/sh", "-c", 'setsid sleep 600 & echo $! > "$1/daemon"; shift; "$@"', "sh", str(self.folder), *nightly],
        }  # fmt: skip
        (folder / "commands.json").write_text(
            json.dumps({name: {"argv": argv} for name, argv in commands.items()})
        )
        self._settings = {"HORAE_COMMANDS": str(folder / "commands.json"), "HORAE_HOUSEKEEPING_MS": "200"}
        self.servers: list[Server] = []

    def start(self, lease: int = 10_000, **settings: str) -> Server:
        self.servers.append(Server(self.database, **self._settings, HORAE_LEASE_MS=str(lease), **settings))
        return self.servers[-1]

    def begin(self, server: Server, command: str = "nightly") -> tuple[str, int]:
        """Begin a run, and wait for its first attempt: the id of the schedule, and the attempt's process."""
        schedule_id = create(server, action=f"command:{command}", trigger=True)["id"]
        return schedule_id, self.process("1")

    def process(self, attempt: str) -> int:
        (begun,) = wait_for(lambda: list(self.folder.glob(f"{attempt}-*.begun")))
        return int(begun.stem.partition("-")[2])

    def beside(self, attempt: str) -> str:
        (begun,) = wait_for(
            lambda: [each for each in self.folder.glob(f"{attempt}-*.begun") if each.read_text()]
        )
        return str(begun.read_text())


@pytest.fixture
def nights(tmp_path: Path, database: str) -> Iterator[Nights]:
    nights = Nights(tmp_path, database)
    yield nights
    for server in nights.servers:
        server.process.send_signal(signal.SIGCONT)
        server.end(signal.SIGKILL)


on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)


def children(pid: int) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(each) for each in listed.split()]


def has_succeeded(server: Server, schedule_id: str) -> Any:
    return [(each["status"], each["attempt"]) for each in ended_runs(server, schedule_id)] == [
        ("succeeded", 2)
    ]


@pytest.mark.parametrize("command", ["nightly", "in_shell"])
def test_a_command_of_a_killed_node_has_ended_before_it_is_attempted_again(nights: Nights, command: str):
    server = nights.start(2000)
    schedule_id, first = nights.begin(server, command)
    started = children(server.process.pid)
    server.end(signal.SIGKILL)
    again = nights.start(2000)
    assert nights.beside("2") == "[]"
    assert not is_alive(first)
    wait_for(partial(has_succeeded, again, schedule_id))
    wait_for(lambda: not any(map(is_alive, started)))


@on_postgres
def test_a_command_of_a_node_that_stands_still_has_ended_before_another_node_attempts_it(nights: Nights):
    server = nights.start(2000)
    schedule_id, first = nights.begin(server)
    other = nights.start(2000)
    server.process.send_signal(signal.SIGSTOP)
    assert nights.beside("2") == "[]"
    assert not is_alive(first)
    server.process.send_signal(signal.SIGCONT)
    wait_for(partial(has_succeeded, other, schedule_id))


@on_postgres
async def test_a_node_that_lost_its_lease_kills_its_commands_itself(nights: Nights):
    server = nights.start(HORAE_TERMINATE_MS="600000")
    _, first = nights.begin(server)
    (supervisor,) = set(children(server.process.pid)) - {first}
    os.kill(supervisor, signal.SIGSTOP)
    try:
        await end_leases(nights.database)
        await gone(first)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert nights.beside("2") == "[]"


def test_nothing_is_left_of_a_node_that_ends_when_it_is_asked_to(nights: Nights):
    server = nights.start()
    nights.begin(server)
    started = children(server.process.pid)
    assert len(started) == 2  # the command and its supervisor
    server.ask("POST", f"/runs/{server.get('/runs')['items'][0]['id']}/terminate")
    assert server.end(signal.SIGTERM) == 0
    assert not any(map(is_alive, started))


@on_sqlite
def test_a_process_that_left_its_command_keeps_no_lock(nights: Nights):
    server = nights.start()
    nights.begin(server, "leaving")
    daemon = int((nights.folder / "daemon").read_text())
    try:
        server.end(signal.SIGKILL)
        nights.start()
        assert nights.beside("2") == "[]"
        assert is_alive(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)
        os.kill(int((nights.folder / "daemon").read_text()), signal.SIGKILL)


@on_sqlite
def test_a_command_that_is_left_holds_the_lock_of_its_node(nights: Nights):
    server = nights.start()
    _, first = nights.begin(server)
    (supervisor,) = set(children(server.process.pid)) - {first}
    os.kill(supervisor, signal.SIGSTOP)  # a busy machine may keep it from killing for as long
    try:
        server.end(signal.SIGKILL)
        nights.start()
        time.sleep(1)  # in which the node looks for dead nodes, five times
        assert is_alive(first)
        assert [each.name[0] for each in nights.folder.glob("*.begun")] == ["1"]
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert nights.beside("2") == "[]"


def holds_lock(pid: int) -> bool:
    listed = subprocess.run(
        ["ls", "-l", f"/proc/{pid}/fd"], capture_output=True, text=True, check=False
    ).stdout
    return ".node-" in listed


@on_sqlite
def test_the_supervisor_holds_the_lock_only_while_commands_run(nights: Nights):
    """So without any, a node that was killed is found dead at once."""
    server = nights.start()
    _, first = nights.begin(server)
    (supervisor,) = set(children(server.process.pid)) - {first}
    assert holds_lock(supervisor)
    server.ask("POST", f"/runs/{server.get('/runs')['items'][0]['id']}/terminate")
    wait_for(lambda: not holds_lock(supervisor))


def test_what_ended_and_was_not_waited_for_is_not_left(monkeypatch: pytest.MonkeyPatch):
    """The first process of a container may wait for orphans late, or never."""
    monkeypatch.setattr(supervisor_program, "GONE_WITHIN", 2 * PATIENCE)
    ours, theirs = socket.socketpair()
    supervising = Thread(target=supervisor_program.supervise, args=[theirs], daemon=True)
    supervising.start()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as command:
        ours.send(MESSAGE.pack(BEGUN, command.pid, 0))
        assert ours.recv(1)
        ours.close()
        wait_for(lambda: not supervising.is_alive())
        assert command.wait() == -signal.SIGKILL
    theirs.close()


@on_sqlite
def test_a_supervisor_that_was_killed_is_started_again(nights: Nights):
    server = nights.start()
    _, first = nights.begin(server)
    (supervisor,) = set(children(server.process.pid)) - {first}
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: len(set(children(server.process.pid)) - {first, supervisor}) == 1)
    # It may not have been told of the command yet: a new command begins after it was.
    create(server, action="command:nightly", trigger=True)
    wait_for(lambda: len(list(nights.folder.glob("1-*.begun"))) == 2)
    assert is_alive(first)
    server.end(signal.SIGKILL)
    wait_for(lambda: not is_alive(first))


DYING = """
import asyncio, os, signal, sys
sys.path.insert(0, {root!r})
from horae.executor.command_executor import Command, CommandExecutor
from horae.executor.supervisor import Supervisor
from tests.executor.harness import Attempts

class Dying(Supervisor):
    async def begin(self, group):
        print(group)
        if sys.argv[2] == "told":
            await super().begin(group)
        if sys.argv[2] == "forked":
            await super().begin(group)
            if (copy := os.fork()) == 0:
                os.closerange(1, 3)
                signal.pause()
            print(copy)
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    command = Command(argv=("/bin/sh", "-c", "echo > " + sys.argv[1]))
    await Attempts(CommandExecutor({{"x": command}}, 100, Dying())).make()

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["not told", "told", "forked"])
def test_a_command_whose_node_dies_before_it_begins_never_begins(tmp_path: Path, when: str):
    """Between any two lines: the supervisor was not told of it yet, or it was; or a fork of the node holds copies of its files."""
    code = DYING.format(root=str(ROOT))
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "begun"), when], capture_output=True, text=True, env=environment(), check=False
    )  # fmt: skip
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    group, *copies = map(int, ran.stdout.split())
    assert len(copies) == (when == "forked")
    try:
        wait_for(lambda: not is_alive(group))
        assert all(map(is_alive, copies))
    finally:
        for each in copies:
            os.kill(each, signal.SIGKILL)
    assert not (tmp_path / "begun").exists()

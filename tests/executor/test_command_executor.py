"""Commands as actions, with real processes: what they find, what is kept of them, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from horae import Config
from horae.errors import ConfigError
from horae.executor import command_executor, supervisor
from horae.executor.command_executor import Command, CommandExecutor, read_commands
from horae.model import AttemptResult, Reason, schedule_key
from tests.executor.harness import RUN, TREE, Attempts, gone, is_alive
from tests.support.wait import wait_until

pytestmark = pytest.mark.contract("SCHD-17")


def python(code: str, *arguments: str, limit: int = 1000, **more: Any) -> CommandExecutor:
    """A command that runs a little Python."""
    argv = (sys.executable, "-S", "-c", code, *arguments)
    return CommandExecutor({"test": Command(argv=argv, **more)}, limit)


async def make(executor: CommandExecutor, **more: Any) -> AttemptResult:
    return await Attempts(executor).make(**more)


def result(ended: AttemptResult) -> Any:
    assert ended.ending == "returned", ended.failure
    return json.loads(ended.result or "null")


@pytest.fixture(autouse=True)
async def no_supervisors() -> AsyncIterator[None]:
    """Those of a test end with its event loop."""
    yield
    for each in list(supervisor._supervisors):
        await each.close()


# What it finds


async def test_a_command_gets_its_input_and_knows_its_slot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HORAE_SECRET_KEY", "hunter2")
    monkeypatch.setenv("ANYTHING", "else")
    monkeypatch.setenv("LANG", "C.UTF-8")
    code = "import os, sys, json; print(json.dumps([dict(os.environ), os.getcwd(), json.load(sys.stdin), sys.argv[1:]]))"
    action = python(code, "a b", "$HOME;`id`", environment={"WHO": "me"}, folder=str(tmp_path), limit=5000)
    found = result(await make(action))
    environment, folder, given, arguments = json.loads(found["stdout"])
    assert environment.pop("PATH") == os.environ["PATH"]
    assert environment.pop("HOME", None) == os.environ.get("HOME")
    environment.pop("LC_CTYPE", None)  # Python itself may set it
    environment.pop("SHLVL", None)  # a shell may set it
    assert environment == {
        "LANG": "C.UTF-8", "WHO": "me", "HORAE_SCHEDULE_ID": "nightly", "HORAE_RUN_ID": "5f0c",
        "HORAE_NOMINAL": "2026-03-01T12:00:00Z", "HORAE_FIRE_TIME": "2026-03-01T12:00:00.250000Z", "HORAE_ATTEMPT": "2",
        "HORAE_IDEMPOTENCY_KEY": environment["HORAE_IDEMPOTENCY_KEY"], "HORAE_ORIGIN": "automatic",
    }  # fmt: skip
    assert folder == str(tmp_path)
    assert given == RUN.input
    assert arguments == ["a b", "$HOME;`id`"]  # no shell has read them
    assert (found["exit"], found["stderr"], found["truncated"]) == (0, "", 0)


async def test_a_command_that_does_not_read_its_input_does_not_have_to():
    found = result(await make(python("print(1)"), input="x" * 5_000_000))
    assert found["stdout"] == "1\n"


async def test_a_schedule_cannot_set_the_environment_by_its_id():
    code = "import os; print(os.environ['HORAE_SCHEDULE_ID'])"
    assert (
        result(await make(python(code), schedule_key=schedule_key("", "x\nPATH=/evil ü")))["stdout"]
        == "x\nPATH=/evil ü\n"
    )


# What is kept of it


async def test_of_much_output_the_limit_is_kept_and_the_rest_never_makes_it_wait():
    code = (
        "import sys; sys.stdout.write('a' * 3_000_000 + 'b'); sys.stderr.write('c' + 'd' * 3_000_000 + 'e')"
    )
    found = result(await make(python(code, limit=100)))
    assert found["stdout"] == "a" * 100
    assert found["stderr"] == "d" * 99 + "e"
    assert found["truncated"] == 6_000_003 - 200


async def test_output_that_is_no_text_is_kept_as_far_as_it_can_be():
    code = "import sys; sys.stdout.buffer.write(b'\\x00\\xff\\xed\\xa0\\x80ok')"
    assert result(await make(python(code)))["stdout"].endswith("ok")
    code = "import sys; sys.stdout.buffer.write(b'\\x01' * 2_000_000)"
    kept = result(await make(python(code, limit=2_000_000)))["stdout"]
    assert set(kept) == {"\x01"}  # as much of it as a result may have


async def test_a_command_that_fails_says_what_it_said():
    ended = await make(
        python("import sys; sys.stderr.write('x' * 5000 + ' no disk \\x00'); sys.exit(3)", limit=9000)
    )
    assert ended.ending == "raised"
    assert ended.errors[:2] == ("CommandFailedError", "HoraeError")
    assert (ended.failure or "").startswith('CommandFailedError: The command "test" ended with 3: xxx')
    assert (ended.failure or "").endswith("no disk \\x00")
    assert len(ended.failure or "") < 2200
    ended = await make(python("import os; os.kill(os.getpid(), 11)"))
    assert ended.failure == 'CommandFailedError: The command "test" was ended by SIGSEGV'
    ended = await make(python("import os; os.kill(os.getpid(), 40)"))
    assert "was ended by" in (ended.failure or "")


# What goes wrong


@pytest.mark.parametrize(
    "command",
    [
        Command(argv=("/nowhere/at/all",)),
        Command(argv=("no-such-program-anywhere",)),
        Command(argv=("/etc/passwd",)),
        Command(argv=("/bin/true",), folder="/nowhere"),
        Command(argv=("/bin/true",), folder="/etc/passwd"),
    ],
)
async def test_a_program_that_is_not_there_is_not_started(command: Command):
    ended = await make(CommandExecutor({"test": command}, 1000))
    assert (ended.ending, ended.permanent) == ("refused", True)
    assert "cannot start the command: " in (ended.failure or "")


async def test_a_command_that_takes_longer_than_it_may_is_ended(tmp_path: Path):
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    ended = await make(python(code, timeout="700ms"))
    assert ended.ending == "raised"
    assert "TimeoutError" in ended.errors
    await gone(int((tmp_path / "pid").read_text()))


# How it ends


class Tree:
    """A command that starts others, which start others; seven processes in all."""

    def __init__(self, folder: Path, manner: str, **more: Any) -> None:
        (folder / "tree.py").write_text(TREE)
        self.folder = folder
        self.executor = python(TREE, str(folder), manner, "2")
        self.attempts = Attempts(self.executor, **more)

    @property
    def pids(self) -> list[int]:
        return [int(file.stem) for file in self.folder.glob("*.pid")]

    async def begin(self) -> Any:
        run = self.attempts.begin()
        await wait_until(lambda: len(self.pids) == 7)
        return run

    def leader(self) -> int:
        return os.getpgid(self.pids[0])


async def test_without_process_groups_the_command_itself_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command_executor, "_HAS_GROUPS", False)
    ended = await make(python("import time; time.sleep(60)", timeout="100ms"))
    assert "TimeoutError" in ended.errors
    assert result(await make(python("print(1)")))["stdout"] == "1\n"


async def test_asked_to_stop_a_command_and_all_that_it_started_end(tmp_path: Path):
    tree = Tree(tmp_path, "obedient")
    run = await tree.begin()
    assert {os.getpgid(pid) for pid in tree.pids} == {tree.leader()} != {os.getpgid(0)}
    tree.attempts.ask(run, "cancel")
    ended = await tree.attempts.end()
    assert (ended.ending, ended.reason) == ("stopped", "cancelled")
    await gone(*tree.pids)


async def test_a_command_that_does_not_stop_is_killed_when_its_time_is_up(tmp_path: Path):
    tree = Tree(tmp_path, "stubborn")
    run = await tree.begin()
    leader = tree.leader()
    tree.attempts.ask(run, "cancel")
    await asyncio.sleep(0.5)
    assert all(map(is_alive, tree.pids))  # it was asked, and has time
    tree.attempts.pass_time(30_000)  # now it is made to: the second cancel kills at once
    ended = await tree.attempts.end()
    assert (ended.ending, ended.run.stop) == ("stopped", "terminate")
    assert not is_alive(leader)
    await gone(*tree.pids)
    with pytest.raises(ChildProcessError):
        os.waitpid(leader, os.WNOHANG)  # no zombie of ours is left


@pytest.mark.parametrize("terminate", [300, 1000])
async def test_a_command_that_is_terminated_is_gone_before_it_is_given_up(tmp_path: Path, terminate: int):
    tree = Tree(tmp_path, "stubborn", terminate=terminate)
    run = await tree.begin()
    leader = tree.leader()
    tree.attempts.ask(run, "terminate")
    ended = await tree.attempts.end()  # without any more time passing for the engine
    assert (ended.ending, ended.run.stop) == ("stopped", "terminate")
    assert not is_alive(leader)
    await gone(*tree.pids)


async def test_a_command_that_was_given_up_is_killed_all_the_same(tmp_path: Path):
    tree = Tree(tmp_path, "stubborn")
    run = await tree.begin()
    tree.attempts.ask(run, "terminate")
    await asyncio.sleep(0)
    tree.attempts.pass_time(5000)
    assert (await tree.attempts.end()).failure == "it did not stop when it was asked to"
    await gone(*tree.pids)
    await tree.executor.close()
    await wait_until(lambda: asyncio.all_tasks() == {asyncio.current_task()})  # its end was noticed


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path):
    code = """
import os, sys, time
if os.fork() == 0:
    open(sys.argv[1] + "/pid", "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists(sys.argv[1] + "/pid") or not open(sys.argv[1] + "/pid").read():
    time.sleep(0.01)
print("done")
"""
    assert result(await make(python(code, str(tmp_path))))["stdout"] == "done\n"
    await gone(int((tmp_path / "pid").read_text()))


async def test_a_process_that_leaves_the_group_and_holds_the_output_open_holds_up_no_run(tmp_path: Path):
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    open(sys.argv[1] + "/pid", "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists(sys.argv[1] + "/pid") or not open(sys.argv[1] + "/pid").read():
    time.sleep(0.01)
print("done")
"""
    try:
        assert result(await make(python(code, str(tmp_path))))["stdout"] == "done\n"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_a_command_whose_node_loses_its_lease_is_killed_before_the_lease_ends(tmp_path: Path):
    tree = Tree(tmp_path, "stubborn", terminate=600_000)
    await tree.begin()
    tree.attempts.worker.stop_all(
        Reason.CRASHED, 300
    )  # the rest of the lease, and much less than it may take otherwise
    ended = await tree.attempts.end()
    assert (ended.ending, ended.reason) == ("stopped", "crashed")
    await gone(*tree.pids)


async def test_what_runs_when_a_program_ends_is_killed(tmp_path: Path):
    tree = Tree(tmp_path, "stubborn")
    await tree.begin()
    await tree.executor.close()
    await gone(*tree.pids)


async def test_a_command_has_its_own_descriptors_only():
    assert result(await make(python("import os; print(os.listdir('/proc/self/fd'))")))["stdout"] == (
        "['0', '1', '2', '3']\n"  # the last one is of the folder that is listed
    )


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_command_that_is_stopped_while_it_starts_is_not_forgotten(tmp_path: Path, how: str):
    for turns in range(1, 12):
        code = f"import os, time; open({str(tmp_path / str(turns))!r}, 'w').write(str(os.getpid())); time.sleep(600)"
        attempts = Attempts(python(code))
        run = attempts.begin()
        for _ in range(turns):
            await asyncio.sleep(0)
        attempts.ask(run, how)
        assert (await attempts.end()).ending == "stopped"
    await gone(*(int(text) for file in tmp_path.iterdir() if (text := file.read_text())))


# What the operator configures


def configured(folder: Path, content: str | bytes) -> Config:
    file = folder / "commands.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Config(commands=str(file))


def test_commands_are_named_in_a_file(tmp_path: Path):
    assert read_commands(Config()) == {}
    config = configured(
        tmp_path,
        '{"backup": {"argv": ["/usr/bin/pg_dump", "x"], "environment": {"A": "b"}, "folder": "/tmp", "timeout": "5ms"},'
        ' "a.b-c_1": {"argv": ["true"]}}',
    )
    assert set(read_commands(config)) == {"backup", "a.b-c_1"}


async def test_a_configured_command_runs(tmp_path: Path):
    commands = read_commands(configured(tmp_path, '{"x": {"argv": ["echo", "a", "b"]}}'))
    assert result(await make(CommandExecutor(commands, 1000)))["stdout"] == "a b\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "as JSON"),
        ("[]", "as JSON"),
        (b"\xff", "as JSON"),
        ('{"x": {}}', "argv"),
        ('{"x": {"argv": "rm -rf /"}}', "Expected `array`"),
        ('{"x": {"argv": ["a"], "shell": true}}', "shell"),
        ('{"x": {"argv": []}}', '"x" without a program'),
        ('{"x": {"argv": [""]}}', "without a program"),
        ('{"x y": {"argv": ["a"]}}', "whose name"),
        ('{"": {"argv": ["a"]}}', "whose name"),
        ('{"x": {"argv": ["a", "\\u0000"]}}', "NUL"),
        ('{"x": {"argv": ["a"], "environment": {"A=B": "c"}}}', "whose name is not valid"),
        ('{"x": {"argv": ["a"], "timeout": "0s"}}', "timeout of 0s"),
        (
            '{"x": {"argv": ["a"], "timeout": 30}}',
            'timeout is 30, a number without a unit - at `$[...]`; write "30s"',
        ),
    ],
)
def test_a_file_that_is_wrong_says_what_is_wrong(tmp_path: Path, content: str | bytes, fault: str):
    with pytest.raises(ConfigError) as refused:
        read_commands(configured(tmp_path, content))
    assert fault in str(refused.value)
    assert "HORAE_COMMANDS" in str(refused.value)


def test_a_file_that_is_not_there_is_said_not_to_be(tmp_path: Path):
    with pytest.raises(ConfigError, match="No such file"):
        read_commands(Config(commands=str(tmp_path / "none")))

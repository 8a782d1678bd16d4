"""Commands as actions: programs that the operator named, each in its own process group, which ends with its run, or with its node."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shutil
import signal
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from horae.config import Config
from horae.errors import CommandFailedError, NotStartedError
from horae.executor.attempt_context import Context
from horae.executor.operator_files import read_named
from horae.executor.port import Executor
from horae.executor.stored_output import MAX_RESULT_LENGTH, text_of
from horae.executor.supervisor import Supervisor
from horae.spec.duration import Duration, DurationFields, milliseconds

TIME_TO_STOP_MS = 5000
"""How long a command that exceeded its own timeout has to end by itself."""
KILLED_WITHIN = 5.0
"""Seconds in which a process that was killed is gone, unless the kernel holds it."""
LEFT_OPEN = 1.0
"""Seconds to wait for output after the command has ended, if a process that left its group holds the pipes open."""
SHOWN_OF_STDERR = 2000
_HAS_GROUPS = hasattr(os, "killpg")
_SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Only POSIX has process groups and this signal. Elsewhere only the command itself ends, and at once."""
_GATE = ("/bin/sh", "-c", 'read -r gate && unset PWD OLDPWD && exec "$@"', "sh")
"""A command begins when a line comes, without the variables that a shell sets. If its node dies before, it never does."""
_INHERITED = ("PATH", "HOME", "LANG")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Command(DurationFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that schedules may run by its name."""

    argv: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    folder: str = ""
    """Its working directory; empty means the service's."""
    timeout: Duration | None = None
    """How long it may take; ``None`` leaves it to the schedule."""


def read_commands(config: Config) -> dict[str, Command]:
    """The commands that the operator configured, by their names."""
    return read_named("HORAE_COMMANDS", config.commands, Command, "command", _fault)


def _fault(command: Command) -> str:
    """What is wrong with a command; empty if nothing is."""
    if not command.argv or not command.argv[0]:
        return "without a program in argv"
    if any("\0" in text for text in (*command.argv, *command.environment.values(), command.folder)):
        return "with a NUL character"
    if not all(_VARIABLE.fullmatch(variable) for variable in command.environment):
        return "with an environment variable whose name is not valid"
    if command.timeout == "0s":
        return "with a timeout of 0s"
    return ""


class CommandExecutor(Executor):
    """The kind ``command``: runs a command that the operator named. Its input is JSON on stdin."""

    kind = "command"
    for_nodes = True

    def __init__(
        self, commands: Mapping[str, Command], output_limit: int, supervisor: Supervisor | None = None
    ) -> None:
        self._commands = {f"{self.kind}:{name}": command for name, command in commands.items()}
        self._limit = output_limit
        self._supervisor = supervisor or Supervisor()

    def actions(self) -> Collection[str]:
        """``command:NAME`` for each command."""
        return self._commands.keys()

    async def run(self, context: Context) -> dict[str, Any]:
        """Run the command to its end. To stop it, its process group gets SIGTERM, some time, and then SIGKILL."""
        command, name = self._commands[context.action], context.action.removeprefix(f"{self.kind}:")
        child = _Child(command, _environment(command, context), self._limit, self._supervisor)
        life = asyncio.create_task(child.live(msgspec.json.encode(context.input)), name=context.action_id)
        timeout_ms = milliseconds(command.timeout)
        try:
            await asyncio.wait([life], timeout=None if timeout_ms is None else timeout_ms / 1000)
        except asyncio.CancelledError:
            await child.end(life, _grace(context))
            raise
        if not life.done():
            await child.end(life, TIME_TO_STOP_MS / 1000)
            raise TimeoutError(f'the command "{name}" took longer than {command.timeout}')
        return _result(name, child, life.result())

    async def close(self) -> None:
        """Kill what still runs."""
        await self._supervisor.close()


def _result(name: str, child: _Child, code: int) -> dict[str, Any]:
    most = MAX_RESULT_LENGTH // 2 - 1000
    stderr = text_of(bytes(child.stderr.kept), most)
    if code:
        ending = f"ended with {code}" if code > 0 else f"was ended by {_signal_name(-code)}"
        raise CommandFailedError(name, ending, code, stderr.strip()[-SHOWN_OF_STDERR:])
    return {
        "exit": code,
        "stdout": text_of(bytes(child.stdout.kept), most),
        "stderr": stderr,
        "truncated": child.stdout.lost + child.stderr.lost,
    }


def _grace(context: Context) -> float | None:
    """How many seconds a command has to stop; ``None`` if a second cancel follows when its time is up."""
    left = context.time_to_stop
    if context.stop_requested() and left is None:
        return None
    time = 0.0 if left is None else left.total_seconds()
    return time - min(time / 5, 1)  # it must be gone before the worker gives it up


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a signal without a name
        return f"signal {number}"


def _environment(command: Command, context: Context) -> dict[str, str]:
    """The environment of a command: a few variables of the service, its own, and facts about the run; no secrets."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    facts = {
        "SCHEDULE_ID": context.schedule_id,
        "RUN_ID": context.run_id,
        "NOMINAL": f"{context.nominal:%Y-%m-%dT%H:%M:%SZ}",
        "FIRE_TIME": msgspec.to_builtins(context.fire_time),
        "ATTEMPT": str(context.attempt),
        "IDEMPOTENCY_KEY": context.key,
        "ORIGIN": str(context.origin),
    }
    own = {f"HORAE_{name}": value.replace("\0", "") for name, value in facts.items()}
    return inherited | command.environment | own


def _check_program(command: Command, environment: Mapping[str, str]) -> None:
    """Raise the ``OSError`` of a folder or program that is not there: the shell at the gate would only write about it."""
    program, folder = command.argv[0], Path(command.folder)
    if not folder.is_dir():
        missing = errno.ENOTDIR if folder.exists() else errno.ENOENT
        raise OSError(missing, os.strerror(missing), command.folder)
    named = str((folder / program).absolute()) if "/" in program else program
    places = os.pathsep.join(str(folder / each) for each in os.get_exec_path(environment))
    if shutil.which(named, path=places) is None:
        missing = errno.EACCES if shutil.which(named, os.F_OK, places) else errno.ENOENT
        raise OSError(missing, os.strerror(missing), program)


class _Output:
    """The output of a process: all of it is read, so that the process never blocks; its beginning or end is kept."""

    def __init__(self, limit: int, *, tail: bool) -> None:
        self.kept = bytearray()
        self.lost = 0
        self._limit = limit
        self._tail = tail

    def take(self, data: bytes) -> None:
        self.kept += data
        excess = max(len(self.kept) - self._limit, 0)
        del self.kept[slice(excess) if self._tail else slice(self._limit, None)]
        self.lost += excess


class _Child(asyncio.SubprocessProtocol):
    """A process that leads a group, from its start until nothing of the group is left."""

    def __init__(
        self, command: Command, environment: dict[str, str], limit: int, supervisor: Supervisor
    ) -> None:
        self._supervisor = supervisor
        self._command = command
        self._environment = environment
        self._transport: asyncio.SubprocessTransport | None = None
        self._signal: signal.Signals | None = None  # sent as soon as the process exists
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()
        self.stdout = _Output(limit, tail=False)
        self.stderr = _Output(limit, tail=True)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).take(data)

    def process_exited(self) -> None:
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        self._closed.set()

    async def live(self, given: bytes) -> int:
        """Start it, give it its input, read what it writes, and wait for its end; this is never cancelled."""
        self._transport = transport = await self._start()
        if self._signal is not None:
            self._send(self._signal)
        try:
            await self._begin(transport, given)
            await self._exited.wait()
        finally:
            self._send(_SIGKILL)  # processes that it left behind end with it
            if _HAS_GROUPS:
                self._supervisor.end(transport.get_pid())
            with contextlib.suppress(TimeoutError):  # a process that left the group may hold them open
                await asyncio.wait_for(self._closed.wait(), LEFT_OPEN)
            transport.close()
            await self._closed.wait()
        return transport.get_returncode() or 0

    async def _begin(self, transport: asyncio.SubprocessTransport, given: bytes) -> None:
        """Open the gate when the group is sure to end with this node, and give the command its input."""
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)  # noqa: S101 - it was asked for
        if _HAS_GROUPS:
            try:
                await self._supervisor.begin(transport.get_pid())
            except OSError as error:
                reason = f"cannot start the command: its supervisor does not answer: {error!r}"
                raise NotStartedError(reason) from None
            stdin.write(b"\n")
        stdin.write(given)
        stdin.write_eof()

    async def _start(self) -> asyncio.SubprocessTransport:
        try:
            if _HAS_GROUPS:
                _check_program(self._command, self._environment)
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *(_GATE if _HAS_GROUPS else ()),
                *self._command.argv,
                env=self._environment,
                cwd=self._command.folder or None,
                start_new_session=True,
            )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError)
            reason = f"{error.filename or self._command.argv[0]}: {error.strerror}"
            raise NotStartedError(f"cannot start the command: {reason}", permanent=missing) from None
        return transport

    async def end(self, life: asyncio.Task[int], grace: float | None) -> None:
        """Ask the group to end, and kill it when the time is up, or at once when this is cancelled."""
        with contextlib.suppress(asyncio.CancelledError):
            self._send(signal.SIGTERM)
            await asyncio.wait([life], timeout=grace)
        if not life.done():
            self._send(_SIGKILL)
            await _outlast(life, KILLED_WITHIN)
        if life.done():
            life.exception()  # how it ended does not matter any more

    def _send(self, which: signal.Signals) -> None:
        self._signal = which
        if self._transport is None:
            return
        with contextlib.suppress(ProcessLookupError):  # nothing of the group is left
            if _HAS_GROUPS:
                os.killpg(self._transport.get_pid(), which)
            else:
                self._transport.send_signal(which)


async def _outlast(task: asyncio.Task[int], seconds: float) -> None:
    """Wait for a task that ends soon, even if this is cancelled."""
    waiting = asyncio.ensure_future(asyncio.wait([task], timeout=seconds))
    while not waiting.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(waiting)

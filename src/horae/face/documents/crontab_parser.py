"""Parses crontabs: lines become schedules and commands, with remarks on what differs or cannot be imported.

Pure: text in, values out. It keeps what cron does where it can: the zone, clock changes, the environment, the shell, and the meaning
of a per cent sign. The five fields have the dialect ``unix``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from horae.errors import SpecError
from horae.spec import Spec

_ASSIGNMENT = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([^\s=#"'@*]+))\s*=\s*(.*?)\s*$""")
_BLANKS = " \t"
_ROUND_NUMBER = re.compile(r"\d{1,4}")
_OF_CRON = {"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "CRON_TZ", "RANDOM_DELAY"}
"""Variables for cron itself, which commands do not get."""

_CLOSED = 'exec "$1" -c "$2" </dev/null'
_PIPED = 'printf %s "$3" | "$1" -c "$2"'
"""Run a command with empty standard input, or with a text. The arguments are the shell, the command and the text."""

_PATH = "/usr/bin:/bin"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

CRON_POLICIES: dict[str, Any] = {
    "overlap": "allow_all", "catch_up": {"mode": "none"}, "on_resume": "skip", "finished_ttl": None,
}  # fmt: skip
"""As in cron: runs may overlap, and missed slots do not run."""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command as in the file of ``HORAE_COMMANDS``."""

    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    folder: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line that runs a command, as a schedule and a command."""

    line: int
    text: str
    id: str
    """Derived from the line, so that importing the line again finds the same schedule."""
    spec: dict[str, Any]
    command: Command
    comment: str = ""

    @property
    def schedule(self) -> dict[str, Any]:
        """The body of the request that creates it."""
        memo = {"crontab": self.text} | ({"comment": self.comment} if self.comment else {})
        return {
            "id": self.id, "spec": self.spec, "action": f"command:{self.id}", "policies": CRON_POLICIES,
            "tags": ["crontab"], "memo": memo,
        }  # fmt: skip


class Remark(msgspec.Struct, frozen=True):
    """A remark about a line."""

    line: int
    text: str
    reason: str


class Crontab(msgspec.Struct, frozen=True):
    """A parsed crontab: what is imported, what is not, and what will differ."""

    entries: tuple[Entry, ...]
    left_out: tuple[Remark, ...]
    remarks: tuple[Remark, ...]


def is_system(path: str) -> bool:
    """Whether the crontab at a path has a user column."""
    return path == "/etc/crontab" or path.startswith("/etc/cron.d/")


def read_crontab(
    text: str, *, timezone: str, system: bool = False, home: Callable[[str], str | None] = lambda _: None
) -> Crontab:
    """Parse a crontab whose times are in a zone. ``home`` finds the folder of a user, or of the current one if the name is empty."""
    reader = _Reader(timezone, home, system=system)
    for number, line in enumerate(text.split("\n"), start=1):
        reader.read(number, line.removesuffix("\r"))
    return Crontab(tuple(reader.entries), tuple(reader.left_out), tuple(reader.remarks))


class _Reader:
    """Reads lines. A variable holds for the lines below it, a comment for the next line."""

    def __init__(self, timezone: str, home: Callable[[str], str | None], *, system: bool) -> None:
        self.entries: list[Entry] = []
        self.left_out: list[Remark] = []
        self.remarks: list[Remark] = []
        self._timezone = timezone
        self._home = home
        self._system = system
        self._variables: dict[str, str] = {}
        self._comment: list[str] = []
        self._ids: dict[str, int] = {}

    def read(self, number: int, line: str) -> None:
        """Read one line."""
        stripped = line.strip(_BLANKS)
        if stripped.startswith("#"):
            self._comment.append(stripped.lstrip("#").strip())
            return
        comment, self._comment = " ".join(self._comment).strip(), []
        if not stripped:
            return
        if "\0" in stripped or any("\ud800" <= each <= "\udfff" for each in stripped):
            readable = stripped.encode("utf-8", "replace").decode()
            self.left_out.append(Remark(number, readable, "it has bytes that are not UTF-8, or NUL"))
        elif assignment := _ASSIGNMENT.fullmatch(line):
            self._assign(number, stripped, assignment)
        else:
            self._entry(number, stripped, comment)

    def _assign(self, number: int, text: str, assignment: re.Match[str]) -> None:
        name = assignment[1] or assignment[2] or assignment[3]
        value = _unquoted(assignment[4])
        if not _VARIABLE.fullmatch(name):
            self.left_out.append(Remark(number, text, "this is no name for a variable"))
            return
        self._variables[name] = value
        if reason := _about_variable(name, value, self._timezone):
            self.remarks.append(Remark(number, text, reason))

    def _entry(self, number: int, text: str, comment: str) -> None:
        try:
            expression, user, command = _split(text, system=self._system)
            spec = self._spec(expression)
            Spec.parse(spec)
        except SpecError as error:
            cause = error.__cause__ if isinstance(error.__cause__, SpecError) else error
            hint = f" ({cause.hint})" if cause.hint else ""
            self.left_out.append(Remark(number, text, f"{cause.message}{hint}"))
            return
        except _CannotImportError as error:
            self.left_out.append(Remark(number, text, str(error)))
            return
        for reason in _about_entry(text, user, command):
            self.remarks.append(Remark(number, text, reason))
        self.entries.append(
            Entry(
                line=number,
                text=text,
                id=self._id(f"{expression}\n{user}\n{command}", command),
                spec=spec,
                command=self._command(command, user),
                comment=comment,
            )
        )

    def _spec(self, expression: str) -> dict[str, Any]:
        zone = self._variables.get("CRON_TZ") or self._timezone
        spec = {"crons": [expression], "timezone": zone, "clock_change": "debian"}
        delay = self._variables.get("RANDOM_DELAY", "")
        if _ROUND_NUMBER.fullmatch(delay) and int(delay):
            spec["jitter"] = f"{int(delay)}m"
        return spec

    def _command(self, command: str, user: str) -> Command:
        """The command that cron would run, with its environment."""
        shell = self._variables.get("SHELL") or "/bin/sh"
        folder = self._variables.get("HOME") or self._home(user)
        line, standard_input = _percent(command)
        wrapper, *rest = (_CLOSED,) if standard_input is None else (_PIPED, standard_input)
        usual = {"PATH": _PATH, "SHELL": shell} | ({"HOME": folder} if folder else {})
        own = {name: value for name, value in self._variables.items() if name not in _OF_CRON}
        return Command(
            argv=("/bin/sh", "-c", wrapper, "horae", shell, line, *rest),
            environment=usual | own,
            folder=folder,
        )

    def _id(self, content: str, command: str) -> str:
        """An id from the command's name and a hash; a line that occurs twice runs twice, as in cron."""
        word = _first_word(command).rpartition("/")[2]
        slug = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:30] or "line"
        name = f"cron-{slug}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"
        self._ids[name] = self._ids.get(name, 0) + 1
        return name if self._ids[name] == 1 else f"{name}-{self._ids[name]}"


class _CannotImportError(Exception):
    """Why a line cannot be imported."""


def _split(text: str, *, system: bool) -> tuple[str, str, str]:
    """The expression, the user (empty if there is no such column) and the command of a line."""
    fields = 1 if text.startswith("@") else 5
    words = re.split(f"[{_BLANKS}]+", text, maxsplit=fields + system)
    expression = " ".join(words[:fields])
    if words[0].lower() == "@reboot":
        raise _CannotImportError("@reboot is no time: start it with the service manager, such as systemd")
    if len(words) <= fields + system or not words[-1]:
        columns = (
            f"{'one word' if fields == 1 else 'five fields'}{', a user' if system else ''} and a command"
        )
        raise _CannotImportError(f"it is incomplete: it needs {columns}")
    if "~" in expression:
        raise _CannotImportError(
            'it has a random field ("~"), and nothing in Horae is random: write a fixed value, and let jitter spread the starts'
        )
    user = words[fields] if system else ""
    return expression.removeprefix("-"), user, words[-1]


def _percent(command: str) -> tuple[str, str | None]:
    r"""The command, and its standard input if it has one: after the first ``%``; others are line ends, ``\%`` is the sign."""
    line, *rest = (part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command))
    return line, "\n".join(rest) + "\n" if rest else None


def _first_word(command: str) -> str:
    return re.split(f"[{_BLANKS}%]", command, maxsplit=1)[0]


def _unquoted(value: str) -> str:
    """The value of a variable; quotes keep its outer blanks."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _about_variable(name: str, value: str, timezone: str) -> str | None:
    if name == "MAILTO" and value:
        return "Horae sends no mail: the output of a command is kept with its run"
    if name == "TZ":
        return f"commands see it, but it does not change the times, as in cron: they are in {timezone}"
    if name == "CRON_TZ" and value:
        return f"the times of the lines below are in {value}"
    if name == "RANDOM_DELAY" and _ROUND_NUMBER.fullmatch(value) and int(value):
        return f"the lines below get a jitter of {value} minutes, the same each time for one slot"
    if name in {"MAILFROM", "RANDOM_DELAY", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"} and value:
        return "Horae has no counterpart; it is left out"
    return None


def _about_entry(text: str, user: str, command: str) -> Iterator[str]:
    if user:
        yield f"cron runs it as {user}; Horae runs it as the user of horae serve"
    if text.startswith("-"):
        yield "the dash that keeps it out of cron's log is left out: every run is in the ledger"
    if not user and _first_word(command) == "root":
        yield 'its command begins with "root": if this is a system crontab, import it with --system'

"""Help that teaches, completion, documentation that names everything, and a start that loads little."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from horae.face.cli import PANELS, cli
from tests.face.cli.command import PLAIN, answered, horae, horae_process
from tests.support.process import Server, fork_server, printed_by

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "cli.md").read_text("utf-8")


def commands(group: Any = None, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command, by its words."""
    group = get_command(cli) if group is None else group
    if not hasattr(group, "list_commands"):
        yield name, group
        return
    for each in group.list_commands(None):
        yield from commands(group.get_command(None, each), (*name, each))


COMMANDS = dict(commands())


def test_the_promised_commands_are_there():
    schedules = "create list describe update pause resume trigger backfill delete skip times preview"
    promised = {
        *(("schedules", name) for name in schedules.split()),
        *(("runs", name) for name in ("list", "show", "cancel", "terminate", "rerun", "tail")),
        *(("calendars", name) for name in ("list", "put", "show", "delete")),
        *(("workflows", name) for name in ("deploy", "list", "show", "validate", "run", "draw")),
        ("token", "create"), ("next",), ("serve",), ("explain",), ("forecast",), ("apply",), ("export",), ("nodes",), ("import", "crontab"), ("migrate",), ("check",),
    }  # fmt: skip
    assert promised <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_has_an_example_and_the_page_has_every_option(name: tuple[str, ...]):
    command = COMMANDS[name]
    assert f"horae {' '.join(name)}" in command.help
    assert f"horae {name[0]}" in PAGE
    assert f"`{name[-1]}" in PAGE or f"`horae {' '.join(name)}" in PAGE
    for parameter in command.params:
        for option in parameter.opts + parameter.secondary_opts:
            if option.startswith("--"):
                assert re.search(rf"{option}\b", PAGE), option


def test_a_summary_is_the_beginning_of_the_help_of_its_command():
    root = get_command(cli)
    for names in PANELS.values():
        for name, summary in names.items():
            own = root.get_command(None, name).help  # type: ignore[attr-defined]
            assert " ".join(own.partition("\n\n")[0].split()) == summary


def test_help_is_shown_where_something_is_missing():
    ran = horae("schedules", "describe")
    assert "horae schedules describe report" in ran.stdout + ran.stderr
    assert "did you mean schedules?" in horae("schedulse").stderr
    assert "did you mean describe?" in horae("schedules", "descibe").stderr
    assert horae("schedulse").returncode == 2


def test_flags_have_no_type_and_usage_no_double_brackets():
    for name in ((), *COMMANDS):
        shown = horae(*name, "--help").stdout
        assert "<bool>" not in shown
        assert "[[" not in shown


def completed(words: str, **environment: str) -> set[str]:
    """What a shell is offered for the last of some words."""
    ran = subprocess.run(
        [fork_server().python, "-m", "horae"], capture_output=True, text=True, check=False, timeout=60,
        env={
            "PATH": "/usr/bin:/bin", "_HORAE_COMPLETE": "complete_bash", "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1), **environment,
        },
    )  # fmt: skip
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_shells_complete_commands_and_options():
    assert {"next", "schedules", "import"} <= completed("horae ")
    assert {"describe", "delete"} <= completed("horae schedules d")
    assert "--state" in completed("horae schedules list --st")
    assert "--show-completion" in horae("--help").stdout


def test_shells_complete_the_ids_of_schedules(server: Server):
    for name in ("alpha", "beta"):
        answered("schedules", "create", name, "--every", "1h", "--action", "greet", "--url", server.url)
    assert completed("horae schedules describe ", HORAE_URL=server.url) == {"alpha", "beta"}
    assert completed(f"horae --url {server.url} explain a") == {"alpha"}
    assert completed(f"horae schedules pause --url {server.url} b") == {"beta"}
    assert completed("horae schedules describe ", HORAE_URL="http://127.0.0.1:1") == set()


def test_what_needs_no_server_loads_none():
    code = (
        "import sys; sys.argv = ['horae', 'next', '0 9 * * *']\n"
        "from horae.face.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('httpx', 'uvicorn', 'sqlite3', 'asyncpg', 'horae.app', 'horae.face.cli.schedules') if m in sys.modules])"
    )
    assert printed_by(code).splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("module", "command"),
    [("httpx", "schedules list --url http://127.0.0.1:1"), ("uvicorn", "serve"), ("structlog", "serve")],
)
def test_a_part_that_is_not_installed_is_named(tmp_path: Path, module: str, command: str):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('no {module}', name={module!r})")
    ran = horae_process(*command.split(), PYTHONPATH=f"{tmp_path}:{PLAIN['PYTHONPATH']}")
    assert ran.returncode == 2
    assert f"{module} is not installed" in ran.stderr
    assert "hint: pip install 'horae[service]'" in ran.stderr


@pytest.mark.parametrize("command", ["schedules list", "migrate", "serve"])
def test_postgresql_without_its_driver_names_the_driver(tmp_path: Path, command: str):
    (tmp_path / "asyncpg.py").write_text("raise ModuleNotFoundError('no asyncpg', name='asyncpg')")
    ran = horae_process(
        *command.split(),
        "--database",
        "postgresql://127.0.0.1:1/horae",
        PYTHONPATH=f"{tmp_path}:{PLAIN['PYTHONPATH']}",
    )
    assert ran.returncode == 2
    assert "asyncpg is not installed" in ran.stderr
    assert "hint: pip install 'horae[postgres]'" in ran.stderr

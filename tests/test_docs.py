"""The documentation is true: its examples run, its links lead somewhere, its JSON is accepted."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from horae.face.cli import cli
from horae.face.declarative.states import POLLING, SCHEDULER, TASK, diagram
from horae.spec import Spec
from tests.face.cli.command import horae

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def console_blocks() -> list[tuple[str, str, str]]:
    """Every command of the pages with what it prints: (page, command, output)."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            command, _, output = block.partition("\n")
            found.append((name(page), command.removeprefix("$ "), output))
    return found


def normal(text: str) -> str:
    """Without trailing blanks, and with any version of the time-zone database."""
    lines = [re.sub(r"tzdata \d{4}\w", "tzdata", line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_examples_run(page: Path):
    result = doctest.testfile(str(page), module_relative=False)
    assert result.failed == 0


@pytest.mark.parametrize(("page", "command", "output"), console_blocks())
def test_commands_print_what_the_page_says(page: str, command: str, output: str):
    program, *arguments = shlex.split(command)
    assert program == "horae"
    ran = horae(*arguments)
    assert normal(ran.stdout + ran.stderr) == normal(output)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_spec_on_the_reference_page_is_one():
    page = (ROOT / "docs" / "reference" / "spec.md").read_text("utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    spec = Spec.parse(json.loads(block[1]))
    assert set(json.loads(block[1])) == set(spec.document.__struct_fields__)
    for field in spec.document.__struct_fields__:
        assert f"`{field}`" in page


def test_every_command_and_option_is_documented():
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    for command in cli.registered_commands:
        assert f"## `horae {command.name}`" in page
        shown = horae(str(command.name), "--help")
        for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", shown.stdout)) - {"--help"}:
            assert option in page


def test_module_examples_run():

    assert doctest.testmod(sys.modules["horae.spec.spec"]).failed == 0


def test_the_program_of_the_tutorial_survives_kill_9(tmp_path: Path):
    page = (ROOT / "docs" / "tutorial" / "durable-program.md").read_text("utf-8")
    program = re.search(r"```py\n(import asyncio.*?)```", page, re.DOTALL)
    assert program is not None
    assert '"*/10 * * * * *"' in program[1]
    (tmp_path / "program.py").write_text(program[1].replace("*/10 * * * * *", "* * * * * *"))  # sooner
    for expected in ("attempt 1", "attempt 2"):
        running = subprocess.Popen(
            [sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        line = running.stdout.readline()
        running.kill()
        running.communicate()
        assert line.strip().endswith(f"begins, {expected}")


def test_the_tasks_of_the_tutorial_survive_kill_9(tmp_path: Path):
    page = (ROOT / "docs" / "tutorial" / "declarative.md").read_text("utf-8")
    program = re.search(r"```py\n(import asyncio.*?)```", page, re.DOTALL)
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert program is not None
    assert shown is not None
    (tmp_path / "tasks.py").write_text(program[1])
    for _ in range(2):  # killed in the middle, it begins again at once
        running = subprocess.Popen(
            [sys.executable, "tasks.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in shown[1].splitlines()]
        running.kill()
        running.communicate()
        assert [line.split() for line in lines] == [line.split() for line in shown[1].splitlines()]


def test_the_page_of_the_declarative_scheduler_is_drawn_from_its_tables():
    page = (ROOT / "docs" / "reference" / "declarative.md").read_text("utf-8")
    for table in (SCHEDULER, POLLING, TASK):
        assert diagram(table) in page
        for transition in table:
            assert f"| `{transition.event.__name__}` |" in page

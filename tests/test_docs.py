"""The documentation is complete, and its parts fit together: links, the index, the reference pages."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from typer.main import get_command

from horae.app.schedule_views import Description
from horae.face.cli import cli
from horae.face.declarative.states import POLLING, SCHEDULER, TASK, diagram
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.cases import each_of
from tests.support.pages import DOCS, PAGES, page_name
from tests.support.process import ROOT


def links(page: Path) -> set[tuple[Path, str]]:
    """The files that a page links to, with the parts that are meant."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text)
    return {((page.parent / to).resolve() if to else page, part) for to, part in found if "://" not in to}


def parts(page: Path) -> set[str]:
    """What a link to a part of a page may name: its headings, as GitHub does, and its anchors."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return set(re.findall(r'<a id="([^"]+)">', text)) | {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@each_of("page", PAGES)
def test_links_lead_somewhere(page: Path):
    for target, part in links(page):
        assert target.exists(), target
        assert not part or part in parts(target), f"{page_name(target)}#{part}"


def test_every_page_is_in_the_index():
    assert {target for target, _ in links(DOCS / "index.md")} >= set(PAGES) - {DOCS / "index.md"}
    assert (DOCS / "index.md", "") in links(ROOT / "README.md")


def test_the_spec_on_the_reference_page_is_one():
    page = (ROOT / "docs" / "reference" / "spec.md").read_text("utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    spec = Spec.parse(json.loads(block[1]))
    assert set(json.loads(block[1])) == set(spec.document.__struct_fields__)
    for field in spec.document.__struct_fields__:
        assert f"`{field}`" in page


def known_options(written: str) -> tuple[list[str], set[str]]:
    """The words of a command that follow its name, and the options that it takes."""
    command: Any = get_command(cli)
    words = shlex.split(written.replace("…", ""))[1:]
    options = {"--help"}
    while True:
        options |= {each for option in command.params for each in (*option.opts, *option.secondary_opts)}
        if not hasattr(command, "list_commands") or not words:
            return words, options
        assert words[0] in command.list_commands(None), f"{written}: there is no {words[0]}"
        command = command.get_command(None, words.pop(0))


@each_of("page", PAGES)
def test_commands_in_the_text_exist_with_their_options(page: Path):
    """Blocks are run; what stands in sentences and tables is compared with what the command takes."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for written in re.findall(r"`(horae [a-z][^`\n]*)`", text):
        words, options = known_options(written)
        named = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert named <= options, f"{written}: there is no {named - options}"


async def test_describing_a_schedule_gives_a_description(machine: TimeMachine):
    page = (DOCS / "reference" / "python.md").read_text("utf-8")
    assert "| `describe(id)` | a `Description`: the `schedule`, its counts," in page
    machine.app.action("report")(lambda: None)
    await machine.app.schedules.create("x", "0 9 * * *", "report")
    found = await machine.app.schedules.describe("x")
    assert isinstance(found, Description)
    assert found.schedule == await machine.app.schedules.get("x")
    assert len(found.next_times) == 10


def test_the_table_of_clock_changes():
    page = (DOCS / "how-to" / "clock-changes.md").read_text("utf-8")
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    told = {
        "not on 29 March": 0,
        "at 03:00": 1,
        "02:30 and 02:30": 2,
        "the first, or the last 02:30": 1,
        "the first 02:30": 1,
    }
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)[2:]
    assert len(rows) == 5
    for _, say, in_spring, in_autumn in rows:
        policy: Any = (
            dict(re.findall(r"(gap|fold|clock_change): (\w+)", say)[:2])
            if "or" not in say
            else {"fold": "first"}
        )
        spec = Spec.cron("30 2 * * *", timezone="Europe/Berlin", **policy)
        assert len(spec.between(spring, spring + timedelta(hours=24))) == told[in_spring], say
        assert len(spec.between(autumn, autumn + timedelta(hours=24))) == told[in_autumn], say


def test_the_page_of_the_declarative_scheduler_is_drawn_from_its_tables():
    page = (ROOT / "docs" / "reference" / "declarative.md").read_text("utf-8")
    for table in (SCHEDULER, POLLING, TASK):
        assert diagram(table) in page
        for transition in table:
            assert f"| `{transition.event.__name__}` |" in page

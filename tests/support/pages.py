"""The pages of the documentation, and the blocks in them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.support.process import ROOT

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    kind: str
    text: str
    before: str
    """The words between the block before it and this one."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: ```{self.kind}\n{self.text}```"

    @property
    def is_doctest(self) -> bool:
        return self.kind in ("py", "python") and self.text.startswith(">>> ")

    @property
    def file(self) -> str:
        """The name under which the page lets its reader save the block, or nothing."""
        named = re.match(r"# (?:at the end of )?(\S+\.\w+)\n", self.text)
        told = re.search(r"\b[Ss]ave (?:this|it|them)[^.\n]* as `([^`]+)`[^`]*$", self.before)
        return named[1] if named else told[1] if told else ""


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = (ROOT / page).read_text("utf-8")
    found, end = [], 0
    for fence in _FENCE.finditer(text):
        found.append(
            Block(
                page,
                text.count("\n", 0, fence.start()) + 1,
                fence["kind"],
                textwrap.dedent(fence["text"]),
                text[end : fence.start()],
            )
        )
        end = fence.end()
    return found


def block(page: str, kind: str, having: str = "") -> str:
    """The text of the one block of a page under ``docs`` that is of a kind and has a text in it."""
    (found,) = [each.text for each in blocks_of(f"docs/{page}") if each.kind == kind and having in each.text]
    return found

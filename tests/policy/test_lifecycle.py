"""The life of a run: the table, the page that shows it, and what the decisions make of it."""

from __future__ import annotations

from pathlib import Path

from horae.model import OPEN, Reason, Status
from horae.policy.lifecycle import ENDED, TRANSITIONS, diagram

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "runs.md"


def test_every_status_has_its_place():
    assert set(TRANSITIONS) == set(Status)
    assert set(OPEN) | ENDED == set(Status)
    assert not set(OPEN) & ENDED


def test_the_page_is_drawn_from_the_table():
    page = PAGE.read_text("utf-8")
    assert diagram() in page
    for word in [*Status, *Reason]:
        assert f"`{word}`" in page

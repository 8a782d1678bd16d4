"""Every reason has a sentence, and the page of runs says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from horae.model import Reason
from horae.policy.reason import SENTENCES
from tests.support.cases import each_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "runs.md"


@pytest.mark.contract("SCHD-28")
def test_every_reason_has_a_sentence_of_its_own():
    assert set(SENTENCES) == set(Reason)
    assert len(set(SENTENCES.values())) == len(Reason)
    assert all(sentence == sentence.strip() != "" for sentence in SENTENCES.values())


@pytest.mark.contract("SCHD-28")
@each_of("reason", Reason)
def test_the_page_says_the_same(reason: Reason):
    assert f"| `{reason}` | {SENTENCES[reason]} |" in PAGE.read_text("utf-8")

"""Several names in one field of a form, and the same names back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.face.console.name_list_field import calendars_of, calendars_text, tags_of, tags_text


@pytest.mark.parametrize(
    ("text", "tags", "calendars"),
    [
        ("trial, newcomer", ["trial", "newcomer"], ["trial", "newcomer"]),
        ("a,b", ["a", "b"], ["a", "b"]),
        (" made  here ", ["made", "here"], ["made  here"]),
        ('"my team", night', ["my team", "night"], ["my team", "night"]),
        ('"a, b" , 5"', ["a, b", '5"'], ["a, b", '5"']),
        (" , ,", [], []),
        ('"', ['"'], ['"']),
    ],
)
def test_commas_separate_names_and_spaces_separate_tags(text: str, tags: list[str], calendars: list[str]):
    assert tags_of(text) == tags
    assert calendars_of(text) == calendars


@given(st.lists(st.text('ab ,"', min_size=1)))
def test_the_text_of_a_field_has_the_names_it_was_made_of(names: list[str]):
    assert tags_of(tags_text(names)) == names
    assert calendars_of(calendars_text(names)) == names

"""Several names in one field of a form: tags, which commas and spaces separate, and calendars, which commas separate. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

COMMAS, COMMAS_AND_SPACES = ",", r",\s"


def tags_of(text: str) -> list[str]:
    """The tags in a text."""
    return _names_of(text, COMMAS_AND_SPACES)


def tags_text(tags: Iterable[str]) -> str:
    """The text of a field that has these tags."""
    return _text_of(tags, COMMAS_AND_SPACES)


def calendars_of(text: str) -> list[str]:
    """The names of calendars in a text, which may contain spaces."""
    return _names_of(text, COMMAS)


def calendars_text(names: Iterable[str]) -> str:
    """The text of a field that has these calendars."""
    return _text_of(names, COMMAS)


def _names_of(text: str, separators: str) -> list[str]:
    """The names in a text. A name in quotes may contain separators; a quote in it is doubled."""
    found = re.findall(rf'"((?:[^"]|"")+)"(?=\s*(?:[{separators}]|$))|([^,\s][^{separators}]*)', text)
    return [quoted.replace('""', '"') or plain.strip() for quoted, plain in found]


def _text_of(names: Iterable[str], separators: str) -> str:
    return ", ".join(
        each
        if each[:1] != '"' and _names_of(each, separators) == [each]
        else '"' + each.replace('"', '""') + '"'
        for each in names
    )

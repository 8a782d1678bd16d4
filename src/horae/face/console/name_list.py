"""Several names in one field of a form: tags, which commas and spaces separate, and calendars, which commas separate. Pure."""

from __future__ import annotations

import re


def names_of(text: str, separators: str = r",\s") -> list[str]:
    """The names in a text. A name in quotes may contain separators; a quote in it is doubled."""
    found = re.findall(rf'"((?:[^"]|"")+)"(?=\s*(?:[{separators}]|$))|([^,\s][^{separators}]*)', text)
    return [quoted.replace('""', '"') or plain.strip() for quoted, plain in found]


def text_of(names: list[str], separators: str = r",\s") -> str:
    """The text of a field that has these names."""
    return ", ".join(
        each
        if each[:1] != '"' and names_of(each, separators) == [each]
        else '"' + each.replace('"', '""') + '"'
        for each in names
    )


def calendars_of(text: str) -> list[str]:
    """The names of calendars, which may contain spaces."""
    return names_of(text, ",")


def calendars_text(names: list[str]) -> str:
    """The text of a field that has these calendars."""
    return text_of(names, ",")

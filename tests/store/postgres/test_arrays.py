"""Columns of a batch as texts of arrays: every value that can be stored arrives as it was."""

from __future__ import annotations

import asyncpg
from hypothesis import given
from hypothesis import strategies as st

from horae.store.postgres.dialect import array_of

HARD = [
    "",
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "{}",
    "a,b",
    " spaced ",
    "line\nline",
    "\t",
    "'",
    "ü–🕰",
    "{NULL}",
    '""',
]
TEXTS = st.sampled_from(HARD) | st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def sent(name: str, values: list[object]) -> str:
    return array_of(name, [{name: value} for value in values])


async def test_texts_arrive_as_they_were(postgres: str):
    connection = await asyncpg.connect(postgres)
    values: list[object] = [*HARD, None, *(f"{one}{other}" for one in HARD for other in HARD)]
    try:
        found = await connection.fetchval("SELECT $1::text::text[]", sent("note", values))
    finally:
        await connection.close()
    assert found == values


async def test_numbers_and_truth_arrive_as_they_were(postgres: str):
    connection = await asyncpg.connect(postgres)
    numbers: list[object] = [0, -1, 2**63 - 1, -(2**63), None]
    truth: list[object] = [True, False, None]
    try:
        assert await connection.fetchval("SELECT $1::text::bigint[]", sent("cursor_ms", numbers)) == numbers
        assert await connection.fetchval("SELECT $1::text::boolean[]", sent("paused", truth)) == truth
        assert await connection.fetchval("SELECT $1::text::text[]", sent("note", [])) == []
    finally:
        await connection.close()


@given(st.lists(TEXTS | st.none(), max_size=20))
def test_a_reader_of_the_grammar_finds_the_same_texts(values: list[object]):
    assert read_array(sent("note", values)) == values


def read_array(text: str) -> list[object]:
    """Elements of an array as PostgreSQL's manual defines it: in double quotes, a backslash before what is meant literally."""
    found: list[object] = []
    rest = text.removeprefix("{").removesuffix("}")
    while rest:
        if rest.startswith("NULL"):
            found.append(None)
            rest = rest.removeprefix("NULL").removeprefix(",")
            continue
        element, place = "", 1
        while rest[place] != '"':
            place += rest[place] == "\\"
            element += rest[place]
            place += 1
        found.append(element)
        rest = rest[place + 1 :].removeprefix(",")
    return found

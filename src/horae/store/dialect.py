"""The texts of statements, one a file: shared ones in ``sql/``, and those that differ in the folder of a dialect.

A shared text is standard SQL with placeholders. These are the same in every dialect, and name a table of :mod:`horae.store.tables`:

- ``{columns(run)}``: all columns, as a decoder takes them; ``{size(run)}``: the bytes of all texts in a row;
- ``{inserted(run)}``, ``{new(run)}`` and ``{parameters(run)}``: the columns of an insert, and their values in a batch and in one row;
- ``{updated(run)}`` and ``{excluded(run)}``: assignments of new values, in an update and in an insert that meets an old row;
- ``{include(filter)}``: the text of another file; ``{open(status)}``: a column is the status of an open run.

For the others each dialect has its own phrase (:class:`Dialect`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

from horae.model import OPEN
from horae.store.tables import KINDS, RUN_WITHOUT_INPUT, TABLES, RawSchedule


class Dialect:
    """The phrases in which the SQL of a database differs from others.

    In a phrase, ``{0}`` and ``{1}`` are what the placeholder gives it, and ``{new}`` is a batch as arrays.

    - ``among(ids, text)``: is one of the elements of a parameter; ``elements(ids, text)``: those as rows with a ``value``;
      ``elements_as(topics, text)``: the same, called as the parameter is;
    - ``bytes(note)``: how many bytes a text has; ``position``: the function that finds a text in another;
    - ``json(state)``: a text as JSON, ``NULL`` if it is none; ``has(tags, tag)``: a list in JSON contains a parameter;
    - ``index(run_open)``: a hint to use this index; ``share_lock(run)``: keep other transactions from changing the rows, and
      ``update_lock``: from locking them too; ``skip_locked``: the same, without the rows that another transaction has locked;
    - ``from_new``: the clause that brings the rows of a batch, ``also_new``: the same before other tables; a statement calls
      their columns ``new.…``, which is
      ``new_value``; ``values`` and ``end_values``: what stands around such columns in an insert;
    - ``delete_each(run, number)`` and ``deleted(run, number)``: what stands around a subquery that names, for each row of
      a batch, the keys to delete;
    - in migrations, ``identity``: the type of a key that the database counts; ``clustered`` and ``updated_often``: how the
      rows of a table are laid out; ``number_column``, ``number_sequence``: what ``next_number`` counts with;
      ``lease_column``: until when a node is alive, and on SQLite ``time_ms``: the time by which that is judged; ``json_function``: what ``json`` calls; ``publish_function``: what applications publish with.
    """

    def __init__(self, name: str, phrases: Mapping[str, str]) -> None:
        self.name = name
        self._phrases = phrases

    def expand(self, text: str) -> str:
        """Replace all placeholders of a text."""
        text = _replace(text, self._common)
        names = list(dict.fromkeys(re.findall(r"\bnew\.(\w+)", text)))
        arrays = ", ".join(f":{name}::text::{KINDS[name]}[]" for name in names)
        new = f"unnest({arrays}) AS new ({', '.join(names)})"
        text = _replace(text, lambda word, given: self._phrases[word].format(*given, new=new))
        return re.sub(r"\bnew\.(\w+)", lambda match: self._phrases["new_value"].format(match[1]), text)

    def _common(self, word: str, given: list[str]) -> str | None:
        if word == "include":
            return query(self, given[0])
        if word == "open":
            # As the index of open runs says it: a list would be a temporary table to SQLite.
            return f"({' OR '.join(f'{given[0]} = {status.value!r}' for status in OPEN)})"
        if word not in _OF_A_TABLE:
            return None
        return _OF_A_TABLE[word](given[0])


def _size(table: str) -> str:
    texts = [name for name, kind in TABLES[table].kinds.items() if kind == "text"]
    return " + ".join(f"coalesce({{bytes({table}.{name})}}, 0)" for name in texts)


_COLUMNS = {name: table.selected for name, table in TABLES.items()} | {
    "raw_schedule": RawSchedule._fields,
    "run_without_input": RUN_WITHOUT_INPUT.selected,
}
_OF_A_TABLE: dict[str, Callable[[str], str]] = {
    "columns": lambda table: ", ".join(_COLUMNS[table]),
    "parameters": lambda table: ", ".join(f":{name}" for name in TABLES[table].inserted),
    "inserted": lambda table: ", ".join(TABLES[table].inserted),
    "new": lambda table: ", ".join(f"new.{name}" for name in TABLES[table].inserted),
    "updated": lambda table: ", ".join(f"{name} = new.{name}" for name in TABLES[table].updated),
    "excluded": lambda table: ", ".join(f"{name} = excluded.{name}" for name in TABLES[table].updated),
    "size": _size,
}


def _replace(text: str, phrase: Callable[[str, list[str]], str | None]) -> str:
    """Replace the placeholders for which ``phrase`` returns a text, and leave the others."""

    def replaced(match: re.Match[str]) -> str:
        given = [each.strip() for each in (match[2] or "").split(",")]
        found = phrase(match[1], given)
        return match[0] if found is None else found

    return re.sub(r"\{(\w+)(?:\(([^()]*)\))?\}", replaced, text)


@cache
def query(dialect: Dialect, name: str) -> str:
    """The text of a statement, without its comments; its parameters are named."""
    folder = resources.files("horae.store")
    own = folder / dialect.name / f"{name}.sql"
    text = (own if own.is_file() else folder / "sql" / f"{name}.sql").read_text("utf-8")
    return dialect.expand(re.sub(r"(?m)^--.*\n", "", text))


PARAMETER = re.compile(r"(?<!:):([a-z_]+)")  # two colons are a cast


def number_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    """A text with the parameters ``$1``, ``$2`` … instead of ``:name``, and their names in that order."""
    names = tuple(dict.fromkeys(PARAMETER.findall(text)))
    return PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text), names


def mark_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    """A text with ``?`` instead of ``:name``, and the names in the order of their uses: one that is used twice is there twice."""
    return PARAMETER.sub("?", text), tuple(PARAMETER.findall(text))


@cache
def migrations(dialect: Dialect) -> tuple[str, ...]:
    """The steps from an empty database to the present schema, in order; a database's version is how many it has taken."""
    folder = resources.files("horae.store") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(dialect.expand((folder / name).read_text("utf-8")) for name in names)

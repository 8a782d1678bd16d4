"""The texts of queries and migrations: one a file, named for what it does, the same names in every dialect."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def query(dialect: str, name: str) -> str:
    """The text of a query; a line ``-- include NAME`` stands for what several queries have in common."""
    text = resources.files(f"horae.store.{dialect}").joinpath(f"{name}.sql").read_text("utf-8")
    return re.sub(r"(?m)^-- include (\w+)\n", lambda match: query(dialect, match[1]), text)


@cache
def numbered(dialect: str, name: str, mark: str) -> tuple[str, tuple[str, ...]]:
    """The text of a query whose parameters are a mark and a number, and their names in that order."""
    return number_parameters(query(dialect, name), mark)


def number_parameters(text: str, mark: str) -> tuple[str, tuple[str, ...]]:
    """A text with parameters that are a mark and a number instead of ``:name``, and their names in that order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"{mark}{names.index(match[1]) + 1}"

    return re.sub(r"(?<!:):([a-z_]+)", number, text), tuple(names)  # two colons are a cast


@cache
def migrations(dialect: str) -> tuple[str, ...]:
    """The steps from nothing to the present schema, in order; a database's version is how many it has taken."""
    folder = resources.files(f"horae.store.{dialect}").joinpath("migrations")
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name
    )
    return tuple(entry.read_text("utf-8") for entry in files)

"""Tables without lines whose columns fit the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.text import Text

GAP = "  "
LEGIBLE, MIN_WRAPPED = 24, 12
"""The width that a wrapping column keeps by dropping optional columns, and the least it gets."""

Layout = tuple[list[int], list[int]]
"""The columns above each row, and those beside each other."""


class Table:
    """Rows below headings, without empty columns.

    A heading may end with marks. ``!``: the column names the row, and moves above it if there is no room. ``?``: it is dropped if
    there is no room, the last such column first, ``??`` before ``?``. ``~``: it wraps; other columns never do. ``>``: it is right-aligned.
    """

    def __init__(
        self, headings: Sequence[str], rows: Iterable[Sequence[object]], *, headed: bool = True
    ) -> None:
        self._headings = [Text(each.rstrip("!?~>"), style="bold") for each in headings]
        self._marks = [each[len(each.rstrip("!?~>")) :] for each in headings]
        self._rows = [[cell(each) for each in row] for row in rows]
        self._lines = [self._headings, *self._rows] if headed else self._rows
        self._natural = {
            number: max(
                part.cell_len for row in self._lines for part in row[number].split("\n", allow_blank=True)
            )
            for number in range(len(headings))
            if any(row[number] for row in self._rows)
        }

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The lines that fit the console."""
        layouts = list(self._layouts())
        above, beside = next(
            (each for each in layouts if self._least(each) <= options.max_width), layouts[-1]
        )
        indent = GAP if above else ""
        widths = self._widths(beside, options.max_width - len(indent))
        for row in self._lines:
            keys = [row[number] for number in above if row[number]]
            together = _line("", keys)
            if keys:
                yield from (
                    [together]
                    if together.cell_len <= options.max_width
                    else [_line("", [key]) for key in keys]
                )
            cells = [row[number].wrap(console, widths[number]) for number in beside]
            for parts in zip_longest(*cells, fillvalue=Text()):
                yield _line(
                    indent,
                    [self._aligned(*each) for each in zip(beside, parts, widths.values(), strict=True)],
                )

    def _layouts(self) -> Iterator[Layout]:
        """The layouts, from the one that shows most to the narrowest."""
        keys = [number for number in self._natural if "!" in self._marks[number]]
        for above in ([], keys) if keys else ([],):
            beside = [number for number in self._natural if number not in above]
            optional = [number for number in reversed(beside) if "?" in self._marks[number]]
            optional.sort(key=lambda number: self._marks[number].count("?"), reverse=True)
            for left_out in range(len(optional) + 1):
                yield above, [number for number in beside if number not in optional[:left_out]]

    def _least(self, layout: Layout) -> int:
        """The width that a layout needs."""
        above, beside = layout
        widths = [min(self._natural[each], self._least_of(each)) for each in beside]
        return sum(widths) + len(GAP) * (len(beside) - (not above))

    def _least_of(self, number: int) -> int:
        return LEGIBLE if "~" in self._marks[number] else self._natural[number]

    def _widths(self, beside: list[int], room: int) -> dict[int, int]:
        """The width of each column; wrapping ones share the room that the others leave."""
        widths = {number: self._natural[number] for number in beside}
        wrapping = sorted((each for each in beside if "~" in self._marks[each]), key=widths.__getitem__)
        left = (
            room - len(GAP) * (len(beside) - 1) - sum(widths[each] for each in beside if each not in wrapping)
        )
        for done, number in enumerate(wrapping):
            widths[number] = min(widths[number], max(left // (len(wrapping) - done), MIN_WRAPPED))
            left -= widths[number]
        return widths

    def _aligned(self, number: int, part: Text, width: int) -> Text:
        blanks = Text(" " * (width - part.cell_len))
        return blanks + part if ">" in self._marks[number] else part + blanks


def _line(indent: str, parts: Iterable[Text]) -> Text:
    line = Text(indent, no_wrap=True, overflow="ignore") + Text(GAP).join(parts)
    line.rstrip()
    return line


def table(*headings: str, rows: Iterable[Sequence[object]]) -> Table:
    """A table with headings."""
    return Table(headings, rows)


def facts(*rows: tuple[str, Any]) -> Table:
    """Names and values, one per line, without empty values."""
    shown = [(Text(name, style="dim"), value) for name, value in rows if value not in (None, "", [], {})]
    return Table(("name", "value~"), shown, headed=False)


def cell(value: object) -> Text:
    """A value as text, without markup or control characters."""
    if isinstance(value, Text):
        return value
    return Text("" if value is None else printable(str(value)))


def printable(text: str) -> str:
    """Text that is safe to print: control characters and what cannot be encoded become a replacement mark."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)

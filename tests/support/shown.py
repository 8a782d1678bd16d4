"""What a page shows is what was printed; times, ids and spans of a page stand for those of the day."""

from __future__ import annotations

import re

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_VARYING = {
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "time": rf"(?:\w{{3}} )?{_TIME}(?:\.\d+)?(?:Z| ?[+-]\d\d:\d\d)?",
    "clock": r"\b\d\d:\d\d:\d\d\b",
    "span": r"\b(?:\d+(?:\.\d+)?(?:ms|s|m|h|d) ?)+\b",
    "address": r"127\.0\.0\.1:\d+",
    "tzdata": r"\btzdata \d{4}\w\b",
}
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _VARYING.items()) + "|(?P<gap> ?…)"
)


class Shown:
    """The lines of a page as a pattern. A line with ``…`` alone stands for any lines, and ``…`` in a line for any words."""

    def __init__(self, text: str, *, exact: bool = False) -> None:
        """``exact``: times and spans must be as shown, because the command does not depend on the day."""
        self._tokens: list[tuple[str, str]] = []
        varying = {"tzdata", "gap"} if exact else {*_VARYING, "gap"}
        pattern = ""
        for line in _lines(text):
            pattern += r"(?:.*\n)*?" if line == "…" else self._line(line, varying) + r"\n"
        self._pattern = pattern

    def _line(self, line: str, varying: set[str]) -> str:
        pattern, end = "", 0
        for token in _TOKEN.finditer(line):
            kind = str(token.lastgroup)
            if kind in varying:
                pattern += re.escape(line[end : token.start()])
                if kind == "gap":
                    pattern += "(?: .*?)?" if token[0].startswith(" ") else ".*?"
                else:
                    self._tokens.append((kind, token[0]))
                    pattern += f"({_VARYING[kind]})"
                end = token.end()
        return pattern + re.escape(line[end:])

    def find(self, printed: str, *, more: bool = False) -> dict[str, str] | None:
        """What the times and ids of the page are here, or None if this was not printed. ``more``: and other lines after it."""
        text = "".join(f"{line}\n" for line in _lines(printed))
        found = re.match(self._pattern + ("" if more else r"\Z"), text)
        if found is None:
            return None
        here: dict[str, str] = {}
        for (kind, shown), actual in zip(self._tokens, found.groups(), strict=True):
            if kind == "id":
                here[shown] = actual
            elif kind == "time":
                here[_instant(shown)] = _instant(actual)
        return here


def _lines(text: str) -> list[str]:
    """Lines with single blanks between words, without empty ones."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _instant(text: str) -> str:
    """A time as it is written in commands."""
    found = re.search(_TIME, text)
    assert found is not None
    return found[0].replace(" ", "T")


def as_here(text: str, here: dict[str, str]) -> str:
    """A command of a page, with the times and ids of the day."""
    pattern = "|".join(re.escape(each) for each in sorted(here, key=len, reverse=True))
    return re.sub(pattern, lambda found: here[found[0]], text) if here else text

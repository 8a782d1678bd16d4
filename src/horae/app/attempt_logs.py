"""Pages of what the attempts of a run logged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from horae.app.field_checks import check_number
from horae.app.page import MOST, Page, cursor_of, fitting, place_of
from horae.model import OPEN, LogChunk, LogLine, Run, Status
from horae.store.port import LAST, Transaction

MAX_ATTEMPT = 10**9


async def log_page(
    transaction: Transaction, run: Run, attempt: int | None, cursor: str | None
) -> Page[LogLine]:
    """A page of the log of a run, or of one of its attempts; it has a ``next`` as long as more lines can come."""
    if attempt is not None:
        check_number("attempt", attempt, 1, MAX_ATTEMPT)
    last, position = (LAST, (0, LAST)) if attempt is None else (attempt, (attempt - 1, LAST))
    if cursor is not None:
        _, given, number = place_of(cursor, tuple[Literal["log"], int, int])
        position = max((given, number), position)
    sizes = await transaction.log_sizes(run.id, position, last, MOST)
    count, more = fitting(sizes, MOST)
    lines = lines_of(await transaction.log(run.id, position, last, count), position)
    if not more and _is_over(run, attempt):
        return Page(lines)
    if lines:
        position = (lines[-1].attempt, lines[-1].number)
    return Page(lines, cursor_of("log", *position))


def lines_of(chunks: Iterable[LogChunk], position: tuple[int, int]) -> list[LogLine]:
    """The lines of chunks after a position; a gap between line numbers means that lines were dropped."""
    lines = []
    attempt, number = position
    for chunk in chunks:
        if chunk.attempt != attempt:
            attempt, number = chunk.attempt, 0
        dropped = chunk.number - number - 1
        for number, entry in enumerate(chunk.lines, start=chunk.number):
            lines.append(
                LogLine(
                    attempt=attempt, number=number, at_ms=entry.at_ms, level=entry.level, logger=entry.logger,
                    message=entry.message, dropped=dropped,
                )
            )  # fmt: skip
            dropped = 0
    return lines


def _is_over(run: Run, attempt: int | None) -> bool:
    """Whether a run, or one of its attempts, can log nothing more."""
    if run.status not in OPEN:
        return True
    if attempt is None:
        return False
    return attempt < run.attempt or (attempt == run.attempt and run.status is not Status.RUNNING)

"""Tables fit: ids are never broken, what matters stays, and a pipe gets plain aligned text."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from horae.face.cli.render import run_table, schedule_table
from horae.face.cli.tables import Table, facts, table
from tests.face.cli.command import horae, horae_process

ID = "reports/2026/the-quarterly-one-of-the-board"
RUN = str(uuid.UUID(int=7))
SCHEDULE: dict[str, Any] = {
    "id": ID, "sentence": "At 09:00 on Monday to Friday, Europe/Berlin time", "state": "running", "timezone": "Europe/Berlin",
    "next_time": "2026-03-09T08:00:00Z", "attention": "late", "owner": "", "action": {"name": "shop.reports.quarterly"},
}  # fmt: skip
RAN: dict[str, Any] = {
    "id": RUN, "nominal": "2026-03-09T08:00:00Z", "status": "terminated", "reason": "terminated", "sentence": "it was terminated",
    "failure": None, "note": "the numbers of the quarter were wrong", "started_at": "2026-03-09T08:00:00Z", "ended_at": "2026-03-09T08:01:07Z",
}  # fmt: skip
RANGE: dict[str, Any] = {
    "start": "2026-03-09T08:00:00Z", "end": "2026-03-10T08:00:00Z", "count": 2, "status": "skipped", "reason": "paused",
    "sentence": "the schedule was paused", "schedule_id": ID, "owner": "",
}  # fmt: skip


def printed(shown: RenderableType, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown, crop=False)
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_what_matters_stays_at_any_width(width: int):
    for shown, whole in [
        (schedule_table([SCHEDULE]), [ID, "running !", "Mon 2026-03-09 09:00:00 +01:00"]),
        (run_table([RAN], "Europe/Berlin"), [RUN, "Mon 2026-03-09 09:00:00 +01:00", "terminated"]),
        (run_table([RANGE, RAN | {"schedule_id": ID, "owner": ""}], "Europe/Berlin", whose=True), [ID, RUN, "Mon 2026-03-09 09:00:00 +01:00", "skipped"]),
    ]:  # fmt: skip
        lines = printed(shown, width)
        assert all(len(line) <= width for line in lines), lines
        for each in whole:
            assert any(each in line for line in lines), each
    if width == 200:
        assert any("Tue 2026-03-10 09:00:00 +01:00" in line for line in lines)
    text = " ".join(" ".join(printed(run_table([RAN], "Europe/Berlin"), width)).split())
    assert "numbers" in text


def test_there_is_room_for_everything():
    assert printed(schedule_table([SCHEDULE]), 200) == [
        "id                                           when                                              state      next time                       UTC                   action",
        f"{ID}  At 09:00 on Monday to Friday, Europe/Berlin time  running !  Mon 2026-03-09 09:00:00 +01:00  2026-03-09 08:00:00Z  shop.reports.quarterly",
    ]  # fmt: skip


def test_keys_go_above_their_rows_and_the_least_important_columns_go():
    assert printed(schedule_table([SCHEDULE]), 60) == [
        "id",
        "  state      next time",
        ID,
        "  running !  Mon 2026-03-09 09:00:00 +01:00",
    ]


def test_an_optional_column_goes_before_a_text_gets_hard_to_read():
    rows = [("09:00:00 in Europe/Berlin", "08:00:00Z", "it waited for the run before it")]
    assert printed(table("slot", "UTC?", "why~", rows=rows), 55) == [
        "slot                       why",
        "09:00:00 in Europe/Berlin  it waited for the run before",
        "                           it",
    ]


def test_columns_without_content_are_left_out():
    assert printed(table("a", "b", "c>", rows=[(1, None, 10), (2, "", 9)]), 60) == ["a   c", "1  10", "2   9"]
    assert printed(facts(("name", "x"), ("nothing", None), ("much", "a b c")), 60) == [
        "name  x",
        "much  a b c",
    ]


@given(
    width=st.integers(20, 200),
    rows=st.lists(st.tuples(*[st.text(st.characters(categories=["L", "N"], max_codepoint=591), min_size=1, max_size=60)] * 4), max_size=4),
)  # fmt: skip
def test_nothing_that_must_stay_whole_is_broken(width: int, rows: list[tuple[str, str, str, str]]):
    lines = printed(Table(["key!", "plain", "why~", "more?"], rows), width)
    for key, plain, *_ in rows:
        assert any(key in line for line in lines)
        assert any(plain in line for line in lines)


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("", 10_000)])
def test_a_pipe_gets_plain_text_as_wide_as_columns_says(columns: str, widest: int):
    ran = horae(
        "next",
        "0 2 29 3 *",
        "--tz",
        "Europe/Berlin",
        "--from",
        "2026-01-01",
        "-n",
        "2",
        COLUMNS=columns,
        NO_COLOR="",
    )
    lines = ran.stdout.splitlines()
    assert "\x1b" not in ran.stdout
    assert max(map(len, lines)) <= widest
    assert ("  UTC" in lines[1]) == (columns == "")


def test_no_color_holds_on_a_terminal():
    plain = horae_process("next", "0 9 * * *", FORCE_COLOR="1", NO_COLOR="1")
    coloured = horae_process("next", "0 9 * * *", FORCE_COLOR="1", NO_COLOR="")
    assert "\x1b" not in plain.stdout
    assert "\x1b[1m" in coloured.stdout

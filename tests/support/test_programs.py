"""The log of programs is read in whole lines."""

from __future__ import annotations

from pathlib import Path

from tests.engine.programs import Programs


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path):
    programs = Programs(tmp_path)
    assert (programs.log(), programs.lines()) == ([], 0)
    programs.file.write_text("a 1 17\nb 1 ")
    assert (programs.log(), programs.lines()) == ([["a", "1", "17"]], 1)

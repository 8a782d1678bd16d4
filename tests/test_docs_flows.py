"""The pages about flows: their diagram and table come from the tables, and their example runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from horae.policy.flow_phase_transitions import diagram, failure_table
from horae.testing import TimeMachine

DOCS = Path(__file__).resolve().parents[1] / "docs"
START = datetime(2026, 1, 5, tzinfo=UTC)


def test_the_diagram_and_the_table_are_those_of_the_code():
    page = (DOCS / "explanation" / "flows.md").read_text("utf-8")
    assert diagram() in page
    assert failure_table() in page


async def test_the_example_runs(machine: TimeMachine):
    page = (DOCS / "reference" / "flows.md").read_text("utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "docs"}
    exec(code, names)  # noqa: S102 - our own page
    await machine.app.flows.deploy(names["flow"])
    await machine.advance(minutes=11)
    assert names["rows"] == [{"subject": "Hello"}] * 3

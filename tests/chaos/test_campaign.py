"""A short campaign on each store: the program itself works."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign, Settings, run_campaign, unix_second
from tests.chaos.checker import check
from tests.chaos.fleet import Rhythm, fleet
from tests.chaos.plan import EVERYTHING, HOUR, SKEW, Fault, Operation
from tests.chaos.report import report_lines
from tests.chaos.store import SqliteDatabase

SECONDS, SEED = 5, 3


@pytest.mark.contract("CRON-16")
@pytest.mark.parametrize("store", ["postgresql", "sqlite"])
@pytest.mark.heavy
async def test_a_short_campaign_is_clean(store: str, tmp_path: Path):
    settings = Settings(store, SECONDS, SEED, tmp_path)
    evidence = await run_campaign(settings)
    findings = check(evidence, fleet())
    assert findings.problems == [], "\n".join(report_lines(settings, evidence, findings))
    assert findings.counts["slots expected"] > 100
    assert evidence.disturbances != []


@pytest.mark.parametrize("set_back", [False, True])
async def test_an_edit_by_a_clock_set_back_comes_before_the_slots_that_are_not_decided(
    set_back: bool, tmp_path: Path
):
    campaign = Campaign(Settings("sqlite", SECONDS, SEED, tmp_path), SqliteDatabase(tmp_path / "horae.db"))
    (edited, *_) = (each for each in fleet() if each.kind.operation == "edit")
    began = unix_second()
    async with campaign.app:
        await campaign.create([edited])
        with closing(sqlite3.connect(tmp_path / "horae.db")) as database, database:
            database.execute("UPDATE due SET cursor_ms = cursor_ms - 5000")
        if set_back:
            fault = asyncio.create_task(campaign.fault(Fault(0, 60, SKEW, EVERYTHING, -HOUR)))
            await asyncio.sleep(0)
        await campaign.operate(Operation(0, "edit", edited.id, rhythm=Rhythm(3, 1)))
        if set_back:
            fault.cancel()
    (edit,) = campaign.edits
    assert edit.answered >= began
    assert (edit.asked < began) == set_back

"""A short campaign on each store: the program itself works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.campaign import Settings, run_campaign
from tests.chaos.checker import check
from tests.chaos.fleet import fleet
from tests.chaos.report import report_lines

SECONDS, SEED = 8, 3


@pytest.mark.contract("CRON-16")
@pytest.mark.parametrize("store", ["postgresql", "sqlite"])
async def test_a_short_campaign_is_clean(store: str, tmp_path: Path):
    settings = Settings(store, SECONDS, SEED, tmp_path)
    evidence = await run_campaign(settings)
    findings = check(evidence, fleet())
    assert findings.problems == [], "\n".join(report_lines(settings, evidence, findings))
    assert findings.counts["slots expected"] > 100
    assert evidence.disturbances != []

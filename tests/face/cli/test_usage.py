"""``horae usage``: sums by account and time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from horae import App
from horae.grant_model import Usage
from tests.face.cli.command import horae

DAY = 86_400_000


def test_usage_is_summed_by_account_and_time(tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"
    settings: dict[str, Any] = {"HORAE_DATABASE_URL": database}

    async def record() -> None:
        async with App(database) as app:
            await app.accounts.put("ada", credit=100)
            for number, (user, at) in enumerate((("ada", DAY), ("ada", 2 * DAY), ("eve", 2 * DAY + 5)), 1):
                used = Usage(
                    run_id=f"r{number}", attempt=1, unit="1", billing_account_id=user, user_id=user, graph_id="test:poet",
                    recorded_at_ms=at, cost=number, input_tokens=10,
                )  # fmt: skip
                for _ in range(2):  # the second time is the same work
                    await app._billing.usage.record(used)
            assert (await app.accounts.get("ada")).spent == 3

    asyncio.run(record())
    sums = json.loads(horae("usage", "--json", **settings).stdout)
    assert [(each["billing_account_id"], each["runs"], each["cost"], each["since"]) for each in sums] == [
        ("ada", 2, 3, None), ("eve", 1, 3, None),
    ]  # fmt: skip
    by_day = json.loads(horae("usage", "--by", "day", "--owner", "ada", "--json", **settings).stdout)
    assert [(each["since"], each["cost"]) for each in by_day] == [
        ("1970-01-03T00:00:00Z", 2), ("1970-01-02T00:00:00Z", 1),
    ]  # fmt: skip
    late = horae("usage", "--since", "1970-01-03T00:00:01Z", **settings).stdout
    assert late == "No usage.\n"
    assert "ada" in horae("usage", **settings).stdout
    wrong = horae("usage", "--since", "1970-01-03T00:00:00Z", "--until", "1970-01-01T00:00:00Z", **settings)
    assert (wrong.returncode, "must be after since" in wrong.stderr) == (2, True)

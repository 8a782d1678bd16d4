"""A program that runs its app is told in one line what it keeps, where, and what comes next."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horae import App
from horae.app.database import shown_address
from horae.app.start_line import tell_start
from horae.testing import TimeMachine, VirtualClock
from tests.support.cases import each_of
from tests.support.process import environment
from tests.support.wait import PATIENCE

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAILY = {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}
PROGRAM = """\
import os, signal, horae
{before}
app = horae.App()

@app.schedule("0 9 1 1 *", timezone="Asia/Tokyo", id="new year")
@app.schedule("* * * * * *", id="often")
async def work():
    os.kill(os.getpid(), signal.SIGTERM)

app.run()
print("ended")
"""


async def told(app: App, caplog: pytest.LogCaptureFixture) -> str:
    caplog.clear()
    with caplog.at_level(logging.INFO, "horae"):
        await tell_start(app)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("horae", "INFO")
    return record.message


async def test_it_says_how_many_where_and_what_is_next(caplog: pytest.LogCaptureFixture):
    async with TimeMachine(NOON) as machine:
        app = machine.app
        app.action("work")(lambda: None)
        assert await told(app, caplog) == "Horae keeps no schedules in :memory:"
        await app.schedules.create("paused", DAILY, "work", paused=True)
        assert await told(app, caplog) == "Horae keeps 1 schedule in :memory:; none will fire by itself"
        await app.schedules.create("yearly", "0 0 1 1 *", "work")
        assert (
            await told(app, caplog)
            == 'Horae keeps 2 schedules in :memory:; next is "yearly" at Fri 2027-01-01 00:00:00+00:00'
        )
        await app.owned_by("ada").schedules.create("report", DAILY, "work")
        assert await told(app, caplog) == (
            'Horae keeps 3 schedules in :memory:; next is "report" of "ada" at Mon 2026-03-02 09:00:00+01:00'
        )
        machine.clock.move_to(datetime(2026, 3, 3, tzinfo=UTC))  # a downtime
        assert (
            await told(app, caplog) == 'Horae keeps 3 schedules in :memory:; next is "report" of "ada", now'
        )


@pytest.mark.filterwarnings("ignore::horae.ScheduleWarning")
async def test_what_never_fires_is_not_next(caplog: pytest.LogCaptureFixture):
    """Neither before it is decided for the first time, nor after that."""
    async with TimeMachine(NOON) as machine:
        app = machine.app
        app.action("work")(lambda: None)
        for number in range(7):
            await app.schedules.create(f"never {number}", "0 0 31 2 *", "work")
        assert await told(app, caplog) == "Horae keeps 7 schedules in :memory:; none will fire by itself"
        await app.schedules.create("yearly", "0 0 1 1 *", "work")
        await app.schedules.create("changed", DAILY, "work")
        await app.schedules.update("changed", "0 0 1 3 *")
        expected = 'Horae keeps 9 schedules in :memory:; next is "yearly" at Fri 2027-01-01 00:00:00+00:00'
        assert await told(app, caplog) == expected
        await machine.advance(seconds=1)
        assert await told(app, caplog) == expected
        await app.schedules.pause("never 1")
        await app.schedules.trigger("never 0")
        assert (await told(app, caplog)).endswith('next is "never 0", now')


def work() -> None: ...


async def test_what_the_program_no_longer_defines_is_left_out(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    address = f"sqlite:///{tmp_path}/horae.db"
    async with App(address, name="program", clock=VirtualClock(NOON)) as app:
        app.schedule(DAILY, id="before")(work)
        await app.program.store()
    async with App(address, name="program", clock=VirtualClock(NOON)) as app:
        assert await told(app, caplog) == f"Horae keeps no schedules in {address}"
        app.schedule("0 0 1 1 *", id="after")(work)
        await app.program.store()
        assert (await told(app, caplog)).startswith(
            f'Horae keeps 1 schedule in {address}; next is "after" at'
        )


async def test_what_ended_is_not_next(caplog: pytest.LogCaptureFixture):
    async with TimeMachine(NOON) as machine:
        machine.app.action("work")(lambda: None)
        await machine.app.once("work", in_="1h", key="single")
        assert (await told(machine.app, caplog)).endswith('next is "single" at Sun 2026-03-01 13:00:00+00:00')
        await machine.advance(hours=2)
        assert (
            await told(machine.app, caplog) == "Horae keeps 1 schedule in :memory:; none will fire by itself"
        )


@each_of(("given", "shown"), [
    ("sqlite:///horae.db", "sqlite:///horae.db"),
    ("postgresql://ada:s3cr%40t@db.example.org:5432/horae?password=also", "postgresql://db.example.org:5432/horae"),
    ("postgres://ada@/horae?host=/tmp", "postgres:///horae"),
    ("postgresql://a:b@one:1,two:2/x", "postgresql://one:1,two:2/x"),
])  # fmt: skip
def test_an_address_is_shown_without_secrets(given: str, shown: str):
    assert shown_address(given) == shown


@each_of(("before", "line"), [
    ("", True),
    ("import logging; logging.getLogger('horae').setLevel(logging.ERROR)", False),
    ("import logging; logging.basicConfig(level=logging.INFO, format='LOG %(message)s')", True),
    ("import logging; logging.basicConfig()", False),
])  # fmt: skip
def test_a_program_prints_it_to_standard_error_or_logs_it(before: str, line: bool):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(PROGRAM.format(before=before))
        ran = subprocess.run([sys.executable, "program.py"], cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=True)  # fmt: skip
    assert ran.stdout == "ended\n"
    first = ran.stderr.partition("\n")[0].removeprefix("LOG ")
    assert first.startswith('Horae keeps 2 schedules in sqlite:///horae.db; next is "often"') is line
    assert ran.stderr.count("Horae keeps") == line


async def test_serve_is_silent(capsys: pytest.CaptureFixture[str]):
    app = App(":memory:", clock=VirtualClock(NOON))
    serving = asyncio.create_task(app.serve())
    await asyncio.sleep(0.1)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert capsys.readouterr() == ("", "")

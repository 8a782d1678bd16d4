"""What counts as a problem on pages, on the virtual clock: failures and slots that were lost, not what a caller cancelled."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import httpx
import pytest

from horae import Context, Policies
from horae.testing import TimeMachine
from tests.support.service import client_of


def problems_in(page: str) -> str:
    """The panel of recent problems, without tags."""
    panel = page.partition('aria-labelledby="h-problems"')[2].partition("</section>")[0]
    return re.sub(r"<[^>]+>", " ", panel)


def counts_in(page: str) -> str:
    """The counts above the timeline."""
    return page.partition('class="counts"')[2].partition("</p>")[0]


def links_of(page: str, text: str) -> list[str]:
    """Where the links lead whose text contains this."""
    found = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', page, re.DOTALL)
    return [html.unescape(href) for href, label in found if text in label]


async def _page(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.fixture
async def app_with_problems(machine: TimeMachine) -> TimeMachine:
    """A schedule that failed four times, and one whose backfill of thirty slots was cancelled."""

    @machine.app.action("fail")
    async def fail(context: Context) -> None:
        raise ConnectionError("the shop is closed")

    @machine.app.action("hold")
    async def hold(context: Context) -> None:
        await machine.sleep(hours=3)

    local = machine.app.owned_by("local")
    await local.schedules.create("breaks", "*/10 * * * *", "fail")
    await local.schedules.create("busy", "0 0 1 1 *", "hold", policies=Policies(overlap="buffer_all"))
    await local.schedules.update("busy", "*/10 * * * *")
    await local.schedules.pause("busy")
    filled = await local.backfills.start("busy", machine.now - timedelta(hours=5), machine.now)
    await machine.advance(minutes=40, seconds=5)
    await local.backfills.cancel(filled.id)
    await machine.advance(seconds=5)
    return machine


async def test_what_a_caller_cancelled_is_no_problem_and_links_lead_to_what_was_counted(
    app_with_problems: TimeMachine,
):
    async with client_of(app_with_problems.app) as client:
        alerts = await _page(client, "/console/alerts")
        assert "busy" not in alerts
        assert "busy" not in problems_in(await _page(client, "/console"))
        dropped = await _page(client, "/console/runs?state=unstarted")
        assert dropped.count("its backfill was cancelled") > 20, "the ledger has them"
        assert ", 4 of these 4" in alerts
        (most_often, *_) = [each for each in links_of(alerts, "breaks") if "state=problems" in each]
        counted = await _page(client, most_often)
        assert counted.count("tone-failed") == 4
        assert "Nothing waits for you." in alerts
        overview = await _page(client, "/console")
        assert "Waits for you" not in overview
        assert problems_in(overview).count("the shop is closed") == 1, "one line for each schedule"
        (all_four,) = links_of(overview, "4 problems")
        assert (await _page(client, all_four)).count("tone-failed") == 4


async def test_a_slot_that_failed_again_is_listed_once(app_with_problems: TimeMachine):
    machine = app_with_problems
    runs = machine.app.owned_by("local").runs
    (failed,) = await runs.list("breaks", 1)
    again = await runs.rerun(failed.id, author="ada")
    await machine.advance(seconds=5)
    async with client_of(machine.app) as client:
        overview = await _page(client, "/console")
        assert failed.id not in overview.partition("h-timeline")[0]
        assert again.id in overview.partition("h-timeline")[0]
        shown = await _page(client, f"/console/runs/{again.id}")
        text = " ".join(re.sub(r"<[^>]+>", "", shown).split())
        made, slot = again.decided_at, again.nominal
        assert f"Rerun by ada, today, {made:%H:%M:%S}, of the slot today, {slot:%H:%M}" in text


async def test_slots_that_did_not_run_lead_to_their_explanation(app_with_problems: TimeMachine):
    machine = app_with_problems
    await machine.app.owned_by("local").schedules.skip_next("breaks", 2)
    async with client_of(machine.app) as client:
        schedule = await _page(client, "/console/schedules/breaks")
        assert schedule.count("– will be skipped") == 2
        await machine.advance(minutes=20)
        page = await _page(client, "/console/runs?state=unstarted&schedule=breaks")
        first, last = [each for each in links_of(page, "<time") if "/explain?" in each]
        for link in (first, last):
            assert "a caller asked to skip it" in await _page(client, link)


async def test_slots_of_a_cancelled_backfill_crowd_nothing_out(
    app_with_problems: TimeMachine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("horae.face.console.overview.ENTRIES", 4)
    async with client_of(app_with_problems.app) as client:
        overview = await _page(client, "/console")
        assert "4 problems" in problems_in(overview)
        timeline = overview.partition("h-timeline")[2]
        assert timeline.count("piece piece-failed") == 4, "what went wrong is drawn"
        assert "dropped</span>" not in counts_in(overview), "a caller asked for it"
        assert "of the latest 4 runs" in counts_in(overview), "what is cut is told beside the counts"


async def test_a_large_backfill_is_asked_for_twice_and_says_what_ran_before_it_was_cancelled(
    app_with_problems: TimeMachine,
):
    machine, path = app_with_problems, "/console/schedules/busy/backfill"
    local = machine.app.owned_by("local")
    async with client_of(machine.app) as client:
        (token, *_) = re.findall(r'name="csrf" value="([0-9a-f]+)"', await _page(client, path))
        form = {"csrf": token, "start": "2026-01-01T00:00", "end": "2026-01-14T00:00", "overlap": "buffer_all", "do": "start"}  # fmt: skip
        asked = await client.post(path, data=form)
        assert "Start all 1,873 runs" in asked.text
        assert (await client.post(path, data=form | {"sure": "1"})).status_code == 200, (
            "it is of another range"
        )
        assert len(await local.backfills.list("busy")) == 1
        assert (await client.post(path, data=form | {"sure": "1873"})).status_code == 303
        await machine.advance(hours=7)
        filled, _ = await local.backfills.list("busy")
        done = await client.post(f"/console/backfills/{filled.id}", data={"csrf": token})
        page = await _page(client, done.headers["location"].partition("#")[0])
        told = "1 ran, 1,871 dropped, 1 running"
        assert f"The backfill is cancelled: {told}." in page
        assert f"<span>{told}</span>" in page
        assert '<progress max="1873" value="1"' in page
        assert "<span>1 ran, 30 dropped</span>" in page, "so does the one that had queued all its slots"

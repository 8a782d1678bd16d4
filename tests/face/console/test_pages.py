"""Every page in a real browser: schedules, their actions, runs, explanations, creation and edits, calendars, nodes."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.face.console.ledger import create, run_of
from tests.support.browser import Window, needs_chromium
from tests.support.process import Server

pytestmark = needs_chromium
OVERPRINTED = """() => {
    const now = document.querySelector(".tick-now").getBoundingClientRect();
    return [...document.querySelectorAll(".ticks li:not(.tick-now)")]
        .filter((each) => each.checkVisibility())
        .map((each) => [each.textContent, each.getBoundingClientRect()])
        .filter(([, box]) => box.left < now.right && box.right > now.left)
        .map(([text]) => text);
}"""
"""The labels of the timeline's axis that "now" overlaps."""


def change_of(year: int, month: int) -> date:
    """The day on which New York changes its clocks: the second Sunday of March, or the first of November."""
    first = date(year, month, 1)
    sunday = first + timedelta(days=(6 - first.weekday()) % 7)
    return sunday + timedelta(weeks=1) if month == 3 else sunday


def test_the_root_leads_to_the_overview(open_window: Callable[..., Window], server: Server):
    create(server, "root-hourly", spec="0 * * * *", tags=["roots"])
    window = open_window(timezone_id="Asia/Tokyo")
    window.page.goto("/")
    assert window.page.url == f"{server.url}/console"
    assert "Timeline" in window.text()
    assert window.page.title() == "Overview · Horae"
    window.page.get_by_text("the peak is").wait_for()  # the load ahead comes after the first paint
    for reach in ("5m", "1h", "1w"):
        window.page.get_by_role("link", name=reach, exact=True).click()
        window.page.wait_for_url(f"**span={reach}*", wait_until="domcontentloaded")
        for width in (
            () if reach == "5m" else (360, 740, 970, 1160, 2560, 1280)
        ):  # nothing may come in five minutes
            window.page.set_viewport_size({"width": width, "height": 800})
            assert window.page.evaluate(OVERPRINTED) == [], (reach, width)
    assert window.whole.get_by_role("link", name="root-hourly").count()
    for part in ("How late starts were", "Nodes", "alive"):
        assert part in window.text()
    window.page.get_by_placeholder("Tag").fill("roots")
    window.page.get_by_placeholder("Tag").press("Enter")
    assert "span=1w&tag=roots" in window.page.url
    assert window.whole.locator(".lane-name").all_inner_texts() == ["root-hourly"]
    assert "coming" in (window.page.locator(".lane svg[role=group]").get_attribute("aria-label") or "")
    assert "Times in Asia/Tokyo" in window.text()
    window.page.get_by_role("button", name="show UTC").click()
    assert "Times in UTC" in window.text()
    assert "on hover" not in window.text(), "there is nothing else to show"
    assert "tag=roots" in window.page.url


def test_schedules_are_searched_filtered_and_changed_together(window: Window, server: Server):
    for number in range(3):
        create(server, f"many-{number}", tags=["bulk"])
    create(server, "other-1")
    page = window.page
    window.go("/schedules")
    page.get_by_placeholder("Search schedules").fill("many-")
    page.get_by_role("button", name="Search").click()
    assert "q=many-" in page.url
    assert window.whole.locator("tbody tr").count() == 3
    page.get_by_label("Choose many-0").check()
    page.get_by_label("Choose many-1").check()
    page.get_by_label("Note", exact=True).fill("until noon")
    page.get_by_role("button", name="Pause").click()
    assert "Paused 2 schedules." in window.text()
    assert "q=many-" in page.url
    assert "until noon" in page.locator("tbody tr").first.inner_text()
    page.get_by_role("link", name="Paused", exact=True).click()
    assert window.whole.locator("tbody tr").count() == 2
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Resume").click()
    assert "Resumed 2 schedules." in window.text()
    assert "Nothing matches" in window.text()
    window.go("/schedules?q=many-")
    page.get_by_label("All on this page").check()
    page.get_by_label("Note", exact=True).fill("kept")
    page.get_by_role("button", name="Tag").click()
    assert "Enter a tag first." in page.locator(".notice-problem").inner_text()
    assert window.whole.locator("[name=chosen]:checked").count() == 3
    assert page.get_by_label("Note", exact=True).input_value() == "kept"
    page.get_by_label("Tag to add").fill('spring, "my team"')
    page.get_by_role("button", name="Tag").click()
    assert "Tagged 3 schedules." in window.text()
    window.go("/schedules?tag=spring")
    assert window.whole.locator("tbody tr").count() == 3
    window.go("/schedules/many-0/edit")
    page.get_by_label("Description").fill("only this")
    page.get_by_role("button", name="Save").click()
    edited = server.get("/schedules/many-0")
    assert (edited["description"], edited["tags"]) == ("only this", ["bulk", "spring", "my team"])
    window.go("/schedules?tag=spring")
    page.get_by_label("Choose many-2").check()
    page.get_by_role("button", name="Trigger").click()
    assert "Triggered 1 schedule." in window.text()
    run_of(server, "many-2", "succeeded")
    page.get_by_role("button", name="Trigger").click()
    assert "Choose schedules first." in window.text()


def test_reload_and_back_repeat_no_action_and_keep_the_filters(window: Window, server: Server):
    """That every action answers with a redirect is checked of all windows."""
    create(server, "once-only", tags=["again"])
    page = window.page
    window.go("/schedules?q=once-only&tag=again")
    page.get_by_role("link", name="once-only").click()
    page.locator("summary", has_text="Trigger").click()
    page.get_by_role("button", name="Trigger now").click()
    run_of(server, "once-only", "succeeded")
    page.locator("h1 .tone-succeeded").wait_for()
    content = window.content()
    window.whole.reload()
    assert window.content() == content
    window.whole.go_back()
    assert page.url.endswith("/schedules/once-only")
    window.whole.reload()
    assert window.whole.locator(".strip li").count() == 1
    window.whole.go_forward()
    assert window.content() == content
    window.whole.go_back()
    window.whole.go_back()
    assert "q=once-only&tag=again" in page.url
    assert page.get_by_placeholder("Tag", exact=True).input_value() == "again"
    page.get_by_label("Choose once-only").check()
    page.get_by_role("button", name="Pause").click()
    assert "Paused 1 schedule." in window.text()
    window.whole.reload()
    assert "Paused 1 schedule." not in window.text(), "what was done is told once"
    assert "q=once-only&tag=again" in page.url
    assert len(server.get("/schedules/once-only/runs")["items"]) == 1


def test_a_box_chooses_the_schedule_of_its_row_when_rows_move(window: Window, server: Server):
    for name in ("moved-b", "moved-c"):
        create(server, name)
    page = window.page
    window.go("/schedules?q=moved-")
    page.get_by_label("Choose moved-c").check()
    create(server, "moved-a")
    page.locator("tbody tr", has_text="moved-a").wait_for()
    for row in page.locator("tbody tr").all():
        assert row.locator("[name=chosen]").get_attribute("value") == row.locator("a.id").get_attribute(
            "title"
        )
    chosen = page.locator("[name=chosen]:checked")
    assert [each.get_attribute("value") for each in chosen.all()] == ["moved-c"]


def test_live_parts_keep_what_is_typed_and_hidden_fields_follow_their_row(window: Window, server: Server):
    window.go("/schedules")
    found = window.whole.evaluate(
        """() => {
            const part = document.createElement("div");
            const form = (id) => `<form><input type="hidden" name="id" value="${id}"><input name="note" value=""><input type="checkbox" name="of" value="${id}"><select name="how"><option>a<option>b</select></form>`;
            part.innerHTML = form("one");
            const [hidden, note, box, how] = part.querySelector("form").elements;
            [note.value, box.checked, how.value] = ["half typed", true, "b"];
            Idiomorph.morph(part, form("one"), { morphStyle: "innerHTML" });
            const before = [hidden.value, note.value, box.value, box.checked, how.value];
            Idiomorph.morph(part, form("two"), { morphStyle: "innerHTML" });
            return [before, [...part.querySelector("form").elements].map((each) => each.value), part.querySelector("[name=of]").checked];
        }"""
    )
    assert found == [["one", "half typed", "one", True, "b"], ["two", "half typed", "two", "b"], False]


def test_lists_have_pages(window: Window, server: Server):
    new = [{"id": f"page-{number:03}", "spec": "0 0 1 1 *", "action": "ping"} for number in range(60)]
    assert server.ask("POST", "/bulk/schedules", {"schedules": new}).status_code == 201
    window.go("/schedules?q=page-")
    assert window.whole.locator("tbody tr").count() == 50
    window.page.get_by_role("link", name="Next page").click()
    assert window.whole.locator("tbody tr").count() == 10
    window.whole.go_back()
    assert window.whole.locator("tbody tr").count() == 50
    window.whole.reload()
    assert window.whole.locator("tbody tr").count() == 50


def test_a_schedule_says_when_and_what_became_of_its_slots(window: Window, server: Server):
    create(
        server,
        "nightly",
        spec={"crons": ["30 2 * * *"], "timezone": "America/New_York"},
        description="The backup of the night",
        tags=["night"],
    )
    page = window.page
    window.go("/schedules/nightly")
    text = window.text()
    for part in (
        "At 02:30 every day, America/New_York time",
        "The backup of the night",
        "Nothing has fallen due yet",
        '"30 2 * * *"',
    ):
        assert part in text
    create(server, "often", spec={"crons": [f"{minute} 2 * * *" for minute in range(15)]})
    window.go("/schedules/often")
    assert '"14 2 * * *"' not in window.text(), "a long document is folded"
    page.locator("summary", has_text="Spec document").click()
    assert '"14 2 * * *"' in page.get_by_label("The spec").inner_text()
    window.go("/schedules/nightly")
    times = page.locator(".times time")
    assert times.count() == 10
    assert " UTC" in times.first.get_attribute("title")
    page.locator("summary", has_text="Trigger").click()
    page.get_by_label("Input, as JSON").fill("{broken")
    page.get_by_label("Note").locator("visible=true").fill("by hand")
    page.get_by_role("button", name="Trigger now").click()
    problem = page.locator(".menu-body .notice-problem").inner_text()
    assert problem.startswith("Input is not valid JSON: ")
    assert problem.endswith('Write for example {"pages": 3}, or "a text" in quotes.')
    assert page.get_by_label("Input, as JSON").input_value() == "{broken", "what was typed is still there"
    assert window.flaws() == [], "with an open panel too"
    assert page.get_by_label("Note").locator("visible=true").input_value() == "by hand"
    page.get_by_label("Input, as JSON").fill('{"pages": 3}')
    page.get_by_role("button", name="Trigger now").click()
    assert "/console/runs/" in page.url
    page.get_by_text('"pong"').wait_for()
    assert '"pages": 3' in window.text()
    window.go("/schedules/nightly")
    mark = page.locator(".strip a.tone-succeeded")
    mark.focus()
    assert "succeeded in" in page.locator("[data-strip-why]").inner_text()


def test_clock_changes_are_marked_in_the_next_times(window: Window, server: Server):
    """In New York, of a time that the change of March skips, and of one that the change of November repeats."""
    year = window.page.evaluate("new Date().getFullYear()") + 1
    forward, back = change_of(year, 3), change_of(year, 11)
    for name, cron, clock, change, marks in (
        ("gap-skipped", "30 2 * * *", "02:30", forward, {1: "clocks went forward 1h"}),
        ("gap-shifted", "30 2 * * *", "03:00", forward, {1: "clocks went forward 1h"}),
        (
            "overlap",
            "30 1 * * *",
            "01:30",
            back,
            {1: "first of two", 2: "clocks went back 1h, second of two"},
        ),
    ):
        gap = "shift" if name == "gap-shifted" else "skip"
        start = (change - timedelta(days=1)).isoformat()
        spec = {"crons": [cron], "timezone": "America/New_York", "start_at": f"{start}T00:00:00", "gap": gap}
        create(server, name, spec=spec)
        window.go(f"/schedules/{name}")
        lines = [each.inner_text() for each in window.page.locator(".times li").all()]
        for place, line in enumerate(lines[1:], 1):  # the first tells of changes since now
            expected = marks.get(place, "")
            assert expected in line, (name, place, line)
            assert expected or "clocks" not in line, (name, place, line)
        after = change + timedelta(days=1) if name == "gap-skipped" else change
        assert f"{after:%a %d %b %Y}, {clock}" in lines[1], name


def test_a_schedule_is_paused_resumed_skipped_and_deleted(window: Window, server: Server):
    create(server, "doomed", spec="30 2 * * *")
    page = window.page
    window.go("/schedules/doomed")
    page.locator("summary", has_text="Pause").click()
    page.get_by_label("Note").locator("visible=true").fill("a <b>rest</b>")
    page.get_by_label("Until, in").fill("2001-01-01T09:00")
    page.get_by_role("button", name="Pause").click()
    assert "Until must be in the future" in page.locator(".menu-body .notice-problem").inner_text()
    page.get_by_label("Until, in").fill("2099-01-01T09:00")
    page.get_by_role("button", name="Pause").click()
    assert "Paused until Thu 01 Jan 2099, 09:00: a <b>rest</b>." in window.text()
    assert "Paused until Thu 01 Jan 2099, 09:00 UTC." in page.locator(".notice-done").inner_text()
    page.get_by_role("button", name="Resume").click()
    assert "Resumed. No slot fell due in the pause." in window.text(), "there is nothing to choose"
    assert server.get("/schedules/doomed")["state"] == "running"
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Skip the next slot").click()
    skipped = page.locator(".times s").inner_text()
    assert f"{skipped} will be skipped." in page.locator(".notice-done").inner_text()
    assert page.locator(".times li").first.inner_text().split("\n")[0] == skipped
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Do not skip it after all").click()
    assert "No slot will be skipped." in window.text()
    assert window.whole.locator(".times s").count() == 0
    page.locator("summary", has_text="More").click()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    assert "Deleted doomed" in window.text()
    assert server.ask("GET", "/schedules/doomed").status_code == 404
    assert window.go("/schedules/doomed").status == 404
    assert "doomed" in window.text()


def test_what_fell_due_in_a_pause_is_made_up_or_skipped(window: Window, server: Server):
    create(server, "ticking", spec={"intervals": [{"every": "1s"}]}, paused=True)
    page = window.page
    page.wait_for_timeout(1500)  # a slot falls due
    window.go("/schedules/ticking")
    page.get_by_role("button", name="Resume").click()
    assert "Make up what fell due" in window.text()
    page.get_by_label("Skip what fell due").check()
    page.get_by_role("button", name="Resume").click()
    assert "Resumed. " in window.text()
    assert server.ask("DELETE", "/schedules/ticking").status_code == 204


def test_a_backfill_is_counted_started_and_followed_until_it_is_done_or_cancelled(
    window: Window, server: Server
):
    spec = {"crons": ["0 9 * * *"], "timezone": "Europe/Berlin"}
    create(server, "refilled", "hold", spec=spec)
    create(server, "filled", spec=spec, policies={"overlap": "allow_all"})
    page = window.page

    def fill(do: str, overlap: str | None = None, schedule_id: str = "refilled") -> None:
        window.go(f"/schedules/{schedule_id}/backfill")
        page.get_by_label("From, in").fill("2026-01-01T00:00:00")
        page.get_by_label("To, included").fill("2026-01-05T23:00:00")
        if overlap is not None:
            page.get_by_label("While another run goes on").select_option(overlap)
        page.get_by_role("button", name=do).click()

    fill("Count the slots")
    assert "5 slots: the first is Thu 01 Jan" in window.text()
    assert "09:00 Berlin (08:00 UTC)" in window.text()
    assert "would be skipped" not in window.text()
    fill("Count the slots", "")
    assert "Most of them would be skipped" in window.text(), "the schedule skips what overlaps"
    assert server.get("/schedules/refilled/runs")["items"] == [], "nothing has been started"
    fill("Start the backfill")
    backfill = page.locator("li.backfill").first
    page.locator("li.backfill", has_text="0 of 5 done, 1 running, 4 waiting").wait_for()
    place = backfill.bounding_box()
    assert place is not None
    assert 0 < place["y"] < 900, "its progress is in sight"
    backfill.locator(".tone-running").wait_for()
    backfill.get_by_role("button", name="Cancel").click()
    page.get_by_text("The backfill is cancelled: 4 dropped, 1 running.").wait_for()
    page.locator("li.backfill", has_text="4 dropped").wait_for()
    assert backfill.get_by_role("button", name="Cancel").count() == 0
    runs = server.get("/schedules/refilled/runs")["items"]
    (running,) = [each for each in runs if each["status"] == "running"]
    assert server.ask("POST", f"/runs/{running['id']}/cancel").is_success
    fill("Start the backfill", "", "filled")
    assert "The backfill has begun." in window.text()
    page.get_by_text("5 ran").wait_for()


def test_runs_are_found_explained_stopped_and_run_again(window: Window, server: Server):
    create(
        server,
        "breaks",
        {"name": "fail", "input": "🎈"},
        policies={"retry": {"attempts": 2, "initial_delay": "1ms"}},
    )
    create(server, "holds", "hold")
    server.ask("POST", "/schedules/breaks/trigger")
    server.ask("POST", "/schedules/holds/trigger")
    failed, holding = run_of(server, "breaks", "failed"), run_of(server, "holds", "running")
    page = window.page
    window.go("/runs?schedule=breaks")
    page.get_by_role("link", name="Failed", exact=True).click()
    assert window.whole.locator("tbody tr").count() == 1
    window.go(f"/runs/{failed['id']}")
    text = window.text()
    for part in (
        "failed, attempt 2",
        "attempt 2 went wrong: 🎈",
        "about to fail: 🎈",
        "Attempt 1",
        "Traceback",
        "raise ValueError",
    ):
        assert part in text
    page.get_by_role("button", name="Run it again").click()
    assert "This run does its slot again." in window.text()
    assert failed["id"] not in page.url
    assert re.search(r"Rerun by local, \w+, [\d:]{8}, of the slot \w+, [\d:]{5,8}", window.text())
    assert re.search(r"\w+day, ", page.locator(".life li").first.inner_text()), "the slot has its date"
    window.go(f"/runs/{holding['id']}")
    page.get_by_text("holding on").wait_for()  # its log is live
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Run it again").wait_for()  # the page follows without a reload
    assert (
        "Attempt 1" in page.locator("section", has=page.get_by_role("heading", name="Attempts")).inner_text()
    )
    for absent in ("Failed attempts", "No traceback was recorded"):
        assert absent not in window.text()
    assert run_of(server, "holds", "cancelled")["id"] == holding["id"]
    window.go("/runs?since=-1h&reason=cancelled")
    assert "holds" in window.text()
    assert window.go("/runs?schedule=holds&since=sometime&reason=cancelled").status == 422
    since = page.get_by_label("Since")
    assert since.input_value() == "sometime"
    assert since.get_attribute("aria-invalid") == "true"
    assert 'Since is "sometime", which is no time.' in page.locator(".notice-problem").inner_text()
    since.fill("-1h")
    page.get_by_role("button", name="Search").click()
    assert window.whole.locator("tbody tr").count() == 1, "the other filters are still there"


def test_questions_are_answered_everywhere(window: Window, server: Server):
    create(server, "asked", spec={"crons": ["30 2 * * *"], "timezone": "America/New_York"})
    page = window.page
    window.go("/explain")
    page.get_by_label("Your question").fill("why will asked not run on 2027-03-14 at 2:30?")
    page.get_by_role("button", name="Ask").click()
    assert "does not exist: clocks went forward" in window.text()
    page.get_by_label("Schedule", exact=True).fill("asked")
    for time, said in (
        ("2027-03-15T02:30", "2027-03-15"),
        ("yesterday 9:00", "09:00:00"),
        ("tomorrow at noon", "12:00:00"),
    ):
        page.get_by_label("Time", exact=True).fill(time)
        page.get_by_role("button", name="Explain").click()
        assert said in page.locator(".answer").inner_text(), time
        assert page.get_by_label("Time", exact=True).input_value() == time
    page.get_by_label("Schedule", exact=True).fill("askde")
    page.get_by_role("button", name="Explain").click()
    assert 'There is no schedule "askde". Did you mean asked?' in window.text()
    page.locator(".notice-problem").get_by_role("link", name="asked").click()
    assert "12:00:00" in page.locator(".answer").inner_text()
    page.get_by_label("Your question").fill("why did askde not run yesterday at 2:30?")
    page.get_by_role("button", name="Ask").click()
    page.locator(".notice-problem").get_by_role("link", name="asked").click()
    assert "02:30:00" in page.locator(".answer").inner_text()
    page.keyboard.press("Control+k")
    page.locator("#palette-input").fill("ask")
    page.locator("#palette .found a", has_text="asked").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/schedules/asked")
    page.keyboard.press("Control+k")
    page.locator("#palette-input").fill("why did asked not run yesterday at 3:15")
    page.locator("#palette .answer .sentence").wait_for()
    page.locator("#palette-input").fill("cal")
    page.locator("#palette .found a", has_text="Calendars").wait_for()
    page.locator("#palette-input").fill("stuck ord")
    page.locator("#palette .found a", has_text="Stuck orders").wait_for()
    page.keyboard.press("Escape")
    assert not page.locator("#palette").is_visible()


def _leaves_the_preview_in_place(page: Any) -> None:
    """Leaving a field asks for the preview again; one that says the same must not replace what is being clicked."""
    page.evaluate(
        """() => {
            document.querySelector("#preview .sentence").isFirst = true;
            window.answered = new Promise((done) => document.body.addEventListener("htmx:afterRequest", done, { once: true }));
        }"""
    )
    page.keyboard.press("Tab")
    page.evaluate("async () => { await window.answered; }")
    assert page.evaluate("document.querySelector('#preview .sentence').isFirst")


def test_a_schedule_is_created_with_its_meaning_beside_it(window: Window, server: Server):
    assert server.ask("PUT", "/calendars/works%20closed", {"dates": ["2026-12-25"]}).is_success
    page = window.page
    window.go("/new")
    assert window.whole.locator("#calendars option[value='works closed']").count() == 1
    page.get_by_text("A day of the month", exact=True).click()
    page.get_by_label("Time of day").fill("7:45")
    page.locator("#preview .sentence", has_text="At 07:45 on day 1 of the month").wait_for()
    page.get_by_text("Every few minutes", exact=True).click()
    page.get_by_label("Minutes", exact=True).fill("20")
    page.locator("#preview .sentence", has_text="Every 20m").wait_for()
    assert not page.get_by_label("Time of day").is_visible()
    page.get_by_text("Interval", exact=True).click()
    page.get_by_label("Every", exact=True).fill("90m")
    page.locator("#preview .sentence", has_text="Every 1h30m").wait_for()
    page.get_by_text("Spec document", exact=True).click()
    page.locator("textarea[name=spec]").fill('{"calendars": [{"hour": "6", "month": "7"}]}')
    page.locator("#preview .sentence", has_text="06:00").wait_for()
    page.get_by_text("Cron", exact=True).click()
    page.get_by_label("Cron expressions").fill("61 * * * *")
    page.locator("#preview .notice-problem").wait_for()
    page.get_by_label("Cron expressions").fill("0 9 * * 1-5")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Id", exact=True).fill("from-a-form")
    page.locator("#preview .sentence", has_text="At 09:00 on Monday to Friday, Europe/Berlin time").wait_for()
    page.locator("#preview", has_text="'from-a-form'").wait_for()
    _leaves_the_preview_in_place(page)
    for name in ("curl", "YAML"):
        page.locator("#preview summary", has_text=name).click()
    page.get_by_label("Time zone").fill("Europe/Paris")
    page.locator("#preview pre", has_text="timezone: Europe/Paris").wait_for()  # it stays unfolded

    copy = page.locator("#preview [data-copy]").last
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copy.click()
    page.locator("#preview [data-copy]", has_text="Copied").wait_for()
    assert "timezone: Europe/Paris" in page.evaluate("navigator.clipboard.readText()")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {})")  # as without TLS
    copy.click()
    page.locator("#preview [data-copy]", has_text="Selected").wait_for()
    assert "timezone: Europe/Paris" in page.evaluate("String(getSelection())")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Create").click()
    assert "action" in page.locator("[data-refused]").inner_text().lower()
    assert page.locator("[name=action]").get_attribute("aria-invalid") == "true"
    page.locator("[name=action]").fill("ping")
    page.locator("[data-refused]").wait_for(state="detached")
    assert window.whole.locator("[aria-invalid]").count() == 0
    assert "Next, Europe/Berlin time" in page.locator("#preview").inner_text()
    page.get_by_label("Tags").fill("made, here")
    page.get_by_label("Except calendars").fill("works closed")
    page.get_by_role("button", name="Create").click()
    assert "Created from-a-form." in window.text()
    made = server.get("/schedules/from-a-form")
    assert made["spec"] == {
        "crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin", "exclude": [{"calendar": "works closed"}],
    }  # fmt: skip
    assert (made["tags"], made["owner"]) == (["made", "here"], "local")


def test_an_edit_shows_what_it_changes_and_overwrites_no_other(window: Window, server: Server):
    create(
        server, "edited", spec="0 9 * * *", policies={"overlap": "buffer_one", "catch_up": {"window": "1h"}}
    )
    page = window.page
    window.go("/schedules/edited/edit")
    assert page.get_by_label("Cron", exact=True).is_checked()
    cron = page.get_by_label("Cron expressions")
    cron.fill("61 10 * * *")
    page.locator("#preview .notice-problem").wait_for()
    assert cron.get_attribute("aria-invalid") == "true"
    cron.fill("0 10 * * *")
    page.locator("#preview", has_text="The change adds 30 and removes 30 fire times").wait_for()
    assert "Added, UTC time" in page.locator("#preview").inner_text()
    assert cron.get_attribute("aria-invalid") is None
    server.ask("PATCH", "/schedules/edited", {"description": "changed elsewhere"})
    page.get_by_role("button", name="Save").click()
    assert "Another change came first" in window.text()
    assert cron.input_value() == "0 10 * * *"
    page.get_by_role("button", name="Save").click()
    assert "Changed." in window.text()
    edited = server.get("/schedules/edited")
    assert edited["spec"] == {"crons": ["0 10 * * *"]}
    assert (edited["policies"]["overlap"], edited["policies"]["catch_up"]["window"]) == ("buffer_one", "1h")
    window.go("/schedules/edited/versions")
    assert "Each change counts, pauses and resumes too" in window.text()
    diff = page.locator(".diff").first.inner_text()
    assert '"0 9 * * *"' in diff
    assert '"0 10 * * *"' in diff


def test_calendars_show_a_year_and_change_what_excludes_them(window: Window, server: Server):
    page = window.page
    window.go("/calendars")
    page.get_by_label("Name of a new calendar").fill("feasts")
    page.get_by_role("button", name="New calendar").click()
    assert page.url.endswith("/calendars/feasts")
    create(server, "festive", spec={"crons": ["0 9 * * *"], "exclude": [{"calendar": "feasts"}]})
    page.get_by_label("Dates").fill("2027-01-06\nnever")
    page.get_by_role("button", name="Save").click()
    assert "never" in page.locator(".notice-problem").inner_text()
    page.get_by_label("Dates").fill("2027-01-06")
    page.get_by_role("button", name="Save").click()
    assert "Saved: 1 schedule changes with it." in window.text()
    window.go("/calendars/feasts?year=2027")
    assert page.locator("td.closed").inner_text() == "6"
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    assert "festive" in page.locator(".notice-problem").inner_text()
    assert server.ask("DELETE", "/schedules/festive").status_code == 204
    page.get_by_role("button", name="Save").click()
    assert "Saved. It has the same days as before." in window.text()
    page.get_by_label("Dates").fill("2027-01-07")
    page.get_by_role("button", name="Save").click()
    assert "Saved. No schedule uses it yet." in window.text()
    page.get_by_role("link", name="Delete…").click()
    assert server.ask("GET", "/calendars/feasts").status_code == 200, "it asks first"
    page.get_by_role("button", name="Delete it").click()
    assert "Deleted feasts." in window.text()


def test_nodes_say_what_they_can_run(window: Window, server: Server):
    window.go("/nodes")
    text = window.text()
    assert "This node works" in text
    assert "hold" in text


def test_what_is_not_there_is_a_page_too(window: Window):
    for path in ("/nowhere", "/runs/none", "/schedules/%F0%9F%91%BB", "/flows/none"):
        answer = window.page.request.get(f"/console{path}")
        assert answer.status == 404, path
        assert "Overview" in answer.text()
    window.go("/flows/none")
    assert 'There is no flow "none".' in window.text()


def test_a_narrow_screen_shows_where_one_is_and_cuts_no_cell_off(window: Window, server: Server):
    create(server, "narrow-1", note="a note of some length, which goes on below its state", paused=True)
    window.page.set_viewport_size({"width": 360, "height": 800})
    for path in ("/schedules?q=narrow-1", "/grants", "/nodes"):
        window.go(path)
        place = window.page.locator("nav[aria-label=Main] [aria-current]").bounding_box()
        assert place is not None
        assert place["x"] >= 0, path
        assert place["x"] + place["width"] <= 360, path
    window.go("/schedules?q=narrow-1")
    cell = window.page.locator("td[data-label=State]")
    note, badge = cell.locator(".sub").bounding_box(), cell.locator(".badge").bounding_box()
    assert note is not None
    assert badge is not None
    assert note["x"] == badge["x"], "below the state, not below its label"


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server for one test: searches of others would have to get past its many schedules."""
    server = Server(f"sqlite:///{tmp_path}/horae.db", app="tests.face.console.actions")
    yield server
    server.end(signal.SIGKILL)


def test_a_search_goes_on_by_itself_until_its_page_is_full(
    open_window: Callable[..., Window], own_server: Server
):
    server, window = own_server, open_window(own_server.url)
    new = [
        {"id": f"deep-{number:04}", "spec": "0 0 1 1 *", "action": "ping", "description": "Found at the <end>" if number > 210 else ""}
        for number in range(220)
    ]  # fmt: skip
    assert server.ask("POST", "/bulk/schedules", {"schedules": new}).status_code == 201
    page = window.page
    window.go("/schedules?q=the+%3CEND%3E")
    page.get_by_role("link", name="deep-0219").wait_for()
    assert window.whole.locator("tbody tr").count() == 9
    page.get_by_label("Choose deep-0215").check()
    page.route("**/console/schedules?*cursor=*", lambda _: None)  # it waits
    page.get_by_role("button", name="Tag").click()
    assert "Enter a tag first." in window.text()
    create(server, "deep-0000a", description="Found at the <end>", spec="0 0 1 1 *")
    page.get_by_role(
        "link", name="deep-0000a"
    ).wait_for()  # a live update comes before the rest of the search
    page.unroute("**/console/schedules?*cursor=*")
    page.locator("[value=deep-0215]:checked").wait_for()  # rows that came later stay chosen too
    page.get_by_label("Tag to add").fill("deep")
    page.get_by_role("button", name="Tag").click()
    assert server.get("/schedules/deep-0215")["tags"] == ["deep"]
    window.go("/schedules?q=nowhere-at-all")
    page.get_by_text("That was all: nothing matches.").wait_for()

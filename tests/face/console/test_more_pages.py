"""Flows, workflows, grants and files in a real browser: each page, and each thing that can be done there."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.face.console.ledger import CRONTAB
from tests.support.browser import Window, needs_chromium
from tests.support.process import Server

pytestmark = needs_chromium


def test_flows_say_what_is_wrong_and_are_resolved_run_paused_fed_and_explained(window: Window):
    page = window.page
    window.go("/flows")
    page.get_by_role("link", name="Orders into the <b>books</b>").click()
    page.locator("h2", has_text="the <i>sheet</i> has no column").wait_for()
    assert "Order 1" in page.locator("section", has_text="Pending inputs").last.inner_text()
    box = page.locator("section.attention")
    assert "Its event: o-1 of orders" in box.inner_text()
    assert (
        "Book failed: the <i>sheet</i>"
        in page.locator("section", has_text="Recent activity").last.inner_text()
    )
    box.get_by_role("link", name="this run of Book").click()
    assert "the <i>sheet</i> has no column" in page.locator("pre.failure").inner_text()
    window.whole.go_back()
    page.get_by_role("button", name="Try it again").click()
    assert "It is tried again." in page.locator(".notice-done").inner_text()
    page.locator("h1 .badge", has_text="Idle").wait_for()  # it follows without a reload
    page.get_by_role("link", name="Show handlers").click()
    assert "3 nodes, 2 edges" in page.locator(".dag svg").get_attribute("aria-label")
    page.locator("summary", has_text="Publish an event").click()
    page.get_by_label("Message id").fill("m-1")
    page.get_by_label("Payload, as JSON").fill("{broken")
    page.get_by_role("button", name="Publish").click()
    assert "Payload is not valid JSON: " in page.locator("form .notice-problem").inner_text()
    assert page.get_by_label("Message id").input_value() == "m-1", "what was typed is still there"
    assert page.get_by_label("Payload, as JSON").input_value() == "{broken"
    page.get_by_label("Payload, as JSON").fill('{"rows": 2}')
    page.get_by_role("button", name="Publish").click()
    assert "Published m-1." in page.locator(".notice").first.inner_text()
    page.locator("#live tr", has_text="m-1").locator(".tone-succeeded").wait_for()
    page.get_by_label("Status").select_option("skipped")
    page.get_by_role("button", name="Filter").click()
    assert "No event matches." in window.text()
    window.whole.go_back()
    assert "No event matches." not in window.text()
    window.whole.reload()
    page.get_by_role("link", name="Book").first.click()
    assert page.locator("#h-runs").inner_text() == "Runs of Book"
    page.locator("tr", has_text="again").get_by_role("link").first.click()
    assert window.whole.locator(".life li").count() == 2, "the attempt that failed, and the one after it"
    assert "the <i>sheet</i> has no column" in window.text()
    window.whole.go_back()
    page.get_by_label("Time").fill("-1s")
    page.get_by_role("button", name="Explain").click()
    assert page.locator("[data-answer]").inner_text()
    page.get_by_label("Time").fill("sometime")
    page.get_by_role("button", name="Explain").click()
    assert "which is no time" in window.text()
    page.locator("summary", has_text="Pause").click()
    page.get_by_label("Note").fill("until noon")
    page.get_by_role("button", name="Pause").click()
    page.locator("h1 .badge", has_text="Stopped: paused").wait_for()
    run_now = page.get_by_role("button", name="Run now")
    assert run_now.is_disabled()
    assert run_now.get_attribute("title") == "It is paused: resume it to run it"
    assert page.locator("#h-issue").inner_text() == "Paused: until noon"
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Run now").click()
    assert "It runs as soon as it can." in window.text()


def test_an_input_is_skipped_and_an_unknown_effect_is_settled(window: Window, server: Server):
    page = window.page
    event = {"topic": "orders", "message_id": "without-input", "payload": {}}
    assert server.ask("POST", "/flows/stuck/events", event).is_success
    window.go("/flows/stuck")
    page.locator("section", has_text="Pending inputs").locator("li", has_text="without-input").wait_for()
    page.get_by_role("button", name="Skip Order 1").click()
    assert "Skipped o-1: 1 of its events will not be processed." in window.text()
    assert server.get("/flows/stuck/inputs")["items"][0]["status"] == "skipped"
    window.go("/flows/paid")
    page.get_by_role("button", name="The change was not made").wait_for()
    page.get_by_label("Its result, as JSON").fill('{"receipt": 7}')
    page.get_by_role("button", name="The change was made").click()
    assert "Resolved." in window.text()
    page.locator("h1 .badge", has_text="Idle").wait_for()
    kept = [
        each["mutation"].get("result") for each in server.get("/flows/paid/runs")["items"] if each["mutation"]
    ]
    assert {"receipt": 7} in kept
    assert window.go("/flows/paid/runs/none").status == 404


def test_a_workflow_is_deployed_with_its_faults_beside_it_run_and_deployed_again(
    window: Window, server: Server
):
    page = window.page
    window.go("/workflows")
    page.get_by_role("link", name="Deploy a workflow").first.click()
    text = page.get_by_label("Document")
    document = json.loads(text.input_value())
    assert window.whole.locator("#preview .dag-node").count() == 3, (
        "what it begins with can be looked at at once"
    )
    text.fill('{"nodes": [}')
    page.locator("#preview", has_text="is no JSON").wait_for()
    document["nodes"][1]["data"]["action"] = "nobody-has-it"
    document["nodes"][2]["data"] = {"action": "ping", "input": {"rows": "nodes.fetch.output"}}
    page.get_by_label("Open a file").set_input_files(
        {"name": "report.json", "mimeType": "application/json", "buffer": json.dumps(document).encode()}
    )
    page.locator("#preview .faults", has_text="node fetch").wait_for()
    assert window.whole.locator("#preview .dag-failed").count() == 1, (
        "the node that is wrong is marked in the graph"
    )
    page.get_by_role("button", name="Deploy").click()
    assert "nobody-has-it" in page.locator("#preview .faults").inner_text()
    document["nodes"][1]["data"] = {"action": "ping", "input": {"of": "input"}}
    text.fill(json.dumps(document))
    page.locator("#preview", has_text="It can be deployed.").wait_for()
    page.get_by_role("button", name="Deploy").click()
    assert "Deployed version 1. It runs at 09:00 every day, UTC time. Its schedule" in window.text()
    page.get_by_role("link", name="Its schedule").click()
    assert "A schedule of the workflow report" in window.text()
    window.whole.go_back()
    page.locator("summary", has_text="Run").click()
    page.get_by_label("Input, as JSON").fill("{broken")
    page.get_by_role("button", name="Run now").click()
    assert "Input is not valid JSON: " in page.locator(".menu-body .notice-problem").inner_text()
    page.get_by_label("Input, as JSON").fill('{"day": "<u>monday</u>"}')
    page.get_by_role("button", name="Run now").click()
    page.locator(".dag-succeeded").nth(2).wait_for()
    page.locator(".dag-node", has_text="send").click()
    assert "<u>monday</u>" in page.get_by_label("Output of send").inner_text()
    window.go("/workflows/report")
    assert window.whole.locator("#h-runs ~ .table-wrap tbody tr").count() == 1
    page.get_by_role("link", name="New version").click()
    second = text.input_value()
    assert json.loads(second)["version"] == 2
    document["nodes"][1]["data"]["input"] = {"other": "input"}
    text.fill(json.dumps(document))
    page.locator("#preview", has_text="Deploy this one as version 2.").wait_for()
    assert "It can be deployed" not in page.locator("#preview").inner_text()
    text.fill(second)
    page.locator("#preview", has_text="It can be deployed.").wait_for()
    page.get_by_role("button", name="Deploy").click()
    assert window.whole.get_by_role("link", name="Version 1").count() == 1
    page.get_by_role("link", name="Version 1").click()
    window.whole.reload()
    assert "Version 1, deployed" in window.text()
    assert server.get("/workflows/report")["version"] == 2
    window.whole.go_back()
    assert "Version 2, deployed" in window.text()


def test_a_grant_is_created_renewed_and_revoked(window: Window, server: Server):
    page = window.page
    window.go("/grants")
    page.locator("summary", has_text="New grant").click()
    page.get_by_label("May run").fill("dance")
    page.get_by_role("button", name="Create it").click()
    assert (
        '“May run” has "dance", which is no scope.' in page.locator(".menu-body .notice-problem").inner_text()
    )
    assert page.get_by_label("May run").input_value() == "dance", "what was typed is still there"
    page.get_by_label("May run").fill("langgraph:poet")
    page.get_by_role("button", name="Create it").click()
    assert "Created " in page.locator(".notice").first.inner_text()
    row = page.locator("tr", has_text="langgraph:poet")
    row.locator("summary", has_text="Renew").click()
    row.get_by_label("Until").fill("2099-01-01T00:00")
    row.get_by_role("button", name="Renew it").click()
    assert "Renewed: it holds until 01 Jan 2099" in window.text()
    row.get_by_role("button", name="Revoke").click()
    row.locator(".tone-failed", has_text="revoked").wait_for()
    window.whole.reload()
    kept = server.get("/grants")["items"]
    assert [
        each["revoked_at"] is None for each in kept if each["scopes"] == ["graph:execute:langgraph:poet"]
    ] == [False]


def test_documents_are_compared_applied_and_exported_and_a_crontab_is_imported(
    window: Window, server: Server
):
    page = window.page
    window.go("/schedules")
    page.get_by_role("link", name="Apply a file").click()
    text = page.get_by_label("Documents")
    text.fill("schedules:\n  - {id: filed, spec: {crons: ['61 * * * *']}, action: ping}\n")
    page.get_by_role("button", name="Show what would change").click()
    assert "filed" in page.locator(".notice-problem").inner_text()
    text.fill("schedules:\n  - {id: filed, spec: {crons: ['5 4 * * *']}, action: ping, tags: [filed]}\n")
    page.get_by_role("button", name="Show what would change").click()
    assert "1 created" in window.text()
    assert server.ask("GET", "/schedules/filed").status_code == 404
    page.get_by_role("button", name="Apply").click()
    assert "Applied: 1 change." in window.text()
    assert server.get("/schedules/filed")["owner"] == "local"
    exported = page.request.get("/console/export?schedule=filed")
    assert "5 4 * * *" in exported.text()
    assert "attachment" in exported.headers["content-disposition"]
    assert "id: filed" in page.request.get("/console/export?tag=filed").text()
    page.get_by_role("link", name="Import a crontab").click()
    page.get_by_role("textbox", name="Crontab").fill(CRONTAB)
    page.get_by_label("Its times are meant in").fill("Europe/Berlin")
    page.get_by_role("button", name="Show what it means").click()
    for part in ("At 03:15 every day", "its command is known", "not known yet", "@reboot", "/bin/false"):
        assert part in window.text(), part
    page.get_by_label("Its times are meant in").fill("UTC")
    page.get_by_role("button", name="Import", exact=True).click()
    assert "Imported 1 of 2 lines. 1 more wait for their commands." in window.text()
    assert window.whole.locator("tbody tr").count() == 1


def test_a_form_takes_requests_single_times_and_other_actions(window: Window, server: Server):
    page = window.page
    window.go("/new")
    page.get_by_text("Once", exact=True).click()
    page.locator("[name=at]").fill("+2h")
    page.locator("#preview .times li:only-child").wait_for()
    page.get_by_text("HTTP request", exact=True).click()
    page.get_by_label("Address").fill("https://example.org/hook")
    page.get_by_label("Headers").fill("X-Key: secret")
    page.get_by_role("button", name="Create").click()
    assert "Created once-" in window.text()
    once = page.url.rpartition("/")[2]
    made = server.get(f"/schedules/{once}")
    assert made["action"]["options"]["url"] == "https://example.org/hook"
    assert "secret" not in window.text()
    page.locator("summary", has_text="More").click()
    page.get_by_role("link", name="Edit…").click()
    page.get_by_label("Action", exact=True).fill("ping")
    page.get_by_role("button", name="Save").click()
    assert server.get(f"/schedules/{once}")["action"]["name"] == "ping"
    server.ask("POST", f"/schedules/{once}/pause", {"note": "not yet"})
    window.go(f"/schedules?q={once}")
    assert "if it is resumed" in page.locator("td[data-label=Next]").inner_text()
    window.go(f"/schedules/{once}/times?end=in+1d")
    assert "1 time" in window.text()
    page.get_by_label("How many slots to skip").fill("2")
    page.get_by_role("button", name="Skip them").click()
    assert server.get(f"/schedules/{once}")["skip_next"] == 2


def test_without_javascript_flows_workflows_grants_and_files_work_too(
    open_window: Callable[..., Window], server: Server
):
    window = open_window(java_script_enabled=False)
    page = window.page
    for path in ("/flows", "/flows/fed?operator=1", "/workflows", "/grants", "/alerts", "/documents"):
        answer = page.request.get(f"/console{path}")
        assert (answer.status, "<h1" in answer.text()) == (200, True), path
    window.go("/workflows/new")
    text = page.get_by_label("Document")
    document = json.loads(text.input_value()) | {"workflow_id": "scriptless"}
    document["nodes"][1]["data"] = document["nodes"][2]["data"] = {"action": "ping"}
    text.fill(json.dumps(document))
    page.get_by_role("button", name="Preview").click()
    assert "It can be deployed." in window.text()
    page.get_by_role("button", name="Deploy").click()
    page.locator("summary", has_text="Run").click()
    page.get_by_role("button", name="Run now").click()
    assert "Started: this is its run." in window.text()
    window.go("/flows/fed?operator=1")
    page.locator("summary", has_text="Publish an event").click()
    page.get_by_label("Message id").fill("m-plain")
    page.get_by_role("button", name="Publish").click()
    assert "Published m-plain." in window.text()


def test_a_workflow_is_run_by_keyboard_alone(window: Window, server: Server):
    document = {
        "workflow_id": "typed", "version": 1, "edges": [{"source": "by-hand", "target": "work"}],
        "nodes": [{"id": "by-hand", "type": "trigger"}, {"id": "work", "type": "action", "data": {"action": "ping"}}],
    }  # fmt: skip
    assert server.ask("PUT", "/workflows/typed/1", document).status_code == 201
    page = window.page
    window.go("/workflows/typed")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Run":
            break
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run now"
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/runs/*")

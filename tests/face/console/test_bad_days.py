"""Bad days and odd viewers: hostile text, large results, lost servers, ended sessions, no JavaScript, keyboards, small screens."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import jwt
import pytest

from tests.face.console.ledger import create, run_of
from tests.support.browser import AXE, Window, needs_chromium
from tests.support.process import Server
from tests.support.wait import wait_for

pytestmark = needs_chromium
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'\"&{{7*7}}"
RTL = "ליל מנוחה"
WORKFLOW = {
    "workflow_id": "seen", "version": 1, "edges": [{"source": "start", "target": "work"}],
    "nodes": [{"id": "start", "type": "trigger"}, {"id": "work", "type": "action", "data": {"action": "fail"}}],
}  # fmt: skip
SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that takes tokens."""
    database = f"sqlite:///{tmp_path_factory.mktemp('guarded')}/horae.db"
    large = {
        "HORAE_WORKFLOW_NODES": "10000",
        "HORAE_WORKFLOW_BYTES": "4000000",
        "HORAE_BODY_LIMIT": "4000000",
    }
    server = Server(database, app="tests.face.console.actions", HORAE_JWT_SECRET=SECRET, **large)
    yield server
    server.end(signal.SIGKILL)


def sign_in(window: Window, user: str, now: float, seconds: int = 3600) -> None:
    window.page.get_by_label("Token").fill(
        jwt.encode({"sub": user, "aud": "horae", "exp": int(now) + seconds}, SECRET)
    )
    window.page.get_by_role("button", name="Sign in").click()


def test_hostile_text_is_shown_and_does_nothing(window: Window, server: Server):
    """A browser shows the pages of the first schedule; the other two try addresses, which need none."""
    ids = [HOSTILE, "🎈/..%2F?#", RTL]
    for number, schedule_id in enumerate(ids):
        create(
            server, schedule_id, {"name": "fail", "input": HOSTILE}, note=HOSTILE, description=HOSTILE, tags=[f"t{number}", "<i>x"],
            memo={"note": HOSTILE},
        )  # fmt: skip
        path = quote(schedule_id, safe="")
        server.ask("POST", f"/schedules/{path}/trigger", {"note": HOSTILE})
        server.ask("POST", f"/schedules/{path}/pause", {"note": HOSTILE})
        run = run_of(server, schedule_id, "failed")
        here = f"/schedules/{path}"
        pages = [
            here,
            f"{here}/edit",
            f"{here}/delete",
            f"/explain?q={path}",
            f"/go?q={path}",
            f"/runs/{run['id']}",
        ]
        for page in pages:
            if schedule_id == HOSTILE:
                _is_harmless(window, page)
            else:
                answer = server.client.get(f"/console{page}", follow_redirects=True)
                assert answer.status_code == 200, page
                assert schedule_id in answer.text, page
        if schedule_id == HOSTILE:
            assert HOSTILE in window.text()
    for page in (
        "",
        "/runs",
        f"/schedules?tag={quote('<i>x')}",
    ):  # by a tag: there are schedules of other tests
        _is_harmless(window, page)
    for schedule_id in ids:
        assert window.whole.get_by_role("link", name=schedule_id).count()
    window.page.get_by_role("link", name="🎈/..%2F?#").click()
    assert window.page.locator("h1").inner_text().startswith("🎈/..%2F?#")


def _is_harmless(window: Window, page: str) -> None:
    assert window.go(page).status == 200, page
    assert window.page.title() != "owned"
    assert window.whole.locator("img, #live script, iframe").count() == 0


def test_another_site_and_inline_scripts_can_do_nothing(window: Window, server: Server):
    create(server, "guarded")
    page = window.page
    page.set_content(
        f'<form method="post" action="{server.url}/console/schedules/guarded"><button name="do" value="delete">Prize</button></form>'
    )
    with page.expect_navigation() as answered:
        page.get_by_role("button").click()
    assert answered.value.status == 403
    assert server.ask("GET", "/schedules/guarded").status_code == 200
    window.go("/schedules/guarded")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.owned = true";
            const picture = document.createElement("img");
            picture.src = "http://127.0.0.1:9/owned.png";
            document.body.append(script, picture);
        }"""
    )
    assert page.evaluate("window.owned") is None
    assert all("Content Security Policy" in each for each in window.complaints), window.complaints
    assert len(window.complaints) == 2, "the script and the picture were refused"
    window._heard.clear()


def test_a_large_result_is_cut_and_says_so(window: Window, server: Server):
    create(server, "large", "large")
    server.ask("POST", "/schedules/large/trigger")
    run = run_of(server, "large", "succeeded")
    window.go(f"/runs/{run['id']}")
    assert "more characters; the API has the whole" in window.text()
    assert len(window.page.content()) < 300_000


def test_two_windows_see_each_others_changes(
    window: Window, open_window: Callable[..., Window], server: Server
):
    create(server, "shared", spec="0 9 * * *")
    other = open_window()
    window.go("/schedules/shared")
    other.go("/schedules?q=shared")
    other.page.get_by_label("Choose shared").check()
    other.page.get_by_label("Note", exact=True).fill("half typed")
    window.page.locator("summary", has_text="Pause").click()
    window.page.get_by_role("button", name="Pause").click()
    window.page.get_by_role("button", name="Resume").wait_for()  # before all of it is gone
    other.page.locator(".tone-paused").wait_for()
    assert other.page.get_by_label("Choose shared").is_checked()
    assert other.page.get_by_label("Note", exact=True).input_value() == "half typed"
    server.ask("DELETE", "/schedules/shared")
    window.page.get_by_text("It is no longer there").wait_for()
    assert "Nothing matches" in other.page.locator("#live", has_text="Nothing matches").inner_text()


def test_the_server_goes_away_and_comes_back(open_window: Callable[..., Window], tmp_path: Path):
    database = f"sqlite:///{tmp_path}/horae.db"
    server = Server(database, app="tests.face.console.actions")
    try:
        create(server, "lasting")
        window = open_window(server.url)
        window.go("/schedules")
        assert window.page.locator("#away").is_hidden()
        port = server.url.rpartition(":")[2]
        server.end(signal.SIGKILL)
        window.page.get_by_text("The server is away").wait_for()
        assert "lasting" in window.text()
        server = Server(database, "--port", port, app="tests.face.console.actions")
        create(server, "newcomer")
        window.page.locator("#live", has_text="newcomer").wait_for(timeout=20_000)
        assert window.page.locator("#away").is_hidden()
        window._heard.clear()  # the browser says that it could not connect
    finally:
        server.end(signal.SIGKILL)


def test_a_session_is_opened_kept_and_ended(open_window: Callable[..., Window], guarded: Server):
    window = open_window(guarded.url)
    now = window.page.evaluate("Date.now()") / 1000
    window.go("/schedules")
    assert "/console/sign-in?next=" in window.page.url
    window.page.get_by_label("Token").fill("nonsense")
    window.page.get_by_role("button", name="Sign in").click()
    window.page.locator(".notice-problem").wait_for()
    sign_in(window, "ada", now)
    assert window.page.url.endswith("/console/schedules")
    assert "No schedules yet" in window.text()
    window.page.locator(".who button").click()
    assert "/console/sign-in" in window.page.url
    window.whole.go_back()
    window.whole.reload()
    assert "/console/sign-in" in window.page.url
    for seconds in (3, 9, 27):  # a busy machine may need longer to sign in than the session lasts
        window.go("/schedules")
        sign_in(window, "bob", window.page.evaluate("Date.now()") / 1000, seconds)
        if window.page.url.endswith("/console/schedules"):
            break
    wait_for(lambda: "Sign in again" in window.text() or window.page.wait_for_timeout(100))
    window.page.get_by_role("link", name="Sign in again").click()
    assert "/console/sign-in?next=%2Fconsole%2Fschedules" in window.page.url
    window._heard.clear()  # the browser logs the 401


def test_another_users_addresses_are_not_there_and_ten_thousand_nodes_are_listed(
    open_window: Callable[..., Window], guarded: Server
):
    window = open_window(guarded.url)
    now = window.page.evaluate("Date.now()") / 1000
    token = jwt.encode({"sub": "eve", "aud": "horae", "exp": int(now) + 600}, SECRET)
    guarded.client.headers["Authorization"] = f"Bearer {token}"
    guarded.client.timeout = 120  # ten thousand nodes are much for a busy machine
    window.context.set_default_timeout(60_000)
    create(guarded, "of-eve")
    nodes = [
        {"id": f"n{number}", "type": "action", "data": {"action": "ping" if number else "hold"}}
        for number in range(9999)
    ]
    edges = [{"source": f"n{number // 10}", "target": f"n{number}"} for number in range(1, 9999)]
    start = {"id": "start", "type": "trigger"}
    document = {
        "workflow_id": "huge",
        "version": 1,
        "nodes": [start, *nodes],
        "edges": [{"source": "start", "target": "n0"}, *edges],
    }
    assert guarded.ask("PUT", "/workflows/huge/1", document).status_code == 201
    run = guarded.ask("POST", "/workflows/huge/runs").json()
    window.go("/workflows/huge")
    sign_in(window, "eve", now)
    assert "10,000 nodes are too many to draw" in window.text()
    window.go(f"/runs/{run['id']}")
    window.page.get_by_text("9,500 more nodes; the API has them.").wait_for()
    assert window.whole.locator("#live details.attempt").count() == 500
    window.page.get_by_role("button", name="Terminate").click()
    window.page.locator(".who button").click()
    window.go("/schedules")
    sign_in(window, "mallory", now)
    for path in ("/schedules/of-eve", "/schedules/of-eve/edit", "/workflows/huge", f"/runs/{run['id']}"):
        answer = window.page.request.get(f"/console{path}")
        assert answer.status == 404, path
        assert "Overview" in answer.text(), "a page that leads back, and no other's data"
    assert "of-eve" not in window.go("/schedules?q=of").text()


def test_without_javascript_everything_can_be_read_and_done(
    open_window: Callable[..., Window], server: Server
):
    create(server, "plain", spec="0 9 * * *")
    window = open_window(java_script_enabled=False)
    page = window.page
    for path in (
        "",
        "/schedules",
        "/runs",
        "/nodes",
        "/calendars",
        "/explain?q=why+did+plain+not+run+today+at+9:00",
        "/go?q=pla",
        "/forecast",
    ):
        answer = page.request.get(f"/console{path}")
        assert (answer.status, "<h1" in answer.text()) == (200, True), path
    window.go("/schedules/plain")
    page.locator("summary", has_text="Trigger").click()
    page.get_by_role("button", name="Trigger now").click()
    assert "Triggered: this is its run." in window.text()
    window.go("/new?kind=cron&cron=5+4+*+*+*&id=scriptless&action=ping")
    page.get_by_role("button", name="Preview").click()
    assert "At 04:05 every day" in window.text()
    page.get_by_role("button", name="Create").click()
    assert "Created scriptless." in window.text()
    page.get_by_role("button", name="Theme: auto").click()
    assert page.locator("html").get_attribute("data-theme") == "light"


def test_everything_is_reached_by_keyboard(window: Window, server: Server):
    create(server, "typed", spec="0 9 * * *")
    page = window.page
    window.go("/schedules?q=typed")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "typed":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/schedules/typed")
    page.locator("summary", has_text="Pause").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    page.get_by_text("Paused: by keyboard.").wait_for()
    page.locator("summary", has_text="More").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert not page.get_by_role("link", name="Edit…").is_visible()


def test_pages_fit_every_width_survive_reload_and_back_and_axe_finds_nothing_serious_in_both_themes(
    open_window: Callable[..., Window], server: Server
):
    """Each text's contrast is tried in both themes, but once if it looks alike on several pages.

    Going back and a reload load a page again: they are tried where a form or a script holds something.
    """
    spec = {"crons": ["30 2 * * *"], "timezone": "America/New_York"}
    create(server, f"seen-{'long-' * 20}", {"name": "fail", "input": 1}, spec=spec, tags=["axe"])
    create(
        server,
        "seen-paused",
        spec=spec,
        paused=True,
        note="a note of some length, which needs a line of its own",
    )
    create(server, "seen-busy", spec="0 * * * *", policies={"overlap": "allow_all"}, tags=["axe"])
    server.ask(
        "POST",
        "/schedules/seen-busy/backfills",
        {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T12:00:00Z"},
    )
    here = f"/schedules/seen-{'long-' * 20}"
    server.ask("POST", f"{here}/trigger")
    run = run_of(server, here.rpartition("/")[2], "failed")
    server.ask("PUT", "/calendars/closed", {"dates": ["2026-12-25"]})
    server.ask("PUT", "/workflows/seen/1", WORKFLOW)
    made = server.ask("POST", "/workflows/seen/runs").json()
    flow_run = server.get("/flows/orders/runs")["items"][0]["id"]
    server.ask("POST", "/grants", {"scopes": ["graph:execute:*"]})
    explained = f"/explain?schedule={here.rpartition('/')[2]}&time=2026-01-01T00:00"
    paths = [
        here, f"{here}/backfill", f"{here}/versions", f"{here}/delete", f"{here}/times", "/runs?schedule=seen-busy", "/calendars/closed/delete",
        "/calendars", "/calendars/closed", "/nodes", "/go?q=se", "/schedules/seen-paused", "/schedules/seen-paused/resume", "/schedules/seen-busy",
        "/flows", "/flows/stuck", f"/flows/orders/runs/{flow_run}", "/workflows", "/workflows/seen", f"/runs/{made['id']}", "/grants", "/alerts",
        "/documents", "/import", "/forecast",
    ]  # fmt: skip
    with_state = [
        "?tag=axe", "/schedules?q=seen-", f"{here}/edit", f"/runs/{run['id']}", "/new", explained, "/flows/orders?operator=1", "/workflows/new",
    ]  # fmt: skip
    assert not set(with_state) & set(paths)
    run_of(server, "seen-busy", "succeeded")
    window, flaws, seen = open_window(viewport={"width": 1280, "height": 800}), [], []
    window.context.add_init_script(path=AXE)
    for path in paths + with_state:
        assert window.go(path).status == 200, path
        seen.append(window.content())
        flaws += [f"{path}: {each}" for each in window.flaws(contrast=False)]
        for theme in ("dark", "light"):
            window.page.emulate_media(color_scheme=theme)
            flaws += [f"{path}, {theme}: {each}" for each in window.poor_contrasts()]
        for width in (360, 2560, 1280):
            window.page.set_viewport_size({"width": width, "height": 800})
            assert window.too_wide() == [], (path, width)
    assert flaws == []
    assert window.page.evaluate("history.length") == len(seen) + 1, "no page adds entries of its own"
    for path, expected in reversed([*zip(with_state, seen[-len(with_state) :], strict=True)]):
        assert window.content() == expected, path
        window.whole.reload()
        assert window.content() == expected, path
        window.whole.go_back()
    assert window.content() == seen[-len(with_state) - 1]
    window.whole.go_forward()
    assert window.content() == seen[-len(with_state)]

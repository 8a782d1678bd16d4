"""A real Chromium, for pages: one a session, looked at with Playwright; what its log says is kept, and must be nothing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

AXE = Path(__file__).parent / "vendor" / "axe-4.14.0.min.js"
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Debian's names of it, the lightest first: without windows it needs two thirds of the processor time."""
CHROMIUM = next(filter(None, map(shutil.which, CHROMIUMS)), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium on this machine to look at pages with"
)

OFF_IN_PLAYWRIGHT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
)  # fmt: skip
"""What Playwright switches off. Chromium heeds only the last ``--disable-features``, so ours repeats these."""
OFF_HERE = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "PreloadTopChromeWebUI",
    "SpareRendererForSitePerProcess", "RenderDocument",
)  # fmt: skip
"""Suggestions of the address bar, which are pages too; spare processes; a new frame for each page of the same site."""
SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--in-process-gpu", "--animation-duration-scale=0",
    f"--disable-features={','.join((*OFF_IN_PLAYWRIGHT, *OFF_HERE))}",
)  # fmt: skip
"""Less processor time for the same pages: fewer frames are drawn, and nothing is prepared that no test uses."""

TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const held = (element) => {
        for (let each = element.parentElement; each; each = each.parentElement)
            if (getComputedStyle(each).overflowX !== "visible" && each !== document.body) return true;
        return false;
    };
    return [...document.querySelectorAll("body *")]
        .filter((each) => each.getBoundingClientRect().right > width + 1 && !held(each))
        .map((each) => `${each.tagName} ${each.getAttribute("class")} ${each.textContent.slice(0, 40)}`);
}"""

FLAWS = """async (context, options) => (await axe.run(context, options)).violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.target} ${node.failureSummary ?? ""}`))"""
"""What axe finds, picked in the browser: its whole answer is long."""

NEW_TEXTS = """() => {
    const known = new Set(JSON.parse(sessionStorage.knownTexts ?? "[]")), found = [];
    for (const element of document.querySelectorAll("body *")) {
        if (![...element.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim())) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(element), looks = [color, fontSize, fontWeight];
        for (let each = element; each; each = each.parentElement) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(each);
            looks.push(each.tagName, each.getAttribute("class"), backgroundColor, backgroundImage, opacity);
        }
        const look = looks.join();
        if (known.has(look)) continue;
        known.add(look);
        found.push(element);
    }
    sessionStorage.knownTexts = JSON.stringify([...known]);
    return found;
}"""
"""The texts of a page that look as none did before in this window: in colour, size, and all that is behind them."""
CONTRASTS = f"""async (options) => {{
    const include = ({NEW_TEXTS})();
    return include.length ? await ({FLAWS})({{ include }}, options) : [];
}}"""

CONTENT = """() => [location.pathname + location.search, document.title,
    ...[...document.querySelectorAll("main :is(h1, h2, th, label, button, td.main-cell, dt)")].map((each) => each.innerText)
].join("\\n")"""
READING = {"count", "plan", "preview", "read"}
"""What forms send to be shown something: it changes nothing, so that a reload may repeat it."""


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a Chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


class Window:
    """A window of a browser, with its own cookies, on one server."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(
            base_url=url, reduced_motion="reduce", **{"timezone_id": "UTC", **options}
        )  # a motion draws frames; the machine may be anywhere
        self.context.set_default_timeout(60_000)  # only a failure takes as long
        self.page = self.context.new_page()
        self._heard: list[tuple[str, str]] = []
        self._refused: set[str] = set()
        """The addresses of pages that answered with an error on purpose; the browser logs those too."""
        self._aborted: set[str] = set()
        """The kinds of requests that went on when their page was left: parts of it, and its live updates; htmx logs that."""
        self.page.on("response", self._note)
        self.page.on("requestfailed", self._note_failed)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self._heard.append((str(error), "")))

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self._heard.append((message.text, message.location.get("url", "")))

    def _note(self, response: Any) -> None:
        request = response.request
        if not request.is_navigation_request():
            return
        if 400 <= response.status < 500:
            self._refused.add(response.url)
        if request.method == "POST" and response.status == 200:
            todo = dict(parse_qsl(request.post_data or "")).get("do")
            if todo not in READING:
                self._heard.append(
                    (f"{todo} answered without a redirect: a reload would repeat it", response.url)
                )

    def _note_failed(self, request: Any) -> None:
        if request.failure == "net::ERR_ABORTED":
            self._aborted.add(request.resource_type)

    @property
    def complaints(self) -> list[str]:
        """What the browser's log has, but for pages that were refused and parts whose page was left."""
        return [
            f"{text} ({url})"
            for text, url in self._heard
            if not (url in self._refused and text.startswith("Failed to load resource"))
            and not ("xhr" in self._aborted and text.startswith(("htmx:afterRequest", "htmx:send")))
            and not ("eventsource" in self._aborted and text == "[object Event]")
        ]

    def go(self, path: str) -> Any:
        """Open a page of the console; its answer."""
        return self.page.goto(f"/console{path}")

    def content(self) -> str:
        """What a page is about: its address, headings, fields, buttons and rows, but no numbers, because time passes."""
        found: str = self.whole.evaluate(CONTENT)
        return re.sub(r"\d+", "#", found)

    @property
    def whole(self) -> Any:
        """The page, once it is whole: a click may just have left for it, and another step must not begin in between."""
        self.page.wait_for_load_state()
        return self.page

    def text(self) -> str:
        """What a reader sees of the page, once it is whole."""
        found: str = self.whole.inner_text("body")
        return found

    def too_wide(self) -> list[str]:
        """What makes the page scroll sideways; nothing if it does not."""
        found: list[str] = self.page.evaluate(TOO_WIDE)
        return found

    def flaws(self, *, contrast: bool = True) -> list[str]:
        """What axe finds serious or critical on the page, with or without the contrast of its texts."""
        rules = {"color-contrast": {"enabled": contrast}}
        return self._ask_axe(f"(options) => ({FLAWS})(document, options)", {"rules": rules})

    def poor_contrasts(self) -> list[str]:
        """The texts that axe finds hard to read, of those that look as none did before in this window."""
        return self._ask_axe(CONTRASTS, {"runOnly": ["color-contrast"]})

    def _ask_axe(self, question: str, options: dict[str, Any]) -> list[str]:
        if not self.page.evaluate("typeof window.axe === 'object'"):
            self.page.evaluate(f"{AXE.read_text('utf-8')}; null")
        found: list[str] = self.page.evaluate(
            question, {"resultTypes": ["violations"], "preload": False, **options}
        )
        return found

    def close(self) -> None:
        self.context.close()

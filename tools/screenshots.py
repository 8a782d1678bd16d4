"""Make the screenshots of the README: start the example service, let it run for a while, and look at it with Chromium.

``python tools/screenshots.py [SECONDS]`` writes ``docs/images/console-overview.png`` and ``docs/images/console-schedule.png``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = {
    "console-overview": ("/console?span=5m", "light", "#forecast svg"),
    "console-schedule": ("/console/schedules/long-work", "dark", ".durations svg"),
}
"""The address of each picture, its theme, and what is there once the page is complete."""
SIZE = {"width": 1200, "height": 760}


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The example service on a free port, and its address."""
    settings = {"HORAE_DATABASE_URL": f"sqlite:///{folder}/horae.db", "HORAE_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.living"], cwd=ROOT, env=os.environ | settings, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    for line in process.stderr or ():
        if found := re.search(r"listens on (http://[^\s:]+:\d+)", line):
            return process, found[1]
    raise RuntimeError("the example service did not start")


def main(seconds: float) -> None:
    """Write the screenshots after the service has run for some seconds."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        process, address = started(Path(folder))
        try:
            time.sleep(seconds)
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name, (path, theme, last) in PAGES.items():
                page = browser.new_page(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]
                page.goto(f"{address}{path}")
                page.wait_for_selector(last)
                page.screenshot(path=IMAGES / f"{name}.png")
            browser.close()
        finally:
            process.kill()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 150)

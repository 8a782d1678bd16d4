"""The benchmark of the console runs, and every page has its figures. How fast it is, no test says."""

import re

from bench.console.__main__ import PAGES, measured


async def test_every_page_has_its_figures():
    page = await measured(schedules=30, runs=200, times=1)
    assert re.findall(r"^\| (.+?) (?:\| [\d.]+ ){3}\| \d+ \|$", page, re.MULTILINE) == list(PAGES)

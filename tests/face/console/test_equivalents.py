"""The Python, the request and the file that the form of a new schedule shows do what the form does: they are run, and compared."""

from __future__ import annotations

import ast
import html
import re
import shlex
from typing import Any

import httpx
import pytest

import horae
from horae.testing import TimeMachine
from tests.support.service import client_of

FORMS: dict[str, dict[str, str]] = {
    "plain": {"kind": "plain", "days": "workdays", "time": "9:00", "action": "ping", "timezone": "Europe/Berlin"},
    "everything": {
        "kind": "cron", "cron": "30 2 * * *\n0 12 * * 1", "timezone": "America/New_York", "exclude": "holidays, works closed", "jitter": "30s",
        "gap": "shift", "fold": "first", "action": "ping", "input": """{"it's": ["\\"<\\u00e9>\\"", null, 1.5, true]}""",
        "description": "It's “quoted” $HOME `x`\\", "tags": 'a,b "my team"', "overlap": "buffer_one", "catch_up": "latest", "attempts": "3",
        "run_timeout": "10m", "paused": "1",
    },
    "some days": {"kind": "plain", "days": "some", "on_mon": "1", "on_sun": "1", "time": "9:30:05", "action": "ping"},
    "day of month": {"kind": "plain", "days": "month", "day_of_month": "1,15", "time": "0:00", "action": "ping", "attempts": "unlimited"},
    "minutes": {"kind": "plain", "days": "minutes", "minutes": "15", "phase": "3m", "gap": "shift", "time": "9:00", "action": "ping"},
    "policies": {"kind": "cron", "cron": "@daily", "action": "ping", "catch_up": "latest", "policies": '{"catch_up": {"window": "1h"}}'},
    "interval": {"kind": "every", "every": "90m", "phase": "15m", "action": "ping"},
    "once": {"kind": "once", "at": "2099-03-14T09:00", "timezone": "Asia/Tokyo", "action": "ping"},
    "request": {"kind": "cron", "cron": "@daily", "does": "http", "url": "https://example.org/x?a=b&c='d'", "method": "PUT"},
    "document": {"kind": "spec", "spec": '{"rrules": ["FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"]}', "action": "ping"},
}  # fmt: skip
OWN = ("id", "owner", "version", "created_at", "updated_at", "next_time", "info")
"""The fields that differ between equal schedules: jitter depends on the id."""


async def csrf(client: httpx.AsyncClient, path: str = "/console/new") -> str:
    (token, *_) = re.findall(r'name="csrf" value="([0-9a-f]+)"', (await client.get(path)).text)
    return str(token)


async def run_python(text: str, machine: TimeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(horae, "App", lambda: machine.app)
    code = compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(code, {})  # noqa: S307 - that is what it is for


async def run_curl(text: str, client: httpx.AsyncClient) -> None:
    _, *words = shlex.split(text.replace(" \\\n", " "))
    assert words[:2] == ["-X", "POST"]
    (name, value), body = words[4].split(": "), words[6]
    assert (words[3], words[5]) == ("-H", "-d")
    answer = await client.post(words[2], headers={name: value}, content=body.encode())
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("name", FORMS)
async def test_each_does_what_the_form_does(name: str, machine: TimeMachine, monkeypatch: pytest.MonkeyPatch):
    machine.app.use_builtin()
    machine.app.action("ping")(lambda: None)
    for calendar in ("holidays", "works closed"):
        await machine.app.calendars.put(calendar, {"dates": ["2026-12-25"]})
    async with client_of(machine.app) as client:
        token = await csrf(client)

        async def shown(schedule_id: str) -> dict[str, str]:
            form = {**FORMS[name], "id": schedule_id, "csrf": token}
            page = (await client.post("/console/preview", data=form)).text
            parts = re.findall(r'aria-label="The same in (\w+)">(.*?)</pre>', page, re.DOTALL)
            return {way: html.unescape(text) for way, text in parts}

        made = await client.post(
            "/console/new", data={**FORMS[name], "id": "by-form", "csrf": token, "do": "create"}
        )
        assert made.status_code == 303, made.text
        code = (await shown("by-python"))["Python"]
        assert ("policies" in code) == any(each in FORMS[name] for each in ("attempts", "policies"))
        await run_python(code, machine, monkeypatch)
        await run_curl((await shown("by-curl"))["curl"], client)
        form = {"csrf": token, "documents": (await shown("by-file"))["YAML"], "do": "apply"}
        assert (await client.post("/console/documents", data=form)).status_code == 303
        wanted = await view(client, "by-form")
        for schedule_id in ("by-python", "by-curl", "by-file"):
            assert await view(client, schedule_id) == wanted, schedule_id


@pytest.mark.parametrize("name", FORMS)
async def test_the_form_of_an_edit_is_filled_in_from_the_schedule_and_changes_nothing(
    name: str, machine: TimeMachine
):
    machine.app.use_builtin()
    machine.app.action("ping")(lambda: None)
    for calendar in ("holidays", "works closed"):
        await machine.app.calendars.put(calendar, {"dates": ["2026-12-25"]})
    async with client_of(machine.app) as client:
        token = await csrf(client)
        given = {**FORMS[name], "id": "edited", "csrf": token, "do": "create"}
        assert (await client.post("/console/new", data=given)).status_code == 303
        before = (await client.get("/api/v1/schedules/edited")).json()
        page = (await client.get("/console/schedules/edited/edit")).text
        form = fields_of(page)
        assert form["kind"] == ("every" if name == "minutes" else FORMS[name]["kind"])
        saved = await client.post("/console/schedules/edited/edit", data={**form, "do": "save"})
        assert saved.status_code == 303, saved.text
        assert (await client.get("/api/v1/schedules/edited")).json() == before


@pytest.mark.parametrize(
    ("typed", "told", "field"),
    [
        ({"policies": '{"overlapp": "skip"}'}, "did you mean overlap?", "policies"),
        ({"policies": '{"retry": {"attempts": 3}}'}, "has its own field", "policies"),
        ({"run_timeout": "soon"}, '“Time limit of an attempt” is "soon"', "run_timeout"),
        (
            {"kind": "every", "every": "15m", "phase": "15"},
            "“Shifted by” is 15, a number without a unit",
            "phase",
        ),
        (
            {"kind": "plain", "time": "9:00", "days": "month", "day_of_month": "33"},
            "“Day of the month” has 33",
            "day_of_month",
        ),
        (
            {"kind": "plain", "days": "minutes", "minutes": "often"},
            "Minutes must be a whole number from 1.",
            "minutes",
        ),
        ({"timezone": "Europe/Berlim"}, "did you mean Europe/Berlin?", "timezone"),
        ({"exclude": "holidayz"}, "Defined: holidays", "exclude"),
        ({"kind": "spec", "spec": '{"exclude": ["holidays"]}'}, '{"calendar": "holidays"}', "spec"),
    ],
)
async def test_a_mistake_in_an_edit_is_told_with_its_field(
    typed: dict[str, str], told: str, field: str, machine: TimeMachine
):
    machine.app.action("ping")(lambda: None)
    await machine.app.calendars.put("holidays", {"dates": ["2026-12-25"]})
    await machine.app.schedules.create("edited", "0 9 * * *", "ping")
    async with client_of(machine.app) as client:
        form = fields_of((await client.get("/console/schedules/edited/edit")).text)
        answer = await client.post("/console/schedules/edited/edit", data={**form, **typed, "do": "save"})
    assert answer.status_code == 422
    assert told.lower() in html.unescape(answer.text).lower()
    assert f'data-refused data-wrong="{field}"' in answer.text


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the form of a page, unchanged."""
    found: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", page):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if "name" in attributes and (
            attributes.get("type") not in {"radio", "checkbox"} or " checked" in tag
        ):
            found[attributes["name"]] = html.unescape(attributes.get("value", ""))
    for name, text in re.findall(r'<textarea name="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL):
        found[name] = html.unescape(text)
    for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', page, re.DOTALL):
        found[name] = re.findall(r'value="(\w+)" selected', options)[0]
    return found


async def view(client: httpx.AsyncClient, schedule_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/schedules/{schedule_id}")).json()
    return {key: value for key, value in found.items() if key not in OWN}


async def test_an_edit_says_which_slot_will_now_be_skipped(machine: TimeMachine):
    machine.app.action("ping")(lambda: None)
    await machine.app.schedules.create("edited", "0 9 * * *", "ping")
    await machine.app.schedules.skip_next("edited")
    async with client_of(machine.app) as client:
        form = fields_of((await client.get("/console/schedules/edited/edit")).text)
        typed = {"kind": "cron", "cron": "0 11 * * *"}
        answer = await client.post("/console/schedules/edited/edit", data={**form, **typed, "do": "save"})
        assert answer.status_code == 303, answer.text
        page = (await client.get(answer.headers["location"])).text
    (told,) = re.findall(r"Changed\.[^<]*", page)
    assert "11:00 will be skipped." in told

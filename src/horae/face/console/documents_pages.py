"""Schedules as files: apply documents after a preview, import a crontab, and export everything as YAML.

These pages are clients of the API, as ``horae apply``, ``horae import`` and ``horae export`` are, in the name of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from horae.errors import HoraeError, InvalidInputError, ServerError
from horae.face.api_client import EVERYTHING, Client, path
from horae.face.console.error_text import error_text
from horae.face.console.page_request import Visit
from horae.face.console.security import headers_of
from horae.face.documents.apply_plan import OUTCOMES, SIGNS, Step, checked_labels, in_order, plan
from horae.face.documents.crontab_parser import Crontab, Entry, read_crontab
from horae.face.documents.files import yaml_text
from horae.face.documents.schedule_documents import (
    calendar_document,
    check_unique,
    documents_of,
    schedule_document,
)
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.face.service.route_helpers import known_actions
from horae.spec import Spec, installed_zones

EXAMPLE = """calendars:
  - name: holidays
    dates: ["2027-01-01"]
schedules:
  - id: report
    spec:
      crons: ["0 9 * * 1-5"]
      timezone: Europe/Berlin
      exclude: [{calendar: holidays}]
    action: NAME
"""
CRONTAB = """# m h  dom mon dow   command
30 2 * * *  /usr/local/bin/backup
"""
MAX_ENTRIES = 500
"""How many lines of a crontab are imported at once."""


def api(visit: Visit) -> Client:
    """A client of this service's own API, for the caller of a page."""
    return Client(visit.console.api(visit.caller), "this service", visit.query.get("owner"))


def _lines_of(error: HoraeError) -> list[str]:
    """An error in lines, one for each faulty document."""
    if error.details.get("code") == "invalid_documents":
        return [str(each["message"]) for each in error.details["errors"]]
    return [error_text(error)]


@get("/documents")
async def documents_page(visit: Visit) -> Response[Any]:
    """The form that takes documents."""
    text = EXAMPLE.replace("NAME", next(iter(await known_actions(visit.app)), "report"))
    return _documents(visit, {"documents": text})


def _documents(
    visit: Visit, form: dict[str, str], steps: Sequence[Step] | None = None, problems: Sequence[str] = ()
) -> Response[Any]:
    counts = {each: sum(step.outcome == each for step in steps or ()) for each in OUTCOMES}
    return visit.page(
        "documents.html", 422 if problems else 200, form=form, steps=steps, problems=problems, signs=SIGNS,
        counts={name: number for name, number in counts.items() if number},
    )  # fmt: skip


@post("/documents")
async def apply_documents(visit: Visit) -> Response[Any]:
    """Show what documents would change, or change it."""
    form = visit.form
    label, prune = form.get("managed_by", "").strip() or None, bool(form.get("prune"))
    try:
        documents = documents_of(form.get("documents", "").encode(), "the documents")
        labels = checked_labels(documents, label, prune=prune)
        client = api(visit)
        steps = await plan(client, documents, label or "", labels, prune=prune)
        if form.get("do") != "apply":
            return _documents(visit, form, steps)
        for step in (todo := in_order(steps)):
            await step.carry_out(client)
    except HoraeError as error:
        return _documents(visit, form, problems=_lines_of(error))
    noun = "change" if len(todo) == 1 else "changes"
    return visit.back(
        visit.url("documents"), f"Applied: {len(todo)} {noun}." if todo else "There was nothing to change."
    )


@get("/export")
async def export(visit: Visit) -> Response[Any]:
    """Schedules and calendars as YAML, to keep or to apply elsewhere; the address may name a tag or one schedule."""
    client = api(visit)
    if one := visit.query.get("schedule"):
        value: Any = schedule_document(await client.get(path("schedules", one)))
    else:
        found = await client.items("/schedules", EVERYTHING, tag=visit.query.get("tag") or None)
        check_unique(found)
        shared = await client.items("/calendars", EVERYTHING)
        value = {"calendars": [calendar_document(each) for each in shared]} if shared else {}
        value |= {"schedules": [schedule_document(each) for each in found]}
    headers = headers_of({"Content-Disposition": 'attachment; filename="schedules.yaml"'})
    return Response(yaml_text(value).encode(), media_type="application/yaml", headers=headers)


@get("/import")
async def import_page(visit: Visit) -> Response[Any]:
    """The form that takes a crontab."""
    return _crontab(visit, {"crontab": CRONTAB, "timezone": visit.zone.key})


def _crontab(
    visit: Visit,
    form: dict[str, str],
    read: Crontab | None = None,
    known: Sequence[str] = (),
    problem: str = "",
) -> Response[Any]:
    entries = (
        []
        if read is None
        else [(each, _meaning(each), f"command:{each.id}" in known) for each in read.entries]
    )
    commands = {each.id: msgspec.to_builtins(each.command) for each, _, is_known in entries if not is_known}
    return visit.page(
        "import.html", 422 if problem else 200, form=form, read=read, entries=entries, problem=problem,
        commands=commands, zones=sorted(installed_zones()), missing=len(commands),
    )  # fmt: skip


def _meaning(entry: Entry) -> str:
    return Spec.parse(entry.spec).sentence()


@post("/import")
async def import_crontab(visit: Visit) -> Response[Any]:
    """Show what the lines of a crontab mean, or create schedules for the lines whose commands this service knows."""
    form = visit.form
    try:
        zone = form.get("timezone", "").strip()
        if zone not in installed_zones():
            raise InvalidInputError(
                "timezone", f"is not a time zone: {zone[:40]}", hint="such as Europe/Berlin"
            )
        read = read_crontab(form.get("crontab", ""), timezone=zone, system=bool(form.get("system")))
        if len(read.entries) > MAX_ENTRIES:
            raise InvalidInputError(
                "crontab", f"has {len(read.entries)} lines, and at most {MAX_ENTRIES} are imported at once"
            )
        known = await known_actions(visit.app)
        chosen = [each for each in read.entries if f"command:{each.id}" in known]
        if form.get("do") != "import" or not chosen:
            return _crontab(visit, form, read, known)
        created = await _create(visit, chosen)
    except HoraeError as error:
        return _crontab(visit, form, problem=_lines_of(error)[0])
    waiting = len(read.entries) - len(chosen)
    rest = f" {waiting} more wait for their commands." if waiting else ""
    existing = f" {len(chosen) - created} existed already." if created < len(chosen) else ""
    return visit.back(
        visit.url("schedules", tag="crontab"),
        f"Imported {created} of {len(read.entries)} lines.{existing}{rest}",
    )


async def _create(visit: Visit, entries: Sequence[Entry]) -> int:
    """Create schedules from lines that have none yet; return how many were created."""
    created, client = 0, api(visit)
    for entry in entries:
        try:
            await client.post("/schedules", entry.schedule)
            created += 1
        except ServerError as error:
            if error.details.get("code") != "schedule_exists":
                raise
    return created


HANDLERS = [documents_page, apply_documents, export, import_page, import_crontab]

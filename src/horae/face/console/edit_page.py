"""Edit a schedule with a preview of the changes, backfill a range, and show earlier versions as differences."""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import Any

import msgspec

from horae.app import Edit
from horae.app.schedule_views import DescribedSchedule, VersionView
from horae.app.view_base import page_of, view_of
from horae.app.views import PreviewView
from horae.checked import converted
from horae.errors import ConflictTokenMismatchError, HoraeError, InvalidInputError
from horae.face.console.create_page import choices, refusal
from horae.face.console.error_text import error_text
from horae.face.console.form_fields import json_of, moment_of
from horae.face.console.name_list_field import tags_of, tags_text
from horae.face.console.page_request import Visit
from horae.face.console.rendering import as_json
from horae.face.console.schedule_actions import skip_words
from horae.face.console.schedule_form import form_of_policies, form_of_spec, policies_of, spec_of
from horae.face.console.schedule_page import described
from horae.face.http.responses import Response
from horae.face.http.routes import get, post
from horae.model import FUNCTION, Action, instant
from horae.policies import Policies

DAYS = 30
LISTED = 12
VERSIONS = 20
MANY = 1000
"""How many runs a backfill may start without being asked for twice."""


def form_of(schedule: DescribedSchedule, now: datetime) -> dict[str, str]:
    """The form that shows a schedule as it is."""
    return {
        **form_of_spec(schedule.spec, now), **form_of_policies(schedule.policies),
        "description": schedule.description, "tags": tags_text(schedule.tags), "version": str(schedule.version),
        "input": "" if schedule.action["input"] is None else as_json(schedule.action["input"]),
        "action": address_of(schedule.action), "options": as_json(schedule.action["options"]) if schedule.action["options"] else "",
    }  # fmt: skip


def address_of(action: dict[str, Any]) -> str:
    """The address of an action that a view shows."""
    kind, name = action["kind"], action["name"]
    return name if kind == FUNCTION else f"{kind}:{name}" if name else str(kind)


async def changes(visit: Visit, schedule_id: str, form: dict[str, str]) -> dict[str, Any]:
    """What an edit would do: fire times added and removed, the sentence, or what is wrong."""
    try:
        fields = _edit_of(form, visit)
        meaning = await visit.operations.schedules.meaning(fields["spec"], 1)
        found = await visit.operations.why.preview(schedule_id, fields["spec"], days=DAYS, limit=LISTED)
    except HoraeError as error:
        return {"change": None, "meaning": None, **refusal(error, form)}
    change, zone = view_of(PreviewView, found), meaning.spec.get("timezone", "UTC")
    return {"change": change, "meaning": meaning, "problem": "", "wrong": "", "zone": zone}


def _edit_of(form: dict[str, str], visit: Visit) -> dict[str, Any]:
    return {
        "spec": spec_of(form, instant(visit.now)), "policies": converted(policies_of(form), Policies, "policies"),
        "description": form.get("description", "").strip(), "tags": tuple(tags_of(form.get("tags", ""))),
    }  # fmt: skip


async def _page(
    visit: Visit,
    schedule: DescribedSchedule,
    form: dict[str, str],
    status: int = 200,
    **context: Any,  # noqa: ANN401 - what a template shows
) -> Response[Any]:
    shown = {"refused": "", "conflict": False, **await changes(visit, schedule.id, form), **context}
    offered = await choices(visit, visit.operations)
    return visit.page("edit.html", status, schedule=schedule, form=form, **offered, **shown)


@get("/schedules/{schedule_id}/edit")
async def edit_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """The form that changes a schedule."""
    schedule = await described(visit.operations, schedule_id)
    return await _page(visit, schedule, form_of(schedule, instant(visit.now)))


@post("/schedules/{schedule_id}/edit")
async def edit(visit: Visit, schedule_id: str) -> Response[Any]:
    """Change a schedule. If another change came first, show both."""
    form, operations, version = visit.form, visit.operations, visit.form.get("version", "")
    if form.get("do") == "preview":
        return visit.page("edit_preview.html", **await changes(visit, schedule_id, form))
    try:
        fields = _edit_of(form, visit)
        fields |= _action(visit, (await operations.schedules.get(schedule_id)).action)
        expected = int(version) if version.isdecimal() else -1
        changed = await operations.schedules.edit(schedule_id, lambda _: Edit(**fields), version=expected)
    except ConflictTokenMismatchError:
        refused = (
            "Another change came first. Your text is still here; the schedule as it is now is beside it."
        )
        wrong = ""
    except HoraeError as error:
        refused, wrong = refusal(error, form).values()
    else:
        # After an edit, other slots may be the next ones, which are skipped.
        skipped = f" {await skip_words(visit, changed)}" if changed.state.skip_next else ""
        return visit.back(visit.url("schedules", schedule_id), f"Changed.{skipped}")
    schedule = await described(operations, schedule_id)
    conflict, form = str(schedule.version) != version, {**form, "version": str(schedule.version)}
    return await _page(
        visit, schedule, form, 409 if conflict else 422, refused=refused, conflict=conflict, wrong=wrong
    )


def _action(visit: Visit, before: Action) -> dict[str, Any]:
    """The action of an edit: another one by its address, or the same with another input and other options."""
    given, options = json_of(visit, "input"), json_of(visit, "options", msgspec.UNSET)
    address = visit.form.get("action", before.address).strip()
    if not address:
        raise InvalidInputError("action", "is needed")
    if address != before.address:
        return {"action": address, "input": given}
    if not isinstance(options, dict | msgspec.UnsetType):
        raise InvalidInputError("options", "must be an object")
    changed = {} if options is msgspec.UNSET else {"options": options}
    return {"action": msgspec.structs.replace(before, input=given, **changed)}


@get("/schedules/{schedule_id}/backfill")
async def backfill_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """The form that backfills a range."""
    schedule = await described(visit.operations, schedule_id)
    return visit.page("backfill.html", schedule=schedule, form={}, found=None, refused="", many=MANY)


@post("/schedules/{schedule_id}/backfill")
async def backfill(visit: Visit, schedule_id: str) -> Response[Any]:
    """Count the slots of a range, or start to run them."""
    operations, form, found, refused = visit.operations, visit.form, None, ""
    schedule = await described(operations, schedule_id)
    try:
        start, end = _moment(visit, "start"), _moment(visit, "end")
        found = await operations.backfills.preview(schedule_id, start, end)
        sure = found.slots <= MANY or form.get("sure") == str(found.slots)
        if form.get("do") == "start" and sure:
            await operations.backfills.start(
                schedule_id, start, end, overlap=form.get("overlap") or None,  # type: ignore[arg-type]  # it is checked
                author=visit.caller.user, note=form.get("note", ""),
            )  # fmt: skip
            return visit.back(f"{visit.url('schedules', schedule_id)}#h-backfills", "The backfill has begun.")
    except HoraeError as error:
        refused = error_text(error)
    status = 422 if refused else 200
    return visit.page(
        "backfill.html", status, schedule=schedule, form=form, found=found, refused=refused, many=MANY
    )


def _moment(visit: Visit, name: str) -> datetime:
    found = moment_of(visit, name)
    if found is None:
        raise InvalidInputError(name, "is needed")
    return found


@get("/schedules/{schedule_id}/versions")
async def versions_page(visit: Visit, schedule_id: str) -> Response[Any]:
    """What a schedule was before its edits, each as a difference to what followed."""
    operations = visit.operations
    schedule = await described(operations, schedule_id)
    found = page_of(
        VersionView,
        await operations.schedules.versions(schedule_id, VERSIONS, cursor=visit.cursor),
    )
    following: list[VersionView | DescribedSchedule] = [schedule, *found.items]
    shown = [(old, difference(old, new)) for old, new in zip(found.items, following, strict=False)]
    return visit.page("versions.html", schedule=schedule, versions=shown, next=found.next)


def difference(old: VersionView, new: VersionView | DescribedSchedule) -> list[tuple[str, str]]:
    """The lines that an edit removed and added, with a few around them: a sign and a text each."""
    before, after = (
        as_json({"spec": each.spec, "policies": each.policies}).splitlines() for each in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]
    return [(line[:1], line[1:]) for line in lines if not line.startswith("@@")]


HANDLERS = [edit_page, edit, backfill_page, backfill, versions_page]

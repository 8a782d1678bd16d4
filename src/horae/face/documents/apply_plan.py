"""Plans what applying documents changes: checks each document, and compares it with what is stored."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from horae.errors import HoraeError, InvalidInputError, ServerError
from horae.face.api_client import EVERYTHING, Client, path
from horae.face.documents.schedule_documents import (
    Difference,
    Document,
    Json,
    Kind,
    calendar_differences,
    canonical_calendar,
    schedule_differences,
    with_state,
)

Outcome = Literal["created", "changed", "removed", "unchanged", "left"]
OUTCOMES: tuple[Outcome, ...] = ("created", "changed", "removed", "unchanged", "left")
SIGNS: dict[Outcome, str] = {"created": "+", "changed": "~", "removed": "-", "unchanged": "=", "left": "?"}
MAX_REPORTED = 20
"""How many documents with errors are reported at most."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with one document, or with a schedule that is in no document."""

    kind: Kind
    name: str
    outcome: Outcome
    source: str = ""
    differences: tuple[Difference, ...] = ()
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    body: Json = {}
    version: int | None = None
    """The stored version that was compared; ``None`` if there is none."""
    owner: str | None = None
    """The owner of the schedule."""

    @property
    def changes(self) -> bool:
        """Whether the step changes anything."""
        return self.outcome in {"created", "changed", "removed"}

    async def carry_out(self, client: Client) -> None:
        """Make the change."""
        place = path(f"{self.kind}s", self.name)
        if self.outcome == "removed":
            await client.delete(place, version=self.version, owner=self.owner)
        elif self.kind == "calendar":
            await client.put(place, self.body)
        elif self.version is None:
            await client.put(place, self.body, new=True)
        else:
            await client.put(place, self.body | {"version": self.version}, owner=self.owner)


def located(error: HoraeError, thing: Document | Step, hint: str | None = None) -> ServerError:
    """An error that names the file and the document."""
    place = f'{thing.kind} "{thing.name}"'
    if thing.source:
        place = f"{thing.source}: {place}"
    details = {**error.details, "source": thing.source, "kind": thing.kind, "name": thing.name}
    return ServerError(f"{place}: {error.message}", details, hint=hint or error.hint)


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps that change something, in the order to carry them out: new calendars before the schedules that need them, changed
    calendars last, because they make new versions of the schedules that exclude them.
    """
    return sorted((each for each in steps if each.changes), key=_place)


def _place(step: Step) -> int:
    if step.kind == "calendar":
        return 0 if step.outcome == "created" else 3
    return 2 if step.outcome == "removed" else 1


def as_json(steps: Sequence[Step], *, dry_run: bool) -> Json:
    """Steps as JSON."""
    shown = ("kind", "name", "outcome", "source", "differences", "warnings")
    items = [{name: getattr(each, name) for name in shown} for each in steps]
    counts: Json = {outcome: sum(each.outcome == outcome for each in steps) for outcome in OUTCOMES}
    return {"dry_run": dry_run, "items": items, **counts}


def checked_labels(documents: Sequence[Document], given: str | None, *, prune: bool) -> set[str]:
    """The labels of the documents' schedules. If a label is given, no document may have another."""
    if given is not None and not given.strip():
        raise InvalidInputError("--managed-by", "is empty", hint="such as --managed-by billing")
    labels = {given} if given else set()
    for each in documents:
        named = each.body.get("managed_by")
        if each.kind != "schedule" or not isinstance(named, str) or not named:
            continue
        if given is not None and named != given:
            reason = f'managed_by is "{named}", and --managed-by says "{given}"'
            raise located(HoraeError(reason), each, "leave one of them out")
        labels.add(named)
    if prune and not labels:
        raise InvalidInputError(
            "--prune", "needs a label, so that it deletes only what these documents once defined",
            hint="add --managed-by NAME, or write managed_by: NAME into the documents",
        )  # fmt: skip
    return labels


async def plan(
    client: Client, documents: Sequence[Document], label: str, labels: Collection[str], *, prune: bool
) -> list[Step]:
    """The steps that apply documents. If some cannot be applied, the error reports all of them."""
    steps: list[Step] = []
    faults: list[ServerError] = []
    new_calendars: Json = {}
    for each in documents:
        try:
            if each.kind == "calendar":
                step = await _calendar(client, each)
                if step.outcome == "created":
                    new_calendars[each.name] = step.body
            else:
                step = await _schedule(client, each, label, new_calendars)
            steps.append(step)
        except HoraeError as error:
            if _is_about_the_server(error):
                raise
            faults.append(located(error, each))
    if faults:
        raise _together(faults)
    return steps + await _unmentioned(client, steps, labels, prune=prune)


def _is_about_the_server(error: HoraeError) -> bool:
    """Whether an error is not about a document."""
    status = error.details.get("status")
    return isinstance(error, ServerError) and (status is None or status in {401, 403, 429} or status >= 500)


def _together(faults: Sequence[ServerError]) -> ServerError:
    if len(faults) == 1:
        return faults[0]
    reported = [f"{each.message}{f' ({each.hint})' if each.hint else ''}" for each in faults[:MAX_REPORTED]]
    return ServerError(
        f"{len(faults)} documents cannot be applied, and nothing was changed",
        {"code": "invalid_documents", "errors": [{"message": each} for each in reported]},
    )


async def _calendar(client: Client, document: Document) -> Step:
    wanted = canonical_calendar(document)
    present: Json | None = await client.find(path("calendars", document.name))
    differences = calendar_differences(present or {}, wanted)
    outcome: Outcome = "created" if present is None else "changed" if differences else "unchanged"
    return Step(
        kind="calendar", name=document.name, source=document.source, outcome=outcome,
        differences=() if present is None else differences, body={key: wanted[key] for key in ("dates", "calendars")},
    )  # fmt: skip


async def _schedule(client: Client, document: Document, label: str, new_calendars: Json) -> Step:
    place = path("schedules", document.name)
    present: Json | None = await client.find(place)
    body = with_state(document.body, present, label)
    version = None if present is None else present["version"]
    trial = body | {
        "dry_run": True,
        "version": version,
        "spec": _with_calendars(body.get("spec"), new_calendars),
    }
    would = await client.put(place, {key: value for key, value in trial.items() if value is not None})
    differences: tuple[Difference, ...] = ()
    if present is not None:
        if present["managed_by"] not in {"", body["managed_by"]}:
            raise _managed_elsewhere(document.name, present["managed_by"], body["managed_by"])
        differences = tuple(schedule_differences(present, would))
        if not differences and would["outcome"] == "changed":
            # Views hide only one thing that documents have: the secrets of an action.
            differences = (Difference("action.options", "***", "*** (another secret)"),)
    outcome: Outcome = would["outcome"]
    return Step(
        kind="schedule", name=document.name, source=document.source, outcome=outcome, differences=differences, body=body,
        version=version, owner=would["owner"], sentence="" if outcome == "unchanged" else would["sentence"],
        warnings=() if outcome == "unchanged" else tuple(would.get("warnings", ())),
    )  # fmt: skip


def _with_calendars(spec: Any, new: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """A spec with the contents of new calendars that it excludes, which are not stored yet."""
    excluded = spec.get("exclude") if isinstance(spec, dict) else None
    names = [each.get("calendar") for each in excluded or () if isinstance(each, dict)]
    contents = {name: new[name] for name in names if isinstance(name, str) and name in new}
    return {**spec, "shared": contents} if contents else spec


def _managed_elsewhere(name: str, managed_by: str, label: str) -> HoraeError:
    mine = f'not by "{label}"' if label else "these documents have no label"
    hand_over = shlex.join(["horae", "schedules", "update", name, "--managed-by", label])
    return HoraeError(
        f'it is managed by "{managed_by}", and {mine}',
        {"scheduleId": name, "managedBy": managed_by, "label": label},
        hint=f"choose another id, leave it out, or hand it over: {hand_over}",
    )


async def _unmentioned(
    client: Client, steps: Sequence[Step], labels: Collection[str], *, prune: bool
) -> list[Step]:
    """The schedules with the documents' labels that are in no document, of the owners of the documents' schedules."""
    named = {(each.owner, each.name) for each in steps if each.kind == "schedule"}
    owners = {owner for owner, _ in named}
    schedules: list[Json] = []
    for label in sorted(labels):
        labelled = await client.items("/schedules", EVERYTHING, managed_by=label)
        schedules += [each for each in labelled if not owners or each["owner"] in owners]
    if not owners and len({each["owner"] for each in schedules}) > 1:
        raise InvalidInputError(
            "--owner",
            "is needed: schedules of several owners have the label",
            hint="add --owner NAME",
        )
    outcome: Outcome = "removed" if prune else "left"
    return [
        Step(kind="schedule", name=each["id"], outcome=outcome, version=each["version"], owner=each["owner"])
        for each in schedules
        if (each["owner"], each["id"]) not in named
    ]

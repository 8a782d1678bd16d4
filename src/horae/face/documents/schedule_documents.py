"""Documents: schedules and calendars in files, in the form that the API takes. Pure, except for reading files.

The document of a schedule is ``{"id": …, "spec": …, "action": …}`` with any other field; that of a calendar is ``{"name": …, "dates": […]}``.
A file has one document, a list, or ``{"calendars": […], "schedules": […]}``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from horae.app.schedule_fields import ScheduleFields
from horae.app.view_base import whole
from horae.errors import InvalidInputError
from horae.executor.http_options import HttpRequest
from horae.face.documents.files import SUFFIXES, parsed, parsed_text
from horae.model import Action
from horae.spec import Spec

Json = dict[str, Any]
Kind = Literal["calendar", "schedule"]
EXAMPLE = '{"id": "report", "spec": {"crons": ["0 9 * * 1-5"]}, "action": "report"}'
MANY: dict[str, Kind] = {"calendars": "calendar", "schedules": "schedule"}
NAMES: dict[Kind, str] = {"calendar": "name", "schedule": "id"}

_OPTIONS = {"http": HttpRequest}
"""The kinds of actions whose options have known defaults."""


class Difference(msgspec.Struct, frozen=True):
    """A field that differs."""

    field: str
    old: Any
    new: Any


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document and its file."""

    kind: Kind
    name: str
    body: Json
    source: str


def read_documents(files: Sequence[str]) -> list[Document]:
    """The documents of files, folders and standard input; calendars first, because schedules may exclude them."""
    return _together(
        each
        for name in files
        for file in _files(name)
        for each in _documents(parsed(file, _source(file), EXAMPLE), _source(file))
    )


def documents_of(text: bytes, source: str) -> list[Document]:
    """The documents of a text, calendars first."""
    return _together(_documents(parsed_text(text, source, EXAMPLE), source))


def _source(file: str) -> str:
    return "standard input" if file == "-" else file


def _together(documents: Iterable[Document]) -> list[Document]:
    """Sort documents, calendars first, and refuse duplicates."""
    listed = list(documents)
    places: dict[tuple[str, str], str] = {}
    for each in listed:
        if (other := places.get((each.kind, each.name))) is not None:
            raise InvalidInputError(
                each.source, f'has the {each.kind} "{each.name}", which {other} has already'
            )
        places[each.kind, each.name] = each.source
    return sorted(listed, key=lambda each: each.kind)


def _files(name: str) -> list[str]:
    """A file, or all documents below a folder, sorted by name."""
    if name == "-" or not Path(name).is_dir():
        return [name]
    files = sorted(
        str(each) for each in Path(name).rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file()
    )
    if not files:
        raise InvalidInputError(
            name, "is a folder without documents", hint=f"their names end with {', '.join(SUFFIXES)}"
        )
    return files


def _documents(values: Sequence[Any], source: str) -> Iterator[Document]:
    for number, (kind, body) in enumerate(_bodies(values, source), 1):
        name = body.get(NAMES[kind])
        if not isinstance(name, str) or not name:
            problem = "no" if name in (None, "") else "a wrong"
            reason = f"has a {kind} with {problem} {NAMES[kind]}: document {number}"
            raise InvalidInputError(source, reason, hint=f"such as {EXAMPLE}")
        yield Document(kind=kind, name=name, body=body, source=source)


def _bodies(values: Sequence[Any], source: str) -> Iterator[tuple[Kind, Json]]:
    for value in values:
        if isinstance(value, list):
            yield from _bodies(value, source)
        elif isinstance(value, dict) and value and value.keys() <= MANY.keys():
            for name, kind in MANY.items():
                items = value.get(name)
                if not isinstance(items, list | None):
                    raise InvalidInputError(
                        source, f"has {name} that are not a list", hint=f"such as {name}: []"
                    )
                yield from ((kind, _mapping(body, source)) for body in items or ())
        else:
            body = _mapping(value, source)
            yield ("calendar" if "name" in body and "spec" not in body else "schedule"), body


def _mapping(value: object, source: str) -> Json:
    if not isinstance(value, dict):
        shown = msgspec.json.encode(value).decode()[:60]
        raise InvalidInputError(source, f"has {shown} where a document should be", hint=f"such as {EXAMPLE}")
    return value


def one_schedule(file: str) -> Json:
    """The only schedule of a file; its id may be missing."""
    schedules = [
        body for kind, body in _bodies(parsed(file, "--file", EXAMPLE), "--file") if kind == "schedule"
    ]
    if len(schedules) != 1:
        raise InvalidInputError(
            "--file", f"has {len(schedules)} schedules instead of one", hint="horae apply takes many"
        )
    return schedules[0]


def check_unique(views: Sequence[Mapping[str, Any]]) -> None:
    """Refuse schedules of several owners with the same id, because documents name no owner."""
    for name, number in Counter(each["id"] for each in views).items():
        if number > 1:
            reason = f'is needed: {number} owners have a schedule "{name}", and documents name no owner'
            raise InvalidInputError("--owner", reason, hint="add --owner NAME")


def schedule_document(view: Mapping[str, Any]) -> Json:
    """The document of a schedule from its view, without defaults. Secrets are ``***``."""
    usual = {each.name: _default(each) for each in msgspec.structs.fields(ScheduleFields)}
    fields = _unusual(_fields(view), usual)
    return {"id": view["id"], "spec": fields.pop("spec"), "action": _action(fields.pop("action")), **fields}


def with_state(document: Json, present: Mapping[str, Any] | None, label: str) -> Json:
    """The body that applies a document. Omitted fields get their defaults, except those that operators change, which stay."""
    body = {key: value for key, value in document.items() if key != "id"}
    stays = (
        {} if present is None else {key: value for key, value in _fields(present).items() if key in _STATE}
    )
    return {"memo": {}, "search_attributes": {}, "managed_by": label, **stays, **body}


_STATE = {"paused", "note", "remaining_actions"}
"""The fields that operators change while a schedule works."""


def calendar_document(view: Mapping[str, Any]) -> Json:
    """The document of a calendar from its view."""
    return {key: view[key] for key in ("name", "dates", "calendars") if view[key]}


def canonical_calendar(document: Document) -> Json:
    """The view that a calendar's document would have; a malformed one is refused."""
    body = {key: value for key, value in document.body.items() if key != "name"}
    spec = Spec.parse({"exclude": [{"calendar": document.name}]}, calendars={document.name: body})
    read: Json = msgspec.json.decode(msgspec.json.encode(spec.document.shared[document.name]))
    return {"name": document.name, "dates": [], "calendars": []} | read


def differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> Iterator[Difference]:
    """The fields in which two values differ, each by its path."""
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from differences(before, after, f"{within}{name}.")
        elif before != after:
            yield Difference(f"{within}{name}", before, after)


def calendar_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The fields in which two views of a calendar differ."""
    before, after = ({key: each.get(key) or [] for key in ("dates", "calendars")} for each in (old, new))
    return tuple(differences(before, after))


def schedule_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """The fields of a document in which two views of a schedule differ."""
    return list(differences(_fields(old), _fields(new)))


def _fields(view: Mapping[str, Any]) -> Json:
    shown = {**view, "paused": view["state"] == "paused"}
    return {name: shown[name] for name in ("spec", "action", *ScheduleFields.__struct_fields__)}


def _default(field: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 - JSON
    given = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return None if given is msgspec.NODEFAULT else whole(given)


def _unusual(value: Json, usual: Json) -> Json:
    """The parts of a value that differ from the defaults, at every level."""
    return {
        name: _unusual(each, usual[name]) if isinstance(each, dict) and usual.get(name) else each
        for name, each in value.items()
        if name not in usual or each != usual[name]
    }


def _action(view: Json) -> Json | str:
    """An action without defaults; only its address if nothing else is left."""
    if kind := _OPTIONS.get(view["kind"]):
        usual = {each.name: _default(each) for each in msgspec.structs.fields(kind)}
        view = {**view, "options": _unusual(view["options"], usual)}
    action = _unusual(view, whole(Action()))
    return action if action.keys() - {"kind", "name"} else msgspec.convert(view, Action).address

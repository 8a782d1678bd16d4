"""The form that says when: cron, interval, plain choices or a whole document, to a spec document. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from horae.errors import InvalidInputError
from horae.face.cli.time_parser import read_time

KINDS = {
    "plain": "Plain choices",
    "cron": "Cron",
    "every": "Interval",
    "once": "Once",
    "spec": "Spec document",
}
"""The ways to say when, and their labels."""
DAYS = {"mon": "Mon", "tue": "Tue", "wed": "Wed", "thu": "Thu", "fri": "Fri", "sat": "Sat", "sun": "Sun"}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
Json = dict[str, Any]


def spec_of(form: Mapping[str, str], now: datetime) -> Json:
    """The spec document that a form says; a mistake is told with the field that has it. A single time may be relative to ``now``."""
    kind = form.get("kind", "plain")
    if kind == "spec":
        return _document(form.get("spec", ""))
    makers = {"cron": _cron, "every": _every, "plain": _plain}
    if kind not in KINDS:
        raise InvalidInputError("kind", f"is none of {', '.join(KINDS)}")
    spec = _once(form, now) if kind == "once" else makers[kind](form)
    zone = form.get("timezone", "").strip()
    if zone and zone != "UTC":
        spec["timezone"] = zone
    if excluded := form.get("exclude", "").split():
        spec["exclude"] = [{"calendar": name} for name in excluded]
    if jitter := form.get("jitter", "").strip():
        spec["jitter"] = jitter
    usual_of = {"gap": "skip", "fold": "both", "clock_change": "literal"} | (
        {"dialect": "unix"} if kind == "cron" else {}
    )
    for name, usual in usual_of.items():
        if (value := form.get(name, usual)) != usual and kind in {"cron", "plain"}:
            spec[name] = value
    return spec


def _document(text: str) -> Json:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInputError("spec", f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInputError("spec", 'must be a document, such as {"crons": ["0 9 * * 1-5"]}')
    return found


def _cron(form: Mapping[str, str]) -> Json:
    lines = [line.strip() for line in form.get("cron", "").splitlines() if line.strip()]
    if not lines:
        raise InvalidInputError("cron", "needs an expression", hint="such as 30 2 * * *")
    return {"crons": lines}


def _every(form: Mapping[str, str]) -> Json:
    every = form.get("every", "").strip()
    if not every:
        raise InvalidInputError("every", "needs a span", hint="such as 15m or 1h30m")
    interval = {"every": every}
    if phase := form.get("phase", "").strip():
        interval["phase"] = phase
    return {"intervals": [interval]}


def _once(form: Mapping[str, str], now: datetime) -> Json:
    at = form.get("at", "").strip()
    if not at:
        raise InvalidInputError(
            "at", "needs a time", hint="such as tomorrow 9:00, +10m or 2027-03-14T09:00:00"
        )
    return {"times": [read_time(at, "at", form.get("timezone", "").strip() or "UTC", now).isoformat()]}


def _plain(form: Mapping[str, str]) -> Json:
    clock = _CLOCK.fullmatch(form.get("time", "").strip())
    if clock is None:
        raise InvalidInputError("time", "needs a time of day", hint="such as 9:00")
    when: Json = {"hour": str(int(clock[1])), "minute": str(int(clock[2]))}
    if clock[3] and int(clock[3]):
        when["second"] = str(int(clock[3]))
    days = form.get("days", "every")
    if days == "month":
        when["day_of_month"] = form.get("day_of_month", "").strip() or "1"
    elif days == "workdays":
        when["day_of_week"] = "mon-fri"
    elif days == "some":
        chosen = [day for day in DAYS if form.get(f"on_{day}")]
        if not chosen:
            raise InvalidInputError("days", "needs at least one day of the week")
        when["day_of_week"] = ",".join(chosen)
    return {"calendars": [when]}


def schedule_of(form: Mapping[str, str], now: datetime) -> Json:
    """The document of a new schedule, as the API takes it, without what is left at its default."""
    document: Json = {"id": form.get("id", "").strip(), "spec": spec_of(form, now), "action": action_of(form)}
    if not document["id"]:
        raise InvalidInputError("id", "is needed")
    if policies := policies_of(form):
        document["policies"] = policies
    if description := form.get("description", "").strip():
        document["description"] = description
    if tags := form.get("tags", "").split():
        document["tags"] = tags
    if form.get("paused"):
        document["paused"] = True
    if form.get("now"):
        document["trigger"] = {}
    return document


def action_of(form: Mapping[str, str]) -> Any:  # noqa: ANN401 - a name, or a document
    """The action that a form says: a registered one or a command by its name, or an HTTP request."""
    if form.get("does") == "http":
        url = form.get("url", "").strip()
        if not url:
            raise InvalidInputError("url", "is needed", hint="such as https://example.org/report")
        options: Json = {"url": url}
        if (method := form.get("method", "POST")) != "POST":
            options["method"] = method
        if headers := dict(_header(line) for line in form.get("headers", "").splitlines() if line.strip()):
            options["headers"] = headers
        action: Any = {"kind": "http", "options": options}
    else:
        action = form.get("action", "").strip()
        if not action:
            raise InvalidInputError("action", "is needed")
    if not (text := form.get("input", "").strip()):
        return action
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInputError("input", f"is no JSON: {error}") from None
    return {**(action if isinstance(action, dict) else {"name": action}), "input": given}


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise InvalidInputError(
            "headers", f"have no name: {line.strip()[:40]}", hint="such as X-Team: reports"
        )
    return name.strip(), value.strip()


def policies_of(form: Mapping[str, str]) -> Json:
    """The policies that a form says, where they differ from the defaults."""
    policies: Json = {}
    if (overlap := form.get("overlap", "skip")) != "skip":
        policies["overlap"] = overlap
    if (mode := form.get("catch_up", "all")) != "all":
        policies["catch_up"] = {"mode": mode}
    attempts = form.get("attempts", "1").strip() or "1"
    if not attempts.isdecimal():
        raise InvalidInputError("attempts", "must be a number")
    if int(attempts) != 1:
        policies["retry"] = {"attempts": int(attempts)}
    if run := form.get("run_timeout", "").strip():
        policies["timeouts"] = {"run": run}
    return policies

"""The form that says when: cron, interval, plain choices or a whole document, to a spec document. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from horae.errors import InvalidInputError

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


def spec_of(form: Mapping[str, str]) -> Json:
    """The spec document that a form says; a mistake is told with the field that has it."""
    kind = form.get("kind", "plain")
    if kind == "spec":
        return _document(form.get("spec", ""))
    makers = {"cron": _cron, "every": _every, "once": _once, "plain": _plain}
    if kind not in makers:
        raise InvalidInputError("kind", f"is none of {', '.join(KINDS)}")
    spec = makers[kind](form)
    zone = form.get("timezone", "").strip()
    if zone and zone != "UTC":
        spec["timezone"] = zone
    if excluded := form.get("exclude", "").split():
        spec["exclude"] = [{"calendar": name} for name in excluded]
    if jitter := form.get("jitter", "").strip():
        spec["jitter"] = jitter
    for name, usual in (("gap", "skip"), ("fold", "both")):
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


def _once(form: Mapping[str, str]) -> Json:
    at = form.get("at", "").strip()
    if not at:
        raise InvalidInputError("at", "needs a time", hint="such as 2027-03-14T09:00:00")
    return {"times": [at]}


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


def schedule_of(form: Mapping[str, str]) -> Json:
    """The document of a new schedule, as the API takes it, without what is left at its default."""
    document: Json = {
        "id": form.get("id", "").strip(),
        "spec": spec_of(form),
        "action": form.get("action", "").strip(),
    }
    for name in ("id", "action"):
        if not document[name]:
            raise InvalidInputError(name, "is needed")
    if text := form.get("input", "").strip():
        try:
            document["action"] = {"name": document["action"], "input": msgspec.json.decode(text)}
        except msgspec.DecodeError as error:
            raise InvalidInputError("input", f"is no JSON: {error}") from None
    if policies := policies_of(form):
        document["policies"] = policies
    if description := form.get("description", "").strip():
        document["description"] = description
    if tags := form.get("tags", "").split():
        document["tags"] = tags
    if form.get("paused"):
        document["paused"] = True
    return document


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

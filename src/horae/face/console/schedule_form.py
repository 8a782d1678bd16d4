"""The form of a schedule: reads its fields into spec and policy documents, and fills them from these. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from horae.app.view_base import whole
from horae.errors import (
    HoraeError,
    InvalidCronExpressionError,
    InvalidInputError,
    InvalidSpecError,
    ScheduleExistsError,
    UnknownCalendarError,
    UnknownTimezoneError,
)
from horae.face.console.form_fields import read_json
from horae.face.console.name_list_field import calendars_of, calendars_text, tags_of
from horae.face.console.rendering import as_json
from horae.face.time_parser import read_time
from horae.policies import Policies
from horae.spec import Spec
from horae.spec.document import SpecDocument

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
USUAL: Json = whole(Policies())
"""The default policies."""
_POLICY_FIELDS = {
    "policies.overlap": "overlap",
    "policies.catch_up.mode": "catch_up",
    "policies.retry.attempts": "attempts",
    "policies.timeouts.run": "run_timeout",
}
"""The form's fields for single policies, by the paths of these."""


def spec_of(form: Mapping[str, str], now: datetime) -> Json:
    """The spec document of a form. An error names its field; a single time may be relative to ``now``."""
    kind = form.get("kind", "plain")
    if kind == "spec":
        return _document(form.get("spec", ""))
    if kind == "plain" and form.get("days") == "minutes":
        kind, form = "every", {**form, "every": _minutes(form), "phase": ""}
    makers = {"cron": _cron, "every": _every, "plain": _plain}
    if kind not in KINDS:
        raise InvalidInputError("kind", f"is none of {', '.join(KINDS)}")
    spec = _once(form, now) if kind == "once" else makers[kind](form)
    zone = form.get("timezone", "").strip()
    if zone and zone != "UTC":
        spec["timezone"] = zone
    if excluded := calendars_of(form.get("exclude", "")):
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
    found = read_json("spec", text)
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


def _minutes(form: Mapping[str, str]) -> str:
    minutes = form.get("minutes", "").strip()
    if not minutes.isdecimal() or not int(minutes):
        raise InvalidInputError("minutes", "must be a whole number from 1", hint="such as 15")
    return f"{int(minutes)}m"


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
    """The document of a new schedule, as the API takes it, without defaults."""
    document: Json = {"id": form.get("id", "").strip(), "spec": spec_of(form, now), "action": action_of(form)}
    if not document["id"]:
        raise InvalidInputError("id", "is needed")
    if policies := policies_of(form):
        document["policies"] = policies
    if description := form.get("description", "").strip():
        document["description"] = description
    if tags := tags_of(form.get("tags", "")):
        document["tags"] = tags
    if form.get("paused"):
        document["paused"] = True
    if form.get("now"):
        document["trigger"] = {}
    return document


def action_of(form: Mapping[str, str]) -> Any:  # noqa: ANN401 - a name, or a document
    """The action of a form: a registered one or a command by its name, or an HTTP request."""
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
    return {**(action if isinstance(action, dict) else {"name": action}), "input": read_json("input", text)}


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise InvalidInputError(
            "headers", f"have no name: {line.strip()[:40]}", hint="such as X-Team: reports"
        )
    return name.strip(), value.strip()


def policies_of(form: Mapping[str, str]) -> Json:
    """The policies of a form that differ from the defaults."""
    policies = read_json("policies", form.get("policies", "").strip() or "{}")
    if not isinstance(policies, dict):
        raise InvalidInputError("policies", "must be a document", hint='such as {"pause_on_failure": true}')
    attempts: Any = form.get("attempts", "").strip() or "1"
    if not attempts.isdecimal() and attempts != "unlimited":
        raise InvalidInputError("attempts", "must be a number, or unlimited")
    attempts = int(attempts) if attempts != "unlimited" else None
    chosen = {
        "overlap": form.get("overlap", "skip"), "catch_up": {"mode": form.get("catch_up", "all")},
        "retry": {"attempts": attempts}, "timeouts": {"run": form.get("run_timeout", "").strip() or None},
    }  # fmt: skip
    for path in _POLICY_FIELDS:
        _, name, *inner = path.split(".")
        part = policies.get(name) if inner else policies
        if isinstance(part, dict) and (inner[0] if inner else name) in part:
            raise InvalidInputError(
                "policies", f"has {path.removeprefix('policies.')}, which has its own field"
            )
    for name, value in different(chosen, USUAL).items():
        part = policies.setdefault(name, {}) if isinstance(value, dict) else policies
        if isinstance(part, dict):  # otherwise the check of the policies says so
            part |= value if isinstance(value, dict) else {name: value}
    return policies


def different(found: Json, usual: Json) -> Json:
    """The values that differ from the defaults, part by part."""
    parts = {
        name: different(value, usual[name]) if isinstance(value, dict) else value
        for name, value in found.items()
        if value != usual[name]
    }
    return {name: part for name, part in parts.items() if part != {}}


def form_of_policies(policies: Json) -> dict[str, str]:
    """The form's fields for given policies: the plain choices, and the other policies as JSON."""
    found = msgspec.json.decode(msgspec.json.encode(different(policies, USUAL)))
    catch_up, retry, timeouts = (found.get(name, {}) for name in ("catch_up", "retry", "timeouts"))
    attempts = retry.pop("attempts", 1)
    fields = {
        "overlap": found.pop("overlap", "skip"), "catch_up": catch_up.pop("mode", "all"),
        "attempts": "unlimited" if attempts is None else str(attempts), "run_timeout": timeouts.pop("run", ""),
    }  # fmt: skip
    others = {name: value for name, value in found.items() if value != {}}
    return {**fields, "policies": as_json(others) if others else ""}


def form_of_spec(spec: Json, now: datetime) -> dict[str, str]:
    """The form's fields for a given spec; a spec that the plain fields cannot express is shown as a document."""
    document = {"kind": "spec", "spec": as_json(spec), "timezone": spec.get("timezone", "UTC")}
    try:
        form = {**document, **_fields_of(spec)}
        said = spec_of(form, now)
        if said.pop("exclude", None) == spec.get("exclude") and _meaning(said) == _meaning(spec):
            return form
    except (HoraeError, KeyError, TypeError, ValueError):  # the plain fields cannot express it
        pass
    return document


def _meaning(spec: Json) -> Json:
    return Spec.parse({name: value for name, value in spec.items() if name != "exclude"}).canonical()


def _fields_of(spec: Json) -> dict[str, str]:
    choices = ("jitter", "gap", "fold", "clock_change", "dialect")
    fields: Json = {name: spec[name] for name in choices if isinstance(spec.get(name), str)}
    fields["exclude"] = calendars_text([each["calendar"] for each in spec.get("exclude", ())])
    match spec:
        case {"crons": lines}:
            return fields | {"kind": "cron", "cron": "\n".join(lines)}
        case {"intervals": [interval]}:
            return fields | {"kind": "every", **interval}
        case {"times": [time]}:
            return fields | {"kind": "once", "at": time}
        case {"calendars": [calendar]}:
            return fields | {"kind": "plain", **_plain_fields(calendar)}
        case _:
            return {}


def _plain_fields(calendar: Json) -> dict[str, str]:
    """The plain choices for a calendar. Reading them back shows whether they express it: not if a field has several ranges."""
    hour, minute, second = (int(calendar[name][0]["start"]) for name in ("hour", "minute", "second"))
    clock = {"time": f"{hour}:{minute:02}" + (f":{second:02}" if second else "")}
    if (days := _ranges(calendar["day_of_month"])) != "1-31":
        return clock | {"days": "month", "day_of_month": days}
    week = _ranges(calendar["day_of_week"])
    if week in {"0-6", "1-5"}:
        return clock | {"days": "every" if week == "0-6" else "workdays"}
    numbers = {
        number
        for each in calendar["day_of_week"]
        for number in range(each["start"], each.get("end", each["start"]) + 1, each.get("step", 1))
    }
    chosen = {f"on_{day}": "1" for number, day in enumerate(DAYS, 1) if number % 7 in numbers}
    return clock | {"days": "some"} | chosen


def _ranges(ranges: list[Json]) -> str:
    """Ranges of a calendar's field, as its text has them."""
    return ",".join(
        str(each["start"])
        + (f"-{each['end']}" if "end" in each else "")
        + (f"/{each['step']}" if "step" in each else "")
        for each in ranges
    )


def wrong_field(error: HoraeError, kind: str) -> str:
    """The form's field that an error is about; empty if it is about none."""
    match error:
        case UnknownTimezoneError():
            path = "timezone"
        case UnknownCalendarError():
            path = "exclude"
        case ScheduleExistsError():
            path = "id"
        case InvalidSpecError():
            path = str(error.details["element"])
        case InvalidCronExpressionError():
            path = "crons"
        case _:
            path = str(error.details.get("field", ""))
    if path in _POLICY_FIELDS:
        return _POLICY_FIELDS[path]
    if kind != "spec" and path.endswith((".phase", ".day_of_month")):
        return path.rpartition(".")[2]
    name = re.split(r"[.\[]", path)[0]
    if kind == "spec" and name in SpecDocument.__struct_fields__:
        return "spec"
    return {"crons": "cron", "intervals": "every", "times": "at", "calendars": "time"}.get(name, name)

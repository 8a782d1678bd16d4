"""Render answers of the API for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from horae.face.cli.printing import both, clock, gap_text, instant, local, none, utc, with_end, word
from horae.face.cli.tables import Table, facts, printable, table
from horae.model import Action, Policies

Json = dict[str, Any]
Value = str | Callable[[Json], object]
"""What a cell shows: a field of the answer, or what a function makes of the answer."""
_MAX_VALUE_WIDTH = 200


def listing(nothing: str, columns: Mapping[str, Value]) -> Callable[[Sequence[Json]], RenderableType]:
    """A function that shows items as a table with these columns (headings with the marks of :class:`Table`), or ``nothing``."""

    def shown(items: Sequence[Json]) -> RenderableType:
        rows = [[_value(each, value) for value in columns.values()] for each in items]
        return table(*columns, rows=rows) if rows else none(nothing)

    return shown


def details(values: Mapping[str, Value]) -> Callable[[Json], Table]:
    """A function that shows one thing as names and values."""
    return lambda answer: facts(*((name, _value(answer, value)) for name, value in values.items()))


def _value(answer: Json, value: Value) -> object:
    return answer.get(value) if isinstance(value, str) else value(answer)


def at(field: str) -> Callable[[Json], Text]:
    """A field that is a time, in UTC."""
    return lambda answer: utc(answer[field])


def joined(field: str) -> Callable[[Json], str]:
    """A field that is a list of texts."""
    return lambda answer: ", ".join(answer[field])


def schedule_table(items: Sequence[Json]) -> RenderableType:
    """Schedules, one per line, each with its next time in its own zone."""
    if not items:
        return none("No schedules.")
    rows = [
        (each["id"], whose, each["sentence"], _flagged(each), *clock(each["next_time"], each["timezone"]), _address(each["action"]))
        for each, whose in zip(items, _owners(items), strict=True)
    ]  # fmt: skip
    return table("id!", "owner", "when~?", "state", "next time", "UTC?", "action~?", rows=rows)


def _owners(items: Sequence[Json]) -> list[str]:
    """The owner of each item; empty if all have the same."""
    owners = [each.get("owner") or "–" for each in items]
    return owners if len(set(owners)) > 1 else [""] * len(items)


def _flagged(each: Json) -> Text:
    state = word(each["state"])
    if each.get("orphaned"):
        state.append(" orphaned", style="yellow")
    return state.append(" !", style="bold red") if each.get("attention") else state


def schedule_panel(each: Json) -> RenderableType:
    """A schedule: state, policies, next times and recent runs."""
    zone, info = each["timezone"], each["info"]
    head = facts(
        ("description", each["description"]),
        ("when", f"{each['sentence']}."),
        ("state", _state(each, zone)),
        ("attention", Text(printable(each["attention"]), style="bold red") if each["attention"] else None),
        ("action", _action(each["action"])),
        ("options", short(_options(each["action"]))),
        ("policies", short(_unusual(each["policies"]))),
        ("owner", each["owner"]),
        ("managed by", _manager(each)),
        ("tags", ", ".join(each["tags"])),
        ("memo", short(each["memo"])),
        ("search attributes", short(each["search_attributes"])),
        ("spec", short(each["spec"])),
        ("version", each["version"]),
        ("created", both(each["created_at"], zone)),
        ("updated", both(each["updated_at"], zone)),
        ("so far", ", ".join(f"{info[name]} {name}" for name in ("started", "skipped", "missed", "dropped"))),
        ("not started", _reasons(info["unstarted"])),
        ("now", ", ".join(f"{info[name]} {name}" for name in ("running", "pending", "retrying"))),
        ("last result", short(info["last_result"])),
        ("last failure", info["last_failure"]),
    )
    parts: list[RenderableType] = [head]
    if info["next_times"]:
        when = "next times once resumed" if each["state"] == "paused" else "next times"
        parts += [
            Text(),
            table(f"{when} ({zone})", "UTC?", rows=[clock(time, zone) for time in info["next_times"]]),
        ]
    if info["recent_runs"]:
        parts += [Text(), run_table(info["recent_runs"], zone, title="recent runs")]
    return _titled(each["id"], *parts)


def _titled(name: str, *parts: RenderableType) -> RenderableType:
    """Parts below a name."""
    return Group(Text(printable(name), style="bold", no_wrap=True, overflow="ignore"), *parts)


def _manager(each: Json) -> str:
    gone = each["orphaned"] and ", which no longer defines it; delete it if you do not need it"
    return f"{each['managed_by']}{gone or ''}"


def _reasons(unstarted: dict[str, int]) -> str:
    return ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in unstarted.items())


def _state(each: Json, zone: str) -> Text:
    text = word(each["state"])
    if each.get("note"):
        text.append(f" – {printable(each['note'])}")
    if each.get("paused_until"):
        text.append(" until ").append_text(both(each["paused_until"], zone))
    if each.get("skip_next"):
        text.append(f", the next {each['skip_next']} are skipped")
    if each.get("remaining_actions") is not None:
        text.append(f", {each['remaining_actions']} starts left")
    return text


def _action(action: Json) -> str:
    given = "" if action["input"] is None else f" with {short(action['input'])}"
    return f"{_address(action)}{given}"


def _address(action: Json) -> str:
    return msgspec.convert(action, Action).address


def _options(action: Json) -> Json:
    """The options of an action that are not empty."""
    return {name: value for name, value in action["options"].items() if value not in ("", [], {}, False)}


def _unusual(policies: Json) -> Json:
    """The policies that differ from their defaults."""
    usual = {
        name: msgspec.json.decode(msgspec.json.encode(getattr(Policies(), name)))
        for name in Policies.__struct_fields__
    }
    return {name: value for name, value in policies.items() if value != usual.get(name)}


def why(run: Json) -> str:
    """Why a run ended as it did, or did not start."""
    parts = [run.get("sentence") if run.get("reason") else "", run.get("failure"), run.get("note")]
    return "; ".join(each for each in parts if each)


def took(run: Json) -> str:
    """How long a run took."""
    start, end = instant(run.get("started_at")), instant(run.get("ended_at"))
    if start is None or end is None:
        return ""
    seconds = (end - start).total_seconds()
    return gap_text(end - start) if seconds >= 1 else f"{int(max(seconds, 0) * 1000)}ms"


def run_panel(run: Json, zone: str) -> RenderableType:
    """A run with its attempts."""
    head = facts(
        ("schedule", run["schedule_id"]),
        ("status", word(run["status"])),
        ("why", run.get("sentence")),
        ("slot", both(run["nominal"], zone)),
        ("fire time", both(run["fire"], zone)),
        ("started", both(run["started_at"], zone)),
        ("ended", both(run["ended_at"], zone)),
        ("took", took(run)),
        ("origin", " ".join(each for each in (run["origin"]["kind"], run["origin"]["id"]) if each)),
        ("repeats", run.get("rerun_of")),
        ("author", run.get("author")),
        ("note", run.get("note")),
        ("action", run["action"]),
        ("action id", run["action_id"]),
        ("key", run.get("key")),
        ("attempt", run["attempt"]),
        ("asked to", run.get("stop")),
        ("input", short(run.get("input"))),
        ("result", short(run.get("result"))),
        ("failure", run.get("failure")),
    )
    parts: list[RenderableType] = [head]
    if run.get("attempts"):
        rows = [
            (each["attempt"], *clock(each["started_at"], zone), each["reason"], each["failure"]) for each in run["attempts"]
        ]  # fmt: skip
        parts += [Text(), table("attempt>", f"started ({zone})", "UTC?", "ended as", "failure~", rows=rows)]
    if run.get("checkpoints"):
        saved = [
            (each["key"], each["attempt"], *clock(each["saved_at"], zone)) for each in run["checkpoints"]
        ]
        parts += [Text(), table("checkpoint!", "attempt>", f"saved ({zone})", "UTC?", rows=saved)]
    return Group(_titled(run["id"], *parts), *_tracebacks(run.get("attempts") or ()))


def _tracebacks(attempts: Iterable[Json]) -> Iterator[RenderableType]:
    """The tracebacks of attempts, not indented, so that they can be copied; equal ones once."""
    numbers: dict[str, list[str]] = {}
    for each in attempts:
        if each["traceback"]:
            numbers.setdefault(each["traceback"], []).append(str(each["attempt"]))
    for text, of in numbers.items():
        yield Text(f"\nattempt{'s' if len(of) > 1 else ''} {', '.join(of)}", style="bold")
        yield Text("\n".join(printable(line) for line in text.splitlines()))


def time_table(answer: Json, zone: str) -> RenderableType:
    """The times that a schedule matches, and when they fire if jitter moves them."""
    rows = [
        (number, *clock(each["nominal"], zone), "on time" if each["fire"] == each["nominal"] else utc(each["fire"]))
        for number, each in enumerate(answer["items"], start=1)
    ]  # fmt: skip
    return with_end(table("#>", f"local time ({zone})", "UTC?", "fires", rows=rows), answer.get("ended"))


def preview_panel(answer: Json, zone: str) -> RenderableType:
    """The times that a change adds and removes."""
    parts: list[RenderableType] = [Text(f"{answer['sentence']}.", style="bold")]
    changes = [(time, "-", "red") for time in answer["removed"]]
    changes += [(time, "+", "green") for time in answer["added"]]
    rows = [
        (Text(sign, style=colour), Text(local(time, zone), style=colour), utc(time))
        for time, sign, colour in sorted(changes, key=itemgetter(0))
    ]
    if rows:
        parts.append(table("", f"local time ({zone})", "UTC?", rows=rows))
    cut = " The list is cut short." if answer["truncated"] else ""
    counted = f"{answer['adds']} added, {answer['removes']} removed, {answer['kept']} kept"
    parts.append(Text.assemble(f"{counted} until ", both(answer["until"], zone), f".{cut}", style="dim"))
    return Group(*parts)


def upcoming_panel(answer: Json) -> RenderableType:
    """When a spec would fire."""
    zone = answer["spec"].get("timezone") or "UTC"
    rows = [(number, *clock(each["nominal"], zone)) for number, each in enumerate(answer["times"], start=1)]
    times = table("#>", f"local time ({zone})", "UTC?", rows=rows)
    return Group(Text(f"{answer['sentence']}.", style="bold"), with_end(times, answer.get("ended")))


def backfill_table(items: Sequence[Json], zone: str) -> RenderableType:
    """Backfills and their progress."""
    if not items:
        return none("No backfills.")
    rows = [
        (each["id"], *_span(each, zone), word(each["status"]), each["made"], each["total"], each["overlap"]) for each in items
    ]  # fmt: skip
    return table("id!", f"from ({zone})", "UTC?", "to", "status", "made>", "of>", "overlap?", rows=rows)


def run_table(
    items: Sequence[Json], zone: str, *, title: str = "slot", whose: bool = False
) -> RenderableType:
    """Runs, and ranges of slots that did not run; ``whose`` names their schedules, and the owners if there are several."""
    if not items:
        return none("No runs.")
    rows = [
        (
            each["schedule_id"] if whose else "", owner, *(_span(each, zone) if "count" in each else (*clock(each["nominal"], zone), "")),
            each.get("count"), word(each["status"]), took(each), why(each), Text(each.get("id", ""), style="dim"),
        )
        for each, owner in zip(items, _owners(items), strict=True)
    ]  # fmt: skip
    headings = (
        "schedule!",
        "owner",
        f"{title} ({zone})",
        "UTC??",
        "to?",
        "slots>?",
        "status",
        "took>?",
        "why~",
    )
    return table(*headings, "run!", rows=rows)


def _span(each: Json, zone: str) -> tuple[str, Text, str]:
    """The start of a range, and its end if that is another time."""
    return *clock(each["start"], zone), "" if each["start"] == each["end"] else local(each["end"], zone)


def short(value: object) -> str:
    """A value as one line of JSON, cut to a readable length."""
    if value in (None, {}, []):
        return ""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_VALUE_WIDTH else f"{text[:_MAX_VALUE_WIDTH]}…"

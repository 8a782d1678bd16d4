"""Render answers of the API as tables and panels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from horae.face.cli.fire_table import gap_text
from horae.face.cli.printing import (
    beside,
    both,
    facts,
    heading,
    instant,
    is_narrow,
    local,
    none,
    printable,
    table,
    utc,
    word,
)

Json = dict[str, Any]
_MAX_VALUE_WIDTH = 200


def schedule_table(items: Sequence[Json], *, more: bool) -> RenderableType:
    """Schedules, one a line, each with its next time in its own zone."""
    if not items:
        return none("No schedules.")
    rows = [
        (
            each["id"], each["sentence"], _flagged(each), beside(each["next_time"], each["timezone"]), _address(each["action"]),
        )
        for each in items
    ]  # fmt: skip
    schedules = table("id", "when~", "state", "next time, and in UTC", "action~", rows=rows)
    if not more:
        return schedules
    return Group(schedules, none(f"The first {len(items)}; there are more: --limit shows them."))


def _flagged(each: Json) -> Text:
    state = word(each["state"])
    return state.append(" !", style="bold red") if each.get("attention") else state


def schedule_panel(each: Json) -> RenderableType:
    """A schedule with its state, policies, next times and recent runs."""
    zone, info = each["timezone"], each["info"]
    head = facts(
        ("description", each["description"]),
        ("when", f"{each['sentence']}."),
        ("state", _state(each, zone)),
        ("attention", Text(printable(each["attention"]), style="bold red") if each["attention"] else None),
        ("action", _action(each["action"])),
        ("options", _short(_options(each["action"]))),
        ("policies", _short(_unusual(each["policies"]))),
        ("owner", each["owner"]),
        ("tags", ", ".join(each["tags"])),
        ("memo", _short(each["memo"])),
        ("search attributes", _short(each["search_attributes"])),
        ("spec", _short(each["spec"])),
        ("version", each["version"]),
        ("created", both(each["created_at"], zone)),
        ("updated", both(each["updated_at"], zone)),
        ("so far", ", ".join(f"{info[name]} {name}" for name in ("started", "skipped", "missed", "dropped"))),
        ("not started", _reasons(info["unstarted"])),
        ("now", ", ".join(f"{info[name]} {name}" for name in ("running", "pending", "retrying"))),
        ("last result", _short(info["last_result"])),
        ("last failure", info["last_failure"]),
    )
    parts: list[RenderableType] = [head]
    if info["next_times"]:
        when = "next times once resumed" if each["state"] == "paused" else "next times"
        rows = [(local(time, zone), utc(time)) for time in info["next_times"]]
        parts += [Text(), table(f"{when} ({zone})", "UTC", rows=rows)]
    if info["recent_runs"]:
        parts += [Text(), run_table(info["recent_runs"], zone, title="recent runs")]
    return Panel(Group(*parts), title=Text(printable(each["id"]), style="bold"), title_align="left")


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
    given = "" if action["input"] is None else f" with {_short(action['input'])}"
    return f"{_address(action)}{given}"


def _address(action: Json) -> str:
    from horae.model import Action  # noqa: PLC0415 - only here

    return msgspec.convert(action, Action).address


def _options(action: Json) -> Json:
    """The options of an action, without those that say nothing."""
    return {name: value for name, value in action["options"].items() if value not in ("", [], {}, False)}


def _unusual(policies: Json) -> Json:
    """The policies that differ from their defaults."""
    from horae.model import Policies  # noqa: PLC0415 - only here

    usual = {
        name: msgspec.json.decode(msgspec.json.encode(getattr(Policies(), name)))
        for name in Policies.__struct_fields__
    }
    return {name: value for name, value in policies.items() if value != usual.get(name)}


def run_table(items: Iterable[Json], zone: str, *, title: str | None = None) -> Table:
    """Runs, newest first: slot, status, and why."""
    rows = [
        (beside(run["nominal"], zone), word(run["status"]), _took(run), _why_and_id(run)) for run in items
    ]
    return table(heading(title or "slot", zone), "status", "took>", "why, and run id~", rows=rows)


def _why_and_id(run: Json) -> Text:
    parts = [run.get("sentence") if run.get("reason") else "", run.get("failure"), run.get("note")]
    why = Text(printable("; ".join(each for each in parts if each)))
    between = "\n" if is_narrow() else "  "
    return why.append(between if why else "").append(run["id"], style="dim")


def _took(run: Json) -> str:
    start, end = instant(run.get("started_at")), instant(run.get("ended_at"))
    if start is None or end is None:
        return ""
    span = end - start
    return gap_text(span) if span.total_seconds() >= 1 else f"{int(span.total_seconds() * 1000)}ms"


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
        ("took", _took(run)),
        ("origin", " ".join(each for each in (run["origin"]["kind"], run["origin"]["id"]) if each)),
        ("author", run.get("author")),
        ("note", run.get("note")),
        ("action", run["action"]),
        ("action id", run["action_id"]),
        ("key", run.get("key")),
        ("attempt", run["attempt"]),
        ("asked to", run.get("stop")),
        ("input", _short(run.get("input"))),
        ("result", _short(run.get("result"))),
        ("failure", run.get("failure")),
    )
    parts: list[RenderableType] = [head]
    if run.get("attempts"):
        rows = [
            (
                each["attempt"], local(each["started_at"], zone), utc(each["started_at"]), each["reason"], each["failure"],
            )
            for each in run["attempts"]
        ]  # fmt: skip
        attempts = table("attempt>", f"started ({zone})", "UTC", "ended as", "failure~", rows=rows)
        parts += [Text(), attempts]
    if run.get("checkpoints"):
        saved = [
            (each["key"], each["attempt"], local(each["saved_at"], zone), utc(each["saved_at"]))
            for each in run["checkpoints"]
        ]
        parts += [Text(), table("checkpoint", "attempt>", f"saved ({zone})", "UTC", rows=saved)]
    return Panel(Group(*parts), title=Text(printable(run["id"]), style="bold"), title_align="left")


def time_table(answer: Json, zone: str) -> RenderableType:
    """Times that a schedule matches; jitter moves when they fire."""
    rows = [
        (
            number, local(each["nominal"], zone), utc(each["nominal"]),
            "on time" if each["fire"] == each["nominal"] else utc(each["fire"]),
        )
        for number, each in enumerate(answer["items"], start=1)
    ]  # fmt: skip
    return _with_end(table("#>", f"local time ({zone})", "UTC", "fires", rows=rows), answer.get("ended"))


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
        parts.append(table("", f"local time ({zone})", "UTC", rows=rows))
    cut = " The list is cut short." if answer["truncated"] else ""
    counted = f"{answer['adds']} added, {answer['removes']} removed, {answer['kept']} kept"
    parts.append(Text.assemble(f"{counted} until ", both(answer["until"], zone), f".{cut}", style="dim"))
    return Group(*parts)


def upcoming_panel(answer: Json) -> RenderableType:
    """When a spec would fire."""
    zone = answer["spec"].get("timezone") or "UTC"
    rows = [
        (number, local(each["nominal"], zone), utc(each["nominal"]))
        for number, each in enumerate(answer["times"], start=1)
    ]
    times = table("#>", f"local time ({zone})", "UTC", rows=rows)
    return Group(Text(f"{answer['sentence']}.", style="bold"), _with_end(times, answer.get("ended")))


def backfill_table(items: Sequence[Json], zone: str) -> RenderableType:
    """Backfills and their progress."""
    if not items:
        return none("No backfills.")
    rows = [
        (
            each["id"], _span(each["start"], each["end"], zone), word(each["status"]), each["made"], each["total"],
            each["overlap"],
        )
        for each in items
    ]  # fmt: skip
    return table("id", heading("range", zone), "status", "made>", "of>", "overlap", rows=rows)


def unstarted_table(items: Sequence[Json], zone: str) -> RenderableType:
    """Consecutive times that did not run, for one reason."""
    rows = [
        (_span(each["start"], each["end"], zone), each["count"], word(each["status"]), each["sentence"])
        for each in items
    ]
    return table(heading("did not run", zone), "times>", "status", "why~", rows=rows)


def _span(start: str, end: str, zone: str) -> Text:
    ends = [beside(start, zone)] if start == end else [beside(start, zone), beside(end, zone)]
    return Text("\n").join(ends)


def _with_end(times: Table, ended: str | None) -> RenderableType:
    """Times, and why there are no more of them."""
    if ended is None:
        return times
    end = Text(f"{'No more times' if times.row_count else 'Never'}: {printable(ended)}.", style="yellow")
    return Group(times, end) if times.row_count else end


def _short(value: object) -> str:
    """JSON in a line."""
    if value in (None, {}, []):
        return ""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_VALUE_WIDTH else f"{text[:_MAX_VALUE_WIDTH]}…"

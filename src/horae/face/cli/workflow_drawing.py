"""Drawings of workflows: lines for a terminal, and Mermaid. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from horae.face.cli.printing import COLOURS

_FILLS = {
    "succeeded": "#c8e6c9", "failed": "#ffcdd2", "running": "#b3e5fc", "retrying": "#ffe0b2", "cancelled": "#fff9c4",
    "skipped": "#eeeeee", "waiting": "#ffffff",
}  # fmt: skip
_SHAPES = {
    "trigger": "([{}])",
    "end": "([{}])",
    "gateway_if": "{{{{{}}}}}",
    "gateway_switch": "{{{{{}}}}}",
    "join": "(({}))",
}
_ENDS = {"success": "", "always": " always", "error": " on error"}


def drawing(document: Mapping[str, Any], states: Mapping[str, str]) -> Text:
    """A workflow as lines: each node with its successors below it, in the colours of their states."""
    drawn = Text()
    rounds = _rounds(states)
    for node in document["nodes"]:
        state = states.get(node["id"], "")
        mark = f"● {node['id']}" if states else f"○ {node['id']}"
        drawn.append(mark, style=COLOURS.get(state, ""))
        action = node["data"].get("action")
        drawn.append(f"  {node['type']}{f' {action}' if action else ''}", style="dim")
        if state:
            more = f", {rounds[node['id']]} rounds" if node["id"] in rounds else ""
            drawn.append(f"  {state}{more}", style=COLOURS.get(state, ""))
        drawn.append("\n")
        for edge in document["edges"]:
            if edge["source"] == node["id"]:
                condition = f" if {edge['condition']}" if edge.get("condition") else ""
                drawn.append(f"  └→ {edge['target']}{_ENDS[edge.get('when', 'success')]}{condition}\n")
    drawn.rstrip()
    return drawn


def _rounds(states: Mapping[str, str]) -> dict[str, int]:
    """How many rounds each top-level loop has begun."""
    rounds_of: dict[str, set[str]] = {}
    for place in states:
        loop, _, rest = place.partition("/")
        if rest:
            rounds_of.setdefault(loop, set()).add(rest.partition("/")[0])
    return {loop: len(numbers) for loop, numbers in rounds_of.items()}


def mermaid(document: Mapping[str, Any], states: Mapping[str, str]) -> Text:
    """A workflow as a Mermaid flowchart."""
    names = {node["id"]: f"n{number}" for number, node in enumerate(document["nodes"])}
    lines = ["flowchart TD"]
    for node in document["nodes"]:
        label = '"' + node["id"].replace('"', "'") + '"'
        lines.append(f"    {names[node['id']]}{_SHAPES.get(node['type'], '[{}]').format(label)}")
    for edge in document["edges"]:
        condition = " ".join(
            each for each in (_ENDS[edge.get("when", "success")].strip(), edge.get("condition") or "") if each
        )
        label = f'|"{condition.replace(chr(34), chr(39))}"|' if condition else ""
        lines.append(f"    {names[edge['source']]} -->{label} {names[edge['target']]}")
    for state in sorted({states[each] for each in names if each in states}):
        members = ",".join(names[each] for each in names if states.get(each) == state)
        lines += [f"    classDef {state} fill:{_FILLS[state]}", f"    class {members} {state}"]
    return Text("\n".join(lines))

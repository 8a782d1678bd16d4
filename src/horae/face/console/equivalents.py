"""The same schedule as Python, as a request with curl and as a file for ``horae apply``, to copy. Pure."""

from __future__ import annotations

import importlib
import pprint
import shlex
from typing import Any

import msgspec

Json = dict[str, Any]


def as_python(document: Json) -> str:
    """A call that creates the schedule in a program."""
    more = {key: value for key, value in document.items() if key not in {"id", "spec", "action"}}
    lines = [
        "import horae", "", "app = horae.App()", "", "# in an async function, with the app open",
        "await app.schedules.create(", f"    {document['id']!r},", _indented(document["spec"]), _indented(document["action"]),
        *(f"    {key}={_indented(value).strip()}" for key, value in more.items()), ")",
    ]  # fmt: skip
    return "\n".join(lines)


def _indented(value: object) -> str:
    text = pprint.pformat(value, width=88, sort_dicts=False)
    return "\n".join(f"    {line}" for line in text.splitlines()) + ","


def as_curl(document: Json, address: str) -> str:
    """A request that creates the schedule."""
    body = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return f"curl -X POST {address}/api/v1/schedules \\\n  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"


def as_yaml(document: Json) -> str:
    """A file for ``horae apply -f``."""
    text: str = importlib.import_module("yaml").safe_dump(  # an extra without types
        {"schedules": [document]}, sort_keys=False, allow_unicode=True
    )
    return text

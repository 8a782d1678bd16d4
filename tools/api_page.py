"""Writes ``docs/reference/api.md`` from the OpenAPI document; with ``--check`` it only says whether the page is up to date."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from horae import App
from horae.config import Config
from horae.face.service import Service

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
METHODS = ("get", "post", "put", "patch", "delete")
PROBLEM = "[Problem](#problem)"
Json = dict[str, Any]

INTRODUCTION = """# The API

The HTTP API of `horae serve`. `tools/api_page.py` generates this page from `/openapi.json`.

- Bodies are JSON with `Content-Type: application/json`. Unknown fields are refused.
- Times in answers are UTC with `Z`; in requests they may have any offset. A duration is a text with units: `"90s"`, `"1h30m"`,
  `"500ms"`, `"7d"`, or ISO 8601 (`"PT1H30M"`). A bare number is refused.
- A [spec](spec.md) says when a schedule fires; [policies](runs.md) decide what happens to its slots.
- Ids in paths are percent-encoded: the id `team/report` is `team%2Freport`.
- A list answers `{"items": […], "next": …}`. Send `next` as `cursor` to get the next page; `null` is the end. A cursor of another list is refused.
- Unknown query parameters are refused; the error names the known ones.
- Errors are `application/problem+json` with a stable `code`. [Errors](errors.md#over-http) lists the codes.
- Callers authenticate with `Authorization: Bearer TOKEN` ([how to create tokens](../how-to/secure.md)). Without
  authentication the service answers only its own machine. Reports on a run use the run's own token.
- Callers see only what they own; everything else answers 404. The scopes `service` and `admin` may name another user
  as `owner`, and `admin` sees everything when none is named.
- Answers that create or change a schedule have `warnings`: sentences about what may not be intended, such as a schedule that never fires, or an input that does not fit its function.
- A schedule's answer has an `ETag`. With `If-Match`, a change is made only if the schedule has not changed since. `PUT` with `If-None-Match: *` only creates.
"""

HEADINGS = {
    "schedules": "Schedules",
    "runs": "Runs and backfills",
    "why": "Why, and what is ahead",
    "bulk": "Many schedules at once",
    "calendars": "Shared calendars",
    "workflows": "Workflows",
    "system": "The service itself",
    "registrar": "The registrar",
}


def main() -> None:
    """Write the page, or say that it is not up to date."""
    app = App(":memory:")
    app.use_builtin()
    document = Service(app, Config()).document
    page = page_of(json.loads(asyncio.run(document.text())))
    if "--check" not in sys.argv:
        PAGE.write_text(page, "utf-8")
    elif PAGE.read_text("utf-8") != page:
        sys.exit("docs/reference/api.md is not up to date: run tools/api_page.py")


def page_of(document: Json) -> str:
    """The whole page."""
    parts = [INTRODUCTION, *_problems(document)]
    for tag, heading in HEADINGS.items():
        parts.append(f"## {heading}\n")
        for path, item in document["paths"].items():
            for method in METHODS:
                if method in item and item[method]["tags"] == [tag]:
                    parts += _operation(f"{method.upper()} {path}", item[method])
    parts.append("## Shapes\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _schema(name, schema)
    return "\n".join(parts).rstrip() + "\n"


def _operation(where: str, operation: Json) -> Iterator[str]:
    yield f"### {operation['summary']}\n"
    yield f"`{where}` – `{operation['operationId']}`\n"
    yield f"{operation['description']}\n"
    if operation["parameters"]:
        yield "| parameter | in | type | |\n| --- | --- | --- | --- |"
        for each in operation["parameters"]:
            needed = "**needed** " if each.get("required") and each["in"] != "path" else ""
            sentence = f"{needed}{_cell(each['description'])}{_default(each['schema'])}"
            yield f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} | {sentence} |"
        yield ""
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        left_out = "" if operation["requestBody"].get("required") else ", which may be left out"
        yield f"Body: {_type(content['schema'])}{left_out}. For example:\n"
        yield f"```json\n{_example(content['examples']['example']['value'])}\n```\n"
    yield "| answer | | |\n| --- | --- | --- |"
    refused = []
    for status, answer in operation["responses"].items():
        shapes = [_type(each) for each in _schemas(answer)]
        if PROBLEM in shapes:
            refused.append(status)
            continue
        shapes += [f"`{name}`" for name in answer.get("headers", ())]
        yield f"| {status} | {_cell(answer['description'])} | {', '.join(shapes)} |"
    yield ""
    refused.remove("default")
    if refused:
        yield f"Problems: {', '.join(refused)}.\n"


def _example(value: Json) -> str:
    """JSON with a field a line."""
    lines = (f"  {json.dumps(name)}: {json.dumps(each, ensure_ascii=False)}" for name, each in value.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _problems(document: Json) -> Iterator[str]:
    """The meaning of each status of a problem, the same for all operations."""
    meanings = {}
    for item in document["paths"].values():
        for method in METHODS:
            for status, answer in item.get(method, {}).get("responses", {}).items():
                if status != "default" and PROBLEM in map(_type, _schemas(answer)):
                    meanings[status] = answer["description"]
    yield "## Problems\n"
    yield "An operation lists the statuses that it may answer with; they mean the same for all:\n"
    yield "| status | |\n| --- | --- |"
    yield from (f"| {status} | {_cell(sentence)} |" for status, sentence in sorted(meanings.items()))
    yield ""


def _schemas(answer: Json) -> list[Json]:
    return [each["schema"] for each in answer.get("content", {}).values()]


def _schema(name: str, schema: Json) -> Iterator[str]:
    yield f"### {name}\n"
    if schema.get("description"):
        yield f"{_paragraph(schema['description'])}\n"
    if "enum" in schema:
        yield f"One of {', '.join(f'`{each}`' for each in schema['enum'])}.\n"
    fields = schema.get("properties")
    if not fields:
        return
    yield "| field | type | |\n| --- | --- | --- |"
    for field, shape in fields.items():
        needed = "**needed** " if field in schema.get("required", ()) else ""
        sentence = f"{needed}{_cell(shape.get('description', ''))}{_default(shape)}".strip()
        yield f"| `{field}` | {_type(shape)} | {sentence} |"
    yield ""


def _type(schema: Json) -> str:
    """A type in words, with its bounds."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            shared = {key: value for key, value in schema.items() if key in {"minimum", "maximum"}}
            return " or ".join(
                dict.fromkeys(_type(each | _fitting(each, shared)) for each in schema[several])
            )
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("title") == "Duration":
        return "duration"
    kind = schema.get("type", "any JSON")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}{_bounds(schema)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}{_bounds(schema)}"
    return f"{'time' if schema.get('format') == 'date-time' else kind}{_bounds(schema)}"


def _fitting(schema: Json, shared: Json) -> Json:
    """The bounds of a choice, which hold for the numbers in it."""
    return shared if schema.get("type") in {"integer", "number"} else {}


def _bounds(schema: Json) -> str:
    """Bounds, except those that all integers have."""
    bounds = []
    for least, most, what in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", ""),
        ("minProperties", "maxProperties", ""),
    ):
        low, high = schema.get(least), schema.get(most)
        low = None if low is not None and low <= -(2**53) + 1 else low
        high = None if high is not None and high >= 2**53 - 1 else high
        if (low, high, what) == (1, None, " characters"):
            bounds.append("not empty")
        elif low is not None and high is not None:
            bounds.append(f"{low:,} to {high:,}{what}")
        elif low is not None:
            bounds.append(f"at least {low:,}{what}")
        elif high is not None:
            bounds.append(f"at most {high:,}{what}")
    return f", {', '.join(bounds)}" if bounds else ""


def _default(schema: Json) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else f" Default: `{json.dumps(default)}`."


def _cell(text: str) -> str:
    return _paragraph(text).replace("|", "\\|")


def _paragraph(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r":(?:class|data|mod):`~?([\w.]+)`", r"`\1`", text)).strip()


if __name__ == "__main__":
    main()

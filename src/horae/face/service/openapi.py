"""The OpenAPI document: what the routes say of themselves, with what every route has in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from litestar import Litestar
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.types import ControllerRouterHandler

from horae.face.service.problems import MEDIA_TYPE, Problem
from horae.model import Policies
from horae.spec import SpecDocument

OPEN = {"/healthz", "/readyz"}
"""Routes that anybody may ask."""
REPORTS = ("/started", "/heartbeat", "/succeeded", "/failed")
"""Routes that take a run's own token."""

_SPEC = {
    "oneOf": [{"$ref": "#/components/schemas/SpecDocument"}, {"type": "string", "examples": ["0 9 * * 1-5"]}]
}
_POLICIES = {"$ref": "#/components/schemas/Policies"}
_SHAPES: dict[str, dict[str, Any]] = {
    "CreateSchedule": {"spec": _SPEC, "policies": _POLICIES},
    "ReplaceSchedule": {"spec": _SPEC, "policies": _POLICIES},
    "MergeSchedule": {"spec": _SPEC},
    "PreviewChange": {"spec": _SPEC},
    "PreviewSpec": {"spec": _SPEC},
    "ScheduleView": {"policies": _POLICIES},
    "DescribedSchedule": {"policies": _POLICIES},
    "VersionView": {"policies": _POLICIES},
}
"""Fields that are read or written by what understands them, and so are plain objects to the routes."""

EXAMPLES: dict[str, Any] = {
    "CreateSchedule": {
        "id": "nightly-report", "spec": {"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift"},
        "action": {"name": "report", "input": {"format": "pdf"}}, "policies": {"overlap": "buffer_one"},
        "tags": ["reports"],
    },
    "CreateSchedules": {"schedules": [{"id": "every-minute", "spec": "* * * * *", "action": "ping"}]},
    "ReplaceSchedule": {"spec": "0 3 * * *", "action": "report", "token": 1},
    "MergeSchedule": {"policies": {"overlap": "allow_all"}},
    "PatchSchedule": {"trigger": {"note": "asked for by phone"}, "pause": "until it is repaired"},
    "TriggerBody": {"input": {"format": "csv"}, "note": "asked for by phone"},
    "StartBackfill": {"start": "2026-11-01T00:00:00Z", "end": "2026-11-07T23:59:59Z", "dry_run": True},
    "PauseSchedule": {"note": "the printer is broken", "until": "2026-12-01T08:00:00+01:00"},
    "SharedCalendar": {"dates": ["2026-12-25", "2026-12-26"]},
    "PreviewChange": {"spec": "0 4 * * *", "days": 7},
    "PreviewSpec": {"spec": {"intervals": [{"every": "90m"}]}, "limit": 5},
    "ManyByFilter": {"filter": {"tag": "reports"}, "note": "the printer is broken"},
}  # fmt: skip


def document_of(
    routes: list[ControllerRouterHandler], dependencies: dict[str, Provide], version: str
) -> bytes:
    """The whole document, as JSON."""
    about = "Durable schedules: when, what, and why not."
    config = OpenAPIConfig(title="Horae", version=version, description=about, use_handler_docstrings=True)
    described = Litestar(
        route_handlers=routes, dependencies=dependencies, openapi_config=config, logging_config=None
    )
    document: dict[str, Any] = described.openapi_schema.to_schema()
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    _, own = msgspec.json.schema_components(
        [SpecDocument, Policies, Problem], ref_template="#/components/schemas/{name}"
    )
    schemas |= own
    for name, fields in _SHAPES.items():
        schemas[name]["properties"] |= fields
    for name, example in EXAMPLES.items():
        schemas[name]["examples"] = [example]
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "run": {"type": "http", "scheme": "bearer", "description": "The run's own token."},
    }
    for path, operation in _operations(document):
        _complete(path, operation)
    return msgspec.json.encode(document)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                yield path, operation


def _complete(path: str, operation: dict[str, Any]) -> None:
    """What holds for every route: a problem is answered as one, and who asks must be known."""
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    operation["responses"].pop("400", None)
    operation["responses"]["default"] = {
        "description": "A problem: its `code` stays what it is, its `hint` says what to do.",
        "content": {MEDIA_TYPE: problem},
    }
    if path not in OPEN:
        operation["security"] = [{"run": []}] if path.endswith(REPORTS) else [{"token": []}]

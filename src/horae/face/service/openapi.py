"""The OpenAPI document: the descriptions of the routes, completed with what all routes share.

Schemas come from the types, with the descriptions and bounds that their fields are annotated with.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from types import ModuleType
from typing import Any

import msgspec
from litestar import Litestar
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.types import ControllerRouterHandler, Method
from litestar.types.internal_types import PathParameterDefinition

from horae.app import Readiness, grant_views, schedule_views, views, workflow_views
from horae.app.field_checks import POLICY_BOUNDS
from horae.app.schedule_fields import reference
from horae.app.triggers_and_backfills import BackfillPreview
from horae.app.view_base import PageView, View
from horae.app.workflow_schedules import PauseInput, ScheduleInput
from horae.app.workflow_views import LaunchBody, LaunchInput
from horae.face.registrar import routes as registrar_routes
from horae.face.registrar import views as registrar_views
from horae.face.service import request_bodies, system
from horae.face.service.examples import ANSWERS, REQUESTS
from horae.face.service.problems import MEDIA_TYPE, Problem
from horae.json_bounds import MAX_INTEGER
from horae.model import Policies
from horae.spec import SpecDocument
from horae.workflow.document import Workflow

Json = dict[str, Any]
OPEN = {"/healthz", "/readyz"}
"""Routes without authentication."""
REPORTS = ("/started", "/heartbeat", "/succeeded", "/failed")
"""Routes that take the report token of a run."""
REFERENCE = reference("")
_BASES = {"Body", "GraphFields", "RunSearch", "ScheduleBody", "Versioned", "View"}
"""Types that are neither a body nor an answer."""

_IN_PATHS = {
    "schedule_id": "The id of a schedule, percent-encoded: a slash in it is %2F.",
    "run_id": "The id of a run.",
    "backfill_id": "The id of a backfill, percent-encoded.",
    "name": "The name of a shared calendar, percent-encoded.",
    "grant_id": "The id of a grant.",
    "workflow_id": "The id of a workflow, percent-encoded.",
    "version": "The version of a workflow, a whole number.",
    "graph_id": "The id of a graph, percent-encoded: `langgraph:poet`.",
    "user_id": "The user, percent-encoded.",
    "flow": "The name of a flow, percent-encoded.",
}
_IN_QUERIES = {
    "user_id": "The owner; needs the scope service or admin.",
    "limit": "How many to list at most.",
}
_PROBLEMS = {
    "400": "The request cannot be read: malformed JSON, or a value of a wrong type (`invalid_request`).",
    "401": "The caller is not authenticated (`authentication`).",
    "403": "The caller may not do this (`permission_denied`).",
    "404": "It does not exist, or another owner has it.",
    "409": "It conflicts with the current state.",
    "412": "The schedule does not have the version that If-Match names (`conflict_token_mismatch`), or does not exist; or If-None-Match is `*`, and it exists.",
    "413": "The body is too long (`limit_exceeded`).",
    "415": "The body is not declared as JSON (`unsupported_media_type`).",
    "422": "The request is well-formed, but cannot be carried out.",
    "429": "Too many requests of one user, reports on one run, or refused reports from one address (`limit_exceeded`); the header Retry-After says when to retry.",
    "503": "The database is unavailable (`store_unavailable`); the header Retry-After says when to retry.",
}
_CONFLICTS = {
    "createSchedule", "createSchedules", "replaceSchedule", "mergeSchedule", "patchSchedule", "deleteCalendar",
    "executeGraph", "reportStarted", "reportHeartbeat", "reportSucceeded", "reportFailed", "rerun", "runFlowNow", "resumeFlow", "resolveFlow",
    "deployWorkflow", "putWorkflow",
}  # fmt: skip
_ETAG = {"ETag": {"description": "The version of the schedule, for If-Match.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "The path of the schedule.", "schema": {"type": "string"}}}
_WITH_ETAG = {"ScheduleView", "StoredSchedule", "PutSchedule", "DescribedSchedule", "ResumedSchedule"}
_REPEATED = "The same request was carried out before; nothing was created."
_MORE_ANSWERS: dict[str, dict[str, tuple[str, str]]] = {
    "createSchedule": {"200": ("StoredSchedule", _REPEATED)},
    "runOnce": {"200": ("StoredSchedule", _REPEATED)},
    "replaceSchedule": {"201": ("PutSchedule", "It was created.")},
    "deployWorkflow": {"201": ("DeployedView", "It was deployed.")},
    "putWorkflow": {"201": ("DeployedView", "It was deployed.")},
    "createSchedules": {"200": ("CreatedPage", _REPEATED)},
    "startBackfill": {
        "202": ("BackfillView", "The backfill has started."),
        "200": ("BackfillPreview", "What it would do, with `dry_run`."),
    },
    "readiness": {"503": ("Readiness", "It cannot work; `status` says why.")},
}  # fmt: skip
"""Answers of single routes besides the one that the handler declares: the name of the schema, and a description."""


class Document:
    """The document of a service. It takes a second to build: once, in a thread, so that no other request waits."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._text: asyncio.Future[bytes] | None = None

    async def text(self) -> bytes:
        """The document as JSON; callers that arrive while it is being built wait for the same one."""
        if self._text is None or (self._text.done() and self._text.exception() is not None):
            self._text = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._text)


def document_of(
    routes: Sequence[ControllerRouterHandler],
    dependencies: dict[str, Provide],
    version: str,
    options: Iterable[type[msgspec.Struct]],
) -> bytes:
    """The whole document as JSON. ``options`` are the option types of the kinds of actions."""
    config = OpenAPIConfig(
        title="Horae", version=version, description="Durable schedules: when, what, and why not.",
        use_handler_docstrings=True, operation_id_creator=_operation_id,
    )  # fmt: skip
    described = Litestar(
        route_handlers=routes, dependencies=dependencies, openapi_config=config, logging_config=None
    )
    text = msgspec.json.encode(described.openapi_schema.to_schema()).decode()
    document: Json = msgspec.json.decode(
        re.sub(r"\bPageView_(?:[a-z_]+\.)*(\w+?)(?:View)?_(?=\")", _page_name, text)
    )
    components = document.setdefault("components", {})
    components["schemas"] = _schemas(components.get("schemas", {}), list(options))
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "run": {"type": "http", "scheme": "bearer", "description": "The run's own token."},
    }
    for path, operation in operations_of(document):
        _complete(path, operation, components["schemas"])
    _link(document)
    return msgspec.json.encode(document)


def operations_of(document: Json) -> Iterator[tuple[str, Json]]:
    """Every operation of a document, with its path."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in {"get", "post", "put", "patch", "delete"}:
                yield path, operation


def _operation_id(handler: HTTPRouteHandler, _: Method, __: list[str | PathParameterDefinition]) -> str:
    """The name of a handler in camel case: ``getRun``; that of the registrar's begins with its name."""
    words = handler.handler_name.split("_")
    if handler.fn.__module__ == registrar_routes.__name__:
        words.insert(0, "registrar")
    return words[0] + "".join(map(str.title, words[1:]))


def _page_name(found: re.Match[str]) -> str:
    return "NamePage" if found[1] == "str" else f"{found[1]}Page"


def _ref(name: str) -> Json:
    return {"$ref": reference(name)}


def _schemas(named: Json, options: list[type[msgspec.Struct]]) -> Json:
    """The schemas of all types, completed with what the types alone cannot express."""
    types = [each for module in (request_bodies, system, registrar_views) for each in _structs(module)]
    types += [
        each
        for module in (views, schedule_views, grant_views, workflow_views)
        for each in _structs(module)
        if issubclass(each, View)
    ]
    types += [
        Readiness,
        BackfillPreview,
        Problem,
        Policies,
        SpecDocument,
        ScheduleInput,
        PauseInput,
        Workflow,
        LaunchInput,
        LaunchBody,
        *options,
    ]
    _, own = msgspec.json.schema_components(types, ref_template=f"{REFERENCE}{{name}}")
    schemas: Json = named | {name: schema for name, schema in own.items() if name not in _BASES}
    for name in schemas:
        if name.endswith("Page") and name not in own:
            schemas[name]["description"] = inspect.getdoc(PageView)
    _refine(schemas)
    known = [_ref(each.__name__) for each in options]
    schemas["Action"]["properties"]["options"]["anyOf"] = [*known, {"type": "object", "maxProperties": 0}]
    for name, example in (REQUESTS | ANSWERS).items():
        schemas[name]["examples"] = [example]
    return {name: _bounded(schema) for name, schema in schemas.items()}


def _refine(schemas: Json) -> None:
    """Add the bounds of policies, which are not part of their types, and what a new schedule needs."""
    ways = (["spec", "action"], ["graph_id", "cron", "timezone"])
    schemas["CreateSchedule"]["anyOf"] = [{"required": way} for way in ways]
    schemas["RunPage"]["properties"]["items"]["items"] = {"anyOf": [_ref("RunView"), _ref("GraphRunView")]}
    for kind, bounds in POLICY_BOUNDS.items():
        for field, (least, most) in bounds.items():
            if not isinstance(least, str) and not isinstance(most, str):
                bounded = {"minimum": least} | ({"maximum": most} if most <= MAX_INTEGER else {})
                schemas[kind.__name__]["properties"][field] |= bounded


def _structs(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    """The types that a module defines, except generic ones."""
    for each in vars(module).values():
        if not inspect.isclass(each) or not issubclass(each, msgspec.Struct):
            continue
        if each.__module__ == module.__name__ and not getattr(each, "__parameters__", ()):
            yield each


def _bounded(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Limit the integers of a schema to those that all JSON readers represent exactly, as requests are checked."""
    if isinstance(schema, list):
        return [_bounded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {
        name: value if name in {"examples", "default", "enum"} else _bounded(value) for name, value in schema.items()
    }  # fmt: skip
    if "oneOf" in bounded:  # given by the field, and more precise than its type
        bounded.pop("anyOf", None)
    if bounded.get("type") == "integer":
        bounded = {"minimum": -MAX_INTEGER, "maximum": MAX_INTEGER} | bounded
    if isinstance(bounded.get("description"), str):
        bounded["description"] = bounded["description"].replace("``", "`").replace("`None`", "`null`")
    return bounded


def _complete(path: str, operation: Json, schemas: Json) -> None:
    """Complete an operation with what holds for every route: problems as answers, and authentication."""
    if path not in OPEN:
        operation["security"] = [{"run": []}] if path.endswith(REPORTS) else [{"token": []}]
    parameters = [
        _parameter(each) for each in operation.get("parameters", ()) if each["name"] != "Authorization"
    ]  # that is its security
    operation["parameters"] = sorted(
        parameters, key=lambda each: (each["in"] != "path", each["name"] == "owner")
    )
    operation["responses"].pop("400", None)  # Litestar's description
    for status, answered in operation["responses"].items():
        _describe(answered, status, schemas)
    for status, (name, sentence) in _MORE_ANSWERS.get(operation["operationId"], {}).items():
        operation["responses"][status] = _answer(status, name, sentence)
    for status in _statuses(path, operation):
        operation["responses"].setdefault(status, _described(_PROBLEMS[status], "Problem", MEDIA_TYPE))
    operation["responses"]["default"] = _described(
        "A problem: its `code` is stable, its `hint` says what to do.", "Problem", MEDIA_TYPE
    )
    if "requestBody" in operation:
        _name_body(operation["requestBody"])
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _parameter(parameter: Json) -> Json:
    """A parameter without empty parts of its schema; an omitted parameter is not ``null``."""
    schema = parameter["schema"]
    if "oneOf" in schema:
        (kind,) = [each for each in schema.pop("oneOf") if each != {"type": "null"}]
        schema = kind | schema
    schema.pop("description", None)
    if parameter["in"] == "path":
        parameter["description"] = _IN_PATHS[parameter["name"]]
        schema |= {"minLength": 1}
    elif "description" not in parameter:
        parameter["description"] = _IN_QUERIES[parameter["name"]]
    if parameter["name"] == "owner":
        schema |= {"maxLength": 200}
    for bound in ("minimum", "maximum"):
        if bound in schema:
            schema[bound] = int(schema[bound])
    said = ("name", "in", "description", "required", "example")
    return {key: parameter[key] for key in said if key in parameter} | {"schema": _bounded(schema)}


def _describe(answered: Json, status: str, schemas: Json) -> None:
    """Replace Litestar's description of an answer by ours."""
    if not answered.get("headers"):
        answered.pop("headers", None)
    for content in answered.get("content", {}).values():
        name = content["schema"].get("$ref", "").removeprefix(REFERENCE)
        if name:
            answered |= _answer(
                status, name, schemas[name].get("description", HTTPStatus(int(status)).phrase)
            )
            break
        answered["description"] = "A text."
    if status == "204":
        answered["description"] = "Done."


def _answer(status: str, name: str, sentence: str) -> Json:
    answer = _described(sentence, name)
    if name in _WITH_ETAG:
        answer["headers"] = _ETAG | _LOCATION if status == "201" else _ETAG
    return answer


def _statuses(path: str, operation: Json) -> Iterator[str]:
    """The statuses of the problems that a route may answer with."""
    name, parameters = operation["operationId"], operation["parameters"]
    if path in OPEN:
        return
    yield from ("401", "429", "503") if path.endswith(REPORTS) else ("401", "403", "429", "503")
    if parameters or "requestBody" in operation:
        yield from ("400", "422")
    if "requestBody" in operation:
        yield from ("413", "415")
    if any(each["in"] == "path" for each in parameters) and not path.endswith(REPORTS):
        yield "404"
    if name in _CONFLICTS:
        yield "409"
    if any(each["name"] == "If-Match" for each in parameters):
        yield "412"


def _described(description: str, name: str, media_type: str = "application/json") -> Json:
    return {"description": description, "content": {media_type: {"schema": _ref(name)}}}


def _name_body(body: Json) -> None:
    """Refer to the schema of a body, and add its example. The registrar decodes its bodies itself, so their titles name them."""
    content = body["content"]["application/json"]
    schema = content["schema"]
    choices = schema.get("oneOf", ())
    body["required"] = {"type": "null"} not in choices  # Litestar calls every body required
    for inner in choices:
        if "$ref" in inner:
            schema = content["schema"] = inner
    name = schema["$ref"].removeprefix(REFERENCE) if "$ref" in schema else schema["title"]
    one = _ref(name)
    forms = [one]
    if any(inner.get("type") == "array" for inner in choices):
        forms.append({"type": "array", "items": one})
    if not body["required"]:
        forms.append({"type": "null"})
    content["schema"] = {"oneOf": forms} if len(forms) > 1 else one
    content["examples"] = {"example": {"value": REQUESTS[name]}}


def _link(document: Json) -> None:
    """Add links from answers to the operations that take their ids."""
    creators = {
        "schedule_id": ("createSchedule", "201", "$response.body#/id"),
        "run_id": ("triggerSchedule", "202", "$response.body#/run_id"),
        "backfill_id": ("startBackfill", "202", "$response.body#/id"),
        "name": ("putCalendar", "200", "$response.body#/name"),
        "workflow_id": ("deployWorkflow", "200", "$response.body#/workflow_id"),
        "version": ("deployWorkflow", "200", "$response.body#/version"),
        "grant_id": ("createGrant", "201", "$response.body#/id"),
    }
    by_name = {operation["operationId"]: operation for _, operation in operations_of(document)}
    for path, operation in operations_of(document):
        for parameter in operation["parameters"]:
            if parameter["in"] != "path" or path.endswith(REPORTS):
                continue
            if parameter["name"] not in creators or (parameter["name"] == "run_id" and "/flows/" in path):
                continue  # no request creates one
            source, status, expression = creators[parameter["name"]]
            links = by_name[source]["responses"][status].setdefault("links", {})
            links[operation["operationId"]] = {
                "operationId": operation["operationId"],
                "parameters": {parameter["name"]: expression},
            }

"""The OpenAPI document: the descriptions of the routes, completed with what all routes share.

Schemas come from the types, with the descriptions and bounds that their fields are annotated with.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from types import ModuleType, NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec

from horae.app import Readiness, flow_views, grant_views, schedule_views, views, workflow_views
from horae.app.field_checks import POLICY_BOUNDS
from horae.app.schedule_fields import TriggerBody, reference
from horae.app.triggers_and_backfills import BackfillPreview
from horae.app.view_base import View
from horae.app.workflow_schedules import PauseInput, ScheduleInput
from horae.app.workflow_views import LaunchBody, LaunchInput
from horae.face.http.arguments import REQUIRED, Arguments, DescribedAs, Parameter, Provided, given_schema
from horae.face.http.paths import parameters_in
from horae.face.http.responses import Response
from horae.face.http.routes import Route, Router
from horae.face.registrar import routes as registrar_routes
from horae.face.registrar import views as registrar_views
from horae.face.service import request_bodies, system
from horae.face.service.examples import ANSWERS, REQUESTS
from horae.face.service.problems import MEDIA_TYPE, Problem
from horae.json_bounds import MAX_INTEGER
from horae.model import Policies
from horae.spec import SharedCalendar, SpecDocument
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
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "run": {"type": "http", "scheme": "bearer", "description": "The run's own token."},
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


def document_of(
    routers: Iterable[Router],
    provided: Mapping[str, Provided],
    version: str,
    options: Iterable[type[msgspec.Struct]],
) -> bytes:
    """The whole document as JSON. ``options`` are the option types of the kinds of actions."""
    routes = [
        (route, Arguments(route.fn, parameters_in(route.path), provided))
        for router in routers for route in router.routes() if route.is_described
    ]  # fmt: skip
    answers, schemas = _schemas([_answered(arguments) for _, arguments in routes], list(options))
    paths: dict[str, Json] = {}
    for (route, arguments), answer in zip(routes, answers, strict=True):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, arguments, answer, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Horae", "version": version, "description": "Durable schedules: when, what, and why not."},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": _SECURITY},
    }  # fmt: skip
    _link(document)
    return msgspec.json.encode(document)


def operations_of(document: Json) -> Iterator[tuple[str, Json]]:
    """Every operation of a document, with its path."""
    for path, item in document["paths"].items():
        for operation in item.values():
            yield path, operation


def _operation_id(route: Route) -> str:
    """The name of a handler in camel case: ``getRun``; that of the registrar's begins with its name."""
    words = route.fn.__name__.split("_")
    if route.fn.__module__ == registrar_routes.__name__:
        words.insert(0, "registrar")
    return words[0] + "".join(map(str.title, words[1:]))


def _answered(arguments: Arguments) -> Any:  # noqa: ANN401 - a type
    """The type of what a route answers with."""
    kind = arguments.returned
    inner = get_args(kind)[0] if get_origin(kind) is Response else kind
    return str if inner is bytes else inner


def _page_name(found: re.Match[str]) -> str:
    return "NamePage" if found[1] == "str" else f"{found[1]}Page"


def _ref(name: str) -> Json:
    return {"$ref": reference(name)}


def _schemas(answered: list[Any], options: list[type[msgspec.Struct]]) -> tuple[list[Json], Json]:
    """The schemas of answers, and those of all types by name, completed with what the types alone cannot express."""
    types = [each for module in (request_bodies, system, registrar_views) for each in _structs(module)]
    types += [
        each
        for module in (views, schedule_views, grant_views, workflow_views, flow_views)
        for each in _structs(module)
        if issubclass(each, View)
    ]
    types += [
        Readiness, BackfillPreview, Problem, Policies, SpecDocument, SharedCalendar, ScheduleInput, PauseInput, Workflow,
        LaunchInput, LaunchBody, TriggerBody, *options,
    ]  # fmt: skip
    shapes, named = msgspec.json.schema_components([*answered, *types], ref_template=f"{REFERENCE}{{name}}")
    text = msgspec.json.encode([shapes[: len(answered)], named]).decode()
    answers, schemas = msgspec.json.decode(re.sub(r"\bPageView_(\w+?)(?:View)?_(?=\")", _page_name, text))
    schemas = {name: schema for name, schema in schemas.items() if name not in _BASES}
    for kind in types:
        _tell_times(kind, schemas)
    _refine(schemas)
    known = [_ref(each.__name__) for each in options]
    schemas["Action"]["properties"]["options"]["anyOf"] = [*known, {"type": "object", "maxProperties": 0}]
    for name, example in (REQUESTS | ANSWERS).items():
        schemas[name]["examples"] = [example]
    return answers, {name: _bounded(schema) for name, schema in schemas.items()}


def _tell_times(kind: type[msgspec.Struct], schemas: Json) -> None:
    """Say of the texts of a type which are times: msgspec does so only where an offset is demanded."""
    for field in msgspec.structs.fields(kind):
        if kind.__name__ in schemas and datetime in (field.type, *get_args(field.type)):
            schema = schemas[kind.__name__]["properties"][field.encode_name]
            for each in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
                if each.get("type") == "string":
                    each["format"] = "date-time"


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
        text = inspect.cleandoc(bounded["description"])  # before Python 3.13, that of a class is indented
        bounded["description"] = text.replace("``", "`").replace("`None`", "`null`")
    return bounded


def _operation(route: Route, arguments: Arguments, answer: Json, schemas: Json) -> Json:
    """A route, with what holds for every route: problems as answers, and authentication."""
    path, name = route.path, _operation_id(route)
    operation: Json = {
        "tags": route.tags, "summary": route.summary, "description": inspect.getdoc(route.fn), "operationId": name,
        "parameters": _parameters(arguments),
    }  # fmt: skip
    if path not in OPEN:
        operation["security"] = [{"run": []}] if path.endswith(REPORTS) else [{"token": []}]
    if arguments.body is not None:
        operation["requestBody"] = _request_body(arguments)
    responses = {str(route.status_code): _shown(route, answer, schemas)}
    for status, (shown, sentence) in _MORE_ANSWERS.get(name, {}).items():
        responses[status] = _answer(status, shown, sentence)
    for status in _statuses(path, operation):
        responses.setdefault(status, _described(_PROBLEMS[status], "Problem", MEDIA_TYPE))
    responses["default"] = _described(
        "A problem: its `code` is stable, its `hint` says what to do.", "Problem", MEDIA_TYPE
    )
    return operation | {"responses": dict(sorted(responses.items()))}


def _parameters(arguments: Arguments) -> list[Json]:
    """The parameters of an operation: those of the path first, the owner last. The token of a run is its security."""
    taken = [_parameter(each) for each in arguments.parameters() if each.name != "Authorization"]
    return sorted(taken, key=lambda each: (each["in"] != "path", each["name"] == "owner"))


def _parameter(parameter: Parameter) -> Json:
    """A parameter; an omitted one is not ``null``."""
    schema = given_schema(parameter.kind) | parameter.schema
    description = parameter.description
    if parameter.place == "path":
        description = _IN_PATHS[parameter.name]
        schema |= {"minLength": 1}
    if parameter.name == "owner":
        schema |= {"maxLength": 200}
    is_required = parameter.default is REQUIRED
    if not is_required and parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name, "in": parameter.place, "description": description or _IN_QUERIES[parameter.name],
        "required": is_required, "schema": _bounded(schema),
    }  # fmt: skip


def _shown(route: Route, answer: Json, schemas: Json) -> Json:
    """The usual answer of a route."""
    if route.status_code == HTTPStatus.NO_CONTENT:
        return {"description": "Done."}
    name = answer.get("$ref", "").removeprefix(REFERENCE)
    if not name:
        return {"description": "A text.", "content": {route.media_type: {"schema": answer}}}
    status = str(route.status_code)
    return _answer(status, name, schemas[name].get("description", HTTPStatus(route.status_code).phrase))


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


def _request_body(arguments: Arguments) -> Json:
    """A body, with its example."""
    kind, *notes = get_args(arguments.body) if get_origin(arguments.body) is Annotated else [arguments.body]
    described = [each.kind for each in notes if isinstance(each, DescribedAs)]
    kinds = described or [each for each in get_args(kind) or [kind] if each is not NoneType]
    name = kinds[0].__name__
    one = _ref(name)
    forms = [one] if len(kinds) == 1 else [one, {"type": "array", "items": one}]
    if not arguments.needs_body:
        forms.append({"type": "null"})
    schema = {"oneOf": forms} if len(forms) > 1 else one
    content = {"schema": schema, "examples": {"example": {"value": REQUESTS[name]}}}
    return {"content": {"application/json": content}, "required": arguments.needs_body}


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

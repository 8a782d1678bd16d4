"""The arguments of handlers, by the names and the types of their parameters.

``data`` is the body, ``request`` the request. A parameter named in the path is that part of it; one that is provided by name comes from
what the service provides; one annotated with :class:`Header` is a header; every other is a parameter of the query.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin

import msgspec

from horae.checked import in_words
from horae.errors import InvalidInputError, did_you_mean
from horae.face.http.errors import Fault, HttpError
from horae.face.http.json_body import read_json
from horae.face.http.requests import Request

BODY = "data"
REQUIRED = inspect.Parameter.empty


class Query(msgspec.Struct, frozen=True):
    """Annotates a parameter of the query with what the OpenAPI document says about it."""

    description: str = ""
    schema: dict[str, Any] = {}


def query(description: str, **schema: Any) -> Query:  # noqa: ANN401 - JSON
    """Annotate a parameter of the query; ``schema`` is what the OpenAPI document says besides its type."""
    return Query(description, schema)


class Header(msgspec.Struct, frozen=True):
    """Annotates a parameter that is a header."""

    name: str
    description: str = ""


class DescribedAs(msgspec.Struct, frozen=True):
    """Annotates a body that its handler decodes by itself with the type that the OpenAPI document shows."""

    kind: type[msgspec.Struct]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of a request that a handler takes."""

    name: str
    place: Literal["path", "query", "header"]
    kind: Any
    """Its type, with its bounds."""
    default: Any = REQUIRED
    description: str = ""
    schema: dict[str, Any] = {}

    @property
    def is_text(self) -> bool:
        """Whether any text is a value of it."""
        return self.kind in {str, str | None}


class Provided(Protocol):
    """A value that handlers take by its name."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of a request that it is made of."""

    def value(self, request: Request) -> Any:  # noqa: ANN401
        """The value for a request."""


class Arguments:
    """How the arguments of a function are read from a request."""

    def __init__(
        self, function: Callable[..., Any], in_path: Iterable[str], provided: Mapping[str, Provided]
    ) -> None:
        taken = inspect.signature(function, eval_str=True)
        self.returned: Any = taken.return_annotation
        """The type of what the function returns."""
        self.body: Any = None
        """The type of the body; ``None`` if the function takes none."""
        self.needs_body = False
        self._takes_request = False
        self._provided: dict[str, Provided] = {}
        self._own: dict[str, Parameter] = {}
        in_path = set(in_path)
        for name, parameter in taken.parameters.items():
            if name == BODY:
                self.body, self.needs_body = parameter.annotation, parameter.default is REQUIRED
            elif name == "request":
                self._takes_request = True
            elif name in provided:
                self._provided[name] = provided[name]
            else:
                self._own[name] = _declared(parameter, is_in_path=name in in_path)
        self._required = [
            each.name for each in self._own.values() if each.default is REQUIRED and each.place == "query"
        ]
        self.query_names = sorted({each.name for each in self.parameters() if each.place == "query"})
        """The names of the parameters of the query that the function takes."""

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of a request that the function takes, also those of what is provided, each once."""
        found = {each.name: each for provided in self._provided.values() for each in provided.parameters}
        yield from (found | {each.name: each for each in self._own.values()}).values()

    async def read(self, request: Request) -> dict[str, Any]:
        """The arguments by name."""
        for name in self._required:
            if name not in request.query:
                raise HttpError(400, faults=[Fault(name, "is missing")])
        if self.body is None:
            return self.values(request)
        data = await read_json(request, self.body)
        values = self.values(request)
        if data is not msgspec.UNSET:
            values[BODY] = data
        elif self.needs_body:
            missing = [Fault("body", "is missing")]
            raise HttpError(400, "The body is missing", faults=missing, hint="send a JSON object")
        return values

    def values(self, request: Request) -> dict[str, Any]:
        """The arguments by name, but for the body."""
        values: dict[str, Any] = {"request": request} if self._takes_request else {}
        for name, provided in self._provided.items():
            values[name] = provided.value(request)
        faults = []
        for name, parameter in self._own.items():
            try:
                values[name] = _read(parameter, request)
            except msgspec.ValidationError as error:
                faults.append(Fault(parameter.name, in_words(str(error))))
        if faults:
            raise HttpError(400, faults=faults)
        return values


def _declared(parameter: inspect.Parameter, *, is_in_path: bool) -> Parameter:
    kind, notes = parameter.annotation, []
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
    mark = next((each for each in notes if isinstance(each, Query | Header)), Query())
    for bounds in (each for each in notes if isinstance(each, msgspec.Meta)):
        kind = Annotated[kind, bounds]
    if isinstance(mark, Header):
        return Parameter(
            name=mark.name, place="header", kind=kind, default=parameter.default, description=mark.description
        )
    return Parameter(
        name=parameter.name, place="path" if is_in_path else "query", kind=kind, default=parameter.default,
        description=mark.description, schema=mark.schema,
    )  # fmt: skip


def _read(parameter: Parameter, request: Request) -> Any:  # noqa: ANN401
    match parameter.place:
        case "path":
            return request.ids[parameter.name]
        case "header":
            return request.headers.get(parameter.name.lower(), parameter.default)
        case "query":
            given = request.query.get(parameter.name)
            if given is None:
                return parameter.default
            return given if parameter.is_text else msgspec.convert(given, parameter.kind, strict=False)


class Constant:
    """Provides the same value for every request."""

    parameters: tuple[Parameter, ...] = ()

    def __init__(self, value: object) -> None:
        self._value = value

    def value(self, _: Request) -> Any:  # noqa: ANN401
        return self._value


class Made:
    """Provides what a function makes of a request; its arguments are those of a handler, but for the body."""

    def __init__(self, function: Callable[..., Any], provided: Mapping[str, Provided] | None = None) -> None:
        self._function = function
        self._arguments = Arguments(function, (), provided or {})
        self.parameters = tuple(self._arguments.parameters())

    def value(self, request: Request) -> Any:  # noqa: ANN401
        return self._function(**self._arguments.values(request))


_BOOLEANS = {"true": True, "false": False}


class QueryFields:
    """Provides a struct whose fields, all of them optional, are the parameters of the query; it declares, describes and checks them."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._kind = kind
        self._schemas = {each.name: given_schema(each.type) for each in msgspec.structs.fields(kind)}
        self.parameters = tuple(
            Parameter(
                name=name, place="query", kind=str | None, default=None, description=schema.get("description", ""),
                schema={key: value for key, value in schema.items() if key not in {"description", "default"}},
            )
            for name, schema in self._schemas.items()
        )  # fmt: skip

    def value(self, request: Request) -> Any:  # noqa: ANN401
        texts = {name: request.query[name] for name in self._schemas if name in request.query}
        values = {
            name: _BOOLEANS.get(text.lower(), text) if self._schemas[name].get("type") == "boolean" else text
            for name, text in texts.items()
        }
        try:
            return msgspec.convert(values, self._kind)
        except msgspec.ValidationError as error:
            name = str(error).rpartition("$.")[2].rstrip("`")
            known = list(self._schemas[name].get("enum", _BOOLEANS))
            reason = f'is "{texts[name][:60]}", and must be one of {", ".join(known)}'
            raise InvalidInputError(name, reason, hint=did_you_mean(texts[name], known)) from None


def given_schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    """The JSON schema of a type whose value is given, and so is not ``null``."""
    schema = msgspec.json.schema(kind)
    if "anyOf" in schema:
        (given,) = [each for each in schema.pop("anyOf") if each != {"type": "null"}]
        schema |= given
    if "enum" in schema:
        schema["enum"] = [each for each in schema["enum"] if each is not None]
    return schema

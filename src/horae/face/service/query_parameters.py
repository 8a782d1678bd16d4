"""Query parameters that are the fields of a struct, which declares, describes and checks them."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

import msgspec
from litestar.di import Provide
from litestar.params import QueryParameter

from horae.errors import InvalidInputError, did_you_mean

T = TypeVar("T", bound=msgspec.Struct)
_BOOLEANS = {"true": True, "false": False}
_PREFIX = "given_"
"""Before the names of the fields, some of which Litestar reserves."""


def parameter(name: str, description: str, **schema: Any) -> QueryParameter:  # noqa: ANN401 - JSON
    """A query parameter of a route, and what the OpenAPI document says about it."""
    return QueryParameter(name=name, description=description, schema_extra=schema or None)


def parameters_of(kind: type[T]) -> Provide:
    """A dependency of routes: a struct whose fields, all of them optional, are the query parameters of those names."""
    schemas = {each.name: _schema(each.type) for each in msgspec.structs.fields(kind)}

    def read(**given: str | None) -> T:
        texts = {name.removeprefix(_PREFIX): text for name, text in given.items() if text is not None}
        values = {
            name: _BOOLEANS.get(text.lower(), text) if schemas[name].get("type") == "boolean" else text
            for name, text in texts.items()
        }
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            name = str(error).rpartition("$.")[2].rstrip("`")
            known = list(schemas[name].get("enum", _BOOLEANS))
            reason = f'is "{texts[name][:60]}", and must be one of {", ".join(known)}'
            raise InvalidInputError(name, reason, hint=did_you_mean(texts[name], known)) from None

    annotations = {_PREFIX + name: _annotation(name, schema) for name, schema in schemas.items()}
    read.__annotations__ = {**annotations, "return": kind}
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=each) for name, each in annotations.items()]  # fmt: skip
    read.__signature__ = Signature(parameters, return_annotation=kind)  # type: ignore[attr-defined]
    return Provide(read, sync_to_thread=False)


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type as it was annotated
    """The schema of a field that is given, and so is not ``null``."""
    schema = msgspec.json.schema(kind)
    if "anyOf" in schema:
        (given,) = [each for each in schema.pop("anyOf") if each != {"type": "null"}]
        schema |= given
    if "enum" in schema:
        schema["enum"] = [each for each in schema["enum"] if each is not None]
    return schema


def _annotation(name: str, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - a type
    extra = {key: value for key, value in schema.items() if key not in {"description", "default"}}
    return Annotated[str | None, parameter(name, schema["description"], **extra)]

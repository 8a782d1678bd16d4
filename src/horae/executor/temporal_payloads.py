"""Temporal's payloads as JSON, and back. Pure.

A payload with JSON becomes that JSON. Any other becomes ``{"metadata": {"encoding": …}, "data": BASE64}``, of which
:func:`payload_of` makes the same payload again.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payload, Payloads, SearchAttributes

from horae.model import SearchValue

JSON = b"json/plain"
_READ_AS_JSON = {JSON, b"json/protobuf"}
_NOTHING = b"binary/null"
_ENVELOPE = {"metadata", "data"}
_TYPES: dict[type, bytes] = {
    str: b"Keyword",
    bool: b"Bool",
    int: b"Int",
    float: b"Double",
    list: b"KeywordList",
}


def value_of(payload: Payload) -> Any:  # noqa: ANN401 - any JSON
    """The value of a payload."""
    encoding = payload.metadata.get("encoding", b"")
    if encoding == _NOTHING:
        return None
    if encoding in _READ_AS_JSON:
        try:
            return msgspec.json.decode(payload.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    metadata = {name: value.decode("latin-1") for name, value in payload.metadata.items()}
    return {"metadata": metadata, "data": base64.b64encode(payload.data).decode()}


def values_of(payloads: Payloads) -> Any:  # noqa: ANN401 - any JSON
    """The arguments or results of a workflow: nothing, one value, or several as a list."""
    values = [value_of(each) for each in payloads.payloads]
    return values if len(values) > 1 else values[0] if values else None


def payload_of(value: Any) -> Payload:  # noqa: ANN401 - any JSON
    """The payload of a value, as Temporal's Python client writes it."""
    if value is None:
        return Payload(metadata={"encoding": _NOTHING})
    if isinstance(value, Mapping) and value.keys() == _ENVELOPE and (found := _opened(value)) is not None:
        return found
    return Payload(metadata={"encoding": JSON}, data=_written(value))


def _written(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _opened(envelope: Mapping[str, Any]) -> Payload | None:
    """The payload whose bytes a value carries; ``None`` if it only looks like one."""
    metadata, data = envelope["metadata"], envelope["data"]
    if not isinstance(metadata, Mapping) or not isinstance(data, str):
        return None
    try:
        return Payload(
            metadata={name: value.encode("latin-1") for name, value in metadata.items()},
            data=binascii.a2b_base64(data, strict_mode=True),
        )
    except (ValueError, AttributeError, TypeError):
        return None


def search_value_of(payload: Payload) -> SearchValue:
    """A search attribute: a list of one value becomes that value, other lists and objects become their JSON."""
    value = value_of(payload)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str | bool | int | float):
        return value
    return _written(value).decode()


def search_payload_of(value: SearchValue) -> Payload:
    """The payload of a search attribute, with its type."""
    return Payload(metadata={"encoding": JSON, "type": _TYPES[type(value)]}, data=_written(value))


def add_types(attributes: SearchAttributes) -> None:
    """Add the type to search attributes that have none, as Temporal's server does: its command warns if one is missing."""
    for payload in attributes.indexed_fields.values():
        kind = _TYPES.get(type(value_of(payload)))
        if kind is not None and "type" not in payload.metadata:
            payload.metadata["type"] = kind

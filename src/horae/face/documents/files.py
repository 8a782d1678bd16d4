"""Reads JSON, YAML and TOML as JSON values, from files and standard input; and writes YAML."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from horae.errors import InvalidSpecError
from horae.extras import import_extra
from horae.json_bounds import MAX_VALUES, check_json

WORKFLOW_EXAMPLE = (
    '{"workflow_id": "report", "version": 1, "nodes": [{"id": "start", "type": "trigger"}], "edges": []}'
)
"""The example in errors about documents that are no workflow."""

_TOML = re.compile(rb"""\s*(?:\#.*\s*)*(?:\[\[?[A-Za-z_][\w.-]*\]\]?\s*$|[\w.-]+\s*=)""", re.MULTILINE)
_TAG = "tag:yaml.org,2002:"
_JSON = re.compile(rb"""\s*(?:[{"\[]|$)""")


def contents(name: str, option: str) -> bytes:
    """The bytes of a file; ``-`` is standard input."""
    try:
        if name != "-":
            return Path(name).read_bytes()
        return sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "it is a folder; name a file" if isinstance(error, IsADirectoryError) else None
        raise InvalidSpecError(option, f"cannot be read: {name}: {reason}", text=name, hint=hint) from None


def document(name: str, option: str, example: str) -> dict[str, Any]:
    """The only object of a file that an option names."""
    return _only(parsed(name, option, example), option, example)


def document_of(text: bytes, option: str, example: str) -> dict[str, Any]:
    """The only object of a text."""
    return _only(parsed_text(text, option, example), option, example)


def _only(values: list[Any], option: str, example: str) -> dict[str, Any]:
    if len(values) != 1 or not isinstance(values[0], dict):
        raise InvalidSpecError(option, "is no JSON object", hint=f"such as {example}")
    return values[0]


def parsed(name: str, option: str, example: str) -> list[Any]:
    """The values of a file; YAML may have several. Its name says the format, or else its contents do."""
    return parsed_text(contents(name, option), option, example, _SUFFIXES.get(Path(name).suffix.lower()))


def parsed_text(text: bytes, option: str, example: str, format_: str | None = None) -> list[Any]:
    """The values of a text that is JSON, YAML or TOML."""
    if format_ is None:
        format_ = "TOML" if _TOML.match(text) else "JSON" if _JSON.match(text) else "YAML"
    try:
        room = iter(range(MAX_VALUES))
        values = [_plain(each, room) for each in _READERS[format_](text)]
        check_json(msgspec.json.encode(values))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "it is nested too deeply"
        raise InvalidSpecError(option, f"is no {format_}: {reason}", hint=f"such as {example}") from None
    return values


def _json(text: bytes) -> list[Any]:
    return [msgspec.json.decode(text)]


def _toml(text: bytes) -> list[Any]:
    import tomllib  # noqa: PLC0415 - few documents are TOML

    return [tomllib.loads(text.decode())]


def _yaml(text: bytes) -> list[Any]:
    yaml = import_extra("yaml")
    try:
        return [each for each in yaml.load_all(text.decode(), _loader(yaml)) if each is not None]
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


@cache
def _loader(yaml: Any) -> Any:  # noqa: ANN401 - an optional module, and a class of it
    """The safe loader, limited to JSON's values: dates, ``on`` and ``12:30`` are texts. Duplicate keys are refused."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
            keys = [key.value for key, _ in node.value if key.tag != f"{_TAG}merge"]
            for key, _ in node.value:
                if key.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                    raise yaml.YAMLError(f"the key {key.value} is no text{key.start_mark}")
                if keys.count(key.value) > 1:
                    raise yaml.YAMLError(f'the key "{key.value}" occurs twice{key.start_mark}')
            return super().construct_mapping(node, deep)

    for resolver in _RESOLVERS:
        Loader.add_implicit_resolver(*resolver)
    return Loader


@cache
def _dumper(yaml: Any) -> Any:  # noqa: ANN401
    """The safe dumper, which also quotes texts that this loader would not read as texts, such as ``1e5``."""

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, _: Any) -> bool:  # noqa: ANN401
            return True

    for resolver in _RESOLVERS:
        Dumper.add_implicit_resolver(*resolver)
    return Dumper


def yaml_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """A value as YAML."""
    yaml = import_extra("yaml")
    text: str = yaml.dump(value, Dumper=_dumper(yaml), allow_unicode=True, sort_keys=False, width=110)
    return text


_RESOLVERS: list[tuple[str, re.Pattern[str], list[str]]] = [
    (f"{_TAG}{kind}", re.compile(f"(?:{pattern})$"), list(first))
    for kind, pattern, first in (
        ("bool", r"true|false", "tf"),
        ("null", r"null|~|", ["n", "~", ""]),
        ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
        ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
        ("merge", r"<<", "<"),
    )
]
"""The YAML scalars that are not texts."""


def _plain(value: Any, room: Iterator[int]) -> Any:  # noqa: ANN401 - JSON
    """A value as JSON: times of TOML become texts. Values that YAML aliases repeat count each time."""
    if next(room, None) is None:
        raise ValueError(f"it has more than {MAX_VALUES} values")
    if isinstance(value, dict):
        return {key: _plain(each, room) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, room) for each in value]
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is no number")
    return value.isoformat() if isinstance(value, date | datetime | time) else value


_READERS: dict[str, Callable[[bytes], list[Any]]] = {"JSON": _json, "YAML": _yaml, "TOML": _toml}
_SUFFIXES = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
SUFFIXES = tuple(_SUFFIXES)
"""The suffixes of documents."""

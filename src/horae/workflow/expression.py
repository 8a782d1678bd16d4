"""Expressions in CEL: compiled, bounded, and evaluated without side effects.

The implementation is Google's own, ``cel-expr-python``. It ends a comprehension after 10,000 steps, an expression that is deep at 32 levels,
and its regular expressions take linear time. A hostile author can still use up memory and time, so everything but plain references,
comparisons and a few functions is evaluated in a process of its own (:mod:`horae.executor.expression_pool`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from horae.errors import ExpressionError, MissingExtraError
from horae.spec.duration import duration_text

if TYPE_CHECKING:
    from cel_expr_python.cel import Env
    from cel_expr_python.cel import Expression as Compiled

VARIABLES = ("input", "nodes", "run", "item", "index")
MAX_DATA_HERE = 16 * 1024
"""Bytes of JSON that an expression may refer to if it is evaluated in this process."""
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_CHEAP = frozenset({"size", "has", "int", "double", "string", "bool", "startsWith", "endsWith", "contains"})
_TEXTS = re.compile(
    r'[rR]?(?:"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')',
    re.DOTALL,
)
_NODE = re.compile(r"\bnodes\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*(?:\"([^\"\\]*)\"|'([^'\\]*)')\s*\])")
_MESSAGE = re.compile(r"(?:[A-Z_]+: )?(?:ERROR: <input>:)?(.*?)(?: \[[A-Z_]+\])?", re.DOTALL)


def check_expression(text: str, most: int) -> None:
    """Refuse a text that is too long, or is not an expression; the error says where."""
    if len(text) > most:
        raise ExpressionError(text, f"has {len(text)} characters, and the limit expression_length is {most}")
    _compiled(text)


def evaluate(text: str, data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """The value of an expression, as JSON."""
    compiled = _compiled(text)
    try:
        found = compiled.eval(data={name: data.get(name) for name in VARIABLES})
        value = found.plain_value()
    except Exception as error:
        raise ExpressionError(text, _message(error)) from None
    if str(found.type()) == "ERROR":
        raise ExpressionError(text, _message(value))
    return _json_value(text, value)


def is_cheap(text: str) -> bool:
    """Whether an expression takes time linear in its length, so that it may be evaluated in the event loop."""
    bare = _TEXTS.sub("''", text)
    return "//" not in bare and _CHEAP.issuperset(_CALL.findall(bare))


@lru_cache(maxsize=4096)
def nodes_in(text: str) -> frozenset[str] | None:
    """The nodes that an expression refers to; ``None`` if it may refer to any."""
    named = frozenset("".join(found) for found in _NODE.findall(text))
    others = len(re.findall(r"\bnodes\b", _TEXTS.sub("''", text))) > len(_NODE.findall(text))
    return None if others else named


@cache
def _environment() -> Env:
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - an optional part
    except ImportError:
        raise MissingExtraError("workflows", "cel_expr_python") from None
    return cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN))


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Compiled:
    environment = _environment()
    try:
        return environment.compile(text)
    except Exception as error:
        raise ExpressionError(text, _message(error)) from None


def _message(error: object) -> str:
    """The library's message in one line, without its codes."""
    line = str(error).partition("\n")[0]
    found = _MESSAGE.fullmatch(line)
    return (found[1] if found else line)[:500]


def _json_value(text: str, value: Any) -> Any:  # noqa: ANN401 - what CEL has, and what JSON has
    match value:
        case float() if not isfinite(value):
            raise ExpressionError(text, f"is {value}, which JSON does not have")
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat()
        case timedelta():
            return duration_text(max(value // timedelta(milliseconds=1), 0))
        case list():
            return [_json_value(text, each) for each in value]
        case dict():
            return {str(_json_value(text, key)): _json_value(text, each) for key, each in value.items()}
        case _:
            raise ExpressionError(text, f"has a value that JSON does not have: {type(value).__name__}")

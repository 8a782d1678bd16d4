"""The process in which costly expressions are evaluated: reads questions from its standard input, and writes their answers.

A question is a line of JSON, ``[expression, data, most]``; the answer is ``[true, value]`` or ``[false, reason]``. Memory is bounded here;
time is bounded by the process that asks, which kills this one.
"""

from __future__ import annotations

import contextlib
import sys

import msgspec

from horae.errors import ExpressionError
from horae.workflow.expression import evaluate

MEMORY_BYTES = 1024 * 1024 * 1024
_MEMORY = "its evaluation needs too much memory"


def main() -> None:
    """Answer questions until the input ends."""
    _bound_memory()
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_answer(line) + b"\n")
        sys.stdout.buffer.flush()


def _answer(line: bytes) -> bytes:
    try:
        text, data, most = msgspec.json.decode(line)
        answer = msgspec.json.encode([True, evaluate(text, data)])
    except ExpressionError as error:
        reason = error.details["reason"]
        return msgspec.json.encode([False, _MEMORY if "bad_alloc" in reason else reason])
    except (MemoryError, RecursionError):
        return msgspec.json.encode([False, _MEMORY])
    if len(answer) > most:
        return msgspec.json.encode([False, f"its value has {len(answer)} bytes, and the limit is {most}"])
    return answer


def _bound_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has it
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    main()

"""Expressions: what they can say, and what becomes of those that are hostile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from horae.errors import ExpressionError
from horae.executor.expression_pool import ExpressionPool
from horae.workflow.expression import evaluate, is_cheap, nodes_in

DATA: dict[str, Any] = {
    "input": {"n": 2, "text": "ü", "list": [1, 2, 3]}, "nodes": {"a": {"output": {"total": 12}}}, "item": 5, "index": 1,
}  # fmt: skip


@pytest.fixture
async def pool() -> AsyncIterator[ExpressionPool]:
    made = ExpressionPool(1000, 10_000)
    yield made
    await made.close()


@pytest.mark.contract("CRON-20")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.n + 1", 3),
        ("nodes.a.output.total > 10 && input.text == 'ü'", True),
        ("nodes['a'].output.total / 5", 2),
        ("{'k': [item, index], 'none': null}", {"k": [5, 1], "none": None}),
        ("size(input.list)", 3),
        ("input.list.filter(x, x > 1).map(x, x * 2)", [4, 6]),
        ("has(input.missing) ? 1.0 : 2.5", 2.5),
        ("timestamp('2026-11-17T00:00:00Z')", "2026-11-17T00:00:00+00:00"),
        ("duration('90m')", "1h30m"),
        ("input.text.matches('^.$')", True),
    ],
)
async def test_values(pool: ExpressionPool, text: str, value: Any):
    assert evaluate(text, DATA) == value
    assert await pool.evaluate(text, DATA) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("input.missing", 'Key not found in map : "missing"'),
        ("1 / 0", "divide by zero"),
        ("input.n + 'x'", "No matching overloads"),
        ("b'x'", "a value that JSON does not have"),
        ("1.0 / 0.0", "which JSON does not have"),
        ("__import__('os')", "undeclared reference"),
        ("input.__class__", "Key not found"),
        ("(" * 100 + "1" + ")" * 100, "recursion limit"),
    ],
)
def test_errors_say_why(text: str, reason: str):
    with pytest.raises(ExpressionError, match="no value") as raised:
        evaluate(text, DATA)
    assert reason in raised.value.message


NESTED = "true"
for name in "abcdefg":
    NESTED = f"[0,1,2,3,4,5,6,7,8,9].all({name}, {NESTED})"
BOMB = f"[{','.join('0' * 90)}].map(a, [{','.join('0' * 90)}].map(b, input.s + input.s + input.s + input.s)).size() > 0"
LARGE = "input.s + input.s"


@pytest.mark.contract("CRON-20")
@pytest.mark.parametrize(
    ("text", "reason"),
    [(NESTED, "budget"), (BOMB, "memory|within the limit expression_ms"), (LARGE, "the limit is")],
)
async def test_a_hostile_expression_ends_and_holds_nothing_up(pool: ExpressionPool, text: str, reason: str):
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    beside = asyncio.create_task(others())
    with pytest.raises(ExpressionError, match=reason):
        await pool.evaluate(text, {"input": {"s": "x" * 200_000}})
    beside.cancel()
    assert turns > 2
    assert await pool.evaluate("[1].map(x, x + 1)", {}) == [2]  # the next one is evaluated


def test_only_what_is_short_and_plain_is_evaluated_in_the_event_loop():
    assert is_cheap("input.n > 3 && nodes.a.output.startsWith('x')")
    assert is_cheap("'a.map(b)' == input.text")
    for text in (
        "input.list.map(x, x)",
        "input.a.matches(input.b)",
        "[1].all  (x, true)",
        "[1].all// c\n(x, true)",
    ):
        assert not is_cheap(text)


def test_an_expression_is_given_only_the_nodes_that_it_names():
    assert nodes_in("nodes.a.output + nodes['b-c'].output") == frozenset({"a", "b-c"})
    assert nodes_in("input.x") == frozenset()
    assert nodes_in("nodes.map(n, n)") is not None
    assert nodes_in("nodes[input.x].output") is None
    assert nodes_in("size(nodes)") is None

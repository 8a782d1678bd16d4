"""The names that expressions of a workflow's run can use: the run's input, earlier results, and the item of a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from horae.errors import ExpressionError
from horae.executor.expression_pool import ExpressionPool
from horae.workflow.expression import evaluate, nodes_in
from horae.workflow.node_checkpoint import NodeRecord

_NAMES = {name: re.compile(rf"\b{name}\b") for name in ("input", "run", "item", "index")}


class Scope:
    """The names of one region: those of the regions around it, and its own."""

    def __init__(self, pool: ExpressionPool, names: Mapping[str, Any], outer: Scope | None = None) -> None:
        self._pool = pool
        self.names = names
        self._outer = outer
        self.nodes: dict[str, dict[str, Any]] = {}

    def within(self, item: Any, index: int) -> Scope:  # noqa: ANN401 - any JSON
        """The scope of a round of a loop."""
        return Scope(self._pool, {**self.names, "item": item, "index": index}, self)

    def add(self, name: str, record: NodeRecord) -> None:
        """Let expressions refer to a node that ended."""
        self.nodes[name] = {"state": record.state.value, "output": record.output, "error": record.failure}

    def output(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        """The output of a node of this region."""
        return self.nodes[name]["output"]

    async def value(self, text: str) -> Any:  # noqa: ANN401 - any JSON
        """The value of an expression."""
        return await self._pool.evaluate(text, self._data(text))

    def _data(self, text: str) -> dict[str, Any]:
        """The values that an expression refers to."""
        data = {name: value for name, value in self.names.items() if _NAMES[name].search(text)}
        wanted = nodes_in(text)
        if wanted is None or wanted:
            known = self.known()
            data["nodes"] = (
                known if wanted is None else {name: known[name] for name in wanted if name in known}
            )
        return data

    def values_now(self, texts: Mapping[str, str]) -> dict[str, Any] | None:
        """The values of several expressions by key, if all of them are cheap; ``None`` if one is not."""
        values: dict[str, Any] = {}
        for key, text in texts.items():
            data = self._data(text)
            if not self._pool.is_cheap(text, data):
                return None
            values[key] = evaluate(text, data)
        return values

    async def holds(self, text: str | None) -> bool:
        """Whether a condition is true; no condition is."""
        if text is None:
            return True
        value = await self.value(text)
        if not isinstance(value, bool):
            raise ExpressionError(text, f"is {_shown(value)}, and must be true or false")
        return value

    async def values(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """The values of several expressions by key."""
        return {key: await self.value(text) for key, text in texts.items()}

    def known(self) -> dict[str, Any]:
        """The nodes that expressions can refer to."""
        return self.nodes if self._outer is None else {**self._outer.known(), **self.nodes}


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()[:100]

"""Workflows written in Python: a builder that creates the same document as JSON, and checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from horae.config import Config
from horae.errors import InvalidInputError
from horae.spec.duration import Duration, duration_text, milliseconds
from horae.spec.zone import ZoneLike, zone_name
from horae.workflow.document import Workflow
from horae.workflow.validate import document_text, read_workflow

START = "start"
"""The trigger of a workflow that is given none."""


class Task:
    """A node of a workflow that is being built. Give it to ``after``, or as an input, which is then its output."""

    def __init__(self, node_id: str, *, when: str = "success", condition: str | None = None) -> None:
        self.id = node_id
        self._when = when
        self._condition = condition

    @property
    def output(self) -> str:
        """The expression of its output."""
        return f"nodes[{msgspec.json.encode(self.id).decode()}].output"

    @property
    def failed(self) -> Task:
        """This task as a predecessor of nodes that run only if it failed."""
        return Task(self.id, when="error", condition=self._condition)

    @property
    def ended(self) -> Task:
        """This task as a predecessor of nodes that run whether it succeeded or failed."""
        return Task(self.id, when="always", condition=self._condition)

    def if_(self, condition: str) -> Task:
        """This task as a predecessor of nodes that run only if an expression is true."""
        return Task(self.id, when=self._when, condition=condition)

    def edge(self, target: str) -> dict[str, Any]:
        """The edge from this task to a later node."""
        edge: dict[str, Any] = {"source": self.id, "target": target, "when": self._when}
        return edge if self._condition is None else edge | {"condition": self._condition}

    def __repr__(self) -> str:
        return f"Task({self.id})"


After = Sequence[Task] | Task
Function = Callable[..., Any]


class WorkflowBuilder:
    """Builds a workflow node by node.

    A node comes after those that it names; one that names none comes after the start. Inputs are expressions as texts, outputs of
    other nodes (give the node), or any other value as it is.
    """

    def __init__(self, workflow_id: str, version: int) -> None:
        self.workflow_id = workflow_id
        self.version = version
        self.functions: dict[str, Function] = {}
        """The functions of its tasks by the names of their actions; ``app.workflows.deploy`` registers them."""
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[dict[str, Any]] = []

    def schedule(self, cron: str, timezone: ZoneLike, *, id: str = "schedule", **more: Any) -> Task:  # noqa: A002, ANN401
        """A trigger that starts a run at each time of a cron expression; ``more`` are the other fields of its schedule."""
        data = {
            "kind": "schedule_based",
            "schedule": {"cron_expr": cron, "timezone": zone_name(timezone), **more},
        }
        return self._add(id, "trigger", data, ())

    def task(
        self,
        action: Function | str,
        *,
        after: After = (),
        id: str | None = None,  # noqa: A002 - the word that users know
        input: Mapping[str, Any] | None = None,  # noqa: A002
        attempts: int = 1,
        delay: Duration = "1s",
        timeout: Duration = "45s",
    ) -> Task:
        """A node that calls an action: a function, or the address of one. Its id is the function's name unless given."""
        address = action if isinstance(action, str) else action.__name__
        if not isinstance(action, str) and self.functions.setdefault(address, action) is not action:
            raise InvalidInputError(
                "action", f'has the name of another function of this workflow: "{address}"'
            )
        data = {
            "action": address, "input": _expressions(input or {}), "timeout": duration_text(milliseconds(timeout)),
            "retry": {"attempts": attempts, "delay": duration_text(milliseconds(delay))},
        }  # fmt: skip
        return self._add(id or address.replace(":", "-"), "action", data, after)

    def choose(self, id: str, *, after: After = ()) -> Task:  # noqa: A002
        """A gateway: of the nodes after it, only the first whose condition holds runs; see :meth:`Task.if_`."""
        return self._add(id, "gateway_switch", {}, after)

    def parallel(self, id: str, *, after: After = ()) -> Task:  # noqa: A002
        """A node whose successors run at once, as those of every node do; it only makes this explicit."""
        return self._add(id, "parallel", {}, after)

    def join(
        self,
        id: str,  # noqa: A002
        *,
        after: After,
        mode: Literal["all", "any", "quorum"] = "all",
        quorum: int | None = None,
    ) -> Task:
        """A node that waits for all branches, for any one, or for a quorum; the remaining ones are cancelled."""
        return self._add(id, "join", {"mode": mode, "quorum": quorum}, after)

    def foreach(
        self,
        id: str,  # noqa: A002
        items: str | Task,
        *,
        after: After = (),
        max_rounds: int = 100,
        concurrency: int = 1,
    ) -> Task:
        """A loop over a list. Its body begins with the nodes after it, and ends where :meth:`again` says."""
        listed = items.output if isinstance(items, Task) else items
        data = {"items": listed, "max_rounds": max_rounds, "concurrency": concurrency}
        return self._add(id, "loop_foreach", data, after)

    def while_(self, id: str, condition: str, *, after: After = (), max_rounds: int = 100) -> Task:  # noqa: A002
        """A loop with a condition. Its body begins with the nodes after it, and ends where :meth:`again` says."""
        return self._add(id, "loop_while", {"condition": condition, "max_rounds": max_rounds}, after)

    def again(self, loop: Task, *, after: After) -> None:
        """End the body of a loop: the next round follows these nodes."""
        self._edges += [each.edge(loop.id) for each in _listed(after)]

    def end(self, id: str = "end", *, after: After, output: Mapping[str, Any] | None = None) -> Task:  # noqa: A002
        """An end of the run, with its result."""
        return self._add(id, "end", {"output": _expressions(output or {})}, after)

    def build(self, limits: Config | None = None) -> Workflow:
        """The document, checked; actions are checked when it is deployed. ``limits`` are settings, by default the default ones."""
        document = {
            "workflow_id": self.workflow_id, "version": self.version, "nodes": list(self._nodes.values()),
            "edges": self._edges,
        }  # fmt: skip
        return read_workflow(document, limits or Config(), lambda _: None).workflow

    def json(self) -> str:
        """The document as JSON."""
        return document_text(self.build())

    def _add(self, node_id: str, kind: str, data: dict[str, Any], after: After) -> Task:
        if node_id in self._nodes:
            raise InvalidInputError(
                "id", f'is that of another node: "{node_id}"', hint="give each its own id=…"
            )
        before = _listed(after)
        if not before and kind != "trigger":
            self._nodes.setdefault(START, {"id": START, "type": "trigger", "data": {"kind": "manual"}})
            before = [Task(START)]
        self._nodes[node_id] = {"id": node_id, "type": kind, "data": data}
        self._edges += [each.edge(node_id) for each in before]
        return Task(node_id)


def _listed(after: After) -> list[Task]:
    return [after] if isinstance(after, Task) else list(after)


def _expressions(given: Mapping[str, Any]) -> dict[str, str]:
    return {key: _expression(value) for key, value in given.items()}


def _expression(value: object) -> str:
    """The expression of an input: a task's output, a text as it is, or another value as a literal."""
    if isinstance(value, Task):
        return value.output
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

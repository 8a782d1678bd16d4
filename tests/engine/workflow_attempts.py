"""Attempts of a workflow's run without an engine: what they save is kept, and they can be made to crash at any save."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from horae.clock import Clock, SystemClock
from horae.config import Config
from horae.engine.workflow_attempt import WorkflowRun
from horae.engine.workflow_node import WorkflowServices
from horae.engine.workflow_scope import Scope
from horae.executor.action_registry import Executors
from horae.executor.attempt_context import Context, RunningAttempt
from horae.executor.checkpoints import CheckpointBounds
from horae.executor.expression_pool import ExpressionPool
from horae.executor.function_executor import FunctionExecutor
from horae.model import AUTOMATIC, Checkpoint, Overlap, Run, Status, Timeouts, schedule_key
from horae.workflow.node_checkpoint import PREFIX, NodeRecord
from horae.workflow.validate import Given, read_workflow


class Crashed(BaseException):
    """The process has died."""


class Attempts:
    """The attempts of one run."""

    def __init__(self, document: Given, limits: Config | None = None, clock: Clock | None = None) -> None:
        self.functions = FunctionExecutor()
        self.executors = Executors(self.functions)
        self.limits = limits or Config(terminate_ms=200)
        self.plan = read_workflow(document, self.limits, lambda _: None)
        self.saved: dict[str, str] = {}
        self.saves = 0
        self.calls: Counter[str] = Counter()
        self.attempt = 0
        self.running: RunningAttempt | None = None
        self.crash: Callable[[int], tuple[bool, bool]] = lambda _: (False, False)
        """Whether to crash at a save, and whether what it saves is durable then."""
        self._now = 0
        self._clock = clock or SystemClock()
        self._pool = ExpressionPool(5000, self.limits.node_output_bytes)

    def now(self) -> int:
        self._now += 1
        return self._now

    async def save(self, run: Run, values: Mapping[str, str]) -> None:
        await asyncio.sleep(0)
        self.saves += 1
        crashes, durable = self.crash(self.saves)
        if not crashes or durable:
            self.saved |= values
        if crashes:
            raise Crashed

    def context(self, after: str = "") -> Context:
        self.attempt += 1
        run = Run(
            id="r", schedule_key=schedule_key("", "s"), generation=1, nominal_ms=0, origin=AUTOMATIC, overlap=Overlap.SKIP, status=Status.RUNNING,
            fire_ms=0, start_at_ms=0, action="workflow", attempt=self.attempt, epoch=1, reason=after,
        )  # fmt: skip
        earlier = [
            Checkpoint(run_id="r", key=key, value=value, attempt=1, saved_at_ms=0)
            for key, value in self.saved.items()
        ]
        self.running = RunningAttempt(run, Timeouts(), lambda: 0)

        async def no_token(run: Run, token_hash: str) -> None:
            raise AssertionError

        context = Context(run, None, self.running, no_token, save_checkpoints=self.save, earlier=earlier)
        context.checkpoint_bounds = CheckpointBounds(
            500, 3 * self.limits.node_output_bytes, self.limits.workflow_steps, self.limits.run_output_bytes
        )
        return context

    async def run(self, given: Any = None, *, after: str = "", trigger: str | None = None) -> Any:
        services = WorkflowServices(self.executors, self._clock, self.now, self.limits)
        names = {"input": given, "run": {"id": "r"}, "item": None, "index": 0}
        try:
            return await WorkflowRun(
                self.plan, self.context(after), services, Scope(self._pool, names), trigger
            ).run()
        finally:
            await self._pool.close()

    async def through_crashes(self, given: Any = None) -> Any:
        """Run to the end, however often it crashes."""
        after = ""
        while True:
            try:
                return await self.run(given, after=after)
            except Crashed:
                after = "crashed"

    @property
    def records(self) -> dict[str, NodeRecord]:
        """What is saved of nodes, by place."""
        import msgspec  # noqa: PLC0415

        return {
            key.removeprefix(PREFIX): msgspec.json.decode(text, type=NodeRecord)
            for key, text in self.saved.items()
            if key.startswith(PREFIX)
        }

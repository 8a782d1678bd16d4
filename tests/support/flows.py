"""Flows for tests: consumers whose parts can be told what to do, and what they did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from horae import App
from horae.app.flow_views import FlowRunView
from horae.engine.decider import Decider
from horae.flows import Flow, Prepared, Reservation

Deed = Callable[[Any], Any] | BaseException | None
"""What a part does: raise, or call something with its context; nothing special if it is ``None``."""


class Script:
    """A flow ``f`` with a consumer ``take`` of the topic ``in``, one event a run; each part follows its script."""

    def __init__(
        self, *, mutates: bool = True, emits: bool = True, reconciles: bool = False, **options: Any
    ) -> None:
        self.deeds: dict[str, list[Deed]] = {part: [] for part in ("prepare", "mutate", "next", "reconcile")}
        self.calls: list[str] = []
        self.effects: list[list[str]] = []
        self.keys: list[str] = []
        self.answers: list[Any] = []
        self.outcomes: list[tuple[str, Any]] = []
        self.states: list[Any] = []
        self.wake_at: Any = None
        self.take = 1
        self.flow = self.version("1", mutates=mutates, emits=emits, reconciles=reconciles, **options)

    def version(
        self, revision: str, *, mutates: bool = True, emits: bool = True, reconciles: bool = False, **options: Any
    ) -> Flow:  # fmt: skip
        """A flow with the same script, of another revision."""
        parts: dict[str, Any] = {"prepare": self._prepare}
        parts |= {"mutate": self._mutate} if mutates else {}
        parts |= {"next": self._next} if emits else {}
        parts |= {"reconcile": self._reconcile} if reconciles else {}
        code = type("take", (), {name: staticmethod(part) for name, part in parts.items()})
        flow = Flow("f", revision=revision)
        flow.consumer(subscribes=["in"], name="take", **options)(code)
        return flow

    async def _do(self, part: str, ctx: Any) -> Any:
        self.calls.append(part)
        deed = self.deeds[part].pop(0) if self.deeds[part] else None
        if isinstance(deed, BaseException):
            raise deed
        if deed is not None:
            found = deed(ctx)
            return await found if asyncio.iscoroutine(found) else found
        return None

    async def _prepare(self, ctx: Any, state: Any) -> Any:
        self.states.append(state)
        if (given := await self._do("prepare", ctx)) is not None:
            return given
        ids = [event.id for event in await ctx.peek("in", limit=self.take)]
        return Prepared([Reservation("in", ids)] if ids else [], data=ids, wake_at=self.wake_at)

    async def _mutate(self, ctx: Any, prepared: Any) -> Any:
        self.keys.append(ctx.key)
        given = await self._do("mutate", ctx)
        self.effects.append(prepared.data)
        return given if given is not None else f"did {','.join(prepared.data)}"

    async def _next(self, ctx: Any, prepared: Any, outcome: Any) -> Any:
        given = await self._do("next", ctx)
        self.outcomes.append((outcome.status, outcome.result))
        return given if given is not None else len(self.outcomes)

    async def _reconcile(self, ctx: Any, prepared: Any) -> Any:
        assert ctx.key == self.keys[-1] == prepared.key
        await self._do("reconcile", ctx)
        return self.answers.pop(0)


async def runs_of(app: App, flow: str = "f") -> list[FlowRunView]:
    """All runs of a flow, oldest first, but for looks that found nothing."""
    found = list(await app.flows.runs(flow, limit=1000))
    return [run for run in reversed(found) if run.status != "committed" or run.events or run.published]


async def statuses(app: App, flow: str = "f") -> list[tuple[str, str]]:
    return [(run.phase.value, run.status.value) for run in await runs_of(app, flow)]


async def events_of(app: App, status: str | None = None, flow: str = "f") -> list[str]:
    return [event.id for event in reversed(await app.flows.events(flow, status=status, limit=1000))]


def flow_decider(app: App) -> Decider:
    return next(each for each in app.engine._deciders if each.name == "flows")


async def crash(app: App) -> int:
    """Take everything over that this node has claimed, as if it had died; what it runs finds its claim stale."""
    return await flow_decider(app).rescue([app.engine.epoch], app.now())


async def never(*_: object) -> None:
    """Wait for what does not happen."""
    await asyncio.Event().wait()


async def publish(app: App, *ids: str, topic: str = "in", flow: str = "f") -> None:
    events: Sequence[tuple[str, str, Any]] = [(topic, each, {"id": each}) for each in ids]
    await app.flows.publish_many(flow, events)

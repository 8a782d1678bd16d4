"""Hand-offs: what all kinds of actions share that run on another engine.

Work that is handed over has an id, which follows from the slot and from how many attempts have failed. An attempt after a crash or a
shutdown has the same id, so it finds the work that an earlier one handed over; one after a failure has another. Each engine
implements four methods: :meth:`HandOffExecutor.submit`, ``ask``, ``stop`` and ``close``.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from horae.errors import HandOffFailedError, NotStartedError
from horae.executor.attempt_context import Context
from horae.executor.port import Executor

FIRST_POLL_S, MAX_POLL_S = 0.02, 1.0
"""How long a follower waits before it asks again."""


class HandOff(msgspec.Struct, frozen=True, kw_only=True):
    """Work that is handed to another engine."""

    id: str
    """The engine's id of it: submitted twice under one id, it must be started once."""
    name: str
    """The name of the task, function or workflow."""
    input: dict[str, Any]
    """Its keyword arguments."""
    context: Context
    receipt: Any = None
    """The engine's answer when it took the work, as JSON; ``None`` before."""


class Ending(StrEnum):
    """How work ended on its engine."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of work: what it returned, or why it did not succeed."""

    ending: Ending
    result: Any = None
    reason: str = ""


class HandOffExecutor(Executor):
    """The base of kinds whose actions run on another engine: ``KIND:NAME`` runs what the engine has under that name."""

    for_nodes = True
    engine: ClassVar[str]
    """The engine's name for people."""

    def __init__(self, names: Collection[str]) -> None:
        """``names`` are those that may be run."""
        self._names = {f"{self.kind}:{name}": name for name in names}
        self._follower = Follower(self.ask)

    def actions(self) -> Collection[str]:
        """``KIND:NAME`` for each name."""
        return self._names.keys()

    @abstractmethod
    async def submit(self, work: HandOff) -> Any:  # noqa: ANN401 - any JSON
        """Hand work over; returns the receipt. Called again with the same id after a crash: it must not be started twice.

        Any exception means that the work may not have been taken: submitting is tried again, ``start_attempts`` times.
        """

    async def ask(self, works: Sequence[HandOff]) -> Mapping[str, End]:
        """How works have ended, by their ids, without those that have not. Any exception means that the engine is away."""
        raise NotImplementedError

    async def follow(self, work: HandOff) -> End:
        """Wait for the end of work: one question for all works, at most once a second after a while.

        Override this for an engine that reports ends by itself: while the engine is away, try again; call ``work.context.heartbeat``
        when it answers.
        """
        return await self._follower.end_of(work)

    @abstractmethod
    async def stop(self, work: HandOff, *, force: bool) -> None:
        """Ask the engine to stop work, or with ``force`` to end it at once; do not wait for the end. What it raises is ignored."""

    async def run(self, context: Context) -> Any:  # noqa: ANN401 - what the work returned
        """Hand the work over, unless an earlier attempt has, and wait for its end."""
        work = self._work(context)
        handing = asyncio.create_task(self._handed(work), name="horae:hand-off")
        try:
            end = await self.follow(await asyncio.shield(handing))
        except asyncio.CancelledError:
            if not _must_stop(context):
                raise
            end = await self._stopped(context, handing)
        finally:
            handing.cancel()  # if it still goes on
        if end.ending is Ending.SUCCEEDED:
            return end.result
        raise HandOffFailedError(self.engine, work.name, end.reason or f"it was {end.ending} there")

    def _work(self, context: Context) -> HandOff:
        name, given = self._names[context.action], arguments(context.input)
        return HandOff(id=context.work_id, name=name, input=given, context=context)

    async def _handed(self, work: HandOff) -> HandOff:
        """The work with its receipt: it is submitted if none was saved, and may be submitted again if the process dies before that."""
        saved = work.context.checkpoints.get(self.kind)
        if saved is None or saved["id"] != work.id:
            try:
                receipt = await self.submit(work)
            except Exception as error:  # of the engine's own library
                raise self.not_taken(error) from None
            saved = {"id": work.id, "receipt": receipt}
            await work.context.checkpoint(self.kind, saved)
        return msgspec.structs.replace(work, receipt=saved["receipt"])

    def not_taken(self, error: BaseException) -> NotStartedError:
        """The error for work that the engine did not take."""
        if isinstance(error, NotStartedError):
            return error
        message = " ".join(str(error).split())
        return NotStartedError(f"{self.engine} did not take the work: {type(error).__name__}: {message}")

    async def _stopped(self, context: Context, handing: asyncio.Task[HandOff]) -> End:
        """Stop the work once it is handed over, and wait for its end as long as the run may take to stop; if it is then terminated,
        as long as that allows.
        """
        while True:
            left = context.time_to_stop
            seconds = None if left is None else left.total_seconds()
            try:
                async with asyncio.timeout(seconds):
                    work = await asyncio.shield(handing)
                    with contextlib.suppress(Exception):
                        await self.stop(work, force=left is not None)
                    end = await self.follow(work)
            except (TimeoutError, NotStartedError):  # it did not stop in time, or was not taken at all
                raise asyncio.CancelledError from None
            except asyncio.CancelledError:
                if left is not None or not _must_stop(context):
                    raise
                continue
            if end.ending is Ending.SUCCEEDED:
                return end
            raise asyncio.CancelledError


def arguments(given: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """The input of an action as keyword arguments."""
    if given is not None and not isinstance(given, dict):
        reason = "the input must be an object: its keys are the names of arguments"
        raise NotStartedError(reason, permanent=True)
    return given or {}


def _must_stop(context: Context) -> bool:
    """Whether work is to stop. If only this node stops, the work continues, and the next attempt follows it."""
    return context.stop_requested() and not context.is_given_away


class Follower:
    """Follows all work of one executor with one question, asked less and less often until there is more to follow."""

    def __init__(self, ask: Callable[[Sequence[HandOff]], Awaitable[Mapping[str, End]]]) -> None:
        """``ask`` is that of the executor."""
        self._ask = ask
        self._followed: dict[asyncio.Future[End], HandOff] = {}
        self._asking: asyncio.Task[None] | None = None

    async def end_of(self, work: HandOff) -> End:
        """Wait for the end of work."""
        ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._followed[ended] = work
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_on(), name="horae:hand-offs")
        try:
            return await ended
        finally:
            del self._followed[ended]

    async def _ask_on(self) -> None:
        wait, known = FIRST_POLL_S, 0
        while self._followed:
            with contextlib.suppress(Exception):  # of the engine's own library: it is away, and asked again
                self._tell(await self._ask(list(self._followed.values())))
            wait = FIRST_POLL_S if len(self._followed) > known else min(wait * 1.5, MAX_POLL_S)
            known = len(self._followed)
            await asyncio.sleep(wait)

    def _tell(self, ends: Mapping[str, End]) -> None:
        for ended, work in self._followed.items():
            work.context.heartbeat()
            if work.id in ends and not ended.done():
                ended.set_result(ends[work.id])

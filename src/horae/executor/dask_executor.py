"""Hands actions to a Dask cluster: a function by its name, followed to its result.

The id of a hand-off is the key of the task, and :class:`~horae.executor.dask_cluster.KeepTasks` keeps tasks on the scheduler: one that is
submitted again under its key is found, and not started again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import msgspec

from horae.errors import MissingExtraError
from horae.executor.hand_off import End, Ending, HandOff, HandOffExecutor

try:
    from distributed import Client, Event, Future, Security

    from horae.executor.dask_cluster import ANSWER_WITHIN_S, PREFIX, KeepTasks, call, stop_name
except ImportError:
    raise MissingExtraError("dask", "distributed") from None

_LOST = "its scheduler no longer knows the task: it was restarted, or the task was cancelled there"
_BEGUN = {"processing", "memory", "erred"}


class DaskExecutor(HandOffExecutor):
    """The kind ``dask``: ``dask:NAME`` calls a function on a cluster with the action's input as its keyword arguments."""

    kind = "dask"
    engine = "Dask"

    def __init__(
        self,
        address: str,
        functions: Mapping[str, str],
        *,
        security: Security | None = None,
        keep: timedelta = timedelta(hours=1),
    ) -> None:
        """``address`` is the scheduler's; ``functions`` are the names that may be run, and for each ``module:function`` on the workers.

        ``keep`` is how long the scheduler keeps a task that has ended: as long as this program may need to start again after a crash.
        """
        super().__init__(functions)
        self._address = address
        self._functions = dict(functions)
        self._security = security
        self._keep_s = keep.total_seconds()
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def submit(self, work: HandOff) -> None:
        """Submit the task; the scheduler has it when this returns."""
        client = await self._connected()
        async with asyncio.timeout(ANSWER_WITHIN_S):
            with self._submitted(client, work):  # the scheduler may not have it yet
                while (await self._states(client, [work]))[_key(work)] is None:
                    await asyncio.sleep(0.01)

    async def ask(self, works: Sequence[HandOff]) -> Mapping[str, End]:
        """Ask the scheduler."""
        client = await self._connected()
        async with asyncio.timeout(ANSWER_WITHIN_S):
            states = await self._states(client, works)
            ends = {each.id: await self._end_of(client, each, states[_key(each)]) for each in works}
        return {work: end for work, end in ends.items() if end is not None}

    async def _states(self, client: Client, works: Sequence[HandOff]) -> Mapping[str, str | None]:
        """The states of tasks by their keys; ``None`` if the scheduler does not know one."""
        keys = [_key(each) for each in works]
        states: Mapping[str, str | None] = await client.scheduler.get_task_status(keys=keys)
        return states

    async def _end_of(self, client: Client, work: HandOff, state: str | None) -> End | None:
        if state is None or state == "forgotten":
            return End(ending=Ending.FAILED, reason=_LOST)
        if state not in {"memory", "erred"}:
            return None
        with self._submitted(client, work) as future:  # the scheduler has it, so this only asks for it
            if state == "memory":
                return End(ending=Ending.SUCCEEDED, result=msgspec.json.decode(await future.result()))
            error = await future.exception()
            reason = str(error) if type(error) is RuntimeError else f"{type(error).__name__}: {error}"
            return End(ending=Ending.FAILED, reason=reason)

    async def stop(self, work: HandOff, *, force: bool) -> None:
        """Cancel a task that waits. One that runs is asked to stop, or with ``force`` forgotten: its thread cannot be ended."""
        client = await self._connected()
        await Event(stop_name(work.id), client=client).set()
        state = (await self._states(client, [work]))[_key(work)]
        if state is not None and (force or state not in _BEGUN):
            with self._submitted(client, work) as future:
                await client.cancel([future], force=True)

    @contextlib.contextmanager
    def _submitted(self, client: Client, work: HandOff) -> Iterator[Future]:
        """Submit a task under its key: one that the scheduler knows is not started again."""
        target = self._functions[work.name]
        future = client.submit(call, target, work.input, key=_key(work), pure=False)
        try:
            yield future
        finally:
            future.release()

    async def _connected(self) -> Client:
        """The client of the scheduler, or a new one if it lost its connection."""
        async with self._connecting:
            if self._client is not None and self._client.status == "running":
                return self._client
            await self.close()
            client = Client(
                self._address, asynchronous=True, set_as_default=False, security=self._security, timeout=ANSWER_WITHIN_S
            )  # fmt: skip
            try:
                await client
                await client.register_plugin(KeepTasks(self._keep_s))
            except BaseException:
                await client.close()
                raise
            self._client = client
            return client

    async def close(self) -> None:
        """Leave the cluster; the tasks go on."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                await client.close()


def _key(work: HandOff) -> str:
    return PREFIX + work.id

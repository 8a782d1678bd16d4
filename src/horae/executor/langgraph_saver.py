"""LangGraph's checkpoints in Horae's own database: a run that was killed resumes in the graph, on any node."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

MAX_STATE_LENGTH = 4 * 1024 * 1024
"""Bytes of one stored part of a graph's state."""
_KEPT = 2
"""How many checkpoints of a graph are kept: the last, and the one before."""


class GraphMemory(Protocol):
    """Keeps the states of running graphs: for each run, texts by key."""

    async def load(self, run_id: str) -> dict[str, str]:
        """All texts of a run."""

    async def save(self, run_id: str, entries: Mapping[str, str], dropped: Collection[str] = ()) -> None:
        """Keep some texts and drop others; durable when this returns."""


class GraphSaver(BaseCheckpointSaver[int]):
    """The checkpoints of one run. They are read once, when it begins."""

    def __init__(self, memory: GraphMemory, run_id: str) -> None:
        super().__init__()
        self._memory = memory
        self._run_id = run_id
        self._entries: dict[str, str] | None = None

    async def _loaded(self) -> dict[str, str]:
        if self._entries is None:
            self._entries = await self._memory.load(self._run_id)
        return self._entries

    async def _save(self, new: Mapping[str, str], dropped: Collection[str] = ()) -> None:
        entries = await self._loaded()
        await self._memory.save(self._run_id, new, dropped)
        for key in dropped:
            entries.pop(key, None)
        entries.update(new)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - all channels are kept with each checkpoint
    ) -> RunnableConfig:
        """Keep a checkpoint. The configuration is not kept: it may have secrets."""
        given = config["configurable"]
        namespace = given.get("checkpoint_ns", "")
        kept = {"checkpoint": checkpoint, "metadata": metadata, "parent": given.get("checkpoint_id")}
        value = self._text(kept)
        entries = await self._loaded()
        ids = sorted({cid for ns, cid, _ in map(_parts, entries) if ns == namespace})
        old = set(ids[: 1 - _KEPT]) if len(ids) >= _KEPT else set[str]()
        dropped = [each for each in entries if _parts(each)[0] == namespace and _parts(each)[1] in old]
        await self._save({_key(namespace, checkpoint["id"], ""): value}, dropped)
        return _config(self._run_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote after a checkpoint."""
        given = config["configurable"]
        entries, new = await self._loaded(), dict[str, str]()
        for number, (channel, value) in enumerate(writes):
            place = WRITES_IDX_MAP.get(channel, number)
            key = _key(given.get("checkpoint_ns", ""), given["checkpoint_id"], f"{task_id} {place:06d}")
            if place < 0 or key not in entries:
                new[key] = self._text([task_id, channel, value, task_path])
        if new:
            await self._save(new)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint, or the last one."""
        given, entries = config["configurable"], await self._loaded()
        namespace = given.get("checkpoint_ns", "")
        found = {cid for ns, cid, part in map(_parts, entries) if ns == namespace and not part}
        wanted = given.get("checkpoint_id") or max(found, default=None)
        if wanted not in found or wanted is None:
            return None
        kept = self._value(entries[_key(namespace, wanted, "")])
        keys = sorted(each for each in entries if _parts(each)[:2] == (namespace, wanted) and _parts(each)[2])
        writes = [tuple(self._value(entries[each])[:3]) for each in keys]
        parent = kept["parent"]
        return CheckpointTuple(
            config=_config(self._run_id, namespace, wanted), checkpoint=kept["checkpoint"], metadata=kept["metadata"],
            parent_config=_config(self._run_id, namespace, parent) if parent else None, pending_writes=writes,
        )  # fmt: skip

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002, ARG002 - LangGraph's own
        before: RunnableConfig | None = None,  # noqa: ARG002
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The last checkpoint: there is no history."""
        found = await self.aget_tuple(config or _config(self._run_id, "", ""))
        if found is not None and limit != 0:
            yield found

    def get_next_version(self, current: int | None, channel: None) -> int:  # noqa: ARG002
        """The version of a channel after ``current``."""
        return (current or 0) + 1

    def _text(self, value: object) -> str:
        kind, data = self.serde.dumps_typed(value)
        if len(data) > MAX_STATE_LENGTH:
            reason = f"the state of the graph has {len(data)} bytes, and {MAX_STATE_LENGTH} are kept at most"
            raise ValueError(reason)
        return f"{kind} {base64.b64encode(data).decode()}"

    def _value(self, text: str) -> Any:  # noqa: ANN401 - a graph's own
        kind, _, data = text.partition(" ")
        return self.serde.loads_typed((kind, base64.b64decode(data)))


def _key(namespace: str, checkpoint_id: str, part: str) -> str:
    return msgspec.json.encode([namespace, checkpoint_id, part]).decode()


def _parts(key: str) -> tuple[str, str, str]:
    return msgspec.json.decode(key, type=tuple[str, str, str])


def _config(run_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}

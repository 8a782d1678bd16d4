"""The prefix ``langgraph:``: runs compiled LangGraph graphs, found by their import paths."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import operator
import os
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from horae.errors import GraphError, GraphUnavailableError, MissingExtraError
from horae.executor.graph_provider_port import Caller, GraphProvider, GraphRun, UsageEvent

if TYPE_CHECKING:
    from horae.executor.langgraph_saver import GraphMemory

PREFIX = "langgraph"


class LangGraphProvider(GraphProvider):
    """Runs compiled graphs. A graph is imported when it is first run; with a ``memory``, a run that was killed resumes in the graph."""

    prefix = PREFIX

    def __init__(self, graphs: Mapping[str, Any], memory: GraphMemory | None = None) -> None:
        """``graphs`` are compiled graphs or their import paths (``module:attribute``), by name."""
        self._graphs = {f"{PREFIX}:{name}": graph for name, graph in graphs.items()}
        self._memory = memory

    def graphs(self) -> Collection[str]:
        """``langgraph:NAME`` for each graph."""
        return self._graphs.keys()

    def run_graph(self, run_id: str, graph_id: str, input: dict[str, Any], caller: Caller) -> GraphRun:  # noqa: A002
        """Run a graph. It gets ``input`` as its input, and the caller as its runtime's context; neither is a part of its state."""
        final: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        return GraphRun(self._events(run_id, graph_id, input, caller, final), final)

    async def _events(
        self,
        run_id: str,
        graph_id: str,
        given: dict[str, Any],
        caller: Caller,
        final: asyncio.Future[Any],
    ) -> AsyncIterator[Any]:
        graph = await self._loaded(graph_id)
        config = {"configurable": {"thread_id": run_id}, "run_name": graph_id}
        begin: Any = given
        values: Any = None
        if self._memory is not None and graph.checkpointer is None:
            from horae.executor.langgraph_saver import GraphSaver  # noqa: PLC0415 - it needs LangGraph

            graph = graph.copy({"checkpointer": GraphSaver(self._memory, run_id)})
        if graph.checkpointer is not None:
            state = await graph.aget_state(config)
            if state.created_at is not None:  # an earlier attempt came this far
                begin, values = None, state.values
                if not state.tasks:  # `next` leaves out a step whose writes are kept, though others follow it
                    final.set_result(plain(values))
                    return
        context = _context(graph, caller, given["model"])
        durable = {"durability": "sync"} if graph.checkpointer is not None else {}
        modes = ["updates", "custom", "values"]
        async for mode, chunk in graph.astream(begin, config, context=context, stream_mode=modes, **durable):
            if mode == "values":
                values = chunk
                continue
            if isinstance(chunk, dict) and "__interrupt__" in chunk:
                raise GraphError(
                    "The graph was interrupted, and waits for an answer that a scheduled run cannot give"
                )
            for usage in _usage(chunk, mode):
                yield usage
            yield {mode: plain(chunk)}
        if not final.done():
            final.set_result(plain(values))

    async def _loaded(self, graph_id: str) -> Any:  # noqa: ANN401 - a compiled graph
        """The compiled graph; imported in a thread, once."""
        graph = self._graphs[graph_id]
        if isinstance(graph, str):
            graph = self._graphs[graph_id] = await asyncio.to_thread(_import, graph_id, graph)
        return graph


def _import(graph_id: str, place: str) -> Any:  # noqa: ANN401 - a compiled graph
    try:
        from langgraph.pregel import Pregel  # noqa: PLC0415 - an extra
    except ImportError:
        raise GraphUnavailableError(graph_id, MissingExtraError("langgraph", "langgraph").message) from None
    module, _, attribute = place.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - modules in the working folder, as `horae serve --app` finds them
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        graph = operator.attrgetter(attribute)(importlib.import_module(module))
    except Exception as error:
        reason = f"cannot be imported: {type(error).__name__}: {error}"
        raise GraphUnavailableError(graph_id, reason) from None
    if not isinstance(graph, Pregel):
        raise GraphUnavailableError(graph_id, f"is no compiled graph: {place} is a {type(graph).__name__}")
    return graph


def _context(graph: Any, caller: Caller, model: str) -> Any:  # noqa: ANN401 - of any schema
    """The caller as the context of a graph: the fields that its schema has, or all fields if it has no schema."""
    whole = {**msgspec.structs.asdict(caller), "model": model}
    schema = graph.context_schema
    if schema is None:
        return whole
    if dataclasses.is_dataclass(schema):
        names = {each.name for each in dataclasses.fields(schema)}
    else:
        names = set(getattr(schema, "model_fields", None) or getattr(schema, "__annotations__", {}))
    return {name: value for name, value in whole.items() if name in names}


def _usage(chunk: Any, mode: str) -> list[UsageEvent]:  # noqa: ANN401 - of any graph
    """The usage that an update of a graph reports: in messages of models, or in a custom event ``{"usage": {"unit": …}}``."""
    if mode == "custom":
        if isinstance(chunk, dict) and isinstance(chunk.get("usage"), dict):
            try:
                return [msgspec.convert(chunk["usage"], UsageEvent)]
            except msgspec.ValidationError as error:
                raise GraphError(f"The graph reported usage that cannot be read: {error}") from None
        return []
    found = []
    for update in chunk.values() if isinstance(chunk, dict) else ():
        messages = update.get("messages", ()) if isinstance(update, dict) else ()
        for message in messages if isinstance(messages, list | tuple) else [messages]:
            used = getattr(message, "usage_metadata", None)
            if used and getattr(message, "id", None):
                model = str(getattr(message, "response_metadata", {}).get("model_name", ""))
                found.append(
                    UsageEvent(
                        unit=str(message.id), model=model, input_tokens=int(used.get("input_tokens", 0)),
                        output_tokens=int(used.get("output_tokens", 0)),
                    )
                )  # fmt: skip
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - of any graph
    """A value of a graph with its messages and models as JSON; other values stay as they are."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else value

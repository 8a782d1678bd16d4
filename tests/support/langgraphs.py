"""LangGraph graphs that call no model."""

from __future__ import annotations

import asyncio
import operator
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt


@dataclass
class Reader:
    """What the poet knows of its caller."""

    user_id: str
    virtual_key: str
    model: str


def _think(state: MessagesState, runtime: Runtime[Reader]) -> dict[str, Any]:
    return {"messages": [AIMessage(f"thinking for {runtime.context.user_id}", id="m1")]}


async def _write(state: MessagesState, runtime: Runtime[Reader]) -> dict[str, Any]:
    get_stream_writer()({"usage": {"unit": "verse", "cost": 2, "output_tokens": 9}})
    usage = {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10}
    said = f"a poem by {runtime.context.model}, with {runtime.context.virtual_key}"
    return {"messages": [AIMessage(said, id="m2", usage_metadata=usage)]}


def _poet() -> Any:
    graph = StateGraph(MessagesState, context_schema=Reader)
    graph.add_node("think", _think)
    graph.add_node("write", _write)
    graph.add_edge(START, "think")
    graph.add_edge("think", "write")
    graph.add_edge("write", END)
    return graph.compile()


class Steps(TypedDict, total=False):
    """The state of the graphs that follow."""

    messages: list[Any]
    model: str
    done: Annotated[list[str], operator.add]


def _graph(*nodes: Any) -> Any:
    graph = StateGraph(Steps)
    before = START
    for node in nodes:
        graph.add_node(node.__name__, node)
        graph.add_edge(before, node.__name__)
        before = node.__name__
    graph.add_edge(before, END)
    return graph.compile()


def _note(name: str) -> dict[str, Any]:
    """Note a step in a file, which outlives a process that is killed."""
    with Path(os.environ["HORAE_TEST_STEPS"]).open("a") as file:
        file.write(f"{name}\n")
    get_stream_writer()({"usage": {"unit": name, "cost": 1}})
    return {"done": [name]}


def first(state: Steps) -> dict[str, Any]:
    return _note("first")


def second(state: Steps) -> dict[str, Any]:
    if os.environ.get("HORAE_TEST_KILL") == "graph":
        os.kill(os.getpid(), signal.SIGKILL)
    return _note("second")


def asks(state: Steps) -> dict[str, Any]:
    return {"done": [interrupt("which one?")]}


def fails(state: Steps) -> dict[str, Any]:
    raise ValueError("as planned")


async def sleeps(state: Steps) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def returns_no_json(state: Steps) -> dict[str, Any]:
    return {"done": [object()]}


poet = _poet()
steps = _graph(first, second)
asking, failing, sleeping, no_json = _graph(asks), _graph(fails), _graph(sleeps), _graph(returns_no_json)
not_compiled = StateGraph(Steps)

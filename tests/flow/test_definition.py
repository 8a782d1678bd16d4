"""How flows are written: what a deploy refuses, and how types are read."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae.errors import InvalidFlowError
from horae.flow.phase_permissions import ALLOWED, Operation, Part
from horae.flows import Flow, Prepared, Transient
from horae.testing import TimeMachine
from tests.support.process import ROOT, environment


async def handler(ctx, state):
    return state


class Take:
    async def prepare(self, ctx, state):
        return Prepared()


class Emits(Take):
    async def next(self, ctx, prepared, outcome):
        return None


def flow(*parts: Any, topics: list[str] | None = None, name: str = "f") -> Flow:
    made = Flow(name, topics=topics)
    for part in parts:
        part(made)
    return made


def producer(code: Any = handler, **options: Any) -> Any:
    return lambda made: made.producer(**{"publishes": ["a"], "every": "5m"} | options)(code)


def consumer(code: Any = Take, **options: Any) -> Any:
    return lambda made: made.consumer(**{"subscribes": ["a"]} | options)(code)


WRONG = {
    "no schedule": (flow(producer(every=None), consumer()), "handler", "it has no schedule"),
    "both schedules": (flow(producer(cron="* * * * *"), consumer()), "handler", "both every and cron"),
    "nothing to publish": (flow(producer(publishes=[]), consumer()), "handler", "it publishes nothing"),
    "bad interval": (flow(producer(every="5 minutes"), consumer()), "handler", "its interval '5 minutes'"),
    "another bad interval": (flow(producer(every="1h30m"), consumer()), "handler", "its interval '1h30m'"),
    "no interval": (flow(producer(every="0s"), consumer()), "handler", "its interval '0s'"),
    "bad cron": (flow(producer(every=None, cron="61 * * * *"), consumer()), "handler", "its schedule cannot be read"),
    "bad zone": (flow(producer(every=None, cron="* * * * *", timezone="Mars/X"), consumer()), "handler", "cannot be read"),
    "no consumer subscribes": (flow(producer(publishes=["b"]), consumer()), "handler", 'no consumer subscribes to the topic "b"'),
    "undeclared topic": (flow(producer(), consumer(), topics=["b"]), "handler", 'the topic "a" is not declared'),
    "no topic": (flow(consumer(subscribes=[""])), "Take", "a topic must be a text"),
    "topic of another type": (flow(consumer(subscribes=[7])), "Take", "a topic must be a text"),
    "subscribes to nothing": (flow(consumer(subscribes=[])), "Take", "it subscribes to nothing"),
    "no next": (flow(consumer(publishes=["a"])), "Take", "it publishes, but has no next"),
    "no prepare": (flow(consumer(object)), "object", "it has no prepare"),
    "twice": (flow(producer(), producer(), consumer()), "handler", "another handler has the same name"),
    "no handlers": (Flow("f"), None, "it has no handlers"),
    "no name": (flow(consumer(), name=""), None, "its name must be a text"),
    "other parameters": (flow(producer(lambda ctx: None), consumer()), "<lambda>", "other parameters"),
    "cannot be made": (flow(consumer(type("X", (Take,), {"__init__": lambda self, x: None}))), "X", "without arguments"),
}  # fmt: skip


@pytest.mark.contract("FLOW-02")
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_deploy_names_the_handler_what_is_wrong_and_what_would_be_right(wrong: str):
    made, who, reason = WRONG[wrong]
    with pytest.raises(InvalidFlowError, match="cannot be deployed") as caught:
        made.check()
    assert reason in caught.value.message
    assert caught.value.details["handler"] == who
    if who is not None and wrong not in {"no topic", "topic of another type", "bad cron", "bad zone"}:
        assert caught.value.hint


@pytest.mark.contract("FLOW-02")
async def test_what_cannot_be_deployed_changes_nothing(machine: TimeMachine):
    with pytest.raises(InvalidFlowError):
        await machine.app.flows.deploy(WRONG["twice"][0])
    assert list(await machine.app.flows.list()) == []


@pytest.mark.contract("FLOW-01")
def test_a_definition_says_what_consumers_have():
    found = flow(producer(), consumer(Emits, publishes=["a"]), consumer(Take(), name="object")).check()
    assert [(each.name, each.mutates, each.emits) for each in found.handlers] == [
        ("handler", False, False), ("Emits", False, True), ("object", False, False),
    ]  # fmt: skip


def test_a_revision_follows_the_source():
    one, same = flow(consumer(Take)), flow(consumer(Take))
    other = flow(consumer(Emits))
    assert one.revision == same.revision != other.revision
    assert Flow("f", revision="7").revision == "7"


@pytest.mark.contract("FLOW-03")
def test_the_table_of_what_each_part_may_do():
    rows = {str(operation): "".join("y" if part in ALLOWED[operation] else "-" for part in (
        Part.PRODUCER, Part.PREPARE, Part.MUTATE, Part.NEXT)) for operation in Operation}  # fmt: skip
    assert rows == {
        "peek": "-y--", "get": "-y--", "publish": "y--y", "register_input": "y---", "read": "yy--", "effect": "--y-",
    }  # fmt: skip


class Cursor(msgspec.Struct):
    page: int


async def test_states_and_data_are_read_as_they_are_annotated(machine: TimeMachine):
    seen: list[Any] = []
    made = Flow("f")

    @made.producer(publishes=["a"], every="1m")
    async def poll(ctx, state: Cursor | None) -> Cursor:
        seen.append(state)
        return Cursor(1 if state is None else state.page + 1)

    made.consumer(subscribes=["a"])(Take)
    await machine.app.flows.deploy(made)
    await machine.advance(minutes=2)
    assert seen == [None, Cursor(1), Cursor(2)]


async def test_prepared_data_that_is_not_what_it_is_annotated_as_is_a_logic_error(machine: TimeMachine):
    made = Flow("f")

    @made.consumer(subscribes=["a"])
    class Count:
        async def prepare(self, ctx: Any, state: Any) -> Prepared[int]:
            return Prepared(data="many" if await ctx.peek("a") else None)  # type: ignore[arg-type]

    await machine.app.flows.deploy(made)
    await machine.advance(seconds=1)
    assert (await machine.app.flows.show("f")).status == "Idle"  # without data there is nothing to read
    await machine.app.flows.publish("f", "a", "1")
    await machine.advance(seconds=1)
    assert "not what it is annotated as" in ((await machine.app.flows.show("f")).issue or "")


async def test_a_state_that_a_new_version_cannot_read_is_a_logic_error(machine: TimeMachine):
    def version(kind: Any) -> Flow:
        made = Flow("f", revision=str(kind))

        async def poll(ctx, state):
            return {"cursor": 1}

        poll.__annotations__["state"] = kind
        made.producer(publishes=["a"], every="1m")(poll)
        made.consumer(subscribes=["a"])(Take)
        return made

    await machine.app.flows.deploy(version(dict))
    await machine.advance(seconds=1)
    await machine.app.flows.deploy(version(Cursor | None))
    await machine.advance(minutes=2)
    view = await machine.app.flows.show("f")
    assert view.status == "Needs attention"
    assert "the state that an earlier version kept cannot be read" in (view.issue or "")


GOOD = """
from horae.flows import Consumer, Flow, MutateContext, NextContext, Outcome, PrepareContext, Prepared, ProducerContext, Reservation

flow = Flow("mail")


@flow.producer(publishes=["mail"], every="5m")
async def poll(ctx: ProducerContext, state: int | None) -> int:
    await ctx.publish("mail", "1", {"a": 1})
    return (state or 0) + 1


@flow.consumer(subscribes=["mail"])
class Sheet(Consumer[int, list[str], dict[str, int]]):
    async def prepare(self, ctx: PrepareContext, state: int | None) -> Prepared[list[str]]:
        events = await ctx.peek("mail")
        return Prepared([Reservation("mail", [event.id for event in events])], [event.id for event in events])

    async def mutate(self, ctx: MutateContext, prepared: Prepared[list[str]]) -> dict[str, int]:
        return await ctx.effect(lambda: {"rows": len(prepared.data)})

    async def next(
        self, ctx: NextContext, prepared: Prepared[list[str]], outcome: Outcome[dict[str, int] | None]
    ) -> int | None:
        return outcome.result["rows"] if outcome.result else None
"""


def test_types_flow_through_the_parts_of_a_consumer(tmp_path: Path):
    """A type checker refuses what the rules forbid, and parts that do not fit together."""
    wrong = {
        "Prepared[list[str]]) -> dict[str, int]": "Prepared[int]) -> dict[str, int]",
        'await ctx.publish("mail", "1", {"a": 1})': 'await ctx.peek("mail")',
        "ctx.effect(lambda: {": "ctx.read(lambda: {",
        "state: int | None) -> Prepared[list[str]]": "state: str | None) -> Prepared[list[str]]",
    }
    files = [tmp_path / "good.py"]
    files[0].write_text(textwrap.dedent(GOOD))
    for number, (old, new) in enumerate(wrong.items()):
        assert old in GOOD
        files.append(tmp_path / f"wrong{number}.py")
        files[-1].write_text(textwrap.dedent(GOOD).replace(old, new, 1))
    checker = [sys.executable, "-m", "mypy", *map(str, files)]
    # With the settings and the cache of `make check`.
    paths = {"MYPYPATH": str(ROOT / "src")}
    ran = subprocess.run(
        checker, env=environment(**paths), capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    assert "good.py" not in ran.stdout, ran.stdout
    for file in files[1:]:
        assert f"{file.name}:" in ran.stdout, ran.stdout


def test_a_transient_error_says_whether_it_was_applied():
    assert Transient("x").applied is None
    assert Transient("x", applied=False).applied is False

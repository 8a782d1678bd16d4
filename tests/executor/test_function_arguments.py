"""How functions are registered as actions, and what they are called with."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import horae
from horae import App, Context
from horae.errors import InvalidActionError
from horae.executor.http_executor import HttpExecutor
from horae.model import Status
from horae.testing import TimeMachine


class Shop:
    """Methods are actions if they are bound."""

    def sync(self, full: bool) -> Any:
        return {"full": full}


async def coroutine(context: Context) -> Any:
    return context.input


def with_both(context: Context, to: str, subject: str = "hello") -> Any:
    return [context.attempt, to, subject]


def by_annotation(attempt_of: horae.Context, /, to: str) -> Any:
    return [attempt_of.attempt, to]


def all_of_it(**given: Any) -> Any:
    return given


def nothing() -> str:
    return "done"


def keyword_only(*, to: str) -> Any:
    return to


MAIL = {"to": "ada", "subject": "hi"}


@pytest.mark.parametrize(
    ("function", "given", "result"),
    [
        (coroutine, [1, 2], [1, 2]),
        (nothing, None, "done"),
        (nothing, {"ignored": 1}, "done"),
        (with_both, {"to": "ada"}, [1, "ada", "hello"]),
        (with_both, {**MAIL, "other": 1}, [1, "ada", "hi"]),
        (by_annotation, {"to": "ada"}, [1, "ada"]),
        (all_of_it, MAIL, MAIL),
        (all_of_it, None, {}),
        (keyword_only, {"to": "ada"}, "ada"),
        (partial(with_both, to="bob"), None, [1, "bob", "hello"]),
        (Shop().sync, {"full": True}, {"full": True}),
    ],
)
async def test_a_function_gets_the_context_and_the_keys_of_its_input_that_it_names(
    machine: TimeMachine, function: Any, given: Any, result: Any
):
    machine.app.action("work")(function)
    await machine.app.schedules.create("s", "0 0 1 1 *", "work", input=given)
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    assert (await machine.app.runs.get(run_id)).result == result


@pytest.mark.parametrize(
    ("function", "given", "sentence"),
    [
        (with_both, None, 'input has no "to", which the action needs'),
        (with_both, ["ada"], "input must be an object: its keys are the arguments of the action"),
        (keyword_only, {"to": "ada", "subjet": 1}, 'input has "subjet", which the action does not take'),
        (all_of_it, 7, "input must be an object: its keys are the arguments of the action"),
    ],
)
async def test_an_input_that_does_not_fit_fails_the_attempt(
    machine: TimeMachine, function: Any, given: Any, sentence: str
):
    machine.app.action("work")(function)
    await machine.app.schedules.create("s", "0 0 1 1 *", "work", input=given)
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run_id)
    assert (run.status, run.failure) == (Status.FAILED, f"InvalidInputError: {sentence}")


def test_a_function_is_registered_under_its_own_name_or_another():
    app = App(":memory:")
    assert app.action(nothing) is nothing
    assert app.action()(keyword_only) is keyword_only
    assert app.action("other")(nothing) is nothing
    assert app.action(nothing) is nothing  # the same again
    assert app.action(Shop().sync).__name__ == "sync"
    assert sorted(app.functions.actions()) == ["keyword_only", "nothing", "other", "sync"]


def test_a_name_has_one_function():
    app = App(":memory:")
    app.action("work")(nothing)
    with pytest.raises(InvalidActionError) as refused:
        app.action("work")(keyword_only)
    here = nothing.__code__.co_filename
    assert refused.value.message == (
        f'The action "work" is {__name__}.nothing ({here}, line {nothing.__code__.co_firstlineno}) already, and cannot be '
        f"another function too: {__name__}.keyword_only ({here}, line {keyword_only.__code__.co_firstlineno})"
    )
    assert app.functions.functions["work"] is nothing


def positional(first: int, /) -> None: ...


def twice(context: Context, other: Context) -> None: ...


def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("name", "function", "reason"),
    [
        ("a", positional, 'takes its parameter "first" by position only'),
        ("a", twice, 'has two parameters for the context: "context", "other"'),
        ("a", generator, "is a generator"),
        ("a", Shop.sync, 'is a method that is not bound: nothing fills its parameter "self"'),
        ("a", Shop, "must be a function"),
        ("a", 7, "must be a function"),
        ("a", iter, "does not say which arguments it takes"),
        ("http", nothing, "has the name of a kind of action"),
        ("command:backup", nothing, "has the name of a kind of action"),
        ("function", nothing, "has the name of a kind of action"),
        ("", nothing, "has a name that is empty or not printable"),
        (None, lambda: None, "has no name"),
        (None, partial(nothing), "has no name"),
    ],
)
def test_what_cannot_be_an_action_is_refused_when_it_is_registered(name: Any, function: Any, reason: str):
    app = App(":memory:")
    with pytest.raises(InvalidActionError, match=reason):
        app.action(name)(function)
    assert not app.functions.actions()


def test_a_kind_of_action_cannot_have_the_name_of_a_function():
    class Mail(HttpExecutor):
        kind = "mail"

        def __init__(self) -> None:
            """Needs nothing."""

    app = App(":memory:")
    app.action("mail")(nothing)
    with pytest.raises(InvalidActionError, match='"mail" is a function'):
        app.use(Mail())

"""What commands that talk to Horae share: where it is, how to answer, and one way to run them."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import typer
from rich.console import RenderableType

from horae.errors import InvalidInputError
from horae.face.cli.client import Client, connected
from horae.face.cli.output import console, print_json
from horae.face.cli.target import DatabaseOption, JsonOption, Target, TokenOption, UrlOption

_INTERRUPTED = 130
_SHARED = {
    "url": (UrlOption, None),
    "token": (TokenOption, None),
    "database": (DatabaseOption, None),
    "as_json": (JsonOption, False),
}

Function = Callable[..., Coroutine[Any, Any, None]]


class Session:
    """One command's conversation: whom it asks, and how it answers."""

    def __init__(self, client: Client, *, as_json: bool) -> None:
        self.client = client
        self.as_json = as_json

    def show(self, value: object, people: Callable[[], RenderableType]) -> None:
        """Answer with JSON, or with what people read."""
        if self.as_json:
            print_json(value)
        else:
            console().print(people())

    def say(self, text: str) -> None:
        """Tell people something beside the answer."""
        if not self.as_json:
            console(stderr=True).print(text, style="dim", markup=False)


def command(group: typer.Typer, name: str | None = None) -> Callable[[Function], Function]:
    """Make a coroutine function a command: it gets a session, and options for where Horae is and how to answer."""

    def register(function: Function) -> Function:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for key, (kind, default) in _SHARED.items()
        ]

        def run(context: typer.Context, **values: Any) -> None:  # noqa: ANN401 - what typer read
            nearer = Target(**{key: values.pop(key) for key in ("url", "token", "database")})
            as_json = values.pop("as_json")
            where = (context.obj or Target()).but(nearer)
            run_to_end(_converse(function, where, values, as_json=as_json))

        parameters = [
            first,
            *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
            *shared,
        ]
        run.__doc__ = function.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        group.command(name, no_args_is_help=_asks_for_something(own))(run)
        return function

    return register


def _asks_for_something(parameters: list[inspect.Parameter]) -> bool:
    return any(each.default is inspect.Parameter.empty for each in parameters)


async def _converse(function: Function, where: Target, values: dict[str, Any], *, as_json: bool) -> None:
    async with connected(where) as client:
        await function(Session(client, as_json=as_json), **values)


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run what a command does; an interruption ends it without a traceback."""
    try:
        asyncio.run(until_ended(work))
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work, and when that is interrupted, cancel it until it ends: a wait with a timeout may miss one cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.2)
        raise
    task.result()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost; where nobody can answer, it must have been said."""
    if yes:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise InvalidInputError(
            "this", "needs a confirmation, and there is no terminal to ask on", hint="say --yes"
        )
    typer.confirm(question, abort=True)

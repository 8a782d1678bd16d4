"""What commands share: how they are registered and run, and the session of those that call the API."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from horae.clock import SystemClock
from horae.errors import InvalidInputError
from horae.face.api_client import path
from horae.face.cli.light_help import LightCommand, LightGroup
from horae.face.cli.printing import none, print_json, show
from horae.face.cli.target import Target
from horae.face.time_parser import instant_of, needs_zone

if TYPE_CHECKING:
    from horae.face.api_client import Client

_INTERRUPTED = 130
EVERYWHERE = ("url", "token", "database", "owner", "as_json")
"""The options of a target, which every command that calls the API has."""

Function = Callable[..., Any]
Render = Callable[[list[dict[str, Any]]], RenderableType]
V = TypeVar("V")


def group(name: str | None = None, help: str | None = None) -> typer.Typer:  # noqa: A002 - as typer calls it
    """The commands of a file: one command, or with a name its subcommands."""
    commands = typer.Typer(
        name=name, help=help, cls=LightGroup, no_args_is_help=name is not None, rich_markup_mode="rich", add_completion=False,
    )  # fmt: skip
    if name is not None:  # a callback makes even a single command a subcommand
        commands.callback()(lambda: None)
    return commands


class Command:
    """One invocation of a command: what it works on, and how it answers."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.as_json = target.as_json

    def show(self, value: V, render: str | Callable[[V], RenderableType]) -> None:
        """Answer with JSON, or with what people read: a sentence, or what ``render`` makes of the value."""
        if self.as_json:
            print_json(value)
        else:
            show(Text(render) if isinstance(render, str) else render(value))


class Session(Command):
    """One invocation of a command that calls the API."""

    def __init__(self, target: Target, client: Client) -> None:
        super().__init__(target)
        self.client = client

    async def zone(self, schedule_id: str, owner: str | None = None) -> str:
        """The time zone to show a schedule's times in; UTC if it was deleted, or with ``--json``."""
        if self.as_json:
            return "UTC"
        schedule = await self.client.find(path("schedules", schedule_id), owner=owner)
        return "UTC" if schedule is None else str(schedule["timezone"])

    async def show_list(
        self, path: str, limit: int, render: Render, *, order: str = "first", **query: object
    ) -> None:
        """Show up to ``limit`` items of a list, and say if there are more."""
        items = await self.client.items(path, limit + 1, **query)
        more = none(f"These are the {order} {limit}; --limit shows more.")
        self.show(
            items[:limit], lambda shown: Group(render(shown), more) if len(items) > limit else render(shown)
        )

    async def delete(self, kind: str, name: str, *, yes: bool) -> None:
        """Delete a thing after a confirmation."""
        confirm(f"Delete the {kind} {name}?", yes=yes)
        await self.client.delete(path(f"{kind}s", name))
        self.show({"deleted": name}, f"Deleted {name}.")

    async def moment(
        self, text: str | None, option: str, schedule_id: str | None, zone: str | None = None
    ) -> str | None:
        """The instant that an option names, in ``zone``, else the schedule's zone, else UTC; ``None`` if it was not given."""
        if text is None:
            return None
        if zone is None and schedule_id is not None and needs_zone(text):
            zone = (await self.client.get(path("schedules", schedule_id)))["timezone"]
        return instant_of(text, option, zone or "UTC", SystemClock().now()).isoformat()


def command(
    group: typer.Typer, name: str | None = None, takes: Collection[str] = EVERYWHERE, *, lenient: bool = False
) -> Callable[[Function], Function]:
    """Register a function as a command. Its first parameter gets a ``Session``, or a ``Command`` if it calls no API.

    ``takes`` names the options of the target that the command has; with ``lenient``, arguments may begin with a minus. A parameter whose
    type is a struct becomes one option per field, so that commands can share options.
    """

    def register(function: Function) -> Function:
        first, *own = inspect.signature(function, eval_str=True).parameters.values()
        structs = {each.name: each.annotation for each in own if _is_struct(each.annotation)}
        options = [option for each in own for option in _options(each)]

        def run(context: typer.Context, **values: Any) -> None:  # noqa: ANN401 - the values of options
            nearer = Target(**{key: values.pop(key) for key in takes})
            for key, kind in structs.items():
                values[key] = kind(**{field: values.pop(field) for field in kind.__struct_fields__})
            target = (context.obj or Target()).but(nearer)
            if first.annotation is Session:
                run_to_end(_with_session(function, target, values))
            elif (work := function(Command(target), **values)) is not None:
                run_to_end(work)

        shared = _options(_parameter("target", Target))
        parameters = [
            _parameter("context", typer.Context),
            *options,
            *(each for each in shared if each.name in takes),
        ]
        run.__doc__ = function.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        required = any(each.default is inspect.Parameter.empty for each in options)
        settings = {"ignore_unknown_options": True} if lenient else None
        group.command(name, cls=LightCommand, no_args_is_help=required, context_settings=settings)(run)
        return function

    return register


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """The options that a parameter becomes."""
    kind = parameter.annotation
    if not _is_struct(kind):
        return [_parameter(parameter.name, kind, parameter.default)]
    hints = get_type_hints(kind, include_extras=True)
    return [_parameter(each.name, hints[each.name], each.default) for each in msgspec.structs.fields(kind)]


def _parameter(name: str, kind: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


async def _with_session(function: Function, target: Target, values: dict[str, Any]) -> None:
    from horae.face.cli.connection import connected  # noqa: PLC0415 - not every command calls the API

    async with connected(target) as client:
        await function(Session(target, client), **values)


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; Ctrl-C ends it without a traceback."""
    import asyncio  # noqa: PLC0415 - not every command needs an event loop

    try:
        asyncio.run(until_ended(work))
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work; when interrupted, cancel it until it ends, because a wait with a timeout may miss one cancellation."""
    import asyncio  # noqa: PLC0415

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
    """Ask before something is lost. Without a terminal, ``--yes`` is required."""
    if yes:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise InvalidInputError(
            "this", "needs a confirmation, and there is no terminal to ask on", hint="add --yes"
        )
    typer.confirm(question, abort=True)

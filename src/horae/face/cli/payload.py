"""Options as the API takes them: specs, actions, policies. Pure, but for the files that options name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer

from horae.errors import InvalidInputError, InvalidSpecError
from horae.face.cli.files import contents, decoded
from horae.face.cli.options import HOW, WHAT, WHEN, Input, OverlapChoice
from horae.model import CatchUp, Overlap
from horae.spec import Spec
from horae.spec.compiled import parse_time

SPEC_EXAMPLE = '{"crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin"}'
SCHEDULE_EXAMPLE = '{"id": "report", "spec": {"crons": ["0 9 * * 1-5"]}, "action": "report"}'
CALENDAR_EXAMPLE = '{"dates": ["2026-12-25"]}'


Texts = list[str] | None


def _option(panel: str, name: str, metavar: str | None, meaning: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(name, metavar=metavar, help=meaning, rich_help_panel=panel, show_default=False)


class When(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the times of a schedule."""

    crons: Annotated[Texts, _option(WHEN, "--cron", "EXPR", "A cron expression; may be repeated.")] = None
    every: Annotated[Texts, _option(WHEN, "--every", "DURATION", "An interval, such as 90m, or 90m/15m with a phase.")] = None  # fmt: skip
    at: Annotated[Texts, _option(WHEN, "--at", "TIME", "A single time; without an offset it is in the zone.")] = None  # fmt: skip
    timezone: Annotated[str | None, _option(WHEN, "--tz", "ZONE", "The time zone, such as Europe/Berlin.")] = None  # fmt: skip
    jitter: Annotated[str | None, _option(WHEN, "--jitter", "DURATION", "Spread starts over a span, such as 30s.")] = None  # fmt: skip
    spec: Annotated[str | None, _option(WHEN, "--spec", "FILE|-", "A spec as JSON instead; - is standard input.")] = None  # fmt: skip

    @property
    def names_changes(self) -> bool:
        """Whether any of them was given."""
        return self.names_times or self.timezone is not None or self.jitter is not None

    @property
    def names_times(self) -> bool:
        """Whether they name times, and not only a zone or a jitter."""
        return bool(self.crons or self.every or self.at) or self.spec is not None

    def document(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The spec; ``base`` is the one that a zone or a jitter alone changes."""
        if self.spec is not None:
            if self.crons or self.every or self.at:
                raise InvalidInputError(
                    "--spec", "goes without --cron, --every and --at", hint="add them to it"
                )
            base = decoded(contents(self.spec, "--spec"), "--spec", SPEC_EXAMPLE)
        document = dict(base or {})
        if self.crons or self.every or self.at:
            document |= {
                "crons": self.crons or [], "intervals": [_interval(each) for each in self.every or ()], "times": self.at or [],
            }  # fmt: skip
        document |= given(timezone=self.timezone, jitter=self.jitter)
        for expression in self.crons or ():  # here, because here its wrong characters can be pointed at
            Spec.cron(expression, timezone=self.timezone)
        return {key: value for key, value in document.items() if value != []}


def _interval(text: str) -> dict[str, str]:
    """``90m``, or ``90m/15m`` with a phase."""
    every, _, phase = text.partition("/")
    return {"every": every, "phase": phase} if phase else {"every": every}


class What(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the action of a schedule."""

    action: Annotated[str | None, _option(WHAT, "--action", "NAME", "A registered action.")] = None
    http: Annotated[str | None, _option(WHAT, "--http", "URL", "Make a request to this address.")] = None
    method: Annotated[str | None, _option(WHAT, "--method", "METHOD", "Its method.  \\[default: POST]")] = None  # fmt: skip
    headers: Annotated[Texts, _option(WHAT, "--header", '"NAME: VALUE"', "Its headers; stored encrypted, never shown.")] = None  # fmt: skip
    command: Annotated[str | None, _option(WHAT, "--command", "NAME", "Run a command that the operator configured.")] = None  # fmt: skip
    input: Input = None

    def document(self) -> dict[str, Any] | None:
        """The action; ``None`` if the options name none."""
        named = [each for each in (self.action, self.http, self.command) if each is not None]
        if len(named) > 1:
            raise InvalidInputError("--action, --http and --command", "exclude each other", hint="give one")
        if self.http is None and (self.method or self.headers):
            raise InvalidInputError("--method and --header", "go with --http", hint="add --http URL")
        if not named:
            if self.input is not None:
                raise InvalidInputError(
                    "--input", "goes with an action", hint="add --action NAME, --http URL or --command NAME"
                )
            return None
        document: dict[str, Any] = {"name": self.action}
        if self.command is not None:
            document = {"kind": "command", "name": self.command}
        if self.http is not None:
            headers = dict(_header(each) for each in self.headers or ())
            said = {"url": self.http, "method": self.method and self.method.upper(), "headers": headers}
            document = {"kind": "http", "options": {name: value for name, value in said.items() if value}}
        if self.input is not None:
            document["input"] = read_json(self.input, "--input")
        return document


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidInputError("--header", "has no name", hint='such as --header "X-Team: reports"')
    return name.strip(), value.strip()


def read_json(text: str, option: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of an option, or of the file that it names after an ``@``."""
    content = contents(text[1:], option) if text.startswith("@") else text.encode()
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            option, f"is no JSON: {error}", hint="""such as '{"rows": 10}', '"text"' or @file.json"""
        ) from None


def moment(text: str, option: str) -> str:
    """A time with an offset, so that it is one instant."""
    try:
        read = parse_time(text, option)
    except InvalidSpecError as error:
        raise InvalidInputError(
            option, f'is "{text}", which is no time', hint=error.hint or "such as 2026-03-08T07:30:00Z"
        ) from None
    if read.tzinfo is None:
        local = read.isoformat()
        raise InvalidInputError(
            option, f'is "{text}", which has no offset, and so is another moment in each time zone',
            hint=f"{local}Z is in UTC, {local}+01:00 an hour ahead of it",
        )  # fmt: skip
    return read.isoformat()


class How(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the policies and tags of a schedule."""

    overlap: OverlapChoice = None
    catch_up: Annotated[CatchUp | None, _option(HOW, "--catch-up", None, "Which late slots are made up.")] = None  # fmt: skip
    description: Annotated[str | None, _option(HOW, "--description", "TEXT", "What it is for, in words for people.")] = None  # fmt: skip
    tags: Annotated[Texts, typer.Option("--tag", metavar="TAG", help="To find it by; may be repeated.")] = None  # fmt: skip


def given(**options: object) -> dict[str, Any]:
    """The options that were given, by name."""
    return {name: value for name, value in options.items() if value is not None}


def start_fields(overlap: Overlap | None, text: str | None, note: str | None) -> dict[str, Any]:
    """The fields of a trigger or a backfill that options name."""
    content = {} if text is None else {"input": read_json(text, "--input")}
    return given(overlap=overlap, note=note) | content


def schedule_fields(when: When, what: What, how: How, base: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a schedule that options name; ``base`` are those of a file."""
    fields: dict[str, Any] = {}
    if when.names_times:
        fields["spec"] = when.document()
    elif when.names_changes:
        present = base.get("spec")
        fields["spec"] = when.document(present if isinstance(present, dict) else {"crons": [present]})
    if (document := what.document()) is not None:
        fields["action"] = document
    if policies := given(overlap=how.overlap, catch_up=how.catch_up and {"mode": how.catch_up}):
        fields["policies"] = (base.get("policies") or {}) | policies
    return fields | given(tags=how.tags or None, description=how.description)

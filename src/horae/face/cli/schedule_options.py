"""Turns options into what the API takes: specs, actions, policies. Pure, except for reading files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from horae.clock import SystemClock
from horae.errors import InvalidInputError
from horae.face.cli.options import HOW, WHAT, WHEN, Input, OverlapChoice, option
from horae.face.documents.files import contents
from horae.face.documents.files import document as read_document
from horae.face.time_parser import read_time
from horae.model import CatchUp, Overlap
from horae.spec import ClockChange, Dialect, Fold, Gap, Spec
from horae.spec.duration import milliseconds

SPEC_EXAMPLE = '{"crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin"}'
CALENDAR_EXAMPLE = '{"dates": ["2026-12-25"]}'


TIMES = ("crons", "dialect", "calendars", "intervals", "rrules", "times")
"""The parts of a spec that name times."""
Texts = list[str] | None


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """The options that name times."""

    crons: Annotated[Texts, option("--cron", "EXPR", "A cron expression. Repeatable.", WHEN)] = None
    every: Annotated[Texts, option("--every", "DURATION", "An interval, such as 90m, or 90m/15m with an offset of 15m. Repeatable.", WHEN)] = None  # fmt: skip
    at: Annotated[Texts, option("--at", "TIME", "A single time, in the zone of --tz unless it has an offset. Repeatable.", WHEN)] = None  # fmt: skip
    spec: Annotated[str | None, option("--spec", "FILE|-", "A spec as JSON, instead of --cron, --every and --at; - is standard input.", WHEN)] = None  # fmt: skip
    timezone: Annotated[str | None, option("--tz", "ZONE", "The time zone, such as Europe/Berlin.", WHEN)] = None  # fmt: skip
    dialect: Annotated[Dialect | None, option("--dialect", None, "The cron dialect.  \\[default: unix]", WHEN)] = None  # fmt: skip
    gap: Annotated[Gap | None, option("--gap", None, "A time that a clock change skips: leave it out, or run right after the change.  \\[default: skip]", WHEN)] = None  # fmt: skip
    fold: Annotated[Fold | None, option("--fold", None, "A time that a clock change repeats: run both times, or only once.  \\[default: both]", WHEN)] = None  # fmt: skip
    clock_change: Annotated[ClockChange | None, option("--clock-change", None, "literal follows --gap and --fold; debian does what Debian's cron does.  \\[default: literal]", WHEN)] = None  # fmt: skip

    @property
    def names_times(self) -> bool:
        """Whether the options name times, not only how to read them."""
        return bool(self.crons or self.every or self.at) or self.spec is not None

    @property
    def details(self) -> dict[str, Any]:
        """The options that say how to read times, such as the zone."""
        fixed = Times.__struct_fields__[:4]
        return given(**{name: getattr(self, name) for name in self.__struct_fields__ if name not in fixed})

    def document(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The spec that the options name; details alone change ``base``."""
        if self.spec is not None:
            if self.crons or self.every or self.at:
                reason = "excludes expressions, --every and --at"
                raise InvalidInputError("--spec", reason, hint="give one or the other")
            base = read_document(self.spec, "--spec", SPEC_EXAMPLE)
        document = dict(base or {})
        if self.crons or self.every or self.at:
            document |= {
                "crons": self.crons or [], "intervals": [_interval(each) for each in self.every or ()], "times": self._times(document),
            }  # fmt: skip
        document |= self.details
        for expression in self.crons or ():  # checked here to point at the wrong characters
            Spec.cron(expression, timezone=self.timezone, dialect=self.dialect or "unix")
        return {key: value for key, value in document.items() if value != []}

    def _times(self, base: Mapping[str, Any]) -> list[str]:
        zone, now = self.timezone or base.get("timezone") or "UTC", SystemClock().now()
        return [read_time(each, "--at", zone, now).isoformat() for each in self.at or ()]


class When(Times, frozen=True, kw_only=True):
    """The options for the times of a schedule."""

    jitter: Annotated[str | None, option("--jitter", "DURATION", "Spread starts over this long, such as 30s.", WHEN)] = None  # fmt: skip


def _interval(text: str) -> dict[str, str]:
    """``90m``, or ``90m/15m`` with a phase."""
    every, _, phase = text.partition("/")
    milliseconds(every, "--every")
    milliseconds(phase or None, "the phase of --every")
    return {"every": every, "phase": phase} if phase else {"every": every}


class What(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the action of a schedule."""

    action: Annotated[str | None, option("--action", "NAME", "A registered action.", WHAT)] = None
    http: Annotated[str | None, option("--http", "URL", "Send an HTTP request to this address.", WHAT)] = None
    method: Annotated[str | None, option("--method", "METHOD", "The method of the request.  \\[default: POST]", WHAT)] = None  # fmt: skip
    headers: Annotated[Texts, option("--header", '"NAME: VALUE"', "A header of the request; stored encrypted, never shown. Repeatable.", WHAT)] = None  # fmt: skip
    command: Annotated[str | None, option("--command", "NAME", "Run a command that the operator configured.", WHAT)] = None  # fmt: skip
    input: Input = None

    def document(self) -> dict[str, Any] | None:
        """The action that the options name, if any."""
        named = [each for each in (self.action, self.http, self.command) if each is not None]
        if len(named) > 1:
            raise InvalidInputError("--action, --http and --command", "exclude each other", hint="give one")
        if self.http is None and (self.method or self.headers):
            raise InvalidInputError("--method and --header", "need --http", hint="add --http URL")
        if not named:
            if self.input is not None:
                raise InvalidInputError(
                    "--input", "needs an action", hint="add --action NAME, --http URL or --command NAME"
                )
            return None
        document: dict[str, Any] = {"name": self.action}
        if self.command is not None:
            document = {"kind": "command", "name": self.command}
        if self.http is not None:
            headers = dict(_header(each) for each in self.headers or ())
            request = {"url": self.http, "method": self.method and self.method.upper(), "headers": headers}
            document = {"kind": "http", "options": {name: value for name, value in request.items() if value}}
        if self.input is not None:
            document["input"] = read_json(self.input, "--input")
        return document


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidInputError("--header", "has no name", hint='such as --header "X-Team: reports"')
    return name.strip(), value.strip()


def read_json(text: str, option: str) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of an option, or with ``@`` of the file that it names."""
    content = contents(text[1:], option) if text.startswith("@") else text.encode()
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            option, f"is no JSON: {error}", hint="""such as '{"rows": 10}', '"text"' or @file.json"""
        ) from None


class How(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the policies of a schedule, and for fields that have the option's name."""

    overlap: OverlapChoice = None
    catch_up: Annotated[CatchUp | None, option("--catch-up", None, "Which missed slots to run late.", HOW)] = None  # fmt: skip
    retries: Annotated[int | None, option("--retries", "N", "How many times to retry a failed run.", HOW, min=0)] = None  # fmt: skip
    timeout: Annotated[
        str | None, option("--timeout", "DURATION", "The longest that one attempt may take.", HOW)
    ] = None

    description: Annotated[str | None, option("--description", "TEXT", "What the schedule is for.", HOW)] = None  # fmt: skip
    tags: Annotated[Texts, option("--tag", "TAG", "A tag to find the schedule by. Repeatable.")] = None  # fmt: skip
    managed_by: Annotated[str | None, option("--managed-by", "NAME", "The program or file that defines the schedule.")] = None  # fmt: skip

    @property
    def policies(self) -> dict[str, Any]:
        """The policies that the options name."""
        return given(
            overlap=self.overlap, catch_up=self.catch_up and {"mode": self.catch_up},
            retry=None if self.retries is None else {"attempts": self.retries + 1},
            timeouts=None if self.timeout is None else {"run": self.timeout},
        )  # fmt: skip

    @property
    def fields(self) -> dict[str, Any]:
        """The given fields of the schedule, without policies."""
        named = {"description": self.description, "tags": self.tags, "managed_by": self.managed_by}
        return {name: value for name, value in named.items() if value not in (None, [])}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """``old`` with the values of ``new``, merged at every level."""
    both = {name for name in new if isinstance(new[name], dict) and isinstance(old.get(name), dict)}
    return {**old, **new, **{name: _merged(old[name], new[name]) for name in both}}


def given(**options: object) -> dict[str, Any]:
    """The options that are not ``None``."""
    return {name: value for name, value in options.items() if value is not None}


def start_fields(overlap: Overlap | None, text: str | None, note: str | None) -> dict[str, Any]:
    """The fields of a trigger, rerun or backfill."""
    content = {} if text is None else {"input": read_json(text, "--input")}
    return given(overlap=overlap, note=note) | content


def schedule_fields(when: When, what: What, how: How, base: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a schedule that the options name; ``base`` has those of a file."""
    fields: dict[str, Any] = {}
    if when.names_times:
        fields["spec"] = when.document()
    elif when.details:
        present = base.get("spec")
        fields["spec"] = when.document(present if isinstance(present, dict) else {"crons": [present]})
    if (document := what.document()) is not None:
        fields["action"] = document
    if policies := how.policies:
        fields["policies"] = _merged(base.get("policies") or {}, policies)
    return fields | how.fields

"""What options say, as the API takes it: specs, actions, policies. Pure, but for the files that options name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from horae.errors import InvalidInputError, InvalidSpecError
from horae.face.cli.files import contents, decoded
from horae.spec import Spec
from horae.spec.elements import parse_time

SPEC_EXAMPLE = '{"crons": ["0 9 * * 1-5"], "timezone": "Europe/Berlin"}'
SCHEDULE_EXAMPLE = '{"id": "report", "spec": {"crons": ["0 9 * * 1-5"]}, "action": "report"}'
CALENDAR_EXAMPLE = '{"dates": ["2026-12-25"]}'


class When(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say of the times."""

    crons: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    timezone: str | None = None
    jitter: str | None = None
    spec: str | None = None

    @property
    def names_times(self) -> bool:
        """Whether they say when, and not only in which zone or with what jitter."""
        return bool(self.crons or self.every or self.at or self.spec)

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
                "crons": list(self.crons), "intervals": [_interval(each) for each in self.every], "times": list(self.at),
            }  # fmt: skip
        named = {"timezone": self.timezone, "jitter": self.jitter}
        document |= {key: value for key, value in named.items() if value is not None}
        for expression in self.crons:  # here, because here its wrong characters can be pointed at
            Spec.cron(expression, timezone=self.timezone)
        return {key: value for key, value in document.items() if value != []}


def when_said(
    crons: list[str] | None,
    every: list[str] | None,
    at: list[str] | None,
    timezone: str | None,
    jitter: str | None,
    spec: str | None,
) -> When:
    """What options say of the times, as typer read them."""
    return When(
        crons=tuple(crons or ()), every=tuple(every or ()), at=tuple(at or ()), timezone=timezone, jitter=jitter,
        spec=spec,
    )  # fmt: skip


def _interval(text: str) -> dict[str, str]:
    """``90m``, or ``90m/15m`` with a phase."""
    every, _, phase = text.partition("/")
    return {"every": every, "phase": phase} if phase else {"every": every}


class What(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say of the action."""

    action: str | None = None
    http: str | None = None
    method: str | None = None
    headers: tuple[str, ...] = ()
    command: str | None = None
    input: str | None = None

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
        name = self.action if self.http is None else "http"
        document: dict[str, Any] = {"name": name if self.command is None else f"command:{self.command}"}
        if self.input is not None:
            document["input"] = any_json(self.input, "--input")
        if self.http is not None:
            document["http"] = {"url": self.http}
            if self.method:
                document["http"]["method"] = self.method.upper()
            if self.headers:
                document["http"]["headers"] = dict(_header(each) for each in self.headers)
        return document


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidInputError("--header", "has no name", hint='such as --header "X-Team: reports"')
    return name.strip(), value.strip()


def any_json(text: str, option: str) -> Any:  # noqa: ANN401 - any JSON
    """JSON that stands there, or in the file after an ``@``."""
    content = contents(text[1:], option) if text.startswith("@") else text.encode()
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            option, f"is no JSON: {error}", hint="""such as '{"rows": 10}', '"text"' or @file.json"""
        ) from None


def moment(text: str, option: str) -> str:
    """A time that means one instant, or a sentence on what is missing."""
    try:
        read = parse_time(text, option)
    except InvalidSpecError as error:
        raise InvalidInputError(
            option, f'is "{text}", which is no time', hint=error.hint or "such as 2026-03-08T07:30:00Z"
        ) from None
    if read.tzinfo is None:
        shown = read.isoformat()
        raise InvalidInputError(
            option, f'is "{text}", which has no offset, and so is another moment in each time zone',
            hint=f"{shown}Z is in UTC, {shown}+01:00 an hour ahead of it",
        )  # fmt: skip
    return read.isoformat()


def policies(overlap: str | None, catch_up: str | None) -> dict[str, Any]:
    """The policies that options name."""
    named: dict[str, Any] = {} if overlap is None else {"overlap": overlap}
    return named if catch_up is None else named | {"catch_up": {"mode": catch_up}}

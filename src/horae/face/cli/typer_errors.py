"""Typer's usage errors as errors of ours: one sentence and a hint."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from horae.errors import InvalidInputError, did_you_mean

Match = re.Match[str]
Worded = Callable[[Match], tuple[str, str, str | None]]
_NO_COMMAND = re.compile(r"No such command '(.*?)'.*")
_SYNONYMS = {
    "show": ("describe",), "describe": ("show",), "get": ("describe", "show"), "info": ("describe", "show"), "ls": ("list",),
    "rm": ("delete",), "remove": ("delete",), "add": ("create",), "new": ("create",), "edit": ("update",), "run": ("trigger",),
}  # fmt: skip
"""Commands as other tools call them, and what they are called here, in the group that has one of them."""
_NAMES = re.compile(r"--?[\w-]+|'[^']*'")


def is_usage_error(error: Exception) -> bool:
    """Whether an error is typer's; the class depends on its version."""
    return hasattr(error, "format_message")


def is_request_for_help(error: Exception) -> bool:
    """Whether a command that needs arguments got none, so that its help is shown."""
    return type(error).__name__ == "NoArgsIsHelpError"


def usage_error(error: Exception) -> InvalidInputError:
    """A usage error in our words, with a hint."""
    context = getattr(error, "ctx", None)
    place = f"see {context.command_path} --help" if context is not None else "see horae --help"
    if is_request_for_help(error):
        return InvalidInputError("the command", "is incomplete", hint=place)
    text: str = error.format_message()  # type: ignore[attr-defined]
    text = " ".join(text.split())
    if (match := _NO_COMMAND.fullmatch(text)) and (near := _by_synonym(match[1], context)):
        return InvalidInputError(f'"{match[1]}"', "is no command", hint=f"did you mean {near}?")
    for pattern, worded in _PATTERNS:
        if match := pattern.fullmatch(text):
            subject, reason, hint = worded(match)
            return InvalidInputError(subject, reason, hint=hint or place)
    return InvalidInputError("the command", f"cannot be read: {text}", hint=place)


def _by_synonym(name: str, context: Any) -> str | None:  # noqa: ANN401 - typer's own, which differs between versions
    """The command of a group that another command-line tool calls by this name."""
    if context is None:
        return None
    known = context.command.list_commands(context)
    return next((each for each in _SYNONYMS.get(name, ()) if each in known), None)


def _wrong_value(match: Match) -> tuple[str, str, str | None]:
    return _option(match[1]), _value_fault(match[2]), None


def _not_one_of(match: Match) -> tuple[str, str, str | None]:
    choices = re.findall(r"'([^']*)'", match[3])
    reason = f'is "{match[2]}", and must be one of {", ".join(choices)}'
    return _option(match[1]), reason, did_you_mean(match[2], choices)


def _unknown_option(match: Match) -> tuple[str, str, str | None]:
    near = did_you_mean(match[1].lstrip("-"), [each.lstrip("-") for each in _quoted(match[2])])
    hint = near and near.replace("did you mean ", "did you mean --")
    return "the command", f"has no option {match[1]}", hint


def _unknown_command(match: Match) -> tuple[str, str, str | None]:
    names = _quoted(match[2])
    return f'"{match[1]}"', "is no command", f"did you mean {' or '.join(names)}?" if names else None


def _saying(reason: str) -> Worded:
    return lambda match: (match[1], reason, None)


def _too_many(match: Match) -> tuple[str, str, str | None]:
    hint = "quote arguments that contain spaces, such as cron expressions; a flag takes no value"
    return f'"{match[1]}"', "is more than the command takes", hint


def _value_fault(text: str) -> str:
    if "valid integer" in text or "valid int" in text:
        return "must be a whole number"
    if range_ := re.match(r"(-?\d+) is not in the range (?:(-?\d+)<=)?x(?:>=(-?\d+))?(?:<=(-?\d+))?", text):
        value, least, most = int(range_[1]), range_[2] or range_[3], range_[4]
        return f"must be at least {least}" if least and value < int(least) else f"must be at most {most}"
    return f"cannot be read: {text.removeprefix('Value error, ')}"


def _option(text: str) -> str:
    """``'--limit' / '-n'`` as ``--limit``."""
    return _quoted(text)[0] if _quoted(text) else text


def _quoted(text: str | None) -> list[str]:
    return [each.strip("'") for each in _NAMES.findall(text or "")]


_PATTERNS: list[tuple[re.Pattern[str], Worded]] = [
    (re.compile(r"Invalid value for (.+?): (?:Value error, )?'(.*?)' is not one of (.*?)\.?"), _not_one_of),
    (re.compile(r"Invalid value for (.+?): (.*)"), _wrong_value),
    (re.compile(r"No such option:? '?(-[^\s']*)'?\.?(?: (.*))?"), _unknown_option),
    (re.compile(r"No such command '(.*?)'\.?(?: (.*))?"), _unknown_command),
    (re.compile(r"Missing (?:argument|option|parameter)[: ]*'?([^'.]+)'?\.?.*"), _saying("is missing")),
    (re.compile(r"Option '(.+?)' requires (?:an argument|\d+ arguments)\.?"), _saying("needs a value")),
    (re.compile(r"Option '(.+?)' does not take a value\.?"), _saying("takes no value")),
    (re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)"), _too_many),
]

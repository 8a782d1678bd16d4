"""The operator's rules for who may use which actions: patterns of addresses, each with owners and scopes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from horae.config import Config
from horae.errors import ActionNotAllowedError, ConfigError
from horae.model import OPERATOR, Denial, Reason

EVERY_CALLER = "*"
SCOPE = "scope:"
SETTING = "HORAE_ACTION_PERMISSIONS"


class Permissions(msgspec.Struct, frozen=True):
    """The rules: which callers may use the actions that match a pattern. Every caller may use an action that matches none.

    A pattern is an address, or the beginning of one and ``*``; the longest that matches decides. Operators may use every action, and
    schedules without an owner are theirs.
    """

    rules: Mapping[str, tuple[str, ...]] = {}

    def rule_for(self, address: str) -> str | None:
        """The pattern that decides about an action; ``None`` if none matches."""
        if address in self.rules:
            return address
        fitting = [each for each in self.rules if each.endswith("*") and address.startswith(each[:-1])]
        return max(fitting, key=len, default=None)

    def permitted_by(self, address: str, owner: str, scopes: Collection[str]) -> str | None:
        """The scope that permits an action; empty if the owner needs none, ``None`` if the action is not permitted."""
        if not owner or (rule := self.rule_for(address)) is None:
            return ""
        named = self.rules[rule]
        if EVERY_CALLER in named or owner in named:
            return ""
        if OPERATOR in scopes:
            return OPERATOR
        return next((each for each in sorted(scopes) if f"{SCOPE}{each}" in named), None)

    def check(self, address: str, owner: str, scopes: Collection[str]) -> str:
        """Like :meth:`permitted_by`, but raise an error if the action is not permitted."""
        scope = self.permitted_by(address, owner, scopes)
        if scope is None:
            raise ActionNotAllowedError(address, owner)
        return scope

    def denial(self, address: str, owner: str, permitted_by: str) -> Denial | None:
        """Why a stored action may no longer run; ``permitted_by`` is the scope that permitted storing it."""
        if not self.rules or self.permitted_by(address, owner, {permitted_by}) is not None:
            return None
        return Denial(Reason.NOT_ALLOWED, ActionNotAllowedError(address, owner).message)

    def sentences(self) -> Sequence[str]:
        """The rules in words."""
        return [f"{pattern}: {_in_words(named)}" for pattern, named in sorted(self.rules.items())]


def _in_words(named: Sequence[str]) -> str:
    if EVERY_CALLER in named:
        return "every caller"
    owners = [f'"{each}"' for each in named if not each.startswith(SCOPE)]
    scopes = [f"the scope {each.removeprefix(SCOPE)}" for each in named if each.startswith(SCOPE)]
    return ", ".join([*owners, *scopes, "operators" if owners or scopes else "only operators"])


def read_permissions(config: Config) -> Permissions:
    """The rules of the settings."""
    given = config.action_permissions
    if not given:
        return Permissions()
    try:
        text = given.encode() if given.lstrip().startswith("{") else Path(given).read_bytes()
        rules = msgspec.json.decode(text, type=dict[str, tuple[str, ...]])
    except OSError as error:
        raise ConfigError(SETTING, given, f"cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        reason = f'must be a JSON object from actions to lists of owners, such as {{"command:*": ["ada"]}}: {error}'
        raise ConfigError(SETTING, given, reason) from None
    for pattern, named in rules.items():
        if not pattern or "*" in pattern[:-1] or not all(named):
            reason = f'has the rule "{pattern}", which is neither an address nor the beginning of one and *, or names an empty owner'
            raise ConfigError(SETTING, given, reason)
    return Permissions(rules)

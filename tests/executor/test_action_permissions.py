"""Who may use which actions: the rules of the operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from horae import Config
from horae.errors import ActionNotAllowedError, ConfigError
from horae.executor.action_permissions import Permissions, read_permissions

RULES = Permissions(
    {"command:*": ("scope:ops",), "command:backup": ("ada", "bob"), "command:b*": (), "http": ("*",)}
)


@pytest.mark.parametrize(
    ("address", "owner", "scopes", "expected"),
    [
        ("report", "carol", set(), ""),
        ("http", "carol", set(), ""),
        ("command:backup", "ada", set(), ""),
        ("command:backup", "carol", {"ops"}, None),
        ("command:backup", "carol", {"admin"}, "admin"),
        ("command:backup", "", set(), ""),
        ("command:boot", "ada", {"ops"}, None),
        ("command:clean", "ada", set(), None),
        ("command:clean", "ada", {"read", "ops"}, "ops"),
        ("command:clean", "scope:ops", set(), None),
        ("commander", "ada", set(), ""),
    ],
)
def test_the_longest_pattern_decides(address: str, owner: str, scopes: set[str], expected: str | None):
    owner = "dora" if owner == "scope:ops" else owner
    assert RULES.permitted_by(address, owner, scopes) == expected
    if expected is None:
        with pytest.raises(ActionNotAllowedError, match=f'"{owner}" may not use the action "{address}"'):
            RULES.check(address, owner, scopes)
        assert RULES.denial(address, owner, "") is not None
    else:
        assert RULES.denial(address, owner, expected) is None


def test_what_no_rule_names_is_open_to_every_caller(tmp_path: Path):
    assert read_permissions(Config()) == Permissions()
    guarded = Config(jwt_secret="x" * 32)
    assert read_permissions(guarded).permitted_by("command:x", "ada", set()) == ""
    given = Config(jwt_secret="x" * 32, action_permissions='{"command:*": []}')
    assert read_permissions(given).permitted_by("command:x", "ada", {"service"}) is None
    assert read_permissions(given).permitted_by("http", "ada", set()) == ""
    file = tmp_path / "permissions.json"
    file.write_text('{"command:*": [], "http": ["ada"]}')
    found = read_permissions(Config(jwt_secret="x" * 32, action_permissions=str(file)))
    assert found.sentences() == ["command:*: only operators", 'http: "ada", operators']


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("{", "JSON"),
        ('{"a": "ada"}', "lists of owners"),
        ('{"a*b": []}', "nor the beginning"),
        ('{"a": [""]}', "empty owner"),
        ("/nowhere.json", "No such file"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(given: str, reason: str):
    with pytest.raises(ConfigError, match=reason):
        read_permissions(Config(action_permissions=given))

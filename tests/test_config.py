"""The settings: their defaults, their names in the environment, what they may be, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae import App, Config
from horae.config import setting_name
from horae.errors import ConfigError
from horae.model import CatchUp, Overlap
from tests.support.cases import each_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
FIELDS = msgspec.structs.fields(Config)


@pytest.mark.contract("CRON-15", "SCHD-32")
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("tick_ms", 1000),
        ("lookahead_ms", 60_000),
        ("max_catchup_per_tick", 100),
        ("default_overlap_policy", "skip"),
        ("default_catchup_policy", "none"),
        ("default_jitter_ms", 0),
        ("max_buffer_size", 1000),
        ("backfills_per_iteration", 10),
    ],
)
def test_the_defaults_are_those_of_the_contracts(name: str, default: object):
    assert getattr(Config(), name) == default
    assert getattr(Config.from_environment({}), name) == default


@pytest.mark.contract("CRON-15")
def test_the_environment_names_each_setting():
    environment = {
        "HORAE_TICK_MS": "250",
        "HORAE_LOOKAHEAD_MS": "0",
        "HORAE_MAX_CATCHUP_PER_TICK": "7",
        "HORAE_DEFAULT_OVERLAP_POLICY": "buffer_all",
        "HORAE_DEFAULT_CATCHUP_POLICY": "spread",
        "HORAE_DEFAULT_JITTER_MS": "1500",
        "HORAE_NODE_NAME": "north",
        "HORAE_NO_SUCH_SETTING": "ignored",
        "TICK_MS": "1",
    }
    assert Config.from_environment(environment) == Config(
        tick_ms=250,
        lookahead_ms=0,
        max_catchup_per_tick=7,
        default_overlap_policy=Overlap.BUFFER_ALL,
        default_catchup_policy=CatchUp.SPREAD,
        default_jitter_ms=1500,
        node_name="north",
    )


@pytest.mark.contract("CRON-15")
@pytest.mark.parametrize("alias", ["queue", "allow", "forbid", "replace"])
def test_the_environment_takes_the_words_of_other_schedulers(alias: str):
    config = Config.from_environment({"HORAE_DEFAULT_OVERLAP_POLICY": alias})
    assert config.default_overlap_policy is Overlap(alias)


def test_the_process_environment_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HORAE_PORT")
    monkeypatch.setenv("HORAE_CONCURRENCY", "3")
    assert Config.from_environment().concurrency == 3


@pytest.mark.contract("CRON-19")
@each_of(
    ("name", "value"),
    [(field.name, -1) for field in FIELDS if field.type is int]
    + [
        ("tick_ms", 0),
        ("hung_ms", 0),
        ("concurrency", 0),
        ("max_buffer_size", 0),
        ("lookahead_ms", 3_600_001),
    ],
)
def test_a_setting_that_cannot_be_fails_at_the_start(name: str, value: int):
    changed: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError) as error:
        Config(**changed)
    assert error.value.details["setting"] == setting_name(name)
    with pytest.raises(ConfigError, match=setting_name(name)):
        Config.from_environment({setting_name(name): str(value)})


@pytest.mark.contract("CRON-19")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HORAE_TICK_MS", "soon"),
        ("HORAE_TICK_MS", "1.5"),
        ("HORAE_TICK_MS", ""),
        ("HORAE_DEFAULT_OVERLAP_POLICY", "sometimes"),
        ("HORAE_DEFAULT_CATCHUP_POLICY", "never"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, text: str):
    with pytest.raises(ConfigError) as error:
        Config.from_environment({name: text})
    assert error.value.details["setting"] == name
    assert name in error.value.message


@pytest.mark.contract("CRON-19")
def test_the_bounds_themselves_are_taken():
    config = Config(lookahead_ms=3_600_000, drain_ms=0, default_jitter_ms=0)
    assert config.lookahead_ms == 3_600_000


def test_settings_reach_the_limits_of_a_decision():
    config = Config(max_catchup_per_tick=1, max_buffer_size=2, backfills_per_iteration=3, max_crashes=4)
    limits = App(":memory:", config=config).config.limits
    assert msgspec.structs.astuple(limits) == (1, 2, 3, 4)


def test_a_config_is_a_value():
    assert Config() == Config()
    with pytest.raises(AttributeError):
        Config().tick_ms = 5  # type: ignore[misc]


def rows() -> dict[str, str]:
    """The settings that the page lists, with their defaults."""
    found = re.findall(r"^\| `(HORAE_\w+)` \| .+? \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: default.strip("` ") for name, default in found}


@pytest.mark.contract("CRON-15")
@each_of("field", FIELDS)
def test_the_page_lists_each_setting_with_its_default(field: msgspec.structs.FieldInfo):
    default = field.default
    shown = ",".join(default) if isinstance(default, tuple) else "" if default is None else str(default)
    assert rows()[setting_name(field.name)] == (shown.lower() if isinstance(default, bool) else shown)


def test_the_page_lists_nothing_else():
    assert set(rows()) == {setting_name(field.name) for field in FIELDS}


def test_options_go_before_the_environment_which_is_not_read_for_them():
    found = Config.from_environment({"HORAE_PORT": "many", "HORAE_HOST": "::1"}, {"port": 8421})
    assert (found.port, found.host) == (8421, "::1")
    with pytest.raises(ConfigError, match="HORAE_PORT must be at most 65535, and it is '70000'"):
        Config.from_environment({"HORAE_PORT": "70000"})
    with pytest.raises(ConfigError) as wrong:
        Config.from_environment({"HORAE_LOG_LEVEL": "loud"})
    reason = "must be one of debug, info, warning, error"
    assert wrong.value.message == f"The setting HORAE_LOG_LEVEL {reason}, and it is 'loud'"
    assert (
        wrong.value.given_by({"HORAE_LOG_LEVEL": "--level"}).message == f"--level {reason}, and it is 'loud'"
    )

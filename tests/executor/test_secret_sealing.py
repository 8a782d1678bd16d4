# ruff: noqa: S105 - these passwords guard nothing
"""What is secret of an action's options is stored encrypted, never shown, and opened only with the key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from horae import Config
from horae.errors import InvalidInputError, NotStartedError
from horae.executor.action_registry import Executors
from horae.executor.function_executor import FunctionExecutor
from horae.executor.http_executor import HttpExecutor
from horae.executor.secret_sealing import redact
from horae.model import Action
from tests.support.process import printed_by

pytestmark = pytest.mark.contract("SCHD-17")

REQUEST: dict[str, Any] = {
    "url": "https://example.com/hook", "headers": {"Authorization": "Bearer hunter2", "X-Empty": ""}, "secret": "whsec",
}  # fmt: skip
PLAIN: dict[str, Any] = {"url": "https://example.com"}


def sealing(key: str) -> Executors:
    executors = Executors(FunctionExecutor(), key)
    executors.use(HttpExecutor(Config(), int))
    return executors


def http(options: dict[str, Any]) -> Action:
    return Action(kind="http", options=options)


def seal(options: dict[str, Any], stored: Action | None = None, key: str = "k") -> Action:
    return sealing(key).check(http(options), stored)


def opened(action: Action, key: str = "k") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(sealing(key).open_options(action))
    return {name: found[name] for name in REQUEST}


@pytest.mark.parametrize("key", ["k", "a long text, ü" * 50])
def test_what_is_sealed_is_opened_again_and_cannot_be_read(key: str):
    sealed = seal(REQUEST, key=key)
    text = msgspec.json.encode(sealed).decode()
    assert "hunter2" not in text
    assert "whsec" not in text
    assert set(sealed.options["headers"]) == set(REQUEST["headers"])
    assert opened(sealed, key) == REQUEST


def test_it_is_shown_without_what_is_secret():
    sealed = seal(REQUEST)
    hidden = redact(sealed.options)
    assert hidden["headers"] == {"Authorization": "***", "X-Empty": ""}
    assert hidden["secret"] == "***"
    assert hidden["url"] == REQUEST["url"]
    for shown in (repr(sealed), repr(sealing("k").open_options(sealed))):
        assert not any(word in shown for word in ("hunter2", "whsec", "sealed"))
    assert redact(PLAIN) == PLAIN
    assert redact({"deep": [{"in": sealed.options["secret"]}]}) == {"deep": [{"in": "***"}]}


def test_another_key_opens_nothing_and_says_so():
    sealed = seal(REQUEST)
    for other in ("K", ""):
        with pytest.raises(
            NotStartedError,
            match=r"action.options.headers.Authorization cannot be decrypted: HORAE_SECRET_KEY",
        ):
            opened(sealed, other)
    for spoiled in (sealed.options["secret"][:-4] + "AAAA", "not encrypted"):
        with pytest.raises(NotStartedError, match=r"action.options.secret cannot be decrypted"):
            opened(http(PLAIN | {"secret": spoiled}))


def test_without_a_key_nothing_secret_is_taken():
    for request in (REQUEST | {"secret": ""}, REQUEST | {"headers": {}}):
        with pytest.raises(InvalidInputError) as refused:
            seal(request, key="")
        assert "HORAE_SECRET_KEY" in (refused.value.hint or "")
        assert "hunter2" not in str(refused.value)
    assert opened(seal(PLAIN, key=""), "")["url"] == PLAIN["url"]


def test_stars_stand_for_what_is_stored():
    edited = {
        "url": "https://example.com/other",
        "headers": {"authorization": "***", "X-New": "new"},
        "secret": "***",
    }
    found = opened(seal(edited, seal(REQUEST)))
    assert found["headers"] == {"authorization": "Bearer hunter2", "X-New": "new"}
    assert found["secret"] == "whsec"


@pytest.mark.parametrize("stored", [None, http(PLAIN), Action(name="function")])
@pytest.mark.parametrize("given", [{"headers": {"X": "***"}}, {"secret": "***"}])
def test_stars_that_stand_for_nothing_are_refused(stored: Action | None, given: dict[str, Any]):
    with pytest.raises(InvalidInputError, match="no value is stored"):
        seal(PLAIN | given, stored)


@pytest.mark.parametrize("url", ["https://evil.example/", "http://example.com/", "https://example.com:444/"])
def test_who_sends_a_request_elsewhere_must_know_its_secrets(url: str):
    sealed = seal(REQUEST)
    for request in (redact(sealed.options) | {"url": url}, {"url": url, "secret": "***"}):
        with pytest.raises(InvalidInputError, match="goes to another host now"):
            seal(request, sealed)


def test_what_looks_sealed_is_sealed_again():
    secret = seal(REQUEST).options["secret"]
    assert opened(seal(REQUEST | {"secret": secret}))["secret"] == secret


def test_without_cryptography_it_says_what_to_install():
    code = """
import sys
sys.modules["cryptography.fernet"] = None
from horae.executor.secret_sealing import Sealer
try:
    Sealer("k").seal("s", "secret")
except Exception as error:
    print(type(error).__name__, error.hint)
"""
    assert printed_by(code).strip() == "MissingExtraError pip install 'horae[service]'"

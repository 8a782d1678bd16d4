# ruff: noqa: S105, S106 - these passwords are nobody's
"""What is secret of a request is stored encrypted, never shown, and opened only with the key."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from horae.errors import InvalidInputError, NotStartedError
from horae.executor.sealing import Sealer
from horae.model import HttpRequest

pytestmark = pytest.mark.contract("SCHD-17")

REQUEST = HttpRequest(
    url="https://example.com/hook", headers={"Authorization": "Bearer hunter2", "X-Ü": ""}, secret="whsec"
)
_replace = msgspec.structs.replace


@pytest.mark.parametrize("key", ["k", "a long text, ü" * 50])
def test_what_is_sealed_is_opened_again_and_cannot_be_read(key: str):
    sealed = Sealer(key).seal(REQUEST)
    text = msgspec.json.encode(sealed).decode()
    assert "hunter2" not in text
    assert "whsec" not in text
    assert set(sealed.headers) == set(REQUEST.headers)
    assert Sealer(key).open(sealed) == REQUEST


def test_it_is_shown_without_what_is_secret():
    for request in (REQUEST, Sealer("k").seal(REQUEST)):
        hidden = Sealer.hide(request)
        assert hidden.headers == {"Authorization": "***", "X-Ü": "***"}
        assert hidden.secret == "***"
        assert "hunter2" not in repr(request)
        assert "whsec" not in repr(request)
        assert "sealed" not in repr(request)
    plain = HttpRequest(url="https://example.com")
    assert Sealer.hide(plain) == plain


def test_another_key_opens_nothing_and_says_so():
    sealed = Sealer("k").seal(REQUEST)
    for other in (Sealer("K"), Sealer("")):
        with pytest.raises(
            NotStartedError, match="the header Authorization cannot be decrypted: HORAE_SECRET_KEY"
        ):
            other.open(sealed)
    spoiled = _replace(sealed, headers={}, secret=sealed.secret[:-4] + "AAAA")
    with pytest.raises(NotStartedError, match="the signing secret cannot be decrypted"):
        Sealer("k").open(spoiled)


def test_without_a_key_nothing_secret_is_taken():
    for request in (_replace(REQUEST, secret=""), _replace(REQUEST, headers={})):
        with pytest.raises(InvalidInputError) as refused:
            Sealer("").seal(request)
        assert "HORAE_SECRET_KEY" in (refused.value.hint or "")
        assert "hunter2" not in str(refused.value)
    plain = HttpRequest(url="https://example.com")
    assert Sealer("").open(Sealer("").seal(plain)) == plain


def test_stars_stand_for_what_is_stored():
    sealer = Sealer("k")
    stored = sealer.seal(REQUEST)
    edited = HttpRequest(
        url="https://example.com/other", headers={"authorization": "***", "X-New": "new"}, secret="***"
    )
    opened = sealer.open(sealer.seal(edited, stored))
    assert opened.headers == {"authorization": "Bearer hunter2", "X-New": "new"}
    assert opened.secret == "whsec"


@pytest.mark.parametrize("stored", [None, HttpRequest(url="https://example.com")])
@pytest.mark.parametrize("given", [{"headers": {"X": "***"}}, {"secret": "***"}])
def test_stars_that_stand_for_nothing_are_refused(stored: HttpRequest | None, given: dict[str, str]):
    with pytest.raises(InvalidInputError, match="there is no stored value"):
        Sealer("k").seal(HttpRequest(url="https://example.com", **given), stored)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["https://evil.example/", "http://example.com/", "https://example.com:444/"])
def test_who_sends_a_request_elsewhere_must_know_its_secrets(url: str):
    stored = Sealer("k").seal(REQUEST)
    for request in (Sealer.hide(_replace(REQUEST, url=url)), HttpRequest(url=url, secret="***")):
        with pytest.raises(InvalidInputError, match="goes elsewhere now"):
            Sealer("k").seal(request, stored)


def test_what_looks_sealed_is_sealed_again():
    request = _replace(REQUEST, secret=Sealer("k").seal(REQUEST).secret)
    assert Sealer("k").open(Sealer("k").seal(request)).secret == request.secret


def test_without_cryptography_it_says_what_to_install():
    code = """
import sys
sys.modules["cryptography.fernet"] = None
from horae.executor.sealing import Sealer
from horae.model import HttpRequest
try:
    Sealer("k").seal(HttpRequest(url="https://example.com", secret="s"))
except Exception as error:
    print(type(error).__name__, error.hint)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "MissingExtraError pip install 'horae[service]'"

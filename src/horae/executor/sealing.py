"""What is secret of a request – header values, and the secret that signs – is stored encrypted, and never shown.

The key is derived from the operator's ``HORAE_SECRET_KEY``, a text of any length, by scrypt with a fixed salt: every node that is
given the same text has the same key. Encryption is Fernet's (AES-128-CBC with HMAC-SHA256, a new IV each time).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from horae.errors import InvalidInputError, MissingExtraError, NotStartedError
from horae.model import HttpRequest

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

HIDDEN = "***"
"""What is shown instead of a secret; given back, it means the one that is stored."""
_SEALED = "sealed:"
_SALT = b"horae sealing v1"


class Sealer:
    """Encrypts what is secret of requests, and decrypts it. The key is made when it is first needed."""

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key
        self._fernet: Fernet | None = None

    def seal(self, request: HttpRequest, stored: HttpRequest | None = None) -> HttpRequest:
        """The request as it is stored. A value that is ``***`` is what the stored request has in its place."""
        kept = _Kept(request, stored)
        headers = {
            name: self._sealed(value, kept.headers.get(name.lower()), kept, f"action.http.headers.{name}")
            for name, value in request.headers.items()
        }
        secret = request.secret and self._sealed(request.secret, kept.secret, kept, "action.http.secret")
        return msgspec.structs.replace(request, headers=headers, secret=secret)

    def _sealed(self, value: str, stored: str | None, kept: _Kept, field: str) -> str:
        if value != HIDDEN:
            return _SEALED + self._key(field).encrypt(value.encode()).decode()
        if not stored:
            raise InvalidInputError(
                field, f"is {HIDDEN}, and there is no stored value that it could stand for"
            )
        if kept.elsewhere:
            raise InvalidInputError(
                field,
                f"is {HIDDEN}, and the request goes elsewhere now",
                hint="say the value again: who changes where a request goes must know what it carries",
            )
        return stored

    def open(self, request: HttpRequest) -> HttpRequest:
        """The request as it is sent."""
        return _with_secrets(request, self._opened)

    def _opened(self, value: str, field: str) -> str:
        if not value.startswith(_SEALED):
            return value
        wrong = NotStartedError(
            f"{field} cannot be decrypted: HORAE_SECRET_KEY is not the one with which it was stored"
        )
        if not self._secret_key:
            raise wrong
        key = self._key(field)
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - it came with the key

        try:
            return key.decrypt(value.removeprefix(_SEALED)).decode()
        except InvalidToken:
            raise wrong from None

    @staticmethod
    def hide(request: HttpRequest) -> HttpRequest:
        """The request as it is shown."""
        return _with_secrets(request, lambda _value, _field: HIDDEN)

    def _key(self, field: str) -> Fernet:
        if not self._secret_key:
            raise InvalidInputError(
                field,
                "cannot be stored: it is kept encrypted, and there is no key for it",
                hint="the operator sets HORAE_SECRET_KEY, to a long text that stays the same on every node",
            )
        if self._fernet is None:
            try:
                from cryptography.fernet import Fernet  # noqa: PLC0415 - only who has secrets needs it
            except ImportError:
                raise MissingExtraError("service", "cryptography") from None
            key = hashlib.scrypt(self._secret_key.encode(), salt=_SALT, n=2**14, r=8, p=1, dklen=32)
            self._fernet = Fernet(base64.urlsafe_b64encode(key))
        return self._fernet


def _with_secrets(request: HttpRequest, change: Callable[[str, str], str]) -> HttpRequest:
    headers = {name: change(value, f"the header {name}") for name, value in request.headers.items()}
    secret = request.secret and change(request.secret, "the signing secret")
    return msgspec.structs.replace(request, headers=headers, secret=secret)


class _Kept:
    """The secrets of a stored request, and whether another one that keeps them goes elsewhere."""

    def __init__(self, request: HttpRequest, stored: HttpRequest | None) -> None:
        self.headers = (
            {} if stored is None else {name.lower(): value for name, value in stored.headers.items()}
        )
        self.secret = None if stored is None else stored.secret
        self.elsewhere = stored is not None and urlsplit(request.url)[:2] != urlsplit(stored.url)[:2]

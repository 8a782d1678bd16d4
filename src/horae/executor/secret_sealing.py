"""Secrets in the options of actions are stored encrypted, and never shown.

The key is derived from the operator's ``HORAE_SECRET_KEY``, a text of any length, by scrypt with a fixed salt: every node that is
given the same text has the same key. Encryption is Fernet's (AES-128-CBC with HMAC-SHA256, a new IV each time).
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from horae.errors import InvalidInputError, NotStartedError
from horae.extras import import_extra

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

HIDDEN = "***"
"""Shown instead of a secret. In an edit it stands for the stored secret."""
_SEALED = "sealed:"
_SALT = b"horae sealing v1"


class Sealer:
    """Encrypts and decrypts secrets. The key is derived when it is first needed."""

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key

    def seal(self, value: str, field: str) -> str:
        """A secret as it is stored."""
        return _SEALED + self._key(field).encrypt(value.encode()).decode()

    def open(self, value: str, field: str) -> str:
        """A stored secret as it is used."""
        reason = f"{field} cannot be decrypted: HORAE_SECRET_KEY is not the one with which it was stored"
        wrong = NotStartedError(reason)
        if not self._secret_key or not value.startswith(_SEALED):
            raise wrong
        key = self._key(field)
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - it came with the key

        try:
            return key.decrypt(value.removeprefix(_SEALED)).decode()
        except InvalidToken:
            raise wrong from None

    def holds(self, sealed: str, value: str) -> bool:
        """Whether a stored secret has this value; false if it cannot be decrypted."""
        try:
            return self.open(sealed, "") == value
        except (NotStartedError, InvalidInputError):
            return False

    def _key(self, field: str) -> Fernet:
        if not self._secret_key:
            raise InvalidInputError(
                field,
                "cannot be stored: it is kept encrypted, and there is no key for it",
                hint="the operator sets HORAE_SECRET_KEY, to a long text that stays the same on every node",
            )
        return _derived(self._secret_key)


@lru_cache(maxsize=8)
def _derived(secret_key: str) -> Fernet:
    """The encryption key. Deriving it takes long on purpose."""
    fernet = import_extra("cryptography.fernet")
    key = hashlib.scrypt(secret_key.encode(), salt=_SALT, n=2**14, r=8, p=1, dklen=32)
    return cast("Fernet", fernet.Fernet(base64.urlsafe_b64encode(key)))


def redact(options: Any) -> Any:  # noqa: ANN401 - any JSON
    """Stored options of any kind as they are shown: every sealed text is hidden."""
    if isinstance(options, dict):
        return {name: redact(value) for name, value in options.items()}
    if isinstance(options, list):
        return [redact(value) for value in options]
    return HIDDEN if isinstance(options, str) and options.startswith(_SEALED) else options

"""Files in which an operator names what schedules may run: a JSON object of commands or requests by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from horae.errors import ConfigError, InvalidInputError

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def read_named(setting: str, path: str, kind: type[T], what: str, fault: Callable[[T], str]) -> dict[str, T]:
    """The values of a file by name; none without a file. ``fault`` says what is wrong with a value; empty if nothing is."""
    if not path:
        return {}
    try:
        named = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, kind])  # type: ignore[valid-type]
    except OSError as error:
        raise ConfigError(setting, path, f"cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        hint = f"; {error.__cause__.hint}" if isinstance(error.__cause__, InvalidInputError) else ""
        raise ConfigError(setting, path, f"must be a file of {what}s as JSON: {error}{hint}") from None
    for name, each in named.items():
        wrong = fault(each)
        if not _NAME.fullmatch(name):
            wrong = "whose name has other characters than letters, digits, dots, dashes and underscores"
        if wrong:
            raise ConfigError(setting, path, f'names a {what} "{name[:100]}" {wrong}')
    return named

"""Modules that only some parts of Horae need, and that may not be installed."""

from __future__ import annotations

import importlib
from typing import Any

from horae.errors import MissingExtraError


def import_extra(module: str, extra: str = "service") -> Any:  # noqa: ANN401 - a module
    """Import a module; if its package is not installed, the error names the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError(extra, module.partition(".")[0]) from None

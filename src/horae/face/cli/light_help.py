"""Commands whose help loads little.

Typer's help imports what renders Markdown and tracebacks, a hundred modules. Help of Horae shows neither.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from typer.core import TyperCommand, TyperGroup

NOT_SHOWN = ("rich.markdown", "rich.traceback")


class LightCommand(TyperCommand):
    """A command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own, which differ between versions
        load_help()
        super().format_help(ctx, formatter)


class LightGroup(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        load_help()
        super().format_help(ctx, formatter)


class _Stand(ModuleType):
    """Stands for a module that is imported and not used: each of its names is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def load_help() -> None:
    """Load Typer's help without what it does not show."""
    if "typer.rich_utils" not in sys.modules:
        with _standing_in(NOT_SHOWN):
            importlib.import_module("typer.rich_utils")


@contextmanager
def _standing_in(names: tuple[str, ...]) -> Iterator[None]:
    """Let modules that are not loaded yet be imported as empty ones; later imports load them."""
    stands = {name: _Stand(name) for name in names if name not in sys.modules}
    sys.modules.update(stands)
    try:
        yield
    finally:
        for name in stands:
            del sys.modules[name]

"""Access to Horae's database for executors that store work of their own in it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from horae.model import Checkpoint, Run

POSTGRESQL = "postgresql"


class Statements(Protocol):
    """A transaction that executes an executor's own statements."""

    async def execute(self, text: str, /, **values: Any) -> Sequence[Any]:  # noqa: ANN401 - what a database takes
        """Execute a statement, and return its rows; parameters are named ``:name``."""


class Database(Protocol):
    """The database of a program's schedules."""

    @property
    def dialect(self) -> str:
        """``postgresql`` or ``sqlite``."""

    def transaction(self) -> AbstractAsyncContextManager[Statements]:
        """Begin a transaction that writes."""

    def reading(self) -> AbstractAsyncContextManager[Statements]:
        """Begin a transaction that only reads."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that is being claimed, in a transaction that is not committed yet."""

    run: Run
    checkpoints: Sequence[Checkpoint] = ()
    """The checkpoints of earlier attempts of the run."""

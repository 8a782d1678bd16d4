"""The port of executors: one implementation per kind of action. To add a kind, write one and pass it to ``App.use``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from horae.executor.attempt_context import Context
from horae.executor.checkpoints import DEFAULT_BOUNDS, CheckpointBounds
from horae.executor.executor_database import Claim, Database, Statements
from horae.model import Action, Denial, Run


class Executor(ABC):
    """Runs the actions of one kind."""

    kind: ClassVar[str]
    """The kind of its actions: ``{"kind": "http", …}``."""
    options: ClassVar[type[msgspec.Struct] | None] = None
    """The type of the kind's own options, which the API describes; ``None`` if it has none."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """The options that are secret: texts, or mappings of texts. They are stored encrypted, and never shown."""

    for_nodes: ClassVar[bool] = False
    """Whether nodes of workflows may call its actions: the program or the operator must have defined them completely."""
    own_of_app: ClassVar[bool] = False
    """Whether each app has its own executor: an app that adopts another app's actions does not take this one."""
    prepares: ClassVar[bool] = False
    """Whether :meth:`prepare` writes rows in the transactions that claim attempts."""
    checkpoint_bounds: CheckpointBounds = DEFAULT_BOUNDS
    """How much its runs may save as checkpoints."""

    def actions(self) -> Collection[str]:
        """The addresses of the actions that this node can run now; a node registers them. Most kinds have one: the kind itself."""
        return (self.kind,)

    def can_run(self, run: Run) -> bool:
        """Whether this node can attempt a run. The run's input is not available yet."""
        return run.action in self.actions()

    def bind(self, database: Database) -> None:  # noqa: B027 - most kinds need no database
        """Take the database of the schedules; called when an app adds the executor."""

    def check(self, action: Action, options: Any, stored: Any) -> Any:  # noqa: ANN401, ARG002 - the kind's own type
        """Check an action before it is stored: raise ``InvalidInputError`` with the field, or return the completed options.

        ``stored`` are the options that they replace, or ``None``. A secret given as ``***`` keeps its stored value.
        """
        return options

    def admit(self, action: Action) -> Denial | None:  # noqa: ARG002
        """Why a stored action may no longer run; ``None`` admits it. Called right before each attempt: be quick."""
        return None

    async def prepare(self, claims: Sequence[Claim], transaction: Statements) -> Mapping[str, Any]:  # noqa: ARG002
        """Write what attempts need in the transaction that claims them: both become durable, or neither.

        Returns values to save for some of the runs, by run id: this attempt and later ones find them in ``context.checkpoints`` under
        the kind. If this raises, its writes are undone and the claims are prepared one by one; an attempt that cannot be prepared has
        not begun, as after ``NotStartedError``. Other claims are in the same transaction: be quick, and wait for nothing else.
        """
        return {}

    @abstractmethod
    async def run(self, context: Context) -> Any:  # noqa: ANN401 - any JSON
        """Make an attempt under its claim: return the result as JSON, or ``Accepted`` if an external worker will report.

        ``context.options`` are the options with secrets decrypted. To stop the attempt, the worker cancels this coroutine; when its
        time is up, the worker cancels it again, and then gives it up.
        """

    async def close(self) -> None:  # noqa: B027 - most kinds hold nothing open
        """Release open resources; called when the program ends."""

"""The port of executors: one implementation a file. To add a kind of action, write one and give it to ``App.use``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from horae.executor.checkpoints import DEFAULT_BOUNDS, CheckpointBounds
from horae.executor.context import Context
from horae.executor.schedule_database import Claim, Database, Statements
from horae.model import Action, Denial, Run


class Executor(ABC):
    """Runs the actions of one kind."""

    kind: ClassVar[str]
    """The kind of the actions that this runs: ``{"kind": "http", …}``."""
    options: ClassVar[type[msgspec.Struct] | None] = None
    """The type of the kind's own options, which the API describes; ``None`` if it has none."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """The options that are secret: texts, or mappings of texts. They are stored encrypted, and never shown."""

    for_nodes: ClassVar[bool] = False
    """Whether nodes of workflows may call its actions: what they do must be named whole by the program or the operator."""
    own_of_app: ClassVar[bool] = False
    """Whether each app has its own: one that adopts another app's actions does not take it."""
    prepares: ClassVar[bool] = False
    """Whether it writes rows of its own in the transactions that claim its attempts, by :meth:`prepare`."""
    checkpoint_bounds: CheckpointBounds = DEFAULT_BOUNDS
    """How much its runs may save."""

    def actions(self) -> Collection[str]:
        """The addresses of the actions that can be run here now; a node registers them. Most kinds have one: the kind itself."""
        return (self.kind,)

    def can_run(self, run: Run) -> bool:
        """Whether a run can be attempted here; its input is not read before it is."""
        return run.action in self.actions()

    def bind(self, database: Database) -> None:  # noqa: B027 - most kinds need no database
        """Learn the database of the schedules that it runs actions of; called when a program takes the executor up."""

    def check(self, action: Action, options: Any, stored: Any) -> Any:  # noqa: ANN401, ARG002 - the kind's own type
        """Check an action before it is stored: raise ``InvalidInputError`` with the field, or return its options, completed.

        ``stored`` are the options that it replaces, or ``None``. A secret given as ``***`` keeps its stored value.
        """
        return options

    def admit(self, action: Action) -> Denial | None:  # noqa: ARG002
        """Why a stored action must not run any more; ``None`` admits it. Called right before each attempt: be quick."""
        return None

    async def prepare(self, claims: Sequence[Claim], transaction: Statements) -> Mapping[str, Any]:  # noqa: ARG002
        """Write what attempts need in the transaction that claims them: both become durable, or neither.

        Returns what is to be saved for some of the runs, by their ids: ``context.checkpoints`` has it under the kind, in this attempt
        and in later ones. If it raises, what it wrote is undone, the claims are prepared one by one, and an attempt that cannot be
        prepared has not begun, as after ``NotStartedError``. Other claims are in the same transaction: be quick, and wait for nothing else.
        """
        return {}

    @abstractmethod
    async def run(self, context: Context) -> Any:  # noqa: ANN401 - any JSON
        """Make an attempt under its claim: return the result as JSON, or ``Accepted`` if an external worker will report.

        ``context.options`` are the options, secrets decrypted. To stop it, the worker cancels this coroutine; when its time is up,
        it is cancelled again, and then given up.
        """

    async def close(self) -> None:  # noqa: B027 - most kinds hold nothing open
        """Release open resources: the program ends."""

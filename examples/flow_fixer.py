"""Auto-fix: when a handler fails for a fault of its own, the next version of its flow is loaded from a folder, and the run tried again.

Who puts versions there does not matter: a person, a pipeline, a program that writes code. Two fixes are tried, then a person is asked.
Set it before flows run: ``app.flow_host.fixer = FolderFixer(Path("versions"))``.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from horae.flow_model import FlowRun
from horae.flows import Flow, MutateContext, PrepareContext, Prepared, Reservation

VERSIONS = Path(__file__).parent / "flow_versions"


class FolderFixer:
    """Answers with the next version of a flow: ``NAME_*.py`` in a folder, in the order of their names, each with a ``flow``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: set[Path] = set()

    async def fix(self, flow: Flow, run: FlowRun) -> Flow | None:
        """The first version that was not given yet; ``None`` if there is none. ``run.error`` says what went wrong."""
        for file in sorted(self._folder.glob(f"{flow.name}_*.py")):
            if file not in self._loaded:
                self._loaded.add(file)
                return _load(file)
        return None


def _load(file: Path) -> Flow:
    spec = importlib.util.spec_from_file_location(f"flow_versions.{file.stem}", file)
    if spec is None or spec.loader is None:
        raise TypeError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the revision is derived from the source, which is looked up there
    spec.loader.exec_module(module)
    found = module.flow
    if not isinstance(found, Flow):
        raise TypeError(f"{file} has no flow")
    return found


booked: list[float] = []
"""Stands for the outside world."""

# The first version expects numbers. "12,50" is a fault of its own: it knows no commas.
flow = Flow("invoices")


@flow.consumer(subscribes=["mails"])
class Book:
    async def prepare(self, ctx: PrepareContext, state: None) -> Prepared[list[float]]:
        mails = await ctx.peek("mails", limit=1)
        return Prepared(
            [Reservation("mails", [each.id for each in mails])], [float(each.payload) for each in mails]
        )

    async def mutate(self, ctx: MutateContext, prepared: Prepared[list[float]]) -> Any:
        return await ctx.effect(lambda: booked.extend(prepared.data))

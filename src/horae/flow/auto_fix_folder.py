"""Auto-fix from a folder: when a handler fails for a fault of its own, the next version of its flow is loaded from the folder.

A person, a pipeline or a program that writes code may put versions there.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from horae.flow.definition import Flow
from horae.flow_model import FlowRun


class FolderFixer:
    """Returns the next version of a flow: the files ``NAME_*.py`` in a folder, in the order of their names, each with a ``flow``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: set[Path] = set()

    async def fix(self, flow: Flow, run: FlowRun) -> Flow | None:  # noqa: ARG002 - the port gives it
        """The first version that was not returned before; ``None`` if there is none. ``run.error`` says what went wrong."""
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

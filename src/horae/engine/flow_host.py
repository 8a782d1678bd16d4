"""The flows that this process hosts, and the hooks for flows that need attention."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from horae.flow.definition import Flow
from horae.flow_model import FlowRun, StoredFlow, Trouble

_log = logging.getLogger("horae.flows")


class Fixer(Protocol):
    """Repairs handlers: the port of auto-fix."""

    async def fix(self, flow: Flow, run: FlowRun) -> Flow | None:
        """Return a new version of a flow whose handler failed in a run; ``None`` if there is no fix."""


class HostedFlow(NamedTuple):
    """A flow of this process, and what is stored of it."""

    flow: Flow
    stored: StoredFlow


Attention = Callable[[StoredFlow, Trouble], None]
"""Called when a flow needs attention; it must return quickly."""


class FlowHost:
    """Hosts the flows of this process, on the database, clock and worker of its app; ``app.flow_host`` is one."""

    def __init__(self) -> None:
        self._hosted: dict[int, HostedFlow] = {}
        self.revisions: list[str] = []
        """The distinct revisions of the hosted flows."""
        self.fixer: Fixer | None = None
        self.on_attention: list[Attention] = []
        self.in_store = 0
        """How many handlers wait for the store, not for their own work."""

    @property
    def is_empty(self) -> bool:
        """Whether this process hosts no flow."""
        return not self._hosted

    def host(self, flow: Flow, stored: StoredFlow) -> None:
        """Host a flow, or another version of it."""
        self._hosted[stored.flow_id] = HostedFlow(flow, stored)
        self.revisions = sorted({each.stored.revision for each in self._hosted.values()})

    def find(self, flow_id: int, revision: str) -> HostedFlow | None:
        """A flow, if this process hosts that version of it."""
        hosted = self._hosted.get(flow_id)
        return hosted if hosted is not None and hosted.stored.revision == revision else None

    @contextmanager
    def using_store(self) -> Iterator[None]:
        """Count a handler that waits for the store."""
        self.in_store += 1
        try:
            yield
        finally:
            self.in_store -= 1

    def clear(self) -> None:
        """Stop hosting flows."""
        self._hosted.clear()
        self.revisions = []

    def tell_attention(self, stored: StoredFlow, trouble: Trouble) -> None:
        """Call the hooks: a flow needs attention."""
        _log.error(
            'flow "%s" needs attention: "%s" failed: %s', stored.name, trouble.handler, trouble.issue,
            extra={"flow": stored.name, "run": trouble.run_id, "handler": trouble.handler, "status": str(trouble.status)},
        )  # fmt: skip
        for hook in self.on_attention:
            try:
                hook(stored, trouble)
            except Exception:
                _log.exception("an on_attention hook failed")

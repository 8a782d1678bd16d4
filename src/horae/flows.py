"""Flows: handlers joined by topics of durable events, whose effects are never repeated.

Write a :class:`Flow` with producers and consumers, and deploy it with ``app.flows.deploy(flow)``. The :class:`FlowHost` of an app,
``app.flow_host``, runs what is deployed on the app's database, clock and worker.
"""

from horae.engine.flow_host import FlowHost
from horae.flow.auto_fix_folder import FolderFixer
from horae.flow.contexts import (
    MutateContext,
    NextContext,
    PrepareContext,
    ProducerContext,
    ReconcileContext,
)
from horae.flow.definition import Consumer, Flow
from horae.flow.failures import HandlerStopped, Internal, LogicError, NeedsApproval, Transient
from horae.flow.handler_values import (
    Applied,
    Event,
    Input,
    NotApplied,
    Outcome,
    Prepared,
    Reservation,
    Unknown,
)

__all__ = [
    "Applied",
    "Consumer",
    "Event",
    "Flow",
    "FlowHost",
    "FolderFixer",
    "HandlerStopped",
    "Input",
    "Internal",
    "LogicError",
    "MutateContext",
    "NeedsApproval",
    "NextContext",
    "NotApplied",
    "Outcome",
    "PrepareContext",
    "Prepared",
    "ProducerContext",
    "ReconcileContext",
    "Reservation",
    "Transient",
    "Unknown",
]

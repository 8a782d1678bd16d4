"""The limits of workflows: one frozen value, which the settings make."""

from __future__ import annotations

import msgspec


class WorkflowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How large workflows may be, and what a run of one may use. Each is a setting: ``HORAE_`` and its name in capitals."""

    workflow_bytes: int = 256 * 1024
    """Bytes of JSON of a document."""
    workflow_nodes: int = 500
    """Nodes of a workflow; it may have four times as many edges."""
    workflow_rounds: int = 10_000
    """The largest bound that a loop may have."""
    workflow_steps: int = 10_000
    """How many nodes one run may run, the rounds of loops counted."""
    workflow_concurrency: int = 100
    """How many nodes of one run run at once."""
    node_output_bytes: int = 256 * 1024
    """Bytes of JSON of the output of one node."""
    run_output_bytes: int = 8 * 1024 * 1024
    """Bytes of JSON of what all nodes of one run leave behind."""
    expression_length: int = 2000
    """Characters of an expression."""
    expression_ms: int = 1000
    """How long the evaluation of one expression may take."""


MAX_LOOP_DEPTH = 4
"""How deep loops lie within loops at most."""
EDGES_PER_NODE = 4

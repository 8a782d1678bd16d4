"""Execution requests at the executing side: whether one is new, under way, done before, or another one under a used key."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from horae.grant_model import ExecutionOutcome, ExecutionRecord, ExecutionStatus

_ordered = msgspec.json.Encoder(order="deterministic")


class New(msgspec.Struct, frozen=True):
    """It may be executed: no node has begun it, or the lease of the node that did has ended."""


class InProgress(msgspec.Struct, frozen=True):
    """It is being executed; it may be asked for again when the lease ends."""

    for_ms: int


class Stored(msgspec.Struct, frozen=True):
    """It was executed before: this is how it ended."""

    outcome: ExecutionOutcome


class Mismatch(msgspec.Struct, frozen=True):
    """Its key was used for another graph or another input."""


Verdict = New | InProgress | Stored | Mismatch


def hash_of_request(graph_id: str, given: Any) -> str:  # noqa: ANN401 - any JSON
    """What tells requests apart that have the same key: the graph and the input, whatever the order of keys in it."""
    return hashlib.sha256(_ordered.encode([graph_id, given])).hexdigest()


def judge_request(record: ExecutionRecord | None, request_hash: str, now: int) -> Verdict:
    """What a request is, by what is known under its key."""
    if record is None:
        return New()
    if record.request_hash != request_hash:
        return Mismatch()
    if record.status is ExecutionStatus.ENDED and record.outcome is not None:
        return Stored(record.outcome)
    if now < record.lease_until_ms:
        return InProgress(record.lease_until_ms - now)
    return New()

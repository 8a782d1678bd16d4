"""Classify execution requests: new, running, done before, or in conflict with another request under the same key."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from horae.grant_model import ExecutionOutcome, ExecutionRecord, ExecutionStatus

_ordered = msgspec.json.Encoder(order="deterministic")


class New(msgspec.Struct, frozen=True):
    """The request may be executed: no node has begun it, or the lease of the node that did has ended."""


class InProgress(msgspec.Struct, frozen=True):
    """The request is being executed; the caller may ask again when the lease ends."""

    for_ms: int


class Stored(msgspec.Struct, frozen=True):
    """The request was executed before; this is its outcome."""

    outcome: ExecutionOutcome


class Mismatch(msgspec.Struct, frozen=True):
    """The key of the request was used for another graph or another input."""


Verdict = New | InProgress | Stored | Mismatch


def hash_of_request(graph_id: str, given: Any) -> str:  # noqa: ANN401 - any JSON
    """A fingerprint of a request: its graph and its input, independent of the order of keys."""
    return hashlib.sha256(_ordered.encode([graph_id, given])).hexdigest()


def judge_request(record: ExecutionRecord | None, request_hash: str, now: int) -> Verdict:
    """Classify a request by the record stored under its key."""
    if record is None:
        return New()
    if record.request_hash != request_hash:
        return Mismatch()
    if record.status is ExecutionStatus.ENDED and record.outcome is not None:
        return Stored(record.outcome)
    if now < record.lease_until_ms:
        return InProgress(record.lease_until_ms - now)
    return New()

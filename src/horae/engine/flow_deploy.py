"""Stores a flow that is deployed: its definition, its revision, and what a deploy makes due."""

from __future__ import annotations

import msgspec

from horae.errors import FlowRefusedError
from horae.flow.definition import Flow
from horae.flow_model import FlowDefinition, FlowStatus, HandlerKind, Lane, Recovery, StoredFlow
from horae.policy.flow_failure_handling import retried
from horae.policy.flow_next_handler import deployed, published
from horae.store.flow_queries import FlowRecords

_replace = msgspec.structs.replace


async def deploy(records: FlowRecords, flow: Flow, owner: str, now: int) -> StoredFlow:
    """Store a flow, under the lock of its lane. Deploying the same version again only wakes consumers with pending events."""
    definition, revision = flow.check(), flow.revision
    stored = await records.flow(owner, flow.name)
    if stored is None:
        new = StoredFlow(
            flow_id=0, owner=owner, name=flow.name, definition=definition, revision=revision, created_at_ms=now,
            updated_at_ms=now,
        )  # fmt: skip
        # Another node may be inserting it: then this waits for that node's commit.
        await records.insert_flow(new)
        stored = await records.flow(owner, flow.name)
        if stored is None:  # committed after this transaction's statement began
            raise FlowRefusedError(flow.name, "is being deployed by another node")
    locked = await records.lock([stored.flow_id])
    if not locked:
        lane = deployed(Lane(flow_id=stored.flow_id, revision=revision), None, definition, now)
        await records.insert_lane(_replace(lane, next_at_ms=now))
        return stored
    current = (await records.flows_by_id([stored.flow_id]))[stored.flow_id]  # as of the lock
    lane = locked[0]
    if current.revision == revision:
        lane = await with_pending(records, lane, definition)
    else:
        before = current.definition
        current = _replace(current, definition=definition, revision=revision, updated_at_ms=now)
        lane = redeployed(lane, before, current, now)
        await records.update_flow(current)
    await records.write_lanes([_replace(lane, next_at_ms=None if lane.run_id else now)])
    return current


def redeployed(lane: Lane, before: FlowDefinition, flow: StoredFlow, now: int) -> Lane:
    """The lane of a flow after a new version was deployed: a failed run is retried with it.

    A version without a handler whose effect happened, or may have happened, and is not committed is refused.
    """
    lane = deployed(_replace(lane, revision=flow.revision), before, flow.definition, now)
    trouble = lane.trouble
    if trouble is None:
        return lane
    handler = flow.definition.handler(trouble.handler)
    if handler is None:
        if trouble.recovery is not Recovery.AFRESH:
            reason = f'cannot lose its handler "{trouble.handler}": the effect of its run {trouble.run_id} happened, or may have'
            raise FlowRefusedError(flow.name, reason, hint="resolve that run first")
        return _replace(lane, trouble=None)
    if trouble.status is FlowStatus.LOGIC:
        lane = _replace(lane, trouble=retried(trouble, now, reconciles=handler.reconciles))
    return lane


async def with_pending(records: FlowRecords, lane: Lane, flow: FlowDefinition) -> Lane:
    """The lane of a flow whose consumers with pending events run once more."""
    consumers = [each for each in flow.handlers if each.kind is HandlerKind.CONSUMER]
    topics = {topic for each in consumers for topic in each.subscribes}
    return published(lane, flow, await records.oldest_pending(lane.flow_id, topics)) if topics else lane

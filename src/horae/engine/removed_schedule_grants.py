"""Revokes the grants of schedules that are removed, by a caller or because they are finished."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from horae.model import Schedule
from horae.store.port import Transaction


async def revoke_grants(transaction: Transaction, gone: Collection[Schedule], now: int) -> None:
    """Revoke the grants of locked schedules that are about to be deleted, unless another schedule has one too."""
    keys = {each.key for each in gone}
    for grant_id in sorted({each.execution_grant_id for each in gone} - {""}):
        grant = await transaction.lock_grant(grant_id)
        # Locked before it is asked who has it: of two that are deleted at once, the later one finds itself the last.
        others = set(await transaction.schedules_with_grant(grant_id, len(keys) + 1)) - keys
        if grant is not None and grant.revoked_at_ms is None and not others:
            await transaction.update_grants([msgspec.structs.replace(grant, revoked_at_ms=now)])

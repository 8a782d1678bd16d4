"""Transaction methods for delegated execution: grants, accounts, executions and usage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from horae.grant_model import Account, ExecutionOutcome, ExecutionRecord, Grant, Usage, UsageSum
from horae.model import ScheduleKey
from horae.store.row_mapping import to_json
from horae.store.statement_execution import Statements
from horae.store.tables import ACCOUNT, EXECUTION, GRANT, USAGE


class GrantQueries(Statements):
    """Statements on grants and accounts."""

    async def insert_grants(self, grants: Iterable[Grant]) -> None:
        """Insert new grants."""
        await self.insert(GRANT, list(grants))

    async def grants_by_id(self, ids: Collection[str]) -> dict[str, Grant]:
        """The grants with the given ids, by id; those that do not exist are missing."""
        found = await self.find(GRANT, "grants_by_id", ids=list(ids)) if ids else ()
        return {each.id: each for each in found}

    async def lock_grant(self, grant_id: str) -> Grant | None:
        """A grant; locked."""
        return await self.find_one(GRANT, "lock_grant", id=grant_id)

    async def grants(self, user_id: str | None, after: str, limit: int) -> list[Grant]:
        """A page of a user's grants, or of all grants if ``user_id`` is ``None``."""
        if user_id is None:
            return await self.find(GRANT, "grants", after=after, limit=limit)
        return await self.find(GRANT, "owned_grants", user_id=user_id, after=after, limit=limit)

    async def count_grants(self, user_id: str, limit: int) -> int:
        """How many unrevoked grants a user has, counted up to a limit."""
        return int(await self.value("count_grants", user_id=user_id, limit=limit))

    async def update_grants(self, grants: Iterable[Grant]) -> None:
        """Update renewed and revoked grants."""
        await self.write("update_grant", [GRANT.parameters(each) for each in grants])

    async def schedules_with_grant(self, grant_id: str, limit: int) -> list[ScheduleKey]:
        """The keys of the schedules that name a grant, up to a limit."""
        return await self.column("schedules_with_grant", grant_id=grant_id, limit=limit)

    async def last_starts(self, keys: Collection[ScheduleKey]) -> dict[ScheduleKey, int | None]:
        """When the latest run of each of the given schedules began; ``None`` if none has."""
        return dict(await self.tuples("last_starts", keys=list(keys)))

    async def account(self, account_id: str) -> Account | None:
        """An account."""
        return await self.find_one(ACCOUNT, "account", id=account_id)

    async def account_of(self, user_id: str) -> Account | None:
        """The account of a user."""
        return await self.find_one(ACCOUNT, "account_of", user_id=user_id)

    async def put_account(self, account: Account) -> None:
        """Insert or update the account of a user; an update keeps what the account has spent."""
        await self.write("put_account", [ACCOUNT.parameters(account)])

    async def execution(self, user_id: str, key: str) -> ExecutionRecord | None:
        """The record of an execution request."""
        return await self.find_one(EXECUTION, "execution", user_id=user_id, key=key)

    async def claim_execution(self, record: ExecutionRecord) -> bool:
        """Begin an execution, unless another one has ended or held its lease when this one was requested."""
        return bool(await self.rows("claim_execution", **EXECUTION.parameters(record)))

    async def renew_execution(self, record: ExecutionRecord, until_ms: int) -> bool | None:
        """Extend the lease of an execution; return whether it was asked to stop, or ``None`` if it lost its lease."""
        found = await self.rows(
            "renew_execution", user_id=record.user_id, key=record.key, holder=record.holder, until_ms=until_ms
        )
        return bool(found[0][0]) if found else None

    async def end_execution(self, record: ExecutionRecord, outcome: ExecutionOutcome) -> bool:
        """Store how an execution ended; ``False``, with nothing stored, if it lost its lease."""
        found = await self.rows(
            "end_execution",
            user_id=record.user_id,
            key=record.key,
            holder=record.holder,
            outcome=to_json(outcome),
        )
        return bool(found)

    async def stop_execution(self, user_id: str, key: str) -> bool:
        """Ask an execution to stop; ``False`` if none is running."""
        return bool(await self.rows("stop_execution", user_id=user_id, key=key))

    async def prune_executions(self, before_ms: int, limit: int) -> int:
        """Delete executions from before a moment; return how many."""
        return len(await self.rows("prune_executions", before_ms=before_ms, limit=limit))

    async def graph_state(self, run_id: str) -> dict[str, str]:
        """The stored parts of a graph's state, by key."""
        return dict(await self.tuples("graph_state", run_id=run_id))

    async def put_graph_state(
        self, run_id: str, entries: Mapping[str, str], dropped: Collection[str], now: int
    ) -> None:
        """Store parts of a graph's state, and delete others."""
        if dropped:
            await self.rows("drop_graph_state", run_id=run_id, keys=list(dropped))
        rows = [
            {"run_id": run_id, "key": key, "value": value, "saved_at_ms": now}
            for key, value in entries.items()
        ]
        await self.write("put_graph_state", rows)

    async def prune_graph_state(self, before_ms: int, limit: int) -> int:
        """Delete states of graphs from before a moment; return how many parts."""
        return len(await self.rows("prune_graph_state", before_ms=before_ms, limit=limit))

    async def insert_usage(self, usage: Usage) -> bool:
        """Record usage and charge its account; ``False``, with nothing charged, if it was recorded before."""
        if not await self.rows("insert_usage", **USAGE.parameters(usage)):
            return False
        if usage.cost:
            await self.rows("charge", id=usage.billing_account_id, cost=usage.cost)
        return True

    async def usage(self, run_ids: Collection[str]) -> list[Usage]:
        """The usage of the given runs of graphs."""
        return await self.find(USAGE, "usage", ids=list(run_ids))

    async def usage_sums(
        self, user_id: str | None, since_ms: int, until_ms: int, step_ms: int, limit: int
    ) -> list[UsageSum]:
        """Usage recorded in a span, summed by account and by steps of time, the latest first; a user's, or all users' if it is ``None``."""
        name = "usage_sums" if user_id is None else "owned_usage_sums"
        owner = {} if user_id is None else {"user_id": user_id}
        found = await self.rows(
            name, since_ms=since_ms, until_ms=until_ms, step_ms=step_ms, limit=limit, **owner
        )
        return [
            UsageSum(
                billing_account_id=account, since_ms=step or None, records=records, runs=runs, input_tokens=given_tokens,
                output_tokens=made_tokens, cost=cost,
            )
            for account, step, records, runs, given_tokens, made_tokens, cost in found
        ]  # fmt: skip

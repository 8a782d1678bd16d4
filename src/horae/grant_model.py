"""The nouns of delegated execution: grants, accounts, execution requests and usage. All values are frozen.

None of them holds a secret in the clear: an account's key is sealed before it is stored.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from horae.errors import (
    GrantError,
    GrantExpiredError,
    GrantNotFoundError,
    GrantRevokedError,
    GrantScopeError,
)
from horae.model import Instant, Reason

GRAPH_ID = re.compile(r"[a-z][a-z0-9_-]{0,49}:[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A prefix, which names the provider, and the provider's name of the graph: ``langgraph:poet``."""

GRANT_ERRORS: dict[Reason, type[GrantError]] = {
    Reason.GRANT_NOT_FOUND: GrantNotFoundError,
    Reason.GRANT_REVOKED: GrantRevokedError,
    Reason.GRANT_EXPIRED: GrantExpiredError,
    Reason.GRANT_SCOPE: GrantScopeError,
}
"""The reasons why a grant does not allow a run, in the order of the checks, and the error for each."""


class Grant(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A durable authorization: who may run what, for which account, and until when."""

    id: str
    user_id: str
    billing_account_id: str
    scopes: tuple[str, ...]
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None

    created_at = Instant[datetime]()
    expires_at = Instant[datetime | None]()
    revoked_at = Instant[datetime | None]()


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The account that a user's runs are charged to. Amounts are whole numbers of the operator's smallest unit, such as millionths of a euro."""

    id: str
    user_id: str
    virtual_key: str = ""
    """The key that its runs use, sealed; empty if there is none."""
    credit: int | None = None
    """The most that it may ever spend; ``None`` means unlimited."""
    spent: int = 0
    updated_at_ms: int = 0

    updated_at = Instant[datetime]()

    def __repr__(self) -> str:
        """Omit the key, even sealed."""
        return f"Account({self.id})"


class ExecutionStatus(StrEnum):
    """The status of an execution request."""

    RUNNING = "running"
    ENDED = "ended"


class ExecutionOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the execution of a graph ended: with a result, or with a code and a message."""

    ok: bool
    result: Any = None
    code: str = ""
    """The reason of a failure, as in the ledger; empty if it succeeded."""
    message: str = ""
    events: tuple[str, ...] = ()
    """The first and the last events, as JSON; those between may have been dropped."""
    dropped: int = 0
    """How many events were not kept."""


class ExecutionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's request to the executing side. It names a grant; it holds no key and no token."""

    key: str
    """The slot and the attempt: ``SCHEDULE_ID:SCHEDULED_FOR/ATTEMPT``."""
    user_id: str
    grant_id: str
    graph_id: str
    run_id: str
    attempt: int
    input: Any = None


class ExecutionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The executing side's record of a request: under one key, a graph is executed once."""

    user_id: str
    key: str
    request_hash: str
    run_id: str
    holder: str
    """The execution that holds the request; another one takes over only when the lease has ended."""
    status: ExecutionStatus
    lease_until_ms: int
    created_at_ms: int
    stopping: bool = False
    """Whether the execution was asked to stop."""
    outcome: ExecutionOutcome | None = None

    created_at = Instant[datetime]()


class Usage(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The usage of a part of a graph's work. ``run_id``, ``attempt`` and ``unit`` together are unique: it is charged once."""

    run_id: str
    attempt: int
    unit: str
    billing_account_id: str
    user_id: str
    graph_id: str
    recorded_at_ms: int
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0

    recorded_at = Instant[datetime]()


class UsageSum(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The usage of an account in a span of time."""

    billing_account_id: str
    since_ms: int | None
    """When the span begins; ``None`` if all usage is summed."""
    records: int
    runs: int
    input_tokens: int
    output_tokens: int
    cost: int

    since = Instant[datetime | None]()

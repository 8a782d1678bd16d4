"""Views of grants, accounts and usage."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from horae.app.schedule_fields import about
from horae.app.view_base import View
from horae.grant_model import Account


class GrantView(View, frozen=True):
    """A grant: who may run what, for which account, and until when."""

    id: str
    user_id: str
    billing_account_id: str
    scopes: list[str]
    expires_at: Annotated[datetime | None, about("When the grant expires; null means never.")]
    revoked_at: datetime | None
    created_at: datetime


class AccountView(View, frozen=True):
    """The account that a user's runs are charged to; its key is never shown."""

    id: str
    user_id: str
    has_key: bool
    credit: Annotated[int | None, about("The most that it may ever spend; null means unlimited.")]
    spent: int

    @classmethod
    def computed(cls, account: Account) -> dict[str, Any]:
        return {"has_key": bool(account.virtual_key)}


class ExecutionView(View, frozen=True):
    """How the execution of a graph ended: with a result, or with a code and a message."""

    ok: bool
    result: Any
    code: Annotated[str, about("The reason of a failure, as in the ledger; empty if it succeeded.")]
    message: str
    events: Annotated[list[str], about("The first and the last events of the graph, as JSON.")]
    dropped: Annotated[int, about("How many events between them were not kept.")]


class CancelledView(View, frozen=True):
    """Whether an execution was asked to stop."""

    asked: bool


class UsageView(View, frozen=True):
    """The usage of an account in a span of time."""

    billing_account_id: str
    since: Annotated[datetime | None, about("When the span begins; null if all usage is summed.")]
    records: int
    runs: int
    input_tokens: int
    output_tokens: int
    cost: int

"""The usage of graphs, summed for each account."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from horae.app.field_checks import window_ms
from horae.app.operation_arguments import checks_arguments
from horae.app.owner_scope import OwnerScope
from horae.app.page import page_limit
from horae.checked import converted
from horae.grant_model import Usage, UsageSum
from horae.spec.duration import DAY_MS

By = Literal["all", "hour", "day"]
_STEPS: dict[str, int] = {"all": 2**62, "hour": DAY_MS // 24, "day": DAY_MS}


@checks_arguments
class UsageSums:
    """The usage of all accounts, or that of one user."""

    def __init__(self, scope: OwnerScope) -> None:
        self._scope = scope

    async def sums(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        by: str = "all",
        limit: int = 1000,
    ) -> list[UsageSum]:
        """The usage at or after ``since`` and before ``until``, by account, and ``by`` ``hour`` or ``day``; latest first."""
        step = _STEPS[converted(by, By, "by")]
        since_ms, until_ms = window_ms(since, until)
        async with self._scope.store.reading() as transaction:
            return await transaction.usage_sums(
                self._scope.owner, since_ms, until_ms, step, page_limit(limit)
            )

    async def of_run(self, run_id: str) -> list[Usage]:
        """The usage of a run of a graph, unit by unit."""
        async with self._scope.store.reading() as transaction:
            found = await transaction.usage([run_id])
        return [each for each in found if self._scope.owner in {None, each.user_id}]

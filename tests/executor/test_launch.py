"""When an attempt is launched."""

from __future__ import annotations

import pytest

from horae import Context, Executor
from tests.executor.harness import Attempts


class Nothing(Executor):
    kind = "nothing"

    async def run(self, context: Context) -> None:
        """Do nothing."""


@pytest.mark.contract("SCHD-28")
@pytest.mark.parametrize(("clock", "launched_at_ms"), [(4_998, 5_000), (5_003, 5_003)])
async def test_a_clock_that_is_corrected_after_the_claim_lets_no_attempt_begin_before_it(
    clock: int, launched_at_ms: int
):
    attempts = Attempts(Nothing())
    attempts.clock = clock
    assert (await attempts.make(started_at_ms=5_000)).launched_at_ms == launched_at_ms

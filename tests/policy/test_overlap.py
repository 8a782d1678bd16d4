"""The overlap pass: every start has one outcome, whatever the mix of policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.model import Overlap
from horae.policy.overlap import Start, judge_overlap

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "policy.json").read_text("utf-8")
)


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize("vector", VECTORS["process_buffer"], ids=lambda v: v["source"].rpartition(":")[2])
def test_vectors(vector: dict[str, Any]):
    unspecified = vector.get("resolve_unspecified_to", "SKIP")
    waiting = [
        Start(
            start["id"],
            Overlap((unspecified if start["policy"] == "UNSPECIFIED" else start["policy"]).lower()),
        )
        for start in vector["buffer"]
    ]
    verdict = judge_overlap(waiting, int(vector["is_running"]))
    chosen = vector["overlapping_starts"] + (
        [] if vector["non_overlapping_start"] is None else [vector["non_overlapping_start"]]
    )
    assert sorted(verdict.start) == sorted(chosen)
    assert len(verdict.skip) == vector["overlap_skipped"]
    assert verdict.cancel is vector["need_cancel"]
    assert verdict.terminate is vector["need_terminate"]
    # Of several that wait for a run to stop only the newest will ever run; here the others are gone.
    if verdict.cancel or verdict.terminate:
        assert verdict.keep == (vector["new_buffer"][-1],)
        assert list(verdict.replace) == vector["new_buffer"][:-1]
    else:
        assert list(verdict.keep) == vector["new_buffer"]


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize(
    ("alias", "policy"), [("allow", "allow_all"), ("queue", "buffer_all"), ("Forbid", "skip"), ("Replace", "cancel_other")]
)  # fmt: skip
def test_aliases(alias: str, policy: str):
    assert Overlap(alias) is Overlap(policy)


MIXES = st.lists(st.sampled_from(list(Overlap)), max_size=12)


@pytest.mark.contract("SCHD-10", "SCHD-11")
@given(MIXES, st.integers(0, 4), st.integers(1, 4), st.integers(0, 2**12), st.integers(0, 2**12))
def test_every_start_has_exactly_one_outcome(
    policies: list[Overlap], running: int, most: int, expired: int, held: int
):
    waiting = [
        Start(number, policy, bool(expired >> number & 1), bool(held >> number & 1))
        for number, policy in enumerate(policies)
    ]
    verdict = judge_overlap(waiting, running, most)
    outcomes = verdict.start + verdict.keep + verdict.skip + verdict.replace + verdict.expire
    assert not any(waiting[int(n)].expired or waiting[int(n)].paused for n in verdict.start)
    assert all(waiting[int(n)].expired for n in verdict.expire)
    assert {start.id for start in waiting if start.paused} <= set(verdict.keep)
    assert sorted(outcomes) == list(range(len(policies)))
    serial = [n for n in verdict.start if most > 1 or policies[int(n)] is not Overlap.ALLOW_ALL]
    assert len(serial) <= max(most - running, 0)
    assert list(verdict.keep) == sorted(verdict.keep)
    assert not (verdict.cancel or verdict.terminate) or running


@pytest.mark.contract("SCHD-10")
@given(MIXES, st.integers(0, 2))
def test_what_was_kept_is_judged_alike_again(policies: list[Overlap], running: int):
    """A pass over what an earlier one kept, with nothing changed, changes nothing."""
    waiting = {number: Start(number, policy) for number, policy in enumerate(policies)}
    first = judge_overlap(list(waiting.values()), running)
    going_on = running + sum(waiting[int(n)].overlap is not Overlap.ALLOW_ALL for n in first.start)
    again = judge_overlap([waiting[int(n)] for n in first.keep], going_on)
    if going_on:
        assert (again.keep, again.start, again.skip) == (first.keep, (), ())


ONE, ALL, OTHER = Overlap.BUFFER_ONE, Overlap.BUFFER_ALL, Overlap.CANCEL_OTHER


@pytest.mark.contract("SCHD-10", "SCHD-12")
def test_what_has_expired_keeps_its_place_until_its_turn_comes():
    """Then it is gone, and the next one is decided."""
    waiting = [Start(1, ONE, expired=True), Start(2, ONE)]
    blocked = judge_overlap(waiting, 1)
    assert (blocked.keep, blocked.skip, blocked.expire) == ((1,), (2,), ())
    free = judge_overlap(waiting, 0)
    assert (free.start, free.keep, free.skip, free.expire) == ((2,), (), (), (1,))


@pytest.mark.contract("SCHD-10", "SCHD-12")
def test_what_has_expired_replaces_nothing():
    verdict = judge_overlap([Start(1, ALL), Start(2, OTHER, expired=True)], 0)
    assert (verdict.start, verdict.replace, verdict.expire) == ((1,), (), (2,))


@pytest.mark.contract("SCHD-10", "SCHD-13")
def test_what_is_held_keeps_its_place_and_lets_others_start():
    verdict = judge_overlap([Start(1, ONE, paused=True), Start(2, ALL), Start(3, ONE)], 0)
    assert (verdict.start, verdict.keep, verdict.skip) == ((2,), (1,), (3,))

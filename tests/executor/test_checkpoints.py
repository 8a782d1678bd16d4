"""Checkpoints of an attempt: read-only, JSON, within bounds, and only there once they are saved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from horae.errors import InvalidInputError, StaleClaimError
from horae.executor.checkpoints import (
    MAX_CHECKPOINTS,
    MAX_KEY_LENGTH,
    MAX_TOTAL_LENGTH,
    MAX_VALUE_LENGTH,
    Checkpoints,
)
from horae.model import Checkpoint


class Disk:
    """What was saved."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.error: Exception | None = None

    async def save(self, values: Mapping[str, str]) -> None:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.rows |= values

    def read(self) -> Checkpoints:
        """What the next attempt is given."""
        return Checkpoints(earlier(list(self.rows.items())), self.save)


def earlier(rows: Sequence[tuple[str, str]]) -> list[Checkpoint]:
    return [Checkpoint(run_id="r", key=key, value=value, attempt=1, saved_at_ms=5) for key, value in rows]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.mark.parametrize("value", [None, 0, "ü\x00", [1, {"a": [None]}], {"x": 1.5}, True])
async def test_what_is_saved_is_read_by_this_attempt_and_the_next(disk: Disk, value: Any):
    mine = disk.read()
    await mine.save({"key": value})
    assert dict(mine) == dict(disk.read()) == {"key": value}
    await mine.save({"key": "again"})
    assert dict(mine) == dict(disk.read()) == {"key": "again"}


async def test_what_is_read_cannot_be_changed(disk: Disk):
    mine = disk.read()
    await mine.save({"list": [1]})
    mine["list"].append(2)
    assert mine["list"] == [1]
    with pytest.raises(TypeError):
        mine["list"] = 3  # type: ignore[index]
    assert ("list" in mine, "other" in mine, len(mine), list(mine)) == (True, False, 1, ["list"])


async def test_what_could_not_be_saved_is_not_there(disk: Disk):
    mine = disk.read()
    disk.error = StaleClaimError("r", 1)
    with pytest.raises(StaleClaimError):
        await mine.save({"key": 1})
    assert dict(mine) == {}


@pytest.mark.parametrize("key", ["", "a\x00b", "a\nb", "\ud800", "k" * (MAX_KEY_LENGTH + 1)])
async def test_a_key_is_a_short_printable_text(disk: Disk, key: str):
    with pytest.raises(InvalidInputError, match=f"1 to {MAX_KEY_LENGTH} printable characters"):
        await disk.read().save({key: 1})
    assert disk.rows == {}


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else 0


@pytest.mark.parametrize(
    "value",
    [
        object(),
        "x" * MAX_VALUE_LENGTH,
        [0] * 100_001,
        deep(200),
        deep(900),
        {1, 2, object()},
        "\ud800",
    ],
    ids=["no JSON", "long", "wide", "deep", "deeper", "set", "half a character"],
)
async def test_a_value_is_json_within_bounds(disk: Disk, value: Any):
    with pytest.raises(InvalidInputError, match='value of the checkpoint "k" must be JSON of at most 262144'):
        await disk.read().save({"k": value})
    assert disk.rows == {}


async def test_a_run_has_so_many_and_may_still_change_them(disk: Disk):
    disk.rows = {f"{number}": "0" for number in range(MAX_CHECKPOINTS - 1)}
    mine = disk.read()
    # Also if they come at the same time, one of them is one too many.
    results = await asyncio.gather(mine.save({"a": 1}), mine.save({"b": 1}), return_exceptions=True)
    assert [type(each) for each in results] == [type(None), InvalidInputError]
    assert f'"b" is one too many: a run has at most {MAX_CHECKPOINTS}' in str(results[1])
    await mine.save({"a": 2})
    assert len(disk.rows) == MAX_CHECKPOINTS


async def test_all_of_a_run_have_a_bound_together(disk: Disk):
    mine = disk.read()
    part = "x" * (MAX_TOTAL_LENGTH // 4 - 3)  # with its quotes and its key, a quarter
    for key in "abcd":
        await mine.save({key: part})
    with pytest.raises(InvalidInputError, match=f"all of a run have at most {MAX_TOTAL_LENGTH} bytes"):
        await mine.save({"e": None})
    with pytest.raises(InvalidInputError, match="too large"):
        await mine.save({"a": part + "x"})
    await mine.save({"a": None})
    await mine.save({"e": None})

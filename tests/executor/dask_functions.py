"""Functions of a Dask worker under test. The environment says which file they write to."""

import os
import time
from pathlib import Path

from horae.executor.dask_cluster import stop_requested, work_id


def note(word: str) -> None:
    with Path(os.environ["HORAE_TEST_LOG"]).open("a") as file:
        file.write(f"{word}\n")


def add(x: int, y: int) -> int:
    note(f"add {x} {y}")
    return x + y


async def identify() -> str:
    return work_id()


def boom() -> None:
    note("boom")
    raise ValueError("no")


def large() -> str:
    return "." * 1024 * 1024


def slow(who: str) -> None:
    note(f"slow begins {who}")
    while not stop_requested():
        time.sleep(0.05)
    note(f"slow stops {who}")
    raise InterruptedError


def deaf(who: str) -> None:
    note(f"deaf begins {who}")
    while f"wake {who}" not in Path(os.environ["HORAE_TEST_LOG"]).read_text():
        time.sleep(0.05)

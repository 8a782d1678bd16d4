"""Many cases in one test, where each takes less time than pytest takes for a test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each_of(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Like ``pytest.mark.parametrize``, as one test: every case is tried, and each that fails is reported."""
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    known = [dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True)) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        assert set(inspect.signature(test).parameters) == set(arguments), "fixtures belong to single tests"

        @functools.wraps(test)
        def try_all() -> None:
            assert known, "there is no case"
            failures = []
            for case in known:
                try:
                    test(**case)
                except Exception as error:
                    error.add_note(f"case: {case!r}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(known)} cases fail", failures)

        del try_all.__wrapped__  # pytest would look for the cases as fixtures
        return try_all

    return decorate

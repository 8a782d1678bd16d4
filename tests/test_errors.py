"""An error that a program does not catch shows its hint once; everything else shows errors as before."""

from __future__ import annotations

import copy
import copyreg
import pickle
import traceback
from collections.abc import Callable
from datetime import datetime
from unittest import mock

import pytest

from horae import App, Policies, Spec
from horae.errors import (
    HoraeError,
    InvalidInputError,
    MissingExtraError,
    NotStartedError,
    ScheduleExistsError,
    UnknownTimezoneError,
)
from horae.spec import PosixCron
from tests.support.cases import each_of

HINTED: list[tuple[Callable[[], object], str]] = [
    (lambda: Policies(overlap="skp"), "did you mean skip?"),  # type: ignore[arg-type]
    (lambda: Spec.cron("0 9 * * mon-fry"), "allowed are 0-7 or sun-sat"),
    (lambda: Spec.cron("0 9 * * * 2030"), "the year"),
    (lambda: Spec.cron("@every 90", dialect="temporal"), "numbers with units"),
    (lambda: Spec.cron("0 9 * * *", timezone="Europe/Berlni"), "did you mean Europe/Berlin?"),
    (lambda: Spec.parse({"crons": ["0 9 * * 8"]}), "allowed are 0-7"),
    (lambda: Spec.parse({"crons": ["@daily"], "timezone": "Europe/Berlni"}), "did you mean Europe/Berlin?"),
    (lambda: Spec.parse({"calendars": [{"hour": "25"}]}), "allowed are 0-23"),
    (lambda: PosixCron.registered("0 9 * * 9"), "allowed are 0-6"),
    (lambda: Spec.cron("0 9 * * *").next_after(datetime(2026, 1, 1)), "give an aware datetime"),
    (lambda: App("mysql://x/y"), "postgresql://"),
]  # fmt: skip


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@each_of(("call", "hint"), HINTED)
def test_a_traceback_ends_with_the_hint(call: Callable[[], object], hint: str):
    with pytest.raises(HoraeError) as raised:
        call()
    error = raised.value
    lines = shown(error).splitlines()
    assert [each for each in lines if each.startswith("hint: ")] == [f"hint: {error.hint}"]
    assert hint in lines[-1]
    assert str(error) == error.message
    assert "hint: " not in error.message


def test_an_error_without_a_hint_has_no_note():
    assert not hasattr(NotStartedError("not yet"), "__notes__")
    assert not hasattr(UnknownTimezoneError("x"), "__notes__")


@mock.patch.dict(
    copyreg.dispatch_table, clear=True
)  # distributed has another way to copy all errors, if it was imported
def test_errors_survive_pickling_and_copying_with_their_hint():
    for error in (
        InvalidInputError("x", "is wrong", hint="right"),
        ScheduleExistsError("x"),
        MissingExtraError("postgres", "asyncpg"),
    ):
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301 - our own
            assert (type(again), str(again), again.details) == (type(error), str(error), error.details)
            assert again.hint == error.hint
            assert shown(again).count("hint: ") == 1
            again.add_note("of the copy")
            assert "of the copy" not in shown(error)

"""A noun and its row: what a declaration derives, and what becomes of rows that were edited by hand."""

from __future__ import annotations

import sqlite3
from enum import StrEnum
from typing import Any

import msgspec
import pytest

from horae.model import (
    AUTOMATIC,
    UNREADABLE,
    Action,
    Overlap,
    Policies,
    Run,
    Schedule,
    ScheduleKey,
    State,
    Status,
)
from horae.store.dialect import migrations
from horae.store.row_mapping import Table
from horae.store.sqlite import SQLITE
from horae.store.tables import KINDS, RUN, SCHEDULE, TABLES


class Colour(StrEnum):
    RED = "red"


class Inner(msgspec.Struct, frozen=True):
    x: int


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    count: int
    share: float
    ready: bool
    colour: Colour
    other: Colour | None = None
    inner: Inner
    optional: Inner | None = None
    names: tuple[str, ...] = ()
    memo: dict[str, Any] = {}
    anything: Any = None
    kept_out: int = 0
    number: int | None = None


THINGS = Table(Thing, "thing", unstored=("kept_out",), not_inserted=("number",), not_updated=("id", "number"))
THING = Thing(id="a", count=1, share=0.5, ready=True, colour=Colour.RED, inner=Inner(1), number=7)


def test_columns_and_their_types_come_from_the_fields():
    assert THINGS.kinds == {
        "id": "text", "count": "bigint", "share": "double precision", "ready": "boolean", "colour": "text",
        "other": "text", "inner": "text", "optional": "text", "names": "text", "memo": "text", "anything": "text",
        "number": "bigint",
    }  # fmt: skip
    assert THINGS.columns == tuple(THINGS.kinds)
    assert set(THINGS.columns) - set(THINGS.inserted) == {"number"}
    assert set(THINGS.columns) - set(THINGS.updated) == {"id", "number"}


@pytest.mark.parametrize(
    ("thing", "row"),
    [
        (THING, ("a", 1, 0.5, True, "red", None, '{"x":1}', None, "[]", None, None, 7)),
        (
            msgspec.structs.replace(
                THING, other=Colour.RED, optional=Inner(2), names=("n",), memo={"k": [1]}, anything=False
            ),
            ("a", 1, 0.5, True, "red", "red", '{"x":1}', '{"x":2}', '["n"]', '{"k":[1]}', "false", 7),
        ),
    ],
)
def test_a_value_is_encoded_and_decoded(thing: Thing, row: tuple[Any, ...]):
    assert tuple(THINGS.parameters(thing).values()) == row
    assert THINGS.encode(thing) == row[:-1]
    assert THINGS.decode(row) == thing
    assert type(THINGS.parameters(thing)["colour"]) is str  # drivers are slower with other strings


def test_a_boolean_may_be_stored_as_a_number():
    assert THINGS.decode((*THINGS.encode(THING)[:3], 1, *THINGS.encode(THING)[4:], 7)).ready is True


def test_a_row_that_cannot_be_decoded_is_an_error_unless_something_stands_in_for_it():
    row = ("a", 1, 0.5, True, "blue", None, "{}", None, "[]", None, None, 7)
    with pytest.raises(KeyError, match="blue"):
        THINGS.decode(row)
    standing_in = Table(
        Thing, "thing", unstored=("kept_out",),
        unreadable=lambda values, faults: msgspec.structs.replace(THING, id=f"{values['id']} {sorted(faults)}", names=values["names"]),
    )  # fmt: skip
    found = standing_in.decode(row)
    assert (found.id, found.names) == ("a ['colour', 'inner']", ())


def test_a_schedule_that_was_edited_by_hand_has_defaults_for_what_cannot_be_read_and_names_it():
    schedule = Schedule(
        id="s", generation=1, spec="{}", action=Action(name="a"), policies=Policies(overlap="queue"),
        state=State(paused=True, remaining_actions=3), version=1, cursor_ms=0, created_at_ms=0, updated_at_ms=0, tags=("t",),
    )  # fmt: skip
    parameters = SCHEDULE.parameters(schedule)
    assert parameters["key"] == "s"
    row = {name: parameters[name] for name in SCHEDULE.columns}
    assert SCHEDULE.decode(tuple(row.values())) == schedule
    for spoiled, instead, said in (
        ({"policies": '{"overlap":"skp"}'}, {"policies": Policies()}, 'policies.overlap is "skp"'),
        ({"policies": "{"}, {"policies": Policies()}, "policies is no JSON"),
        ({"action": '{"name":5}'}, {"action": Action()}, "action.name must be a text"),
        ({"tags": "{}"}, {"tags": ()}, "tags must be a list"),
        ({"memo": "["}, {"memo": {}}, "memo is no JSON"),
        ({"state": "x"}, {"state": State()}, "state is no JSON"),
        (
            {"state": '{"paused":5,"remaining_actions":3}'},
            {"state": State(remaining_actions=3)},
            "state.paused must be",
        ),
    ):
        found = SCHEDULE.decode(tuple((row | spoiled).values()))
        assert list(found.unreadable) == list(spoiled)
        assert found.unreadable[next(iter(spoiled))].startswith(said)
        assert found == msgspec.structs.replace(schedule, **instead, unreadable=found.unreadable)


def test_a_name_has_one_type_in_all_tables():
    for table in TABLES.values():
        assert {name: KINDS[name] for name in table.kinds} == table.kinds


def test_every_column_is_in_the_schema():
    connection = sqlite3.connect(":memory:")
    for statement in "".join(migrations(SQLITE)).split(";\n"):
        connection.execute(statement)
    for table in TABLES.values():
        stored = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
        elsewhere = {"cursor_ms"} if table is SCHEDULE else set()
        assert set(table.columns) - stored == elsewhere, table.name
        assert set(table.inserted) <= stored
    connection.close()


def test_a_run_that_was_edited_by_hand_is_known_by_its_reason():
    run = Run(
        id="r", schedule_key=ScheduleKey("s"), generation=2, nominal_ms=1000, origin=AUTOMATIC, overlap=Overlap.SKIP,
        status=Status.RUNNING, fire_ms=1, start_at_ms=1,
    )  # fmt: skip
    row = RUN.parameters(run)
    assert RUN.decode(tuple(row.values())) == run
    for name, value, status, failure in (
        ("overlap", "weird", Status.RUNNING, "KeyError: 'weird'"),
        ("status", "weird", Status.PENDING, "KeyError: 'weird'"),
        ("input", "{", Status.RUNNING, "DecodeError: "),
        ("origin", "weird", Status.RUNNING, "ValueError: 'weird' is not"),
    ):
        found = RUN.decode(tuple((row | {name: value}).values()))
        assert (found.id, found.schedule_id, found.generation) == ("r", "s", 2)
        assert (found.status, found.reason) == (status, UNREADABLE)
        assert found.failure
        assert found.failure.startswith(failure)

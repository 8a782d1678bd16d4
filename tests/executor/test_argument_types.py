"""Arguments have the types of their annotations, results of the same types are JSON, and what does not fit is told early."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import UUID

import msgspec
import pydantic
import pytest

from horae import Context, ScheduleWarning, SyncApp
from horae.errors import InvalidInputError
from horae.model import Status
from horae.testing import TimeMachine
from tests.support.process import printed_by

if TYPE_CHECKING:
    from elsewhere import OnlyForTypeCheckers  # type: ignore[import-not-found]

YEARLY = "0 0 1 1 *"


class Color(enum.Enum):
    RED = "red"


class Item(pydantic.BaseModel):
    name: str
    count: int = pydantic.Field(ge=1)


class Order(pydantic.BaseModel):
    items: list[Item]
    at: datetime
    paid: Decimal | None = None

    @pydantic.model_validator(mode="after")
    def not_too_many(self) -> Order:
        if len(self.items) > 2:
            raise ValueError("too many items")
        return self


@dataclass(frozen=True)
class Day:
    on: date
    color: Color = Color.RED


@dataclass
class Week:
    days: list[Day]
    order: Order | None = None


class Point(msgspec.Struct):
    x: int


class Readable(Protocol):
    def read(self) -> str: ...


class Own:
    """A class that cannot be made of JSON."""


ORDER: dict[str, Any] = {"items": [{"name": "tea", "count": 2}], "at": "2026-03-01T09:00:00Z"}
WEEK: dict[str, Any] = {"days": [{"on": "2026-03-01"}]}


def of_order(order: Order) -> Any:
    assert isinstance(order, Order)
    return order


def of_orders(orders: list[Order], by_name: dict[str, Item]) -> Any:
    assert isinstance(orders[0].items[0], Item)
    assert isinstance(by_name["a"], Item)
    return {"first": orders[0], "all": orders}


def of_week(week: Week, context: Context) -> Any:
    assert isinstance(week.days[0].on, date)
    return week


def of_many(when: datetime, span: timedelta, ids: tuple[UUID, ...], color: Color, share: float, number: int, point: Point | None = None, *, mode: Literal["a", "b"] = "a") -> Any:  # fmt: skip
    assert (when.tzinfo, span, ids[0].version, color) == (UTC, timedelta(seconds=90), 4, Color.RED)
    assert (type(share), type(number), point) == (float, int, Point(1))
    return [when, color, point, mode]


def of_unknown(one: Own, two: Readable, three: OnlyForTypeCheckers, four: Any, five, *, six: Own | None = None) -> Any:  # fmt: skip
    return [one, two, three, four, five, six]


FITTING: list[tuple[Callable[..., Any], Any, Any]] = [
    (of_order, {"order": ORDER}, ORDER | {"paid": None}),
    (of_orders, {"orders": [ORDER], "by_name": {"a": {"name": "x", "count": 1}}}, {"first": ORDER | {"paid": None}, "all": [ORDER | {"paid": None}]}),
    (of_week, {"week": WEEK}, {"days": [{"on": "2026-03-01", "color": "red"}], "order": None}),
    (of_week, {"week": {**WEEK, "order": ORDER}}, {"days": [{"on": "2026-03-01", "color": "red"}], "order": ORDER | {"paid": None}}),
    (
        of_many,
        {"when": "2026-03-01T09:00:00Z", "span": "PT90S", "ids": ["7f9c24e8-3b12-4a6f-9d5a-1d2b3c4d5e6f"], "color": "red", "share": 1, "number": 7.0, "point": {"x": 1}},
        ["2026-03-01T09:00:00Z", "red", {"x": 1}, "a"],
    ),
    (of_unknown, {"one": {"a": 1}, "two": 2, "three": "x", "four": [4], "five": 5, "six": 6}, [{"a": 1}, 2, "x", [4], 5, 6]),
]  # fmt: skip
NOT_FITTING: list[tuple[Callable[..., Any], Any, str, str]] = [
    (of_order, {"order": ORDER | {"items": [{"name": "tea", "count": 0}]}}, "input.order.items[0].count is refused: Input should be greater than or equal to 1", ""),
    (of_order, {"order": {"items": [{}]}}, "input.order.items[0].name is refused: Field required (and 2 more)", ""),
    (of_order, {"order": ORDER | {"items": ORDER["items"] * 3}}, "input.order cannot be read: Value error, too many items", ""),
    (of_orders, {"orders": [ORDER, 7], "by_name": {}}, "input.orders[1] cannot be read: Input should be an object", ""),
    (of_week, {"week": {"days": [{"on": "soon"}]}}, "input.week.days[0].on cannot be read: Invalid RFC3339 encoded date", ""),
    (of_week, {"week": {}}, "input.week.days is missing", ""),
    (of_week, {"weak": WEEK}, 'input has "weak", which the action does not take', "did you mean week?"),
    (of_week, None, 'input has no "week", which the action needs', 'give it by name: input={"week": …}'),
    (of_week, [WEEK], "input must be an object: its keys are the arguments of the action", 'give it by name: input={"week": …}'),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "result"), FITTING)
async def test_arguments_and_results_of_types(
    machine: TimeMachine, function: Any, given: Any, result: Any, recwarn: pytest.WarningsRecorder
):
    machine.app.action("work")(function)
    await machine.app.schedules.create("s", YEARLY, "work", input=given)
    run_id = await machine.app.schedules.trigger("s", input=given)
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run_id)
    assert (run.status, run.failure, run.result) == (Status.SUCCEEDED, None, result)
    assert not [each for each in recwarn if each.category is ScheduleWarning]


@pytest.mark.parametrize(("function", "given", "sentence", "hint"), NOT_FITTING)
async def test_an_input_that_does_not_fit_is_told_at_once_and_fails_the_attempt(
    machine: TimeMachine, function: Any, given: Any, sentence: str, hint: str
):
    app = machine.app
    app.action("work")(function)
    told = f'The schedule "s": its {sentence}' + (f"; {hint}" if hint else "")
    with pytest.warns(ScheduleWarning) as warned:
        await app.schedules.create("s", YEARLY, "work", input=given)
    assert [str(each.message) for each in warned] == [told]
    assert {each.filename for each in warned} == {__file__}
    changes = [
        app.schedules.trigger("s", input=given),
        app.schedules.update("s", input=given),
        app.schedules.put("s", YEARLY, "work", input=given, note="x"),
        app.backfills.start("s", "2020-01-01T00:00Z", "2020-01-01T00:00Z", input=given or {}),
    ]
    for change in changes:
        with pytest.warns(ScheduleWarning) as warned:
            await change
        assert [str(each.message) for each in warned] == [told]
    with pytest.warns(ScheduleWarning, match='The schedule "once": its input'):
        await app.once("work", in_="1h", input=given, key="once")
    with pytest.raises(InvalidInputError) as refused:
        app.schedule(YEARLY, input=given)(function)
    assert (str(refused.value), refused.value.hint or "") == (sentence, hint)
    run_id = await app.schedules.trigger("s", overlap="allow_all")
    await machine.advance(seconds=1)
    run = await app.runs.get(run_id)
    assert (run.status, run.failure) == (Status.FAILED, f"InvalidInputError: {sentence}")


def of_both(order: Order, other: OnlyForTypeCheckers, context: Context) -> Any:
    assert isinstance(order, Order)
    assert isinstance(context, Context)
    return other


class Clerk:
    def of_both(self, order: Order, other: OnlyForTypeCheckers) -> Any:
        assert isinstance(order, Order)
        return other


@pytest.mark.parametrize("function", [of_both, partial(of_both, other=[1]), Clerk().of_both])
async def test_an_annotation_for_type_checkers_only_leaves_the_others(machine: TimeMachine, function: Any):
    machine.app.action("work")(function)
    await machine.app.schedules.create("s", YEARLY, "work", input={"order": ORDER, "other": [1]})
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run_id)
    assert (run.failure, run.result) == (None, [1])


async def test_inputs_may_be_models_and_dataclasses(machine: TimeMachine):
    app = machine.app

    @app.action
    def deliver(items: list[Item], at: datetime, paid: Decimal | None) -> Any:
        return [items, at, paid]

    order = Order(items=[Item(name="tea", count=1)], at=datetime(2026, 1, 1, tzinfo=UTC))
    stored = {"items": [{"name": "tea", "count": 1}], "at": "2026-01-01T00:00:00Z", "paid": None}
    made = await app.schedules.create("s", YEARLY, "deliver", input=order)
    assert made.action.input == stored
    assert (await app.schedules.update("s", input={**stored, "paid": Decimal("1.5")})).action.input[
        "paid"
    ] == "1.5"
    run_id = await app.schedules.trigger("s", input=order)
    await machine.advance(seconds=1)
    assert (await app.runs.get(run_id)).result == [stored["items"], stored["at"], None]

    @app.schedule(YEARLY, input={"week": Week(days=[Day(on=date(2026, 3, 1))], order=order)})
    def plan(week: Week) -> None: ...

    await app.program.store()
    assert (await app.schedules.get("plan")).action.input["week"]["order"] == stored
    with pytest.raises(InvalidInputError, match=r"input\.items is of the type Own, which JSON cannot hold"):
        await app.schedules.create("t", YEARLY, "deliver", input={"items": Own()})
    with pytest.raises(
        InvalidInputError, match=r"input\.items is of the type ModelMetaclass, which JSON cannot hold"
    ):
        await app.schedules.create("t", YEARLY, "deliver", input={"items": Item})


async def test_a_parameter_that_nothing_fills_is_told_with_what_to_write(machine: TimeMachine):
    app = machine.app

    @app.action
    def report(ctx) -> None: ...

    write = (
        'for the context of the attempt write ctx: horae.Context; otherwise give it by name: input={"ctx": …}'
    )
    with pytest.warns(ScheduleWarning) as warned:
        await app.schedules.create("s", YEARLY, report)
    assert [str(each.message) for each in warned] == [
        f'The schedule "s": its input has no "ctx", which the action needs; {write}'
    ]
    with pytest.raises(InvalidInputError, match='input has no "ctx", which the action needs') as refused:
        app.schedule(YEARLY)(report)
    assert refused.value.hint == write


async def test_a_key_that_may_be_a_misspelt_parameter_is_told(
    machine: TimeMachine, recwarn: pytest.WarningsRecorder
):
    app = machine.app

    @app.action
    def report(context: Context, when: str = "now") -> Any:
        return [context.input, when]

    told = 'its input has "wen", which the action does not take; did you mean when?'
    with pytest.warns(ScheduleWarning) as warned:
        await app.schedules.create("s", YEARLY, "report", input={"wen": 1})
    assert [str(each.message) for each in warned] == [f'The schedule "s": {told}']
    with pytest.warns(ScheduleWarning) as warned:
        app.schedule(YEARLY, id="t", input={"wen": 1})(report)
    assert [str(each.message) for each in warned] == [f'The schedule "t": {told}']
    run_id = await app.schedules.trigger("s")  # the function may read it from the context
    await machine.advance(seconds=1)
    assert (await app.runs.get(run_id)).result == [{"wen": 1}, "now"]
    recwarn.clear()
    await app.schedules.create("u", YEARLY, "report", input={"other": 1})
    await app.schedules.create("v", YEARLY, "report", input={"when": "x", "wen": 1})
    assert not [each for each in recwarn if each.category is ScheduleWarning]


def test_blocking_operations_warn_too(tmp_path: Path):
    with SyncApp(f"sqlite:///{tmp_path}/horae.db") as app:

        @app.action
        def report(when: int) -> None: ...

        with pytest.warns(ScheduleWarning, match="did you mean when") as warned:
            app.schedules.create("s", YEARLY, "report", input={"wen": 1})
        assert [each.filename for each in warned] == [__file__]
        with pytest.warns(ScheduleWarning, match="input.when must be a whole number, not a text"):
            app.schedules.trigger("s", input={"when": "x"})


def test_horae_does_not_load_pydantic():
    code = "import sys, horae; app = horae.App(':memory:'); app.action(lambda: None) if 0 else None; print('pydantic' in sys.modules)"
    assert printed_by(code).strip() == "False"


async def test_a_result_that_cannot_be_stored_fails_the_attempt(machine: TimeMachine):
    machine.app.action("work")(lambda: {"own": Own()})
    await machine.app.schedules.create("s", YEARLY, "work")
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    run = await machine.app.runs.get(run_id)
    assert run.status is Status.FAILED
    assert run.failure == (
        "TypeError: the result.own is of the type Own, which JSON cannot hold; JSON holds texts, numbers, "
        "true and false, null, lists and mappings; times, dataclasses and pydantic models become these"
    )


async def test_what_is_saved_for_the_next_attempt_may_be_a_model(machine: TimeMachine):
    @machine.app.action
    async def work(context: Context) -> None:
        await context.checkpoint("item", Item(name="tea", count=1))

    await machine.app.schedules.create("s", YEARLY, "work")
    run_id = await machine.app.schedules.trigger("s")
    await machine.advance(seconds=1)
    (saved,) = await machine.app.runs.checkpoints(run_id)
    assert json.loads(saved.value) == {"name": "tea", "count": 1}

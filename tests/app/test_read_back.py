"""Nothing is stored that cannot be read back: whatever a field is given, it is refused by name, or the schedule reads back equal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from datetime import UTC, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae import App, HoraeError, NewSchedule, Policies
from horae.app import Edit
from horae.app.schedule_views import description_view
from horae.app.triggers_and_backfills import BackfillFields, TriggerFields
from horae.errors import NaiveTimeError, SpecError, UnknownActionError
from horae.model import Action, Schedule
from horae.policies import CatchUpFields, PolicyFields, RetentionFields, RetryFields, TimeoutFields
from horae.spec import SpecDocument
from tests.support.postgres import new_postgres_database

texts = st.text(max_size=20) | st.text(
    st.characters(), max_size=20
)  # the latter has half surrogate pairs, too
numbers = st.one_of(
    st.integers(-1, 100), st.integers(), st.integers(-(10**400), 10**400), st.floats(), st.decimals()
)
times = st.one_of(
    st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.timedeltas(), st.timedeltas(timedelta(0))
)
words = st.sampled_from(
    ["skip", "queue", "all", "latest", "catch_up", "wait", "90s", "PT5M", "500ms", "7d", "UTC", "CET", "{id}", "%Y", "0 9 * * *",
     "@daily", "hello", "2026-11-01T00:00:00Z"]
)  # fmt: skip
scalars = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    texts,
    words,
    times,
    st.binary(),
    st.uuids(),
    st.just(object()),
    st.just(print),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(texts, inner),
        st.dictionaries(st.one_of(st.integers(), st.none(), st.floats()), inner),
        st.frozensets(texts),
    ),
    max_leaves=8,
)


def some_of(names: Iterable[str], **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mappings with some fields; each has a value that may be right, or any."""
    return st.fixed_dictionaries({}, optional={name: parts.get(name, scalars) | values for name in names})


policies = some_of(
    PolicyFields.__annotations__,
    retry=some_of(RetryFields.__annotations__),
    catch_up=some_of(CatchUpFields.__annotations__),
    timeouts=some_of(TimeoutFields.__annotations__),
    retention=some_of(RetentionFields.__annotations__),
)
actions = some_of(Action.__struct_fields__)
specs = some_of(SpecDocument.__struct_fields__, crons=st.lists(words), times=st.lists(words))
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "policies": policies,
    "action": actions.map(lambda given: {**given, "name": "hello", "kind": "function", "options": {}}),
    "spec": specs | specs.map(lambda given: {**given, "crons": ["0 9 * * *"]}),
    "trigger": some_of(TriggerFields.__annotations__),
    "backfills": st.lists(some_of(BackfillFields.__annotations__), max_size=2),
    "paused": st.booleans(),
    "recompute": st.booleans(),
    "remaining_actions": numbers,
    "tags": st.lists(texts, max_size=3),
    "memo": st.dictionaries(texts, values, max_size=3),
    "search_attributes": st.dictionaries(texts, texts | numbers | st.booleans(), max_size=3),
    "input": st.dictionaries(texts, values, max_size=3),
}


def wrong(kind: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, Any]]:
    """One field or two, with values that may be right, or any."""
    names = st.lists(st.sampled_from(kind.__struct_fields__), min_size=1, max_size=2, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: LIKELY.get(name, texts) | values for name in chosen})
    )


class Store:
    """An app on a real database, with an event loop that lasts as long."""

    def __init__(self, database: str) -> None:
        self.app = App(database)
        self.app.action("hello")(lambda: None)
        self.runner = asyncio.Runner()

    def run(self, attempt: Awaitable[Schedule | None]) -> None:
        self.runner.run(self._attempt(attempt))

    async def _attempt(self, attempt: Awaitable[Schedule | None]) -> None:
        schedules = self.app.schedules
        try:
            expected = await attempt
            assert await schedules.list() == ([] if expected is None else [expected])
            if expected is not None:
                assert await schedules.get(expected.id) == expected
                description_view(await schedules.describe(expected.id))
        finally:
            for each in await schedules.list():
                await schedules.delete(each.id)

    async def create(self, given: dict[str, Any]) -> Schedule | None:
        new: dict[str, Any] = {"id": "s", "spec": "0 9 * * *", "action": "hello", **given}
        try:
            return (await self.app.schedules.create_many([NewSchedule(**new)]))[0]
        except HoraeError as error:
            named(error, given)
            return None

    async def update(self, given: dict[str, Any]) -> Schedule:
        before = await self.app.schedules.create(
            "s", "0 9 * * *", "hello", input=1, policies=Policies(overlap="queue")
        )
        try:
            return await self.app.schedules.edit("s", lambda _: Edit(**given))
        except HoraeError as error:
            named(error, given)
            return before


def named(error: HoraeError, given: dict[str, Any]) -> None:
    """The error names one of the fields that were given."""
    if isinstance(error, SpecError):
        field = "spec"
    elif isinstance(error, UnknownActionError):
        field = "action"
    elif isinstance(error, NaiveTimeError):
        field = "backfills"
    else:
        field = error.details["field"].partition(".")[0].partition("[")[0]
    assert field in given or field in {"start", "end", "note", "overlap", "input"}, error


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        database = f"sqlite:///{tmp_path_factory.mktemp('read-back')}/horae.db"
    else:
        database = new_postgres_database(request.getfixturevalue("postgres_server"))
    store = Store(database)
    with store.runner:
        store.runner.run(store.app.__aenter__())
        yield store
        store.runner.run(store.app.__aexit__(None, None, None))


@given(wrong(NewSchedule))
def test_a_new_schedule_is_refused_by_name_or_reads_back_equal(store: Store, given: dict[str, Any]):
    store.run(store.create(given))


@given(wrong(Edit))
def test_an_edit_is_refused_by_name_or_reads_back_equal(store: Store, given: dict[str, Any]):
    store.run(store.update(given))

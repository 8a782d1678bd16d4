"""Reconciling an owner's tasks: the registered ones, and no others, are stored; other owners' tasks stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest

from horae import App
from horae.app.reconcile import DesiredTask
from horae.errors import TaskInvalidTypeError
from horae.spec import PosixCron


def desired(name: str, cron: str = "0 0 1 1 *", delay: int = 1000) -> dict[str, DesiredTask]:
    spec = PosixCron.registered(cron, "UTC").spec.text
    return {name: DesiredTask(id=name, name=name, cron=cron, delay_ms=delay, spec=spec)}


@pytest.fixture
async def app(database: str) -> AsyncIterator[App]:
    async with App(database) as app:
        yield app


@pytest.mark.contract("DECL-36")
async def test_the_registered_tasks_and_no_others_are_stored(app: App):
    ada, bob = app.owned_by("ada").tasks, app.owned_by("bob").tasks
    await bob.reconcile(desired("b"))
    first = await ada.reconcile(desired("a") | desired("gone"))
    again = await ada.reconcile(desired("a", delay=2000) | desired("new"))
    assert Counter(first.classes.values()) == {"new": 2}
    assert again.classes == {"a": "overridden", "new": "new", "gone": "forgotten"}
    assert (again.forgotten, again.retrying) == (("gone",), {})
    assert [(each.id, each.owner, each.version) for each in await app.schedules.list()] == [
        ("a", "ada", 2), ("b", "bob", 1), ("new", "ada", 1),
    ]  # fmt: skip


async def test_a_reconciled_task_is_stored_as_it_was_registered(app: App):
    """Each column is read under its own name: what was just written compares equal, and is not written again."""
    tasks = app.owned_by("ada").tasks
    await tasks.reconcile(desired("a"))
    before = await app.schedules.get("a")
    assert (await tasks.reconcile(desired("a"))).classes == {"a": "preserved"}
    assert await app.schedules.get("a") == before


async def test_one_unreadable_record_changes_nothing(app: App):
    tasks = app.owned_by("ada").tasks
    await tasks.reconcile(desired("a"))
    schedule = await app.schedules.get("a")
    spoiled = msgspec.structs.replace(schedule.action, input=schedule.action.input | {"cron": 5})
    async with app.transaction() as transaction:
        await transaction.update_schedules([(msgspec.structs.replace(schedule, action=spoiled), None)])
    with pytest.raises(TaskInvalidTypeError):
        await tasks.reconcile(desired("a") | desired("b"))
    assert [each.id for each in await app.schedules.list()] == ["a"]

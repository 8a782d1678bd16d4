"""The calls of the registrar: register, change, pause, delete, read."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from horae import App, Config, Context, Policies
from horae.errors import (
    InvalidInputError,
    PermissionDeniedError,
    ScheduleAmbiguousError,
    ScheduleNotFoundError,
)
from horae.registrar import Registrar
from horae.testing import TimeMachine
from tests.face.registrar.inputs import GOOD
from tests.support.nodes import keeping_time
from tests.support.process import printed_by
from tests.support.wait import wait_until

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOURLY = GOOD | {"schedule_id": "s", "cron_expr": "0 * * * *", "timezone": "UTC"}


def at(hour: int, minute: int = 0, second: int = 0, *, day: int = 5) -> datetime:
    return datetime(2026, 1, day, hour, minute, second, tzinfo=UTC)


@pytest.fixture
def registrar(machine: TimeMachine) -> Registrar:
    return Registrar(machine.app)


@pytest.mark.contract("CRON-01")
async def test_a_schedule_shows_every_field_with_its_defaults(machine: TimeMachine, registrar: Registrar):
    upserted = await registrar.upsert_schedule(HOURLY | {"version": 7})
    assert (upserted.schedule_id, upserted.next_run_at) == ("s", at(9))
    assert msgspec.structs.asdict(await registrar.get_schedule("s")) == {
        "schedule_id": "s",
        "workflow_id": "report",
        "version": 7,
        "user_id": "alice",
        "cron_expr": "0 * * * *",
        "timezone": "UTC",
        "start_at": None,
        "end_at": None,
        "jitter_ms": 0,
        "overlap_policy": "skip",
        "catchup_policy": "none",
        "paused": False,
        "next_run_at": at(9),
        "updated_at": START,
        "preview": (at(9), at(10), at(11), at(12), at(13)),
    }


@pytest.mark.contract("CRON-01", "CRON-02")
async def test_what_was_given_is_shown_as_it_was_given(registrar: Registrar):
    given = GOOD | {
        "schedule_id": "s",
        "cron_expr": "0 30 9 * * MON-FRI",
        "start_at": "2026-02-01T00:00:00+01:00",
        "end_at": "2026-03-01T00:00:00Z",
        "jitter_ms": 90_000,
        "overlap_policy": "queue",
        "catchup_policy": "fire_immediately",
    }
    await registrar.upsert_schedule(given)
    found = await registrar.get_schedule("s")
    times = {"start_at": datetime(2026, 1, 31, 23, tzinfo=UTC), "end_at": datetime(2026, 3, 1, tzinfo=UTC)}
    shown = {key: value for key, value in msgspec.structs.asdict(found).items() if key in given}
    assert shown == given | times
    assert found.next_run_at == datetime(2026, 2, 2, 14, 30, tzinfo=UTC)


@pytest.mark.contract("CRON-03")
async def test_registering_twice_is_an_upsert(machine: TimeMachine, registrar: Registrar):
    given = {key: value for key, value in HOURLY.items() if key != "schedule_id"}
    first = await registrar.upsert_schedule(given)
    again = await registrar.upsert_schedule(given | {"version": 4})
    assert first.schedule_id == again.schedule_id
    assert [each.id for each in await machine.app.schedules.list()] == [first.schedule_id]
    assert (await registrar.get_schedule(first.schedule_id)).version == 4


@pytest.mark.contract("CRON-03")
async def test_a_change_of_the_version_leaves_the_next_time(machine: TimeMachine, registrar: Registrar):
    """Also a time that is due and not decided yet."""
    await registrar.upsert_schedule(HOURLY)
    machine.clock.move_to(at(9, 0, 30))  # time passes without a step
    again = await registrar.upsert_schedule(HOURLY | {"version": 4, "overlap_policy": "allow"})
    assert again.next_run_at == at(9)
    await machine.advance(seconds=1)
    assert [run.nominal_ms // 1000 for run in await machine.app.runs.list("s")] == [at(9).timestamp()]


@pytest.mark.parametrize(
    ("change", "following"),
    [
        ({"cron_expr": "30 * * * *"}, at(9, 30)),
        ({"timezone": "Asia/Kolkata"}, at(9, 30)),
        ({"start_at": "2026-01-05T12:00:00Z"}, at(12)),
        ({"end_at": "2026-01-05T09:30:00Z"}, None),
    ],
)
@pytest.mark.contract("CRON-03")
async def test_a_change_of_when_moves_the_next_time(
    machine: TimeMachine, registrar: Registrar, change: dict[str, Any], following: datetime | None
):
    await registrar.upsert_schedule(HOURLY)
    machine.clock.move_to(at(9, 0, 30))
    assert (await registrar.upsert_schedule(HOURLY | change)).next_run_at == following
    await machine.advance(seconds=1)
    assert await machine.app.runs.list("s") == []  # a change is not retroactive, and says so
    assert [row.reason for row in await registrar.runs("s")] == [
        "edited: the schedule's spec was changed before it was decided"
    ]


@pytest.mark.contract("CRON-03")
async def test_a_change_of_the_jitter_leaves_the_next_time(machine: TimeMachine, registrar: Registrar):
    """Also the slots of a pause that are still to be caught up with."""
    machine.app.action("report")(_nothing)
    given = HOURLY | {"catchup_policy": "fire_immediately", "overlap_policy": "queue"}
    await registrar.upsert_schedule(given)
    await registrar.pause_schedule("s", True)
    await machine.advance(hours=3)
    await registrar.upsert_schedule(given | {"jitter_ms": 5000})
    await registrar.pause_schedule("s", False)
    assert (await registrar.get_schedule("s")).next_run_at == at(9)
    await machine.advance(minutes=1)
    assert [row.run_at for row in await registrar.runs("s")] == [at(11), at(10), at(9)]


@pytest.mark.contract("CRON-03", "CRON-10")
async def test_an_upsert_keeps_a_pause(machine: TimeMachine, registrar: Registrar):
    await registrar.upsert_schedule(HOURLY)
    await registrar.pause_schedule("s", True)
    assert (await registrar.get_schedule("s")).next_run_at is None
    assert (await registrar.upsert_schedule(HOURLY | {"cron_expr": "*/10 * * * *"})).next_run_at is None
    found = await registrar.get_schedule("s")
    assert (found.paused, found.next_run_at, found.preview) == (True, None, ())
    await machine.advance(hours=2)
    assert await machine.app.runs.list("s") == []
    await registrar.pause_schedule("s", False)
    found = await registrar.get_schedule("s")
    assert (found.paused, found.next_run_at) == (False, at(10, 10))


@pytest.mark.contract("CRON-01")
async def test_pause_and_resume_may_be_said_twice(registrar: Registrar):
    await registrar.upsert_schedule(HOURLY)
    for paused in (True, True, False, False):
        await registrar.pause_schedule("s", paused)
        assert (await registrar.get_schedule("s")).paused is paused


@pytest.mark.contract("CRON-01", "CRON-10")
async def test_a_deleted_schedule_is_gone_and_its_ledger_is_not(machine: TimeMachine, registrar: Registrar):
    machine.app.action("report")(_nothing)
    await registrar.upsert_schedule(HOURLY)
    await machine.advance(hours=2)
    await registrar.delete_schedule("s")
    await machine.advance(hours=2)
    for each in (registrar, Registrar(machine.app, owner="alice")):
        assert [row.run_at for row in await each.runs("s")] == [at(10), at(9)]
    for call in (
        registrar.get_schedule("s"),
        registrar.delete_schedule("s"),
        registrar.pause_schedule("s", True),
        registrar.pause_schedule("s", False),
        Registrar(machine.app, owner="bob").runs("s"),
        registrar.runs("never"),
    ):
        with pytest.raises(ScheduleNotFoundError):
            await call


@pytest.mark.contract("CRON-01", "CRON-18")
async def test_an_owner_sees_only_their_own_schedules(machine: TimeMachine, registrar: Registrar):
    await registrar.upsert_schedule(HOURLY)
    alice, bob = (Registrar(machine.app, owner=name) for name in ("alice", "bob"))
    assert (await alice.get_schedule("s")).user_id == "alice"
    for call in (
        bob.get_schedule("s"),
        bob.pause_schedule("s", True),
        bob.delete_schedule("s"),
        bob.runs("s"),
    ):
        with pytest.raises(ScheduleNotFoundError):
            await call
    with pytest.raises(PermissionDeniedError):
        await bob.upsert_schedule(HOURLY)
    for other in (bob, registrar):  # an id is its user's
        upserted = await other.upsert_schedule(HOURLY | {"user_id": "bob", "cron_expr": "0 7 * * *"})
        assert upserted.schedule_id == "s"
    assert [(await each.get_schedule("s")).user_id for each in (alice, bob)] == ["alice", "bob"]
    assert (await alice.get_schedule("s")).cron_expr == HOURLY["cron_expr"]
    with pytest.raises(ScheduleAmbiguousError):
        await registrar.get_schedule("s")


@pytest.mark.contract("CRON-01")
async def test_schedules_of_other_faces_are_shown_as_far_as_there_are_words(
    machine: TimeMachine, registrar: Registrar
):
    machine.app.action("work")(_nothing)
    spec = {"crons": ["0 9 * * mon"], "timezone": "Europe/Berlin", "jitter": "30s"}
    await machine.app.schedules.create("one", spec, "work", owner="carol")
    await machine.app.schedules.create("many", {"crons": ["0 9 * * *", "0 8 * * *"]}, "work")
    await machine.app.schedules.create("every", {"intervals": [{"every": "1h"}]}, "work")
    found = await registrar.get_schedule("one")
    assert (found.workflow_id, found.version, found.user_id) == (None, None, "carol")
    assert (found.cron_expr, found.timezone, found.jitter_ms) == ("0 9 * * 1", "Europe/Berlin", 30_000)
    assert (found.overlap_policy, found.catchup_policy) == ("skip", "fire_immediately")
    for each in ("many", "every"):
        found = await registrar.get_schedule(each)
        assert (found.cron_expr, len(found.preview)) == (None, 5)


@pytest.mark.contract("CRON-01")
async def test_a_change_by_another_face_is_shown(machine: TimeMachine, registrar: Registrar):
    await registrar.upsert_schedule(HOURLY | {"cron_expr": "0 9 * * MON"})
    await machine.app.schedules.update("s", {"crons": ["15 9 * * tue"]}, policies=Policies())
    found = await registrar.get_schedule("s")
    assert (found.cron_expr, found.catchup_policy) == ("15 9 * * 2", "fire_immediately")


@pytest.mark.contract("CRON-13")
async def test_what_others_set_survives_an_upsert(machine: TimeMachine, registrar: Registrar):
    await registrar.upsert_schedule(HOURLY)
    policies = (await machine.app.schedules.get("s")).policies
    timeouts = msgspec.structs.replace(policies.timeouts, run="5s")
    await machine.app.schedules.update(
        "s", policies=msgspec.structs.replace(policies, timeouts=timeouts), tags=("registrar", "mine")
    )
    await registrar.upsert_schedule(HOURLY | {"overlap_policy": "queue"})
    schedule = await machine.app.schedules.get("s")
    assert (schedule.policies.timeouts.run, schedule.policies.overlap) == ("5s", "buffer_all")
    assert set(schedule.tags) == {"registrar", "mine"}


@pytest.mark.contract("CRON-04")
async def test_exhausted_is_no_next_time(machine: TimeMachine, registrar: Registrar):
    machine.app.action("report")(_nothing)
    upserted = await registrar.upsert_schedule(HOURLY | {"end_at": "2026-01-05T10:00:00Z"})
    assert upserted.next_run_at == at(9)
    assert (await registrar.get_schedule("s")).preview == (at(9), at(10))
    await machine.advance(days=30)
    found = await registrar.get_schedule("s")  # kept, though it has nothing left to fire
    assert (found.next_run_at, found.preview, found.paused) == (None, (), False)
    over = await registrar.upsert_schedule(GOOD | {"end_at": "2020-01-01T00:00:00Z"})
    assert over.next_run_at is None


@pytest.mark.parametrize("limit", [0, -1, 1001])
@pytest.mark.contract("CRON-17")
async def test_the_ledger_is_read_in_pieces(registrar: Registrar, limit: int):
    await registrar.upsert_schedule(HOURLY)
    with pytest.raises(InvalidInputError, match=r"^limit must be from 1 to 1000"):
        await registrar.runs("s", limit)


@pytest.mark.contract("CRON-01", "CRON-03")
async def test_upserts_at_once_make_one_schedule_on_both_stores(tmp_path: Path, postgres: str):
    for database in (f"sqlite:///{tmp_path / 'horae.db'}", postgres):
        async with App(database) as app, App(database) as other:
            registrars = [Registrar(app), Registrar(other)]
            upserted = await asyncio.gather(
                *(registrars[n % 2].upsert_schedule(GOOD | {"version": n}) for n in range(6))
            )
            assert len({(each.schedule_id, each.next_run_at) for each in upserted}) == 1
            found = await registrars[0].get_schedule(upserted[0].schedule_id)
            assert (found.user_id, found.cron_expr) == ("alice", "0 9 * * 1-5")
            await registrars[1].pause_schedule(found.schedule_id, True)
            assert (await registrars[0].get_schedule(found.schedule_id)).paused
            await registrars[0].delete_schedule(found.schedule_id)
            assert await app.schedules.list() == []


@pytest.mark.contract("CRON-01", "CRON-10", "CRON-17")
async def test_slots_by_the_second_on_both_stores(tmp_path: Path, postgres: str):
    for database in (f"sqlite:///{tmp_path / 'horae.db'}", postgres):
        async with App(database, config=Config(tick_ms=100)) as app:
            app.action("report")(_nothing)
            registrar = Registrar(app)
            await registrar.upsert_schedule(HOURLY | {"cron_expr": "* * * * * *"})

            async def shows(status: str, registrar: Registrar = registrar) -> bool:
                return status in {row.status for row in await registrar.runs("s")}

            async with keeping_time(app):
                await wait_until(lambda: shows("SUCCESS"))
                await registrar.pause_schedule("s", True)
                await asyncio.sleep(2)
                await registrar.pause_schedule("s", False)
                await wait_until(lambda: shows("SKIPPED"))
            rows = (await registrar.runs("s", 1000))[::-1]
            gaps = {later.run_at - earlier.run_at for earlier, later in pairwise(rows)}
            assert gaps == {timedelta(seconds=1)}  # every slot, once, with what became of it
            assert {row.reason for row in rows if row.status == "SKIPPED"} == {
                "paused: the schedule was paused"
            }
            assert all(row.updated_at >= row.run_at for row in rows)


def test_importing_horae_does_not_load_the_registrar():
    code = "import sys, horae; print('horae.registrar' in sys.modules); import horae.registrar as r; print(r.Registrar, 'horae.face.http.routes' in sys.modules)"
    assert printed_by(code).split() == [
        "False",
        "<class",
        "'horae.face.registrar.registrar.Registrar'>",
        "False",
    ]


async def _nothing(context: Context) -> None:
    pass

"""What is late, what waits in a queue, and what jitter moves: slots on a virtual clock."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from horae import Config, Context
from horae.errors import InvalidSpecError
from horae.model import CatchUp, CatchUpPolicy, Overlap, Policies, Status, WhenFull
from horae.spec import Spec
from horae.testing import TimeMachine
from tests.support.machine import START, Recorder, accounted, at

QUEUE = Policies(
    overlap=Overlap("queue"),
    catch_up=CatchUpPolicy(mode=CatchUp.NONE),
    max_buffer_size=3,
    when_full=WhenFull.WAIT,
    expire_waiting=False,
)


@pytest.mark.contract("CRON-07")
@pytest.mark.parametrize(
    "policies",
    [
        QUEUE,
        msgspec.structs.replace(QUEUE, max_buffer_size=1),
        msgspec.structs.replace(QUEUE, overlap=Overlap.ALLOW_ALL, max_concurrent=1),
    ],
    ids=["three", "one", "allow, one at a time"],
)
async def test_a_queue_at_its_limit_lets_the_cursor_wait_and_loses_no_slot(
    machine: TimeMachine, policies: Policies
):
    """Each run takes five minutes, a slot comes every minute for half an hour; nothing is made up for being late."""
    slow = machine.app.action("slow")(Recorder(machine, 300))
    spec = {"crons": ["* * * * *"], "end_at": at(30).isoformat()}
    await machine.app.schedules.create("s", spec, "slow", policies=policies)
    await machine.advance(minutes=30)
    runs = await machine.app.runs.list("s")
    assert sum(run.status is Status.PENDING for run in runs) <= (policies.max_buffer_size or 0)
    schedule = await machine.app.schedules.get("s")
    assert schedule.state.buffer_full
    assert (
        schedule.cursor_ms // 1000 == runs[0].nominal_ms // 1000 + 59
    )  # everything before the first that stays due is decided
    await machine.advance(hours=3)
    assert slow.nominal == [at(m) for m in range(1, 31)]
    assert await machine.app.runs.unstarted_ranges("s") == []
    state = (await machine.app.schedules.get("s")).state
    assert (state.buffer_full, state.completed_at_ms) == (False, int(at(151).timestamp() * 1000))


@pytest.mark.contract("CRON-07")
async def test_a_queue_that_has_come_up_with_the_time_judges_lateness_again(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 90))
    spec = {"crons": ["0-9,30 * * * *"]}
    await machine.app.schedules.create("s", spec, "slow", policies=QUEUE)
    await machine.advance(minutes=25)
    assert slow.nominal == [at(m) for m in range(1, 10)]
    assert not (await machine.app.schedules.get("s")).state.buffer_full
    machine.clock.move_to(at(35))
    await machine.advance(minutes=1)
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.start_ms // 1000, unstarted.reason) == (1, at(30).timestamp(), "late")


@pytest.mark.contract("CRON-07")
async def test_a_queue_that_stood_full_over_a_restart_is_not_late(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 600))
    spec = {"crons": ["* * * * *"], "end_at": at(8).isoformat()}
    await machine.app.schedules.create("s", spec, "slow", policies=QUEUE)
    await machine.advance(minutes=6)
    machine.clock.move_to(at(60))  # a long silence
    await machine.advance(hours=2)
    assert slow.nominal == [at(m) for m in range(1, 9)]


@pytest.mark.contract("CRON-07")
@pytest.mark.parametrize(
    ("overlap", "started", "skipped"), [("allow", [1, 2, 3], 0), ("skip", [1, 3], 1), ("queue", [1, 2], 0)]
)
async def test_overlap_is_judged_at_fire_time(
    machine: TimeMachine, overlap: str, started: list[int], skipped: int
):
    slow = machine.app.action("slow")(Recorder(machine, 90))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=Policies(overlap=Overlap(overlap)))
    await machine.advance(minutes=3)
    assert slow.nominal == [at(m) for m in started]
    unstarted = await machine.app.runs.unstarted_ranges("s")
    assert [(each.count, each.status, each.reason) for each in unstarted] == [
        (1, "skipped", "overlap")
    ] * skipped
    assert await accounted(machine, "s") == 3


@pytest.mark.contract("SCHD-12")
async def test_a_start_that_waited_longer_than_the_window_is_missed_when_released(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 200))
    policies = Policies(overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(window="1m"))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    for _ in range(2):  # the second waits as long as it must
        await machine.app.schedules.trigger("s")
    await machine.advance(minutes=7)
    assert slow.nominal == [START, START, at(6)]
    automatic = [run for run in reversed(await machine.app.runs.list("s")) if run.is_automatic]
    assert [run.nominal_ms // 1000 for run in automatic] == [at(m).timestamp() for m in range(1, 8)]
    assert [(run.status, run.reason) for run in automatic] == [
        *[(Status.MISSED, "late")] * 5,
        (Status.RUNNING, ""),
        (Status.PENDING, ""),
    ]
    assert (await machine.app.schedules.counts("s")).missed == 5


@pytest.mark.contract("SCHD-12")
@pytest.mark.parametrize("mode", ["all", "none"])
async def test_a_start_that_waited_within_the_grace_is_on_time(machine: TimeMachine, mode: str):
    slow = machine.app.action("slow")(Recorder(machine, 65))
    policies = Policies(overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(mode=CatchUp(mode), window="0s"))
    await machine.app.schedules.create("s", "* * * * *", "slow", policies=policies)
    await machine.advance(minutes=4)
    assert slow.nominal == [at(1), at(2), at(3)]  # the third waited ten seconds


@pytest.mark.contract("CRON-08", "SCHD-12")
@pytest.mark.parametrize(
    ("catch_up", "started", "missed"),
    [
        (CatchUpPolicy(mode=CatchUp.NONE, grace="1m"), [59, 60], 58),  # within the grace is on time
        (CatchUpPolicy(), list(range(1, 61)), 0),
        (CatchUpPolicy(mode=CatchUp.LATEST), [60], 59),
        (CatchUpPolicy(window="0s"), [60], 59),
        (CatchUpPolicy(window="10m"), list(range(50, 61)), 49),
    ],
    ids=["none", "all", "latest", "window 0", "window 10 min"],
)
async def test_after_an_hour_of_downtime(
    machine: TimeMachine, hello: Recorder, catch_up: CatchUpPolicy, started: list[int], missed: int
):
    policies = Policies(overlap=Overlap.ALLOW_ALL, catch_up=catch_up)
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=policies)
    machine.clock.move_to(at(60))
    await machine.advance(seconds=1)
    assert hello.nominal == [at(m) for m in started]
    assert (await machine.app.schedules.counts("s")).missed == missed
    assert len(await machine.app.runs.unstarted_ranges("s")) == bool(missed)


@pytest.mark.contract("CRON-08")
async def test_spread_distributes_what_is_late_and_nothing_else(machine: TimeMachine, hello: Recorder):
    catch_up = CatchUpPolicy(mode=CatchUp.SPREAD, grace="1s", spread="1m")
    policies = Policies(overlap=Overlap.ALLOW_ALL, catch_up=catch_up)
    await machine.app.schedules.create("s", "*/10 * * * *", "hello", policies=policies)
    machine.clock.move_to(at(65))
    await machine.advance(minutes=10)
    ticks = [(at(10 * n), at(65) + timedelta(seconds=10 * (n - 1))) for n in range(1, 7)]
    assert hello.called == [*ticks, (at(70), at(70))]


@pytest.mark.contract("CRON-08", "SCHD-12")
async def test_many_late_schedules_take_turns():
    """Of a long outage each schedule makes up so many a pass, with the others in between."""
    async with TimeMachine(START, Config(max_catchup_per_tick=10)) as machine:
        order: list[str] = []

        @machine.app.action("note")
        async def note(context: Context) -> None:
            order.append(context.schedule_id)

        for name in ("a", "b"):
            policies = Policies(overlap=Overlap.ALLOW_ALL)
            await machine.app.schedules.create(name, "* * * * *", "note", policies=policies)
        machine.clock.move_to(at(30))
        await machine.app.engine.step(machine.app.now())
        assert [len(await machine.app.runs.list(name)) for name in ("a", "b")] == [10, 10]
        await machine.advance(seconds=0)
    assert order == (["a"] * 10 + ["b"] * 10) * 3


@pytest.mark.contract("CRON-09", "SCHD-07")
async def test_jitter_moves_the_fire_time_and_nothing_else(machine: TimeMachine, hello: Recorder):
    document = {"crons": ["*/10 * * * *"], "jitter": {"span": "2m", "centred": True}}
    await machine.app.schedules.create("s", document, "hello")
    await machine.advance(hours=10)
    spec = Spec.parse(document)
    assert hello.nominal[:59] == [at(10 * n) for n in range(1, 60)]
    for nominal, began in hello.called:
        assert abs(began - nominal) <= timedelta(minutes=2)
        assert abs((began - spec.fire_time(nominal, "s")).total_seconds()) < 0.002
    assert any(began < nominal for nominal, began in hello.called)
    assert any(began > nominal for nominal, began in hello.called)


@pytest.mark.contract("SCHD-07")
async def test_nothing_done_between_nominal_and_fire_time_loses_a_run(machine: TimeMachine, hello: Recorder):
    document = {"crons": ["0 * * * *"], "jitter": "30m"}
    await machine.app.schedules.create("s", document, "hello")
    fire = Spec.parse(document).fire_time(at(60), "s")
    assert fire > at(61)
    await machine.advance(minutes=60, seconds=30)
    await machine.app.schedules.pause("s")
    await machine.app.schedules.resume("s")
    await machine.app.schedules.update("s", policies=Policies(), tags=["edited"])
    await machine.advance(minutes=40)
    assert hello.nominal == [at(60)]


@pytest.mark.contract("SCHD-32")
def test_the_settings_have_the_defaults_of_the_contract():
    config = Config()
    assert (config.max_buffer_size, config.backfills_per_iteration) == (1000, 10)
    assert (config.limits.max_buffer_size, config.limits.backfills_per_pass) == (1000, 10)


@pytest.mark.contract("SCHD-32")
@pytest.mark.parametrize("every", ["999ms", "0.5s", "0s", 0])
async def test_an_interval_shorter_than_a_second_is_refused(machine: TimeMachine, every: object):
    machine.app.action("hello")(Recorder(machine))
    with pytest.raises(InvalidSpecError):
        await machine.app.schedules.create("s", {"intervals": [{"every": every}]}, "hello")


@pytest.mark.contract("SCHD-32")
async def test_nothing_is_written_before_it_is_due(machine: TimeMachine):
    machine.app.action("hello")(Recorder(machine))
    await machine.app.schedules.create("s", {"intervals": [{"every": "1s"}]}, "hello")
    await machine.advance(seconds=5)
    assert len(await machine.app.runs.list("s")) == 5
    assert max(run.fire_ms for run in await machine.app.runs.list("s")) == machine.app.now()


@pytest.mark.contract("SCHD-12", "CRON-06")
async def test_a_clock_that_is_set_back_fires_nothing_twice(machine: TimeMachine, hello: Recorder):
    await machine.app.schedules.create("s", "* * * * *", "hello")
    await machine.advance(minutes=5)
    machine.clock.set_back(minutes=3)
    await machine.advance(minutes=2, seconds=59)
    assert hello.nominal == [at(m) for m in range(1, 6)]
    await machine.advance(minutes=2)
    assert hello.nominal == [at(m) for m in range(1, 7)]
    assert await accounted(machine, "s") == 6


@pytest.mark.contract("SCHD-10")
async def test_a_released_start_that_is_not_launched_yet_counts_as_running(machine: TimeMachine):
    """No node can claim it for the moment."""
    machine.app.action("elsewhere")(Recorder(machine))
    await machine.app.schedules.create("s", "* * * * *", "elsewhere")
    machine.app.functions.unregister("elsewhere")
    await machine.advance(minutes=3)
    (run,) = await machine.app.runs.list("s")
    assert run.status is Status.STARTING
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.reason) == (2, "overlap")


@pytest.mark.contract("SCHD-10")
@pytest.mark.parametrize("overlap", ["cancel_other", "terminate_other"])
async def test_starts_that_were_replaced_in_one_pass_are_recorded(
    machine: TimeMachine, hello: Recorder, overlap: str
):
    await machine.app.schedules.create("s", "* * * * *", "hello", policies=Policies(overlap=Overlap(overlap)))
    machine.clock.move_to(at(4))
    await machine.advance(seconds=0)
    assert hello.nominal == [at(4)]
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.status, unstarted.reason) == (3, Status.SKIPPED, "replaced")


@pytest.mark.contract("SCHD-10", "SCHD-32")
async def test_a_thousand_starts_wait_and_no_more(machine: TimeMachine):
    machine.app.action("slow")(Recorder(machine, 1_000_000))
    policies = Policies(overlap=Overlap.BUFFER_ALL)
    await machine.app.schedules.create("s", "* * * * * *", "slow", policies=policies)
    machine.clock.move_to(START + timedelta(seconds=1100))
    await machine.advance(seconds=0)
    runs = await machine.app.runs.list("s", 1000)
    assert len(runs) == 1000
    counts = await machine.app.schedules.counts("s")
    assert (counts.started, counts.dropped) == (1, 99)
    (unstarted,) = await machine.app.runs.unstarted_ranges("s")
    assert (unstarted.count, unstarted.reason) == (99, "buffer_full")


@pytest.mark.contract("SCHD-23", "SCHD-26")
async def test_an_edit_keeps_what_waits(machine: TimeMachine):
    slow = machine.app.action("slow")(Recorder(machine, 90))
    await machine.app.schedules.create(
        "s", "* * * * *", "slow", policies=Policies(overlap=Overlap.BUFFER_ALL)
    )
    await machine.advance(minutes=2)
    await machine.app.schedules.update("s", "0 * * * *")
    await machine.advance(minutes=10)
    assert slow.nominal == [at(1), at(2)]

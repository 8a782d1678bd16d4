"""Resuming says what it starts, does just that, and can do it the other way for once."""

from __future__ import annotations

import pytest

from horae import CatchUp, CatchUpPolicy, OnResume, Overlap, Policies
from horae.errors import InvalidInputError
from horae.model import Reason, State
from horae.testing import TimeMachine
from tests.support.machine import Recorder, at


@pytest.fixture
def work(machine: TimeMachine) -> Recorder:
    return machine.app.action("a")(Recorder(machine))


async def paused(machine: TimeMachine, policies: Policies) -> None:
    await machine.app.schedules.create("s", "* * * * *", "a", policies=policies)
    await machine.app.schedules.pause("s")
    await machine.advance(minutes=5.5)


@pytest.mark.parametrize(
    "policies",
    [
        Policies(),
        Policies(overlap=Overlap.BUFFER_ALL),
        Policies(on_resume=OnResume.SKIP),
        Policies(catch_up=CatchUpPolicy(mode=CatchUp.LATEST)),
        Policies(overlap=Overlap.ALLOW_ALL, catch_up=CatchUpPolicy(window="2m")),
    ],
)
@pytest.mark.parametrize("way", [None, *OnResume])
async def test_what_it_says_is_what_happens(
    machine: TimeMachine, work: Recorder, policies: Policies, way: OnResume | None
):
    await paused(machine, policies)
    done = (await machine.app.schedules.resume("s", on_resume=way)).resumption
    await machine.advance(seconds=1)
    said = sum(each.count for each in (done.starts, done.waits) if each is not None)
    assert len(work.called) == said
    counts = (await machine.app.schedules.counts("s")).unstarted
    assert counts == {each.reason: each.count for each in done.unstarted}
    assert said + sum(counts.values()) == 5
    assert done.on_resume is (way or policies.on_resume)
    await machine.advance(minutes=1)
    assert work.nominal[-1] == at(6)


async def test_the_other_way_is_for_this_once(machine: TimeMachine, work: Recorder):
    await paused(machine, Policies(overlap=Overlap.ALLOW_ALL))
    await machine.app.schedules.resume("s", on_resume="skip")
    await machine.app.schedules.pause("s")  # before any decision
    await machine.advance(minutes=2)
    done = await machine.app.schedules.resume("s")
    await machine.advance(seconds=1)
    assert done.schedule.policies.on_resume is OnResume.CATCH_UP
    assert work.nominal == [at(6), at(7)]
    assert (await machine.app.schedules.counts("s")).unstarted == {Reason.PAUSED: 5}


async def test_a_dry_run_changes_nothing(machine: TimeMachine, work: Recorder):
    await paused(machine, Policies(overlap=Overlap.ALLOW_ALL))
    before = await machine.app.schedules.get("s")
    would = await machine.app.schedules.resume("s", "why", on_resume="skip", dry_run=True)
    assert (would.schedule, would.resumption.unstarted[0].count) == (before, 5)
    await machine.advance(seconds=1)
    assert (await machine.app.schedules.get("s"), work.called) == (before, [])
    assert before.state == State(paused=True)


async def test_another_way_is_refused(machine: TimeMachine, work: Recorder):
    await paused(machine, Policies())
    with pytest.raises(InvalidInputError, match="on_resume"):
        await machine.app.schedules.resume("s", on_resume="sometimes")  # type: ignore[arg-type]

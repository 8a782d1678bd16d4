"""The plan of a campaign: the same from the same seed, and one node of three is always left to work."""

from __future__ import annotations

import pytest

from tests.chaos.fleet import Rhythm, fleet
from tests.chaos.plan import LOSING, NODES, WEIGHTS, plan_faults, plan_operations


@pytest.mark.parametrize("store", WEIGHTS)
def test_everything_follows_from_the_seed(store: str):
    faults = plan_faults(7, store, 600, 4)
    assert faults == plan_faults(7, store, 600, 4) != plan_faults(8, store, 600, 4)
    assert {fault.kind for fault in faults} == set(WEIGHTS[store])
    operations = plan_operations(7, store, 600, fleet(), faults)
    assert operations == plan_operations(7, store, 600, fleet(), faults)
    assert {operation.kind for operation in operations} == {"pause", "edit", "trigger", "backfill"}


@pytest.mark.parametrize("store", WEIGHTS)
def test_one_node_is_always_left_and_all_faults_end_in_time(store: str):
    for seed in range(20):
        faults = plan_faults(seed, store, 200, 4)
        assert all(fault.until <= 200.01 for fault in faults)
        for fault in faults:
            lost = {
                each.node for each in faults if each.kind in LOSING and each.at <= fault.at < each.until
            }  # fmt: skip
            assert len(lost) < NODES


@pytest.mark.parametrize("rhythm", [Rhythm(7, 3), Rhythm(4, 1, cron=True)])
def test_the_slots_of_a_rhythm_are_plain_arithmetic(rhythm: Rhythm):
    for after in range(30):
        expected = [second for second in range(after + 1, 61) if second % rhythm.every == rhythm.phase]
        assert list(rhythm.slots(after, 60)) == expected


def test_the_fleet_has_every_kind_and_ids_of_its_own():
    schedules = fleet()
    assert len({each.id for each in schedules}) == len(schedules)
    assert all(each.rhythm.phase < each.rhythm.every for each in schedules)
    assert all(60 % each.rhythm.every == 0 for each in schedules if each.rhythm.cron)

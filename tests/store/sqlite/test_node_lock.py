"""The locks by which processes that share a file know of each other's death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from horae.store.sqlite.node_lock import NodeLock, is_held
from tests.support.wait import wait_for


def test_a_lock_is_held_until_it_is_released_also_within_one_process(tmp_path: Path):
    path = str(tmp_path / "lock")
    assert is_held(path) is None
    lock = NodeLock(path)
    assert lock.holds
    assert is_held(path)
    assert is_held(path)  # looking at it released nothing
    lock.release()
    assert not lock.holds
    assert is_held(path) is False


def test_a_lock_whose_file_was_removed_or_replaced_is_lost(tmp_path: Path):
    path = tmp_path / "lock"
    lock = NodeLock(str(path))
    path.unlink()
    assert not lock.holds
    path.touch()
    assert not lock.holds
    lock.release()


FORKING = """
import os, sys, time
from horae.store.sqlite.node_lock import NodeLock
lock = NodeLock(sys.argv[1])
child = os.fork()
if child == 0:
    print(os.getpid(), lock.holds, flush=True)
    time.sleep(60)
time.sleep(60)
"""


def test_a_forked_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path: Path):
    path = str(tmp_path / "lock")
    parent = subprocess.Popen([sys.executable, "-c", FORKING, path], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child, holds = parent.stdout.readline().split()
    try:
        assert holds == "False"
        assert is_held(path)
        parent.kill()
        parent.wait()
        wait_for(lambda: is_held(path) is False)
    finally:
        os.kill(int(child), signal.SIGKILL)
        parent.stdout.close()

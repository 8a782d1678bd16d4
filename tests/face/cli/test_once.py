"""``horae once``: on a server, and on its database."""

from __future__ import annotations

import uuid

import pytest

from tests.face.cli.command import answered, horae, refused
from tests.support.wait import wait_for

BOTH = pytest.mark.parametrize("target", ["url", "database"], indirect=True)


@BOTH
def test_an_action_is_run_once_after_a_span(target: list[str]):
    key = f"once-{uuid.uuid4().hex}"
    asked = ["once", "greet", "--in", "0s", "--input", '{"rows": 10}', "--key", key, *target]
    made = answered(*asked)
    assert (made["id"], made["action"]["input"]) == (key, {"rows": 10})
    wait_for(lambda: [each["status"] for each in answered("runs", "list", key, *target)] == ["succeeded"])
    assert answered(*asked)["spec"] == made["spec"]  # the same again
    assert len(answered("runs", "list", key, *target)) == 1


def test_an_action_is_run_once_at_a_time(target: list[str]):
    made = answered("once", "greet", "--at", "2099-03-08 09:00", "--tz", "Asia/Kolkata", *target)
    assert made["next_time"] == "2099-03-08T03:30:00Z"
    ran = horae("once", "greet", "--at", "2099-03-08T09:00:00Z", *target)
    assert "Scheduled" in ran.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "with --in or --at"),
        (["--in", "1h", "--at", "tomorrow"], "with --in or --at"),
        (["--in", "soon"], '--in is "soon", which is not a duration'),
        (["--in", "-5m"], '--in is "-5m", which is not a duration'),
        (["--in", "10"], "--in is 10, a number without a unit"),
        (["--at", "2020-01-01"], "--at is in the past: 2020-01-01"),
        (["--at", "soon"], "no time"),
    ],
)
def test_a_mistake_is_said(target: list[str], options: list[str], words: str):
    assert words in refused("once", "greet", *options, *target)["message"]

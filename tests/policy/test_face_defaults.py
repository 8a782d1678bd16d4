"""The table of defaults: what each face stores with its schedules, and shows of its runs."""

import pytest

from horae.model import CatchUp, OnResume, Overlap, Policies, Status, WhenFull
from horae.policy.face_defaults import (
    GRANTS,
    SCHEDULES,
    TEMPORAL,
    declarative,
    grants_show,
    registrar,
    registrar_shows,
)
from horae.policy.validate import check_policies
from horae.spec.duration import milliseconds

NONE = registrar(Overlap.SKIP, CatchUp.NONE, 60_000, 60_000)
ALL = registrar(Overlap.BUFFER_ALL, CatchUp.ALL, 60_000, 60_000)


@pytest.mark.parametrize(
    ("face", "overlap", "mode", "window", "on_resume", "start_attempts", "kept"),
    [
        (declarative(5000), "buffer_one", "latest", None, "catch_up", 1, None),
        (NONE, "skip", "none", None, "skip", 3, None),
        (ALL, "buffer_all", "all", None, "catch_up", 3, None),
        (GRANTS, "skip", "none", None, "skip", 3, None),
        (SCHEDULES, "skip", "all", None, "catch_up", 10, "7d"),
        (TEMPORAL, "skip", "all", "365d", "skip", 10, "7d"),
    ],
)
@pytest.mark.contract("SCHD-10", "SCHD-12", "SCHD-16", "CRON-10")
def test_the_table_of_defaults(
    face: Policies,
    overlap: str,
    mode: str,
    window: str | None,
    on_resume: str,
    start_attempts: int,
    kept: str | None,
):
    check_policies(face)
    assert (face.overlap, face.catch_up.mode, face.catch_up.window) == (overlap, mode, window)
    assert (face.on_resume, face.start_attempts, face.finished_ttl) == (on_resume, start_attempts, kept)
    assert milliseconds(face.catch_up.grace) >= 10_000


@pytest.mark.contract("CRON-07", "CRON-08", "GRNT-11")
def test_what_sets_the_faces_apart():
    assert (NONE.catch_up.grace, NONE.catch_up.spread) == ("1m", "1m")
    assert (ALL.when_full, ALL.expire_waiting) == (WhenFull.WAIT, False)
    assert (GRANTS.backfill_limit, GRANTS.catch_up.grace) == (0, "10s")
    retry = declarative(5000).retry
    assert (retry.attempts, retry.initial_delay, retry.factor, retry.preempted) == (None, "5s", 1, True)
    assert SCHEDULES.on_resume is OnResume.CATCH_UP


@pytest.mark.contract("GRNT-15")
def test_every_status_has_a_word_in_every_face():
    words = {registrar_shows(status, "") for status in Status}
    assert words == {"ENQUEUED", "STARTED", "SUCCESS", "FAILED", "SKIPPED"}
    assert {grants_show(status) for status in Status} == {
        "pending",
        "running",
        "success",
        "error",
        "cancelled",
        "skipped",
    }

"""What brought a run about: one value, and one text of it."""

from __future__ import annotations

import pytest

from horae.model import AUTOMATIC, Origin, OriginKind, Overlap, Run, ScheduleKey, Status
from horae.policy.ledger_changes import run_id
from horae.spec import slot_key


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (AUTOMATIC, "automatic"),
        (Origin(OriginKind.AUTOMATIC, "2"), "automatic:2"),
        (Origin(OriginKind.TRIGGER, "7"), "trigger:7"),
        (Origin(OriginKind.BACKFILL, "a:b"), "backfill:a:b"),
    ],
)
def test_an_origin_is_read_from_its_text(origin: Origin, text: str):
    assert str(origin) == text
    assert Origin.parse(text) == origin


@pytest.mark.parametrize("text", ["", "weird", ":7", "Automatic"])
def test_an_unknown_kind_is_no_origin(text: str):
    with pytest.raises(ValueError, match="OriginKind"):
        Origin.parse(text)


@pytest.mark.contract("CRON-06")
@pytest.mark.parametrize("text", ["automatic", "automatic:2", "trigger:7", "backfill:b"])
def test_only_the_slot_itself_has_the_key_of_the_slot(text: str):
    origin = Origin.parse(text)
    run = Run(
        id=run_id(ScheduleKey("s"), 1, 60_000, origin), schedule_key=ScheduleKey("s"), generation=1, nominal_ms=60_000, origin=origin, overlap=Overlap.SKIP,
        status=Status.PENDING, fire_ms=60_000, start_at_ms=60_000,
    )  # fmt: skip
    assert run.is_automatic is text.startswith("automatic")
    assert run.key == (slot_key("s", 60) if origin == AUTOMATIC else run.id)

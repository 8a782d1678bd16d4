"""Structs check their fields however they are made; what does not fit is named, with the reason and a hint.

The wrong calls carry a ``type: ignore``: mypy, which refuses one that ignores nothing, thereby proves that it sees the mistake too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Required, get_args, get_origin, get_type_hints

import msgspec
import pytest

from horae import (
    CatchUp,
    CatchUpPolicy,
    NewSchedule,
    OnResume,
    Overlap,
    Policies,
    RetryPolicy,
    Timeouts,
    WhenFull,
)
from horae.app import BackfillRequest, Edit, Trigger
from horae.app.schedule_draft import NewFields
from horae.app.schedule_edits import EditFields
from horae.app.triggers_and_backfills import BackfillFields, TriggerFields
from horae.checked import changed
from horae.errors import InvalidInputError
from horae.model import Retention
from horae.policies import (
    CatchUpFields,
    CatchUpName,
    OnResumeName,
    OverlapName,
    PolicyFields,
    RetentionFields,
    RetryFields,
    TimeoutFields,
    WhenFullName,
)
from tests.support.cases import each_of

WRONG: list[tuple[Callable[[], object], str, str, str]] = [
    (lambda: Policies(overlap="skp"), "overlap", 'is "skp", and must be one of skip, ', "did you mean skip?"),  # type: ignore[arg-type]
    (lambda: Policies(overlap=3), "overlap", "must be a text, not a whole number", ""),  # type: ignore[arg-type]
    (lambda: Policies(overlp="skip"), "overlp", "is unknown", "did you mean overlap?"),  # type: ignore[call-arg]
    (lambda: Policies(colour="red"), "colour", "is unknown", "known are overlap, "),  # type: ignore[call-arg]
    (lambda: Policies(coalesce="yes"), "coalesce", "must be true or false, not a text", ""),  # type: ignore[arg-type]
    (lambda: Policies(max_concurrent=True), "max_concurrent", "must be a whole number or nothing, not true or false", ""),
    (lambda: Policies(start_attempts=2.5), "start_attempts", "must be a whole number, not a number", ""),  # type: ignore[arg-type]
    (lambda: Policies(finished_ttl=7), "finished_ttl", "is 7, a number without a unit", 'write "7s"'),  # type: ignore[arg-type]
    (lambda: Policies(retry=3), "retry", "must be a mapping, not a whole number", ""),  # type: ignore[arg-type]
    (lambda: Policies(retry={"atempts": 3}), "retry.atempts", "is unknown", "did you mean attempts?"),  # type: ignore[arg-type]
    (lambda: Policies(catch_up={"mode": "al"}), "catch_up.mode", 'is "al", and must be one of all, ', "did you mean all?"),  # type: ignore[arg-type]
    (lambda: Policies(timeouts={"run": 5}), "timeouts.run", "is 5, a number without a unit", 'write "5s"'),  # type: ignore[arg-type]
    (lambda: Policies(timeouts=Timeouts(run="5 minutes")), "run", 'is "5 minutes", which is not a duration', '"1h30m"'),
    (lambda: RetryPolicy(initial_delay=30_000.0), "initial_delay", "is 30000, a number without a unit", 'write "30000s"'),  # type: ignore[arg-type]
    (lambda: RetryPolicy(initial_delay=timedelta(seconds=-1)), "initial_delay", "must be from 0s to 36600d", ""),
    (lambda: RetryPolicy(retry_on="ValueError"), "retry_on", "must be a list, not a text", ""),  # type: ignore[arg-type]
    (lambda: RetryPolicy(retry_on=[3]), "retry_on[0]", "must be a text, not a whole number", ""),  # type: ignore[arg-type]
    (lambda: NewSchedule(id="s", spec="* * * * *"), "action", "is missing", ""),  # type: ignore[call-arg]
    (lambda: NewSchedule(id=1, spec="* * * * *", action="a"), "id", "must be a text, not a whole number", ""),  # type: ignore[arg-type]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", tags="a"), "tags", "must be a list, not a text", ""),  # type: ignore[arg-type]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", memo=[]), "memo", "must be a mapping, not a list", ""),  # type: ignore[arg-type]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", policies={"retry": {"factor": "2"}}), "policies.retry.factor", "must be a number, not a text", ""),  # type: ignore[arg-type]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", search_attributes={"k": []}), "search_attributes[...]", "must be true or false or a whole number", ""),  # type: ignore[dict-item]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", search_attributes={1: "x"}), "search_attributes", "has a key that must be a text, not a whole number", ""),  # type: ignore[dict-item]
    (lambda: NewSchedule(id="s", spec="* * * * *", action="a", trigger={"overlap": "x"}), "trigger.overlap", 'is "x", and must be one of', ""),  # type: ignore[arg-type]
    (lambda: Edit(descripton="x"), "descripton", "is unknown", "did you mean description?"),  # type: ignore[call-arg]
    (lambda: Edit(paused="no"), "paused", "must be true or false, not a text", ""),  # type: ignore[arg-type]
    (lambda: Edit(description=None), "description", "must be a text, not nothing", ""),  # type: ignore[arg-type]
    (lambda: Edit(policies={"overlap": "skp"}), "policies.overlap", 'is "skp"', "did you mean skip?"),  # type: ignore[arg-type]
    (lambda: Edit(policies={"retry": {"attempts": "3"}}), "policies.retry.attempts", "must be a whole number or nothing, not a text", ""),  # type: ignore[arg-type]
    (lambda: Edit(policies="skip"), "policies", "must be a mapping, not a text", ""),  # type: ignore[arg-type]
    (lambda: Trigger(overlap="sometimes"), "overlap", "must be one of skip, ", ""),  # type: ignore[arg-type]
    (lambda: BackfillRequest(start="2026-01-01T00:00:00Z"), "end", "is missing", ""),  # type: ignore[call-arg]
]  # fmt: skip


@each_of(("make", "field", "reason", "hint"), WRONG)
def test_a_wrong_value_is_refused_where_it_is_given(
    make: Callable[[], object], field: str, reason: str, hint: str
):
    with pytest.raises(InvalidInputError) as refused:
        make()
    assert refused.value.details["field"] == field
    assert reason in refused.value.details["reason"]
    assert hint in (refused.value.hint or "")


def test_every_form_of_a_value_makes_the_same():
    given = Policies(
        overlap="queue", catch_up={"mode": "latest", "window": timedelta(days=1)}, on_resume="skip", when_full="wait",
        retry={"attempts": 3, "initial_delay": "PT30S", "retry_on": [TimeoutError]}, timeouts={"run": timedelta(hours=1)},
    )  # fmt: skip
    assert given == Policies(
        overlap=Overlap.BUFFER_ALL, catch_up=CatchUpPolicy(mode=CatchUp.LATEST, window="24h"), on_resume=OnResume.SKIP,
        when_full=WhenFull.WAIT, retry=RetryPolicy(attempts=3, initial_delay="30s", retry_on=("TimeoutError",)),
        timeouts=Timeouts(run="60m"),
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(given), type=Policies) == given
    assert type(given.overlap) is Overlap
    new = NewSchedule(
        id="s", spec="* * * * *", action="a", policies={"overlap": "queue"}, tags={"t"}, trigger={"note": "n"}
    )
    assert new.policies == Policies(overlap=Overlap.BUFFER_ALL)
    assert new.tags == ("t",)
    assert new.trigger == Trigger(note="n")


def test_a_mapping_changes_the_fields_that_it_names():
    old = Policies(overlap="queue", retry={"attempts": 3, "factor": 1})
    assert changed(old, {"retry": {"attempts": None}}) == Policies(
        overlap="queue", retry={"attempts": None, "factor": 1}
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (CatchUpFields, CatchUpPolicy),
        (RetryFields, RetryPolicy),
        (TimeoutFields, Timeouts),
        (RetentionFields, Retention),
        (PolicyFields, Policies),
        (TriggerFields, Trigger),
        (BackfillFields, BackfillRequest),
        (NewFields, NewSchedule),
        (EditFields, Edit),
    ],
)
def test_type_checkers_know_every_field(given: Any, kind: type[msgspec.Struct]):
    fields = msgspec.structs.fields(kind)
    assert set(given.__annotations__) == {each.name for each in fields}
    required = {
        name
        for name, hint in get_type_hints(given, include_extras=True).items()
        if get_origin(hint) is Required
    }
    assert required == {each.name for each in fields if each.required}


def test_type_checkers_know_every_name():
    names = {Overlap: OverlapName, CatchUp: CatchUpName, OnResume: OnResumeName, WhenFull: WhenFullName}
    for enumeration, literal in names.items():
        assert {enumeration(each) for each in get_args(literal)} == set(enumeration)

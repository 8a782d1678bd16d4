"""What the registrar takes: every fault names its field, and nothing is stored."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.app.workflow_schedules import (
    CATCH_UPS,
    OVERLAPS,
    ScheduleInput,
    derived_id,
    policies_of,
    read_input,
    spec_of,
)
from horae.config import Config
from horae.errors import HoraeError, InvalidInputError, LimitExceededError
from horae.model import CatchUp, OnResume, Overlap
from horae.registrar import Registrar
from horae.testing import TimeMachine
from tests.face.registrar.inputs import FAULTS, GOOD

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(("field", "value"), FAULTS)
@pytest.mark.contract("CRON-02", "CRON-19")
async def test_a_fault_names_its_field_and_stores_nothing(machine: TimeMachine, field: str, value: Any):
    with pytest.raises(InvalidInputError) as caught:
        await Registrar(machine.app).upsert_schedule(GOOD | {field: value})
    assert caught.value.details["field"] == field
    assert field in caught.value.message
    assert await machine.app.schedules.list() == []


@pytest.mark.parametrize("field", ["workflow_id", "version", "user_id", "cron_expr", "timezone"])
@pytest.mark.contract("CRON-02")
async def test_what_is_missing_is_named(machine: TimeMachine, field: str):
    with pytest.raises(InvalidInputError) as caught:
        await Registrar(machine.app).upsert_schedule({k: v for k, v in GOOD.items() if k != field})
    assert caught.value.details["field"] == field
    assert await machine.app.schedules.list() == []


@pytest.mark.parametrize("given", [[], "x", None, 5, [GOOD]])
@pytest.mark.contract("CRON-02")
def test_an_input_is_an_object(given: Any):
    with pytest.raises(InvalidInputError, match=r"^input "):
        read_input(given)


@pytest.mark.contract("CRON-02")
async def test_a_fault_leaves_the_schedule_as_it_was(machine: TimeMachine):
    registrar = Registrar(machine.app)
    await registrar.upsert_schedule(GOOD | {"schedule_id": "s"})
    before = await registrar.get_schedule("s")
    with pytest.raises(InvalidInputError):
        await registrar.upsert_schedule(GOOD | {"schedule_id": "s", "cron_expr": "bad"})
    assert await registrar.get_schedule("s") == before


@pytest.mark.contract("CRON-02", "CRON-04")
def test_a_window_that_ends_before_it_begins_is_refused():
    window = {"start_at": "2026-03-02T00:00:00Z", "end_at": "2026-03-01T00:00:00Z"}
    with pytest.raises(InvalidInputError) as caught:
        spec_of(read_input(GOOD | window), Config())
    assert caught.value.details["field"] == "end_at"
    spec_of(read_input(GOOD | {"start_at": window["start_at"], "end_at": window["start_at"]}), Config())


@pytest.mark.contract("CRON-19")
def test_jitter_has_a_limit_that_is_named():
    config = Config(jitter_limit_ms=5000)
    spec_of(read_input(GOOD | {"jitter_ms": 5000}), config)
    with pytest.raises(LimitExceededError) as caught:
        spec_of(read_input(GOOD | {"jitter_ms": 5001}), config)
    assert caught.value.details == {"limit": "jitter_limit_ms", "most": 5000}
    with pytest.raises(LimitExceededError):
        spec_of(read_input(GOOD | {"jitter_ms": 24 * 60 * 60 * 1000 + 1}), Config())


@pytest.mark.contract("CRON-02")
def test_zones_are_those_of_the_allowlist():
    config = Config(timezones=("Europe/Berlin", "UTC"))
    assert spec_of(read_input(GOOD | {"timezone": "Europe/Berlin"}), config).zone.name == "Europe/Berlin"
    with pytest.raises(InvalidInputError) as caught:
        spec_of(read_input(GOOD), config)
    assert caught.value.details["field"] == "timezone"


@pytest.mark.parametrize("expression", ["*/5 * * * *", "0 0 9 * * MON-FRI", "30 15 10 L * *", "0 9 1,15 * *"])
@pytest.mark.contract("CRON-02")
def test_five_fields_and_six_with_seconds_first(expression: str):
    spec = spec_of(read_input(GOOD | {"cron_expr": expression}), Config())
    assert spec.next_after(datetime(2026, 1, 1, tzinfo=UTC)) is not None


@pytest.mark.contract("CRON-02")
def test_a_struct_is_checked_like_a_dictionary():
    good = msgspec.convert(GOOD, ScheduleInput)
    assert read_input(good) == good == read_input(GOOD)
    with pytest.raises(InvalidInputError, match=r"^version "):
        read_input(msgspec.structs.replace(good, version="3"))


@pytest.mark.contract("CRON-04")
def test_a_time_without_an_offset_is_meant_in_the_zone():
    spec = spec_of(read_input(GOOD | {"start_at": "2026-07-01T09:00:00"}), Config())
    assert spec.elements.start_at == datetime(2026, 7, 1, 13, tzinfo=UTC).timestamp()


@pytest.mark.contract("CRON-03")
def test_an_id_is_derived_from_what_stays():
    read = read_input(GOOD)
    derived = derived_id(read, None)
    assert derived == derived_id(read_input(GOOD | {"version": 4, "jitter_ms": 5}), None)
    assert derived == derived_id(read_input(GOOD | {"cron_expr": " 0  9 * *\t1-5 "}), None)
    others = [{"workflow_id": "other"}, {"user_id": "bob"}, {"cron_expr": "0 8 * * 1-5"}, {"timezone": "UTC"}]
    ids = {derived_id(read_input(GOOD | other), None) for other in others}
    assert len(ids | {derived}) == 5
    of_trigger = derived_id(read, "t1")
    assert of_trigger == derived_id(read_input(GOOD | {"cron_expr": "0 1 * * *", "timezone": "UTC"}), "t1")
    assert len({derived, of_trigger, derived_id(read, "t2")}) == 3


@pytest.mark.contract("CRON-03")
def test_derived_ids_stay_the_same_from_release_to_release():
    assert derived_id(read_input(GOOD), None) == "cron-ace3978deafb5ad12fb727d352fd9630"
    assert derived_id(read_input(GOOD), "t1") == "cron-1c9efcbe8f990d43fca5041b243807e6"


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=2, max_size=2, unique=True))
@pytest.mark.contract("CRON-03")
def test_different_names_have_different_ids(names: list[tuple[str, str]]):
    base = msgspec.convert(GOOD, ScheduleInput)
    ids = {
        derived_id(msgspec.structs.replace(base, workflow_id=workflow, user_id=user), None)
        for workflow, user in names
    }
    assert len(ids) == 2


@pytest.mark.contract("CRON-15", "CRON-08", "CRON-13")
def test_defaults_are_those_of_the_settings():
    read = read_input(GOOD)
    policies = policies_of(read, Config())
    assert (policies.overlap, policies.catch_up.mode) == (Overlap.SKIP, CatchUp.NONE)
    assert (policies.catch_up.grace, policies.catch_up.spread) == ("1m", "1m")
    assert policies.timeouts.run == "1h"
    config = Config.from_environment(
        {
            "HORAE_DEFAULT_OVERLAP_POLICY": "queue",
            "HORAE_DEFAULT_CATCHUP_POLICY": "spread",
            "HORAE_DEFAULT_JITTER_MS": "4000",
            "HORAE_TICK_MS": "5000",
            "HORAE_LOOKAHEAD_MS": "2000",
        }
    )
    policies = policies_of(read, config)
    assert (policies.overlap, policies.catch_up.mode) == (Overlap.BUFFER_ALL, CatchUp.SPREAD)
    assert (policies.catch_up.grace, policies.catch_up.spread) == ("5s", "2s")
    jitter = spec_of(read, config).elements.jitter
    assert jitter is not None
    assert jitter.centred
    said = read_input(
        GOOD | {"overlap_policy": "allow", "catchup_policy": "fire_immediately", "jitter_ms": 0}
    )
    policies = policies_of(said, config)
    assert (policies.overlap, policies.catch_up.mode) == (Overlap.ALLOW_ALL, CatchUp.ALL)
    assert spec_of(said, config).elements.jitter is None


@pytest.mark.parametrize("word", CATCH_UPS)
@pytest.mark.contract("CRON-15")
def test_every_catch_up_policy_can_be_the_default(word: str):
    config = Config.from_environment({"HORAE_DEFAULT_CATCHUP_POLICY": word})
    assert policies_of(read_input(GOOD), config).catch_up.mode is CATCH_UPS[word]


@pytest.mark.parametrize("word", OVERLAPS)
@pytest.mark.contract("CRON-15")
def test_every_overlap_policy_can_be_the_default(word: str):
    config = Config.from_environment({"HORAE_DEFAULT_OVERLAP_POLICY": word})
    assert policies_of(read_input(GOOD), config).overlap is OVERLAPS[word]


@pytest.mark.contract("CRON-10")
def test_only_none_leaves_a_pause_behind():
    for word in CATCH_UPS:
        policies = policies_of(read_input(GOOD | {"catchup_policy": word}), Config())
        assert (policies.on_resume is OnResume.SKIP) == (word == "none")


def test_what_the_input_has_no_word_for_is_kept():
    first = policies_of(read_input(GOOD), Config())
    kept = msgspec.structs.replace(first, timeouts=msgspec.structs.replace(first.timeouts, run="5ms"))
    again = policies_of(read_input(GOOD | {"overlap_policy": "queue"}), Config(), kept)
    assert (again.timeouts.run, again.overlap) == ("5ms", OVERLAPS["queue"])


@given(
    st.dictionaries(
        st.sampled_from([*ScheduleInput.__struct_fields__, "other"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2),
    )
)
@pytest.mark.contract("CRON-02")
def test_whatever_is_given_is_taken_or_refused_with_a_field(given: dict[str, Any]):
    try:
        spec_of(read_input(GOOD | given), Config())
    except HoraeError as error:
        assert error.details.get("field") in given or error.details.get("limit") == "jitter_limit_ms"

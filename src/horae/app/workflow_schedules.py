"""Schedules that start workflows: check their inputs field by field, and translate them to ordinary schedules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, TypeVar

import msgspec

from horae.app.field_checks import check_id, check_number
from horae.app.schedule_draft import NewSchedule
from horae.app.schedule_edits import Edit
from horae.app.schedule_fields import about
from horae.checked import input_error
from horae.config import Config
from horae.engine.workflow_executor import WORKFLOW, WorkflowInput
from horae.errors import InvalidInputError, InvalidSpecError, LimitExceededError
from horae.model import Action, CatchUp, Overlap, Policies, Schedule
from horae.policy import face_defaults
from horae.spec import Spec, installed_zones
from horae.workflow.document import CronFields

MAX_LENGTHS = {"schedule_id": 500, "workflow_id": 500, "user_id": 200}
"""The most characters of each field."""
MAX_VERSION = 2**53 - 1
TAG = "registrar"
"""The tag of schedules that the registrar created."""
CRON_TEXT = "cron_expr"
"""The key in a schedule's memo of the cron expression as it was given; the spec has only its canonical form."""
RESERVED = frozenset({"pause", "upsert"})
"""Ids that would collide with paths of the HTTP interface."""

T = TypeVar("T")

OVERLAPS = {"allow": Overlap.ALLOW_ALL, "skip": Overlap.SKIP, "queue": Overlap.BUFFER_ALL}
"""The registrar's words for overlap policies."""

CATCH_UPS = {"none": CatchUp.NONE, "fire_immediately": CatchUp.ALL, "spread": CatchUp.SPREAD}
"""The registrar's words for catch-up policies."""

_ELEMENTS = {"crons": "cron_expr", "jitter": "jitter_ms"}


class ScheduleInput(CronFields, frozen=True, kw_only=True):
    """A schedule to be registered. Omitted fields take their defaults from the settings."""

    schedule_id: Annotated[
        str | None,
        about("If omitted, it is derived from the workflow, the user, the expression and the zone."),
    ] = None
    workflow_id: str
    version: int
    user_id: str


class PauseInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule to pause or to resume."""

    schedule_id: str
    paused: bool


def convert(given: object, kind: type[T]) -> T:
    """Convert an input; an error names the field."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise input_error(error, kind, whole="input") from None


def read_input(given: ScheduleInput | Mapping[str, Any], *, any_user: bool = False) -> ScheduleInput:
    """Check an input; with ``any_user`` it may belong to no user."""
    values = msgspec.structs.asdict(given) if isinstance(given, ScheduleInput) else given
    read = convert(values, ScheduleInput)
    for name, most in MAX_LENGTHS.items():
        value = getattr(read, name)
        if value is not None and not (any_user and name == "user_id"):
            check_id(value, name, most)
    if read.schedule_id in RESERVED:
        raise InvalidInputError("schedule_id", f"is reserved: {read.schedule_id!r}", hint="choose another id")
    check_number("version", read.version, 0, MAX_VERSION)
    if read.cron_expr.lstrip().startswith("@"):
        raise InvalidInputError(
            "cron_expr",
            f"must have five or six fields, and is {read.cron_expr[:40]!r}",
            hint="write the fields: @daily is 0 0 * * *",
        )
    return read


def derived_id(read: ScheduleInput, trigger_id: str | None) -> str:
    """The id of a schedule that was given none: the same for every version, so that deploying again is an upsert."""
    origin = ["trigger", trigger_id] if trigger_id else ["cron", *read.cron_expr.split(), read.timezone]
    name = msgspec.json.encode([read.workflow_id, read.user_id, *origin])
    return f"cron-{sha256(name).hexdigest()[:32]}"


def spec_of(read: ScheduleInput, config: Config) -> Spec:
    """The spec of an input; errors name the input's fields."""
    document = {
        "crons": [read.cron_expr],
        "dialect": "unix",
        "timezone": read.timezone,
        "start_at": None if read.start_at is None else read.start_at.isoformat(),
        "end_at": None if read.end_at is None else read.end_at.isoformat(),
        "jitter": {"span": f"{jitter_of(read, config)}ms", "centred": True},
    }
    try:
        return Spec.parse(document, zones=config.timezones or installed_zones())
    except InvalidSpecError as error:
        element = str(error.details["element"]).partition("[")[0]
        field = _ELEMENTS.get(element, element)
        raise InvalidInputError(
            field, f"cannot be taken: {error.details['reason']}", hint=error.hint_handed_on()
        ) from error


def jitter_of(read: ScheduleInput, config: Config) -> int:
    """The span in milliseconds, around its nominal time, in which a slot fires."""
    jitter = config.default_jitter_ms if read.jitter_ms is None else read.jitter_ms
    if jitter < 0:
        raise InvalidInputError("jitter_ms", f"must be at least 0, and is {jitter}")
    if jitter > config.jitter_limit_ms:
        raise LimitExceededError("jitter_limit_ms", config.jitter_limit_ms, f"jitter_ms is {jitter}")
    return jitter


def policies_of(read: ScheduleInput, config: Config, kept: Policies | None = None) -> Policies:
    """The policies of an input; a registered schedule keeps the policies that the input cannot name."""
    policies = face_defaults.registrar(
        OVERLAPS.get(read.overlap_policy or "", config.default_overlap_policy),
        CATCH_UPS.get(read.catchup_policy or "", config.default_catchup_policy),
        grace_ms=max(config.tick_ms, config.lookahead_ms),
        lookahead_ms=config.lookahead_ms,
    )
    if kept is None:
        return policies
    return msgspec.structs.replace(
        kept, overlap=policies.overlap, catch_up=policies.catch_up, on_resume=policies.on_resume
    )


def new_schedule(
    read: ScheduleInput,
    config: Config,
    trigger_id: str | None = None,
    *,
    managed_by: str = "",
    given: object = None,
) -> NewSchedule:
    """The schedule to create for an input. ``trigger_id`` is the trigger that it is for, ``given`` the input of its workflow."""
    started = WorkflowInput(
        workflow_id=read.workflow_id,
        version=read.version,
        user_id=read.user_id,
        trigger=trigger_id,
        input=given,
    )
    return NewSchedule(
        id=read.schedule_id or derived_id(read, trigger_id),
        spec=spec_of(read, config),
        action=Action(kind=WORKFLOW, input=msgspec.to_builtins(started)),
        policies=policies_of(read, config),
        owner=read.user_id,
        tags=(TAG,),
        memo={CRON_TEXT: read.cron_expr},
        managed_by=managed_by,
    )


def edit_of(old: Schedule, new: NewSchedule, read: ScheduleInput, config: Config) -> Edit:
    """The edit of an existing schedule; pause, cursor and other fields stay."""
    return Edit(
        spec=new.spec,
        recompute=True,
        action=new.action,
        policies=policies_of(read, config, old.policies if TAG in old.tags else None),
        tags=tuple(dict.fromkeys((*old.tags, TAG))),
        memo={**old.memo, **new.memo},
        managed_by=new.managed_by or old.managed_by,
    )

"""The bodies of requests. Those about a schedule derive from what :mod:`horae.app.schedule_fields` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from horae.app.schedule_fields import (
    BackfillBody,
    Body,
    Document,
    Id,
    Moment,
    Natural,
    ScheduleFields,
    SearchAttributes,
    SpecField,
    Text,
    TriggerBody,
    about,
    with_fields,
)
from horae.app.why import MAX_DAYS
from horae.model import Action

MAX_BACKFILLS = 100
"""How many backfills one request starts at most."""
Backfills = Annotated[tuple[BackfillBody, ...], about(maxItems=MAX_BACKFILLS)]


class StartBackfill(BackfillBody, frozen=True):
    """A range to be made up, or with ``dry_run`` only to be counted."""

    dry_run: Annotated[bool, about("Whether only to say how many slots there are.")] = False


class ScheduleBody(ScheduleFields, frozen=True, kw_only=True):
    """What an owner says of a schedule."""

    action: Annotated[Action | str, about("What: an action, or just its address.")]


class CreateSchedule(ScheduleBody, frozen=True):
    """A new schedule. ``spec`` is a document or a cron expression in UTC; without an ``id`` it gets one."""

    id: Annotated[
        Id | None, about("What it is called, in all the service; without one it is called by a UUID.")
    ] = None
    request_id: Annotated[
        Text, about("The same again for the same id creates nothing, and answers with what is there.")
    ] = ""
    trigger: Annotated[TriggerBody | bool | None, about("A start right away.")] = None
    backfills: Annotated[
        Backfills, about("Ranges to be made up right away: at most 100 in one request.")
    ] = ()


class CreateSchedules(Body, frozen=True):
    """New schedules, all or none."""

    schedules: Annotated[
        list[CreateSchedule], about("At most as many as the setting `HORAE_BATCH_LIMIT` says.")
    ]


class Versioned(Body, frozen=True):
    """A change that may depend on the version."""

    version: Annotated[
        Natural | None,
        about("The version that the schedule must still have; the header If-Match says the same."),
    ] = None

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


@with_fields(ScheduleBody)
class ReplaceSchedule(Versioned, frozen=True):
    """All that a schedule shall be from now on. Memo and search attributes stay if they are not named."""

    memo: Annotated[
        dict[str, Any] | msgspec.UnsetType,
        about("What its owner wants to remember: any JSON, at most 64 KiB."),
    ] = msgspec.UNSET
    search_attributes: Annotated[
        SearchAttributes | msgspec.UnsetType, about("Names and values to find it by.")
    ] = msgspec.UNSET


@with_fields(ScheduleBody, "unset")
class MergeSchedule(Versioned, frozen=True):
    """What shall be different from now on; ``policies`` are merged, and a ``null`` in them is the default."""

    policies: Annotated[
        Document | msgspec.UnsetType, about("Those policies that change; null is the default.")
    ] = msgspec.UNSET


class PatchSchedule(Body, frozen=True):
    """Several things at once, all or nothing: a trigger, backfills, and a pause or its end with a note."""

    trigger: Annotated[TriggerBody | None, about("A start right now.")] = None
    backfills: Annotated[Backfills, about("Ranges to be made up: at most 100.")] = ()
    pause: Annotated[Text | None, about("Pause, and why. Not together with `resume`.")] = None
    resume: Annotated[Text | None, about("Resume, and why.")] = None
    version: Annotated[Natural | None, about("The token that the schedule must still have.")] = None


class PauseSchedule(Body, frozen=True):
    """Why it pauses, and until when if not until it is resumed."""

    note: Annotated[Text, about("Why.")] = ""
    until: Annotated[Moment | None, about("When it resumes by itself, with an offset.")] = None


class Note(Body, frozen=True):
    """Why."""

    note: Annotated[Text, about("Why.")] = ""


class SkipNext(Body, frozen=True):
    """How many of the slots ahead are passed over; 0 takes that back."""

    number: Annotated[Annotated[int, about(minimum=0, maximum=1_000_000)], about("How many.")] = 1


class Which(Body, frozen=True):
    """Which schedules: those that are so in every way that is named."""

    state: Annotated[Literal["running", "paused", "completed"] | None, about("How they stand.")] = None
    action: Annotated[str | None, about("What they do.")] = None
    tag: Annotated[str | None, about("A tag that they have.")] = None
    prefix: Annotated[str | None, about("How their ids begin.")] = None
    attention: Annotated[bool | None, about("Whether somebody should look at them.")] = None
    search: Annotated[
        Annotated[str, about(pattern="^[^:]+:")] | None,
        about("A search attribute and its value: `customer:42`."),
    ] = None


class ManyByFilter(Body, frozen=True):
    """All schedules that a filter lets through, and why."""

    filter: Annotated[Which, about("Which.")]
    note: Annotated[Text, about("Why.")] = ""


class PreviewChange(Body, frozen=True):
    """Another spec for a schedule, and how far to look."""

    spec: SpecField
    days: Annotated[Annotated[int, about(minimum=1, maximum=MAX_DAYS)], about("How many days ahead.")] = 30


class PreviewSpec(Body, frozen=True):
    """A spec, and how many of its times to show."""

    spec: SpecField
    limit: Annotated[Annotated[int, about(minimum=1, maximum=1000)], about("How many times.")] = 10


class SucceededBody(Body, frozen=True):
    """What a run that somebody else did came to."""

    result: Annotated[Any, about("Any JSON; the next run of the schedule gets it too.")] = None


class FailedBody(Body, frozen=True):
    """How a run that somebody else did failed."""

    failure: Annotated[str, about("In words.")] = ""

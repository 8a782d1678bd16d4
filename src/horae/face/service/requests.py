"""What requests bring: the shapes of their bodies. What is unknown is refused, and named.

Bounds that are only shown in the OpenAPI document are checked, with a better sentence, by what understands the value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from horae.app.create import MAX_ID_FORMAT_LENGTH, MAX_ID_LENGTH, MAX_TAG_LENGTH, MAX_TAGS
from horae.app.manual import MAX_TEXT_LENGTH
from horae.app.why import MAX_DAYS
from horae.model import HttpRequest, Overlap, Policies, SearchValue

Document = dict[str, Any]
"""A spec as a document, or another value whose shape is checked where it is understood."""


def shown(**bounds: Any) -> msgspec.Meta:  # noqa: ANN401 - as JSON Schema has them
    """Bounds as JSON Schema names them."""
    return msgspec.Meta(extra_json_schema=bounds)


Id = Annotated[str, shown(minLength=1, maxLength=MAX_ID_LENGTH)]
Text = Annotated[str, shown(maxLength=MAX_TEXT_LENGTH)]
Tags = Annotated[
    tuple[Annotated[str, shown(minLength=1, maxLength=MAX_TAG_LENGTH)], ...], shown(maxItems=MAX_TAGS)
]
SearchAttributes = Annotated[dict[str, SearchValue], shown(maxProperties=MAX_TAGS)]
Natural = Annotated[int, shown(minimum=0)]
Moment = Annotated[str, shown(format="date-time", examples=["2026-11-01T00:00:00Z"])]
"""RFC 3339, with an offset; it is read where it is understood."""
OverlapName = Annotated[str, shown(examples=[each.value for each in Overlap])]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body has no field that is not named."""


class ActionBody(Body, frozen=True, forbid_unknown_fields=True):
    """What to do: a registered action, ``http`` with its request, or ``command:NAME``."""

    name: str
    """Of an action that a living node has announced: `GET /actions` lists them."""
    input: Any = None
    """What the action gets: any JSON."""
    id: Text | None = None
    """The base of action ids; the schedule's own id unless said otherwise."""
    id_format: Annotated[str, shown(maxLength=MAX_ID_FORMAT_LENGTH)] | None = None
    """How action ids are made from the base and the nominal time, in UTC: `{id}-%Y-%m-%dT%H:%M:%SZ`. It may have `{id}` once, `%Y`,
    `%m`, `%d`, `%j`, `%H`, `%M`, `%S`, `%s` (seconds since 1970) and `%%`; ids have at most 1,000 characters."""
    http: HttpRequest | None = None
    """The request, if the name is `http`."""


class TriggerBody(Body, frozen=True, forbid_unknown_fields=True):
    """A start right now; what is not said is the schedule's own."""

    overlap: OverlapName | None = None
    """What happens if another run is going on: an overlap policy."""
    input: Any = msgspec.UNSET
    """What the action gets this time."""
    note: Text = ""
    """Why."""


class BackfillBody(Body, frozen=True, forbid_unknown_fields=True):
    """A range to be made up, both ends included."""

    start: Moment
    """The first moment, with an offset."""
    end: Moment
    """The last moment, with an offset."""
    overlap: OverlapName | None = None
    """What happens if another run is going on: an overlap policy."""
    input: Any = None
    """What the action gets; null is the schedule's own."""
    note: Text = ""
    """Why."""


MAX_BACKFILLS = 100
"""How many backfills one request starts at most."""
Backfills = Annotated[tuple[BackfillBody, ...], shown(maxItems=MAX_BACKFILLS)]


class StartBackfill(BackfillBody, frozen=True, forbid_unknown_fields=True):
    """A range to be made up, or with ``dry_run`` only to be counted."""

    dry_run: bool = False
    """Whether only to say how many slots there are."""


class CreateSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """A new schedule. ``spec`` is a document or a cron expression in UTC; without an ``id`` it gets one."""

    spec: Document | str
    """When: a document, or a cron expression in UTC."""
    action: ActionBody | str
    """What: an action, or just its name."""
    id: Id | None = None
    """What it is called, in all the service; without one it is called by a UUID."""
    policies: Policies = Policies()
    """What becomes of its slots."""
    paused: bool = False
    """Whether it begins paused."""
    note: Text = ""
    """Why it is paused, or anything else."""
    remaining_actions: Natural | None = None
    """How many automatic starts it has; null is any number."""
    tags: Tags = ()
    """Words to find it by."""
    memo: dict[str, Any] = {}
    """What its owner wants to remember: any JSON, at most 64 KiB."""
    search_attributes: SearchAttributes = {}
    """Names and values to find it by."""
    request_id: Text = ""
    """The same again for the same id creates nothing, and answers with what is there."""
    trigger: TriggerBody | bool | None = None
    """A start right away."""
    backfills: Backfills = ()
    """Ranges to be made up right away: at most 100 in one request."""


class CreateSchedules(Body, frozen=True, forbid_unknown_fields=True):
    """New schedules, all or none."""

    schedules: list[CreateSchedule]
    """At most as many as the setting `HORAE_BATCH_LIMIT` says."""


class ReplaceSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """All that a schedule shall be from now on. Memo and search attributes stay if they are not named."""

    spec: Document | str
    """When: a document, or a cron expression in UTC."""
    action: ActionBody | str
    """What: an action, or just its name."""
    policies: Policies = Policies()
    """What becomes of its slots."""
    paused: bool = False
    """Whether it is paused."""
    note: Text = ""
    """Why."""
    remaining_actions: Natural | None = None
    """How many automatic starts it has left; null is any number."""
    tags: Tags = ()
    """Words to find it by."""
    memo: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """What its owner wants to remember: any JSON, at most 64 KiB."""
    search_attributes: SearchAttributes | msgspec.UnsetType = msgspec.UNSET
    """Names and values to find it by."""
    version: Natural | None = None
    """The token that the schedule must still have; the header If-Match says the same."""


class MergeSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """What shall be different from now on; ``policies`` are merged, and a ``null`` in them is the default."""

    spec: Document | str | msgspec.UnsetType = msgspec.UNSET
    """When: a document, or a cron expression in UTC."""
    action: ActionBody | str | msgspec.UnsetType = msgspec.UNSET
    """What: an action, or just its name."""
    policies: Document | msgspec.UnsetType = msgspec.UNSET
    """Those policies that change; null is the default."""
    paused: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether it is paused."""
    note: Text | msgspec.UnsetType = msgspec.UNSET
    """Why."""
    remaining_actions: Natural | msgspec.UnsetType | None = msgspec.UNSET
    """How many automatic starts it has left; null is any number."""
    tags: Tags | msgspec.UnsetType = msgspec.UNSET
    """Words to find it by."""
    memo: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """What its owner wants to remember: any JSON, at most 64 KiB."""
    search_attributes: SearchAttributes | msgspec.UnsetType = msgspec.UNSET
    """Names and values to find it by."""
    version: Natural | None = None
    """The token that the schedule must still have; the header If-Match says the same."""


class PatchSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """Several things at once, all or nothing: a trigger, backfills, and a pause or its end with a note."""

    trigger: TriggerBody | None = None
    """A start right now."""
    backfills: Backfills = ()
    """Ranges to be made up: at most 100."""
    pause: Text | None = None
    """Pause, and why. Not together with `resume`."""
    resume: Text | None = None
    """Resume, and why."""
    version: Natural | None = None
    """The token that the schedule must still have."""


class PauseSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """Why it pauses, and until when if not until it is resumed."""

    note: Text = ""
    """Why."""
    until: Moment | None = None
    """When it resumes by itself, with an offset."""


class Note(Body, frozen=True, forbid_unknown_fields=True):
    """Why."""

    note: Text = ""
    """Why."""


class SkipNext(Body, frozen=True, forbid_unknown_fields=True):
    """How many of the slots ahead are passed over; 0 takes that back."""

    number: Annotated[int, shown(minimum=0, maximum=1_000_000)] = 1
    """How many."""


class Which(Body, frozen=True, forbid_unknown_fields=True):
    """Which schedules: those that are so in every way that is named."""

    state: Literal["running", "paused", "completed"] | None = None
    """How they stand."""
    action: str | None = None
    """What they do."""
    tag: str | None = None
    """A tag that they have."""
    prefix: str | None = None
    """How their ids begin."""
    attention: bool | None = None
    """Whether somebody should look at them."""
    search: Annotated[str, shown(pattern="^[^:]+:")] | None = None
    """A search attribute and its value: `customer:42`."""


class ManyByFilter(Body, frozen=True, forbid_unknown_fields=True):
    """All schedules that a filter lets through, and why."""

    filter: Which
    """Which."""
    note: Text = ""
    """Why."""


class PreviewChange(Body, frozen=True, forbid_unknown_fields=True):
    """Another spec for a schedule, and how far to look."""

    spec: Document | str
    """When: a document, or a cron expression in UTC."""
    days: Annotated[int, shown(minimum=1, maximum=MAX_DAYS)] = 30
    """How many days ahead."""


class PreviewSpec(Body, frozen=True, forbid_unknown_fields=True):
    """A spec, and how many of its times to show."""

    spec: Document | str
    """When: a document, or a cron expression in UTC."""
    limit: Annotated[int, shown(minimum=1, maximum=1000)] = 10
    """How many times."""


class SucceededBody(Body, frozen=True, forbid_unknown_fields=True):
    """What a run that somebody else did came to."""

    result: Any = None
    """Any JSON; the next run of the schedule gets it too."""


class FailedBody(Body, frozen=True, forbid_unknown_fields=True):
    """How a run that somebody else did failed."""

    failure: str = ""
    """In words."""

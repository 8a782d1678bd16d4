"""What requests bring: the shapes of their bodies. What is unknown is refused, and named."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from horae.model import HttpRequest, Policies, SearchValue

Document = dict[str, Any]
"""A spec as a document, or another value whose shape is checked where it is understood."""


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body has no field that is not named."""


class ActionBody(Body, frozen=True, forbid_unknown_fields=True):
    """What to do: a registered action, ``http`` with its request, or ``command:NAME``."""

    name: str
    input: Any = None
    id: str | None = None
    id_format: str | None = None
    http: HttpRequest | None = None


class TriggerBody(Body, frozen=True, forbid_unknown_fields=True):
    """A start right now; what is not said is the schedule's own."""

    overlap: str | None = None
    input: Any = msgspec.UNSET
    note: str = ""


class BackfillBody(Body, frozen=True, forbid_unknown_fields=True):
    """A range to be made up, both ends included."""

    start: datetime
    end: datetime
    overlap: str | None = None
    input: Any = None
    note: str = ""


class StartBackfill(BackfillBody, frozen=True, forbid_unknown_fields=True):
    """A range to be made up, or with ``dry_run`` only to be counted."""

    dry_run: bool = False


class CreateSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """A new schedule. ``spec`` is a document or a cron expression in UTC; without an ``id`` it gets one."""

    spec: Document | str
    action: ActionBody | str
    id: str | None = None
    policies: Policies = Policies()
    paused: bool = False
    note: str = ""
    limited_actions: int | None = None
    tags: tuple[str, ...] = ()
    memo: dict[str, Any] = {}
    search_attributes: dict[str, SearchValue] = {}
    request_id: str = ""
    trigger: TriggerBody | bool | None = None
    backfills: tuple[BackfillBody, ...] = ()


class CreateSchedules(Body, frozen=True, forbid_unknown_fields=True):
    """New schedules, all or none."""

    schedules: list[CreateSchedule]


class ReplaceSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """All that a schedule shall be from now on. Memo and search attributes stay if they are not named."""

    spec: Document | str
    action: ActionBody | str
    policies: Policies = Policies()
    paused: bool = False
    note: str = ""
    limited_actions: int | None = None
    tags: tuple[str, ...] = ()
    memo: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    search_attributes: dict[str, SearchValue] | msgspec.UnsetType = msgspec.UNSET
    token: int | None = None


class MergeSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """What shall be different from now on; ``policies`` are merged, and a ``null`` in them is the default."""

    spec: Document | str | msgspec.UnsetType = msgspec.UNSET
    action: ActionBody | str | msgspec.UnsetType = msgspec.UNSET
    policies: Document | msgspec.UnsetType = msgspec.UNSET
    paused: bool | msgspec.UnsetType = msgspec.UNSET
    note: str | msgspec.UnsetType = msgspec.UNSET
    limited_actions: int | msgspec.UnsetType | None = msgspec.UNSET
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    memo: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    search_attributes: dict[str, SearchValue] | msgspec.UnsetType = msgspec.UNSET
    token: int | None = None


class PatchSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """Several things at once, all or nothing: a trigger, backfills, and a pause or its end with a note."""

    trigger: TriggerBody | None = None
    backfills: tuple[BackfillBody, ...] = ()
    pause: str | None = None
    resume: str | None = None
    token: int | None = None


class PauseSchedule(Body, frozen=True, forbid_unknown_fields=True):
    """Why it pauses, and until when if not until it is resumed."""

    note: str = ""
    until: datetime | None = None


class Note(Body, frozen=True, forbid_unknown_fields=True):
    """Why."""

    note: str = ""


class SkipNext(Body, frozen=True, forbid_unknown_fields=True):
    """How many of the slots ahead are passed over; 0 takes that back."""

    number: int = 1


class Which(Body, frozen=True, forbid_unknown_fields=True):
    """Which schedules: those that are so in every way that is named."""

    state: Literal["running", "paused", "completed"] | None = None
    action: str | None = None
    tag: str | None = None
    prefix: str | None = None
    attention: bool | None = None
    search: str | None = None
    """A search attribute and its value: ``customer:42``."""


class ManyByFilter(Body, frozen=True, forbid_unknown_fields=True):
    """All schedules that a filter lets through, and why."""

    filter: Which
    note: str = ""


class PreviewChange(Body, frozen=True, forbid_unknown_fields=True):
    """Another spec for a schedule, and how far to look."""

    spec: Document | str
    days: int = 30


class PreviewSpec(Body, frozen=True, forbid_unknown_fields=True):
    """A spec, and how many of its times to show."""

    spec: Document | str
    limit: int = 10


class SucceededBody(Body, frozen=True, forbid_unknown_fields=True):
    """What a run that somebody else did came to."""

    result: Any = None


class FailedBody(Body, frozen=True, forbid_unknown_fields=True):
    """How a run that somebody else did failed."""

    failure: str = ""

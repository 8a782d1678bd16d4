"""The bodies of requests. Bodies about a schedule derive from the fields that :mod:`horae.app.schedule_fields` declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from horae.app.flows import Decision
from horae.app.grants import SCOPES_PER_GRANT
from horae.app.graph_schedules import MAX_BACKFILL_LIMIT, MAX_DEADLINE, Concurrency
from horae.app.schedule_fields import (
    BackfillBody,
    Body,
    Document,
    Id,
    Moment,
    Natural,
    ScheduleFields,
    SpecField,
    Text,
    TriggerBody,
    about,
    with_fields,
)
from horae.app.why import MAX_DAYS
from horae.model import Action, OnResume, Policies, Reason, Status
from horae.spec.duration import Duration

MAX_BACKFILLS = 100
"""The most backfills that one request may start."""
KEPT = {"memo", "search_attributes", "managed_by", "execution_grant_id"}
"""The fields of a schedule that replacing it keeps if they are omitted."""
_STATUSES = "|".join(Status)
Backfills = Annotated[tuple[BackfillBody, ...], about(maxItems=MAX_BACKFILLS)]


class StartBackfill(BackfillBody, frozen=True):
    """A range to backfill, or to count with ``dry_run``."""

    dry_run: Annotated[bool, about("Only count the slots.")] = False


class ScheduleBody(ScheduleFields, frozen=True, kw_only=True):
    """The fields of a schedule that its owner sets."""

    action: Annotated[Action | str, about("What: an action, or just its address.")]


_FIELDS = {*ScheduleBody.__struct_fields__}


class GraphFields(Body, frozen=True, kw_only=True):
    """The fields of a schedule of a graph. Bodies may omit each of them."""

    input: Annotated[
        Any, about("The graph's input: an object. `messages` defaults to [], `model` to default.")
    ]
    cron: Annotated[str, about("When: a cron expression of five fields.", examples=["0 9 * * 1-5"])]
    timezone: Annotated[str, about("The time zone of `cron`.", examples=["Europe/Berlin"])]
    enabled: Annotated[bool, about("Whether it fires; true if omitted.")]
    concurrency_policy: Annotated[
        Concurrency,
        about(
            "What happens to slots that fall due during a run: skipped (`Forbid`, the default), run beside it, or replace it."
        ),
    ]
    backfill_limit: Annotated[
        int,
        about(
            "How many missed slots are caught up at most; 0, the default, is none.",
            minimum=0,
            maximum=MAX_BACKFILL_LIMIT,
        ),
    ]
    starting_deadline_seconds: Annotated[
        int, about("How late a slot may start; 10 if omitted.", minimum=0, maximum=MAX_DEADLINE)
    ]


@with_fields(GraphFields, "unset")
@with_fields(ScheduleBody)
@with_fields(ScheduleBody, "unset", without=_FIELDS - {"spec", "action", "policies"})
class CreateSchedule(Body, frozen=True):
    """A new schedule: with ``spec`` and ``action``, or of a graph with ``graph_id``, ``cron`` and ``timezone``.

    ``spec`` is a document, or a cron expression in UTC.
    """

    graph_id: Annotated[
        Annotated[str, about(examples=["langgraph:poet"])] | UnsetType,
        about("The graph that it runs for its owner, under a grant that is created with it."),
    ] = UNSET

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    id: Annotated[Id | None, about("The schedule's id. A UUID if omitted.")] = None
    request_id: Annotated[
        Text, about("Repeating it with the same id creates nothing, and answers with the existing schedule.")
    ] = ""
    trigger: Annotated[TriggerBody | bool | None, about("Start a run at once.")] = None
    backfills: Annotated[Backfills, about("Backfills to start at once: at most 100 in one request.")] = ()


class CreateSchedules(Body, frozen=True):
    """New schedules, all or none."""

    schedules: Annotated[list[CreateSchedule], about("At most `HORAE_BATCH_LIMIT` of them.")]


class RunOnce(Body, frozen=True, kw_only=True, rename={"in_": "in"}):
    """A single run of an action, after a span or at a time."""

    action: Annotated[Action | str, about("What: an action, or just its address.")]
    in_: Annotated[Duration | None, about("The span to wait. Not together with `at`.")] = None
    at: Annotated[
        Annotated[str, about(examples=["2099-03-08T09:00:00Z"])] | None,
        about("The time, with an offset or in the `timezone`."),
    ] = None
    timezone: Annotated[str | None, about("The zone of a time without an offset.")] = None
    key: Annotated[
        Id | None, about("The schedule's id: repeating a key creates nothing. A UUID if omitted.")
    ] = None
    policies: Annotated[Policies, about("How its slot is handled.")] = Policies()


class Versioned(Body, frozen=True):
    """A change that may require a version."""

    version: Annotated[
        Natural | None,
        about("The version that the schedule must still have, like the header If-Match."),
    ] = None

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


@with_fields(ScheduleBody)
@with_fields(ScheduleBody, "unset", without=_FIELDS - KEPT)
class ReplaceSchedule(Versioned, frozen=True):
    """All fields of a schedule from now on. Memo, search attributes, manager and grant stay if they are omitted."""

    dry_run: Annotated[bool, about("Store nothing; the answer is the schedule as it would be.")] = False


@with_fields(GraphFields, "unset")
@with_fields(ScheduleBody, "unset")
class MergeSchedule(Versioned, frozen=True):
    """The fields to change from now on. ``spec`` and ``policies`` are merged; ``null`` removes a part of them."""

    spec: Annotated[
        Document | str | UnsetType,
        about("The parts of the spec to change; null removes one. A cron expression replaces the spec."),
    ] = UNSET
    policies: Annotated[Document | UnsetType, about("The policies to change; null restores a default.")] = (
        UNSET
    )


class PatchSchedule(Body, frozen=True):
    """Several changes, all or nothing: a trigger, backfills, and a pause or a resume with a note."""

    trigger: Annotated[TriggerBody | None, about("Start a run now.")] = None
    backfills: Annotated[Backfills, about("Backfills to start: at most 100.")] = ()
    pause: Annotated[Text | None, about("Pause, with this note. Not together with `resume`.")] = None
    resume: Annotated[Text | None, about("Resume, with this note.")] = None
    version: Annotated[Natural | None, about("The version that the schedule must still have.")] = None


class PauseSchedule(Body, frozen=True):
    """The reason for a pause, and its end if it ends by itself."""

    note: Annotated[Text, about("Why.")] = ""
    until: Annotated[Moment | None, about("When it resumes by itself, with an offset.")] = None


class ResumeSchedule(Body, frozen=True):
    """Why a pause ends, and what happens to the slots that fell due during it."""

    note: Annotated[Text, about("Why.")] = ""
    on_resume: Annotated[
        OnResume | None,
        about("This time `catch_up` or `skip` the slots that fell due; the policy decides if omitted."),
    ] = None
    dry_run: Annotated[
        bool, about("Change nothing; the answer says what would start and what would not.")
    ] = False


class SkipNext(Body, frozen=True):
    """How many of the next slots to skip; 0 skips none."""

    number: Annotated[int, about("How many.", minimum=0, maximum=1_000_000)] = 1


class PublishEvent(Body, frozen=True):
    """An event of a flow, published from outside."""

    topic: Annotated[str, about("A topic of the flow.", minLength=1, maxLength=200)]
    message_id: Annotated[
        str,
        about(
            "Unique in its topic: repeating it updates the payload while the event is pending.",
            minLength=1,
            maxLength=200,
        ),
    ]
    payload: Annotated[Any, about("What consumers get: any JSON of up to 256 KiB.")] = None


class PauseFlow(Body, frozen=True):
    """Why a flow is paused."""

    note: Annotated[Text, about("Why.")] = ""


class ResolveFlow(Body, frozen=True):
    """How a person resolves the failure of a flow."""

    decision: Annotated[Decision, about("What happened to the change, or what to do.")]
    result: Annotated[Any, about("What an `applied` mutation returned.")] = None


class SkipInput(Body, frozen=True):
    """An input of a flow, as its producer registered it."""

    source: Annotated[str, about("Where the input comes from.")]
    type: Annotated[str, about("What kind of input it is.")]
    id: Annotated[str, about("Its id in that source.")]


class Which(Body, frozen=True):
    """A filter of schedules: they match all given fields."""

    state: Annotated[Literal["running", "paused", "completed"] | None, about("Their state.")] = None
    action: Annotated[str | None, about("The address of their action.")] = None
    tag: Annotated[str | None, about("A tag that they have.")] = None
    prefix: Annotated[str | None, about("The beginning of their ids.")] = None
    attention: Annotated[bool | None, about("Whether they need attention.")] = None
    managed_by: Annotated[str | None, about("The program or file that defines them.")] = None
    orphaned: Annotated[bool | None, about("Whether their manager no longer defines them.")] = None
    search: Annotated[
        Annotated[str, about(pattern="^[^:]+:")] | None,
        about("A search attribute and its value: `customer:42`."),
    ] = None


class RunSearch(Body, frozen=True):
    """A search of the ledger: entries match all given fields."""

    status: Annotated[
        Annotated[str, about(pattern=f"^({_STATUSES})(,({_STATUSES}))*$", examples=["failed,timed_out"])] | None,
        about("Their status, or several separated by commas."),
    ] = None  # fmt: skip
    reason: Annotated[
        Annotated[str, about(enum=list(Reason))] | None, about("Why they did not run, or did not succeed.")
    ] = None
    schedule: Annotated[str | None, about("The id of their schedule.")] = None
    tag: Annotated[str | None, about("A tag that their schedules have.")] = None
    since: Annotated[Moment | None, about("Decided at or after this time.")] = None
    until: Annotated[Moment | None, about("Decided before this time.")] = None


class ManyByFilter(Body, frozen=True):
    """A filter of schedules, and a note."""

    filter: Annotated[Which, about("Which schedules.")]
    note: Annotated[Text, about("Why.")] = ""


class PreviewChange(Body, frozen=True):
    """Another spec for a schedule, and how far ahead to compare."""

    spec: SpecField
    days: Annotated[int, about("How many days ahead.", minimum=1, maximum=MAX_DAYS)] = 30


class PreviewSpec(Body, frozen=True):
    """A spec, and how many of its times to show."""

    spec: SpecField
    limit: Annotated[int, about("How many times.", minimum=1, maximum=1000)] = 10


class CreateGrant(Body, frozen=True):
    """A new grant."""

    scopes: Annotated[
        tuple[str, ...],
        about(
            "`graph:execute:GRAPH_ID` for one graph, or `graph:execute:*` for all.",
            minItems=1,
            maxItems=SCOPES_PER_GRANT,
        ),
    ]
    expires_at: Annotated[Moment | None, about("When it expires, with an offset; null is never.")] = None


class RenewGrant(Body, frozen=True):
    """The new end of a grant."""

    expires_at: Annotated[Moment | None, about("When it expires, with an offset; null is never.")] = None


class PutAccount(Body, frozen=True):
    """The account that a user's runs are charged to."""

    virtual_key: Annotated[
        Text | None,
        about(
            "The key that runs of the account use. If omitted, the stored key stays; an empty one removes it."
        ),
    ] = None
    credit: Annotated[Natural | None, about("The most that it may ever spend; null is unlimited.")] = None


class ExecuteGraph(Body, frozen=True):
    """A worker's request to execute a graph."""

    run_id: Annotated[Id, about("The run; the same for every attempt of one slot.")]
    user_id: Annotated[Id, about("The user for whom it runs.")]
    grant_id: Annotated[Id, about("The grant under which it runs.")]
    attempt: Annotated[int, about("Counted from 1; usage is recorded under it.", minimum=1)] = 1
    input: Annotated[
        Any, about("The graph's input: an object. `messages` defaults to [], `model` to default.")
    ] = None


class CancelGraph(Body, frozen=True):
    """A worker's request to stop an execution."""

    user_id: Annotated[Id, about("The user for whom it runs.")]


class SucceededBody(Body, frozen=True):
    """The result of a run, reported by an external worker."""

    result: Annotated[Any, about("Any JSON; the next run of the schedule receives it too.")] = None


class FailedBody(Body, frozen=True):
    """The failure of a run, reported by an external worker."""

    failure: Annotated[str, about("What went wrong, in words.")] = ""

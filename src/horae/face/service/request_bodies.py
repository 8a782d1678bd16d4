"""The bodies of requests. Those about a schedule derive from what :mod:`horae.app.schedule_fields` declares."""

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
    SearchAttributes,
    SpecField,
    Text,
    TriggerBody,
    about,
    reference,
    with_fields,
)
from horae.app.why import MAX_DAYS
from horae.model import Action, OnResume, Policies, Reason, Status
from horae.spec.duration import Duration

MAX_BACKFILLS = 100
"""The most backfills that one request may start."""
_STATUSES = "|".join(Status)
Backfills = Annotated[tuple[BackfillBody, ...], about(maxItems=MAX_BACKFILLS)]


class StartBackfill(BackfillBody, frozen=True):
    """A range to backfill, or with ``dry_run`` only to count."""

    dry_run: Annotated[bool, about("Whether only to say how many slots there are.")] = False


class ScheduleBody(ScheduleFields, frozen=True, kw_only=True):
    """The fields of a schedule that its owner sets."""

    action: Annotated[Action | str, about("What: an action, or just its address.")]


class GraphFields(Body, frozen=True):
    """The fields of a schedule of a graph."""

    input: Annotated[
        Any, about("What the graph gets: an object; `messages` is [] and `model` is default if it has none.")
    ] = UNSET
    cron: Annotated[
        Annotated[str, about(examples=["0 9 * * 1-5"])] | UnsetType,
        about("When: a cron expression of five fields."),
    ] = UNSET
    timezone: Annotated[
        Annotated[str, about(examples=["Europe/Berlin"])] | UnsetType,
        about("Where the times of `cron` are meant."),
    ] = UNSET
    enabled: Annotated[bool | UnsetType, about("Whether it fires; it does unless it is said not to.")] = UNSET
    concurrency_policy: Annotated[
        Concurrency | UnsetType,
        about(
            "Slots that pass while a run executes are skipped (`Forbid`, which is the default), run beside it, or replace it."
        ),
    ] = UNSET
    backfill_limit: Annotated[
        Annotated[int, about(minimum=0, maximum=MAX_BACKFILL_LIMIT)] | UnsetType,
        about("How many missed slots may be made up; 0, the default, makes up none."),
    ] = UNSET
    starting_deadline_seconds: Annotated[
        Annotated[int, about(minimum=0, maximum=MAX_DEADLINE)] | UnsetType,
        about("How late a slot may start; 10 unless it is said otherwise."),
    ] = UNSET


@with_fields(ScheduleBody, without={"spec", "action", "policies"})
class CreateSchedule(GraphFields, frozen=True):
    """A new schedule: with ``spec`` and ``action``, or of a graph with ``graph_id``, ``cron`` and ``timezone``.

    ``spec`` is a document or a cron expression in UTC; without an ``id`` it gets one.
    """

    spec: Annotated[
        Document | str | UnsetType,
        about(
            "When: a document, or a cron expression in UTC.",
            oneOf=[{"$ref": reference("SpecDocument")}, {"type": "string", "examples": ["0 9 * * 1-5"]}],
        ),
    ] = UNSET
    action: Annotated[Action | str | UnsetType, about("What: an action, or just its address.")] = UNSET
    graph_id: Annotated[
        Annotated[str, about(examples=["langgraph:poet"])] | UnsetType,
        about("The graph that it runs for its owner, under a grant that is made with it."),
    ] = UNSET
    policies: Annotated[Policies | UnsetType, about("What becomes of its slots.")] = UNSET

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    id: Annotated[
        Id | None, about("What it is called, in all the service; without one it is called by a UUID.")
    ] = None
    request_id: Annotated[
        Text, about("The same again for the same id creates nothing, and answers with what is there.")
    ] = ""
    trigger: Annotated[TriggerBody | bool | None, about("A start right away.")] = None
    backfills: Annotated[Backfills, about("Backfills to start right away: at most 100 in one request.")] = ()


class CreateSchedules(Body, frozen=True):
    """New schedules, all or none."""

    schedules: Annotated[
        list[CreateSchedule], about("At most as many as the setting `HORAE_BATCH_LIMIT` says.")
    ]


class RunOnce(Body, frozen=True, kw_only=True, rename={"in_": "in"}):
    """A single run of an action, after a span or at a time."""

    action: Annotated[Action | str, about("What: an action, or just its address.")]
    in_: Annotated[Duration | None, about("After this much time. Not together with `at`.")] = None
    at: Annotated[
        Annotated[str, about(examples=["2099-03-08T09:00:00Z"])] | None,
        about("At this time: with an offset, or in the `timezone`."),
    ] = None
    timezone: Annotated[str | None, about("The zone of a time without an offset.")] = None
    key: Annotated[
        Id | None, about("The id of the schedule: the same key again creates nothing more. Else a UUID.")
    ] = None
    policies: Annotated[Policies, about("What becomes of its slot.")] = Policies()


class Versioned(Body, frozen=True):
    """A change that may require a version."""

    version: Annotated[
        Natural | None,
        about("The version that the schedule must still have; the header If-Match says the same."),
    ] = None

    if TYPE_CHECKING:  # the derived fields

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


@with_fields(ScheduleBody)
class ReplaceSchedule(Versioned, frozen=True):
    """All fields of a schedule from now on. Memo, search attributes and what manages it stay if they are omitted."""

    dry_run: Annotated[bool, about("Whether nothing is stored, and the answer only says what would be.")] = (
        False
    )
    memo: Annotated[
        dict[str, Any] | UnsetType,
        about("What its owner wants to remember: any JSON, at most 64 KiB."),
    ] = UNSET
    search_attributes: Annotated[SearchAttributes | UnsetType, about("Names and values to find it by.")] = (
        UNSET
    )
    managed_by: Annotated[Text | UnsetType, about("The program or file that defines it.")] = UNSET
    execution_grant_id: Annotated[Text | UnsetType, about("The grant under which its graph runs.")] = UNSET


@with_fields(GraphFields)
@with_fields(ScheduleBody, "unset")
class MergeSchedule(Versioned, frozen=True):
    """The fields to change from now on; ``spec`` and ``policies`` are merged, and a ``null`` in them removes what was there."""

    spec: Annotated[
        Document | str | UnsetType,
        about("Those parts of the spec that change; null removes one. A cron expression replaces it."),
    ] = UNSET
    policies: Annotated[Document | UnsetType, about("Those policies that change; null is the default.")] = (
        UNSET
    )


class PatchSchedule(Body, frozen=True):
    """Several changes, all or nothing: a trigger, backfills, and a pause or a resume with a note."""

    trigger: Annotated[TriggerBody | None, about("A start right now.")] = None
    backfills: Annotated[Backfills, about("Backfills to start: at most 100.")] = ()
    pause: Annotated[Text | None, about("Pause, and why. Not together with `resume`.")] = None
    resume: Annotated[Text | None, about("Resume, and why.")] = None
    version: Annotated[Natural | None, about("The token that the schedule must still have.")] = None


class PauseSchedule(Body, frozen=True):
    """The reason of a pause, and its end if it ends by itself."""

    note: Annotated[Text, about("Why.")] = ""
    until: Annotated[Moment | None, about("When it resumes by itself, with an offset.")] = None


class ResumeSchedule(Body, frozen=True):
    """Why a pause ends, and what becomes of the slots that fell due in it."""

    note: Annotated[Text, about("Why.")] = ""
    on_resume: Annotated[
        OnResume | None,
        about("For this once: `catch_up` makes up what fell due, `skip` does not; else by the policy."),
    ] = None
    dry_run: Annotated[bool, about("Whether only to say what would start and what would not.")] = False


class SkipNext(Body, frozen=True):
    """How many of the next slots to skip; 0 revokes that."""

    number: Annotated[int, about("How many.", minimum=0, maximum=1_000_000)] = 1


class PublishEvent(Body, frozen=True):
    """An event of a flow, published from outside."""

    topic: Annotated[str, about("A topic of the flow.", minLength=1, maxLength=200)]
    message_id: Annotated[
        str,
        about(
            "Unique in its topic: the same again updates the payload while the event is pending.",
            minLength=1,
            maxLength=200,
        ),
    ]
    payload: Annotated[Any, about("What consumers see of it: any JSON of up to 256 KiB.")] = None


class PauseFlow(Body, frozen=True):
    """Why a flow is paused."""

    note: Annotated[Text, about("Why.")] = ""


class ResolveFlow(Body, frozen=True):
    """How a person resolves the failure of a flow."""

    decision: Annotated[Decision, about("What became of it, or what to do.")]
    result: Annotated[Any, about("What an `applied` mutation returned.")] = None


class SkipInput(Body, frozen=True):
    """An input of a flow, as its producer registered it."""

    source: Annotated[str, about("Where it comes from.")]
    type: Annotated[str, about("What it is.")]
    id: Annotated[str, about("Which one.")]


class Which(Body, frozen=True):
    """A filter of schedules: those that match all given fields."""

    state: Annotated[Literal["running", "paused", "completed"] | None, about("How they stand.")] = None
    action: Annotated[str | None, about("What they do.")] = None
    tag: Annotated[str | None, about("A tag that they have.")] = None
    prefix: Annotated[str | None, about("How their ids begin.")] = None
    attention: Annotated[bool | None, about("Whether they need attention.")] = None
    managed_by: Annotated[str | None, about("The program or file that defines them.")] = None
    orphaned: Annotated[bool | None, about("Whether what manages them no longer defines them.")] = None
    search: Annotated[
        Annotated[str, about(pattern="^[^:]+:")] | None,
        about("A search attribute and its value: `customer:42`."),
    ] = None


class RunSearch(Body, frozen=True):
    """A search of the ledger: what matches all given fields."""

    status: Annotated[
        Annotated[str, about(pattern=f"^({_STATUSES})(,({_STATUSES}))*$", examples=["failed,timed_out"])] | None,
        about("How they stand: one status, or several with commas between them."),
    ] = None  # fmt: skip
    reason: Annotated[
        Annotated[str, about(enum=list(Reason))] | None, about("Why they did not run, or did not succeed.")
    ] = None
    schedule: Annotated[str | None, about("The id of their schedule.")] = None
    tag: Annotated[str | None, about("A tag that their schedules have.")] = None
    since: Annotated[Moment | None, about("When they were decided at the earliest.")] = None
    until: Annotated[Moment | None, about("They were decided before this.")] = None


class ManyByFilter(Body, frozen=True):
    """A filter of schedules, and a note."""

    filter: Annotated[Which, about("Which.")]
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
    expires_at: Annotated[
        Moment | None, about("From when on it no longer holds, with an offset; null is never.")
    ] = None


class RenewGrant(Body, frozen=True):
    """Until when a grant holds from now on."""

    expires_at: Annotated[Moment | None, about("With an offset; null is until it is revoked.")] = None


class PutAccount(Body, frozen=True):
    """What a user's runs are charged to."""

    virtual_key: Annotated[
        Text | None,
        about(
            "The key that runs of the account use; without one the stored key stays, an empty one removes it."
        ),
    ] = None
    credit: Annotated[Natural | None, about("All that it may ever spend; null is unlimited.")] = None


class ExecuteGraph(Body, frozen=True):
    """A request of a worker to execute a graph."""

    run_id: Annotated[Id, about("The run; the same for every attempt of one slot.")]
    user_id: Annotated[Id, about("For whom.")]
    grant_id: Annotated[Id, about("By which grant.")]
    attempt: Annotated[int, about("Counted from 1; usage is recorded under it.", minimum=1)] = 1
    input: Annotated[Any, about("An object; `messages` is [] and `model` is default if it has none.")] = None


class CancelGraph(Body, frozen=True):
    """A request of a worker to stop an execution."""

    user_id: Annotated[Id, about("For whom it runs.")]


class SucceededBody(Body, frozen=True):
    """The result of a run, reported by an external worker."""

    result: Annotated[Any, about("Any JSON; the next run of the schedule gets it too.")] = None


class FailedBody(Body, frozen=True):
    """The failure of a run, reported by an external worker."""

    failure: Annotated[str, about("In words.")] = ""

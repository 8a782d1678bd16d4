"""Why a slot did not run, or a run ended otherwise than by itself: each reason as a sentence."""

from __future__ import annotations

from horae.model import Reason

SENTENCES: dict[Reason, str] = {
    Reason.OVERLAP: "another run of the schedule was going on",
    Reason.REPLACED: "a newer start took its place",
    Reason.LATE: "it was later than the catch-up window allows",
    Reason.SUPERSEDED: "a later slot was made up instead",
    Reason.NO_CONSENT: "more slots were late than the schedule's backfill_limit lets be made up",
    Reason.PAUSED: "the schedule was paused",
    Reason.SKIP_NEXT: "a caller asked to skip it",
    Reason.LIMIT_REACHED: "the schedule had no starts left",
    Reason.BUFFER_FULL: "as many starts were waiting as may wait",
    Reason.SERVED: "a retry that was due at the same time served it",
    Reason.EDITED: "the schedule's spec was changed before it was decided",
    Reason.DELETED: "the schedule was deleted",
    Reason.BACKFILL_CANCELLED: "its backfill was cancelled",
    Reason.NOT_STARTED: "its action could not begin",
    Reason.START_TIMEOUT: "it waited longer for its start than it may",
    Reason.RUN_TIMEOUT: "it took longer than it may",
    Reason.HEARTBEAT_TIMEOUT: "it gave no sign of life for longer than it may",
    Reason.CANCELLED: "a caller asked it to stop",
    Reason.TERMINATED: "a caller terminated it",
    Reason.CRASHED: "the process that ran it died",
    Reason.SHUTDOWN: "the process that ran it ended before it did",
    Reason.PREEMPTED: "a new slot fell due before its retry",
    Reason.NOT_ALLOWED: "the settings do not allow its action any more",
    Reason.GRANT_NOT_FOUND: "it has no grant",
    Reason.GRANT_REVOKED: "its grant was revoked",
    Reason.GRANT_EXPIRED: "its grant has expired",
    Reason.GRANT_SCOPE: "its grant is for other graphs",
    Reason.NO_CREDIT: "its account has no credit left",
    Reason.GRAPH_UNAVAILABLE: "its graph could not be loaded",
    Reason.INVALID_RESULT: "its graph returned what cannot be kept as JSON",
    Reason.FAILED: "its action failed",
}

"""Why a slot did not run, or a run ended otherwise than by itself: each reason as a sentence."""

from __future__ import annotations

from horae.model import Reason

SENTENCES: dict[Reason, str] = {
    Reason.OVERLAP: "another run of the schedule was still running",
    Reason.REPLACED: "a newer start replaced it",
    Reason.LATE: "it was later than the catch-up window allows",
    Reason.SUPERSEDED: "a later slot was made up instead",
    Reason.NO_CONSENT: "more slots were late than the schedule's backfill_limit allows",
    Reason.PAUSED: "the schedule was paused",
    Reason.SKIP_NEXT: "a caller asked to skip it",
    Reason.LIMIT_REACHED: "the schedule had no starts left",
    Reason.BUFFER_FULL: "the buffer of waiting starts was full",
    Reason.SERVED: "a retry that was due at the same time served it",
    Reason.EDITED: "the schedule's spec was changed before it was decided",
    Reason.DELETED: "the schedule was deleted",
    Reason.BACKFILL_CANCELLED: "its backfill was cancelled",
    Reason.NOT_STARTED: "its action could not be started",
    Reason.START_TIMEOUT: "it waited longer than its start timeout",
    Reason.RUN_TIMEOUT: "it ran longer than its run timeout",
    Reason.HEARTBEAT_TIMEOUT: "it sent no heartbeat within its heartbeat timeout",
    Reason.CANCELLED: "a caller asked it to stop",
    Reason.TERMINATED: "a caller terminated it",
    Reason.CRASHED: "the process that ran it died",
    Reason.SHUTDOWN: "the process that ran it shut down first",
    Reason.PREEMPTED: "a new slot fell due before its retry",
    Reason.NOT_ALLOWED: "the settings no longer allow its action",
    Reason.GRANT_NOT_FOUND: "it has no grant",
    Reason.GRANT_REVOKED: "its grant was revoked",
    Reason.GRANT_EXPIRED: "its grant has expired",
    Reason.GRANT_SCOPE: "its grant is for other graphs",
    Reason.NO_CREDIT: "its account has no credit left",
    Reason.GRAPH_UNAVAILABLE: "its graph could not be loaded",
    Reason.INVALID_RESULT: "its graph returned a value that cannot be stored as JSON",
    Reason.FAILED: "its action failed",
}

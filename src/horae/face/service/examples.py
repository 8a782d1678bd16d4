"""Examples of requests and answers for the OpenAPI document. Tests check them against their schemas."""

from __future__ import annotations

from typing import Any

import msgspec

from horae.app.schedule_fields import ScheduleFields, values_of
from horae.app.views import ScheduleView

SCHEDULE: dict[str, Any] = msgspec.to_builtins(values_of(ScheduleFields(spec=""), ScheduleView)) | {
    "id": "nightly-report", "owner": "alice",
    "spec": {"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift"},
    "sentence": "At 02:30, Berlin time", "timezone": "Europe/Berlin",
    "action": {
        "kind": "function", "name": "report", "input": {"format": "pdf"}, "options": {}, "id": None,
        "id_format": "{id}-%Y-%m-%dT%H:%M:%SZ",
    },
    "policies": {"overlap": "buffer_one"}, "state": "running", "paused_until": None, "skip_next": 0,
    "attention": "", "tags": ["reports"], "version": 1, "created_at": "2026-11-02T10:00:00Z", "updated_at": "2026-11-02T10:00:00Z",
    "next_time": "2026-11-03T01:30:00Z",
}  # fmt: skip

RUN: dict[str, Any] = {
    "id": "5e884898da28047151d0e56f8dc62927", "schedule_id": "nightly-report", "action": "report",
    "action_id": "nightly-report-2026-11-03T01:30:00Z",
    "key": "b133a0c0e9bee3be20163d2ad31d6248db292aa6dcb1ee087a2aa50e0fc75ae2",
    "nominal": "2026-11-03T01:30:00Z", "fire": "2026-11-03T01:30:00Z", "started_at": "2026-11-03T01:30:00.012Z",
    "ended_at": "2026-11-03T01:30:04.2Z", "status": "succeeded", "reason": "", "sentence": "",
    "origin": {"kind": "automatic", "id": ""}, "attempt": 1, "overlap": "buffer_one", "author": "", "note": "",
    "input": {"format": "pdf"}, "result": {"pages": 12}, "failure": None, "stop": "",
}  # fmt: skip

BACKFILL: dict[str, Any] = {
    "id": "nightly-report:7", "schedule_id": "nightly-report", "start": "2026-11-01T00:00:00Z",
    "end": "2026-11-07T23:59:59Z", "overlap": "buffer_all", "status": "open", "total": 7, "made": 2,
    "cursor": "2026-11-02T01:30:00Z", "created_at": "2026-11-10T09:00:00Z", "ended_at": None, "author": "alice",
    "note": "the disk was full",
}  # fmt: skip

REQUESTS: dict[str, Any] = {
    "CreateSchedule": {
        "id": "nightly-report", "spec": {"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift"},
        "action": {"name": "report", "input": {"format": "pdf"}}, "policies": {"overlap": "buffer_one"},
        "tags": ["reports"],
    },
    "CreateSchedules": {"schedules": [{"id": "every-minute", "spec": "* * * * *", "action": "ping"}]},
    "ReplaceSchedule": {"spec": "0 3 * * *", "action": "report", "version": 1},
    "MergeSchedule": {"policies": {"overlap": "allow_all"}},
    "PatchSchedule": {"trigger": {"note": "asked for by phone"}, "pause": "until it is repaired"},
    "TriggerBody": {"input": {"format": "csv"}, "note": "asked for by phone"},
    "StartBackfill": {"start": "2026-11-01T00:00:00Z", "end": "2026-11-07T23:59:59Z", "dry_run": True},
    "PauseSchedule": {"note": "the printer is broken", "until": "2026-12-01T08:00:00+01:00"},
    "Note": {"note": "the printer is repaired"},
    "SkipNext": {"number": 1},
    "SharedCalendar": {"dates": ["2026-12-25", "2026-12-26"]},
    "PreviewChange": {"spec": "0 4 * * *", "days": 7},
    "PreviewSpec": {"spec": {"intervals": [{"every": "90m"}]}, "limit": 5},
    "ManyByFilter": {"filter": {"tag": "reports"}, "note": "the printer is broken"},
    "SucceededBody": {"result": {"pages": 12}},
    "FailedBody": {"failure": "the printer is on fire"},
    "ScheduleInput": {
        "workflow_id": "billing", "version": 3, "user_id": "alice", "cron_expr": "0 9 * * 1-5",
        "timezone": "America/New_York", "overlap_policy": "skip",
    },
    "PauseInput": {"schedule_id": "cron-8a1f0b6d2c3e4f5061728394a5b6c7d8", "paused": True},
}  # fmt: skip
"""Examples by the names of their schemas."""

ANSWERS: dict[str, Any] = {
    "ScheduleView": SCHEDULE,
    "SchedulePage": {"items": [SCHEDULE], "next": None},
    "PatchedView": {"schedule": SCHEDULE, "run_id": RUN["id"], "backfills": []},
    "DescribedSchedule": {
        **SCHEDULE,
        "info": {
            "started": 1, "skipped": 0, "missed": 0, "dropped": 0, "unstarted": {}, "pending": 0, "retrying": 0, "running": 0, "recent_runs": [RUN],
            "next_times": ["2026-11-04T01:30:00Z"], "last_result": {"pages": 12}, "last_failure": None,
        },
    },
    "RunView": RUN,
    "RunPage": {"items": [RUN], "next": None},
    "RunWithAttempts": {**RUN, "attempts": [], "checkpoints": []},
    "Triggered": {"run_id": RUN["id"]},
    "ReportView": {"status": "running", "stop": ""},
    "BackfillView": BACKFILL,
    "BackfillPage": {"items": [BACKFILL], "next": None},
    "BackfillPreview": {"slots": 7, "first": "2026-11-01T01:30:00Z", "last": "2026-11-07T01:30:00Z"},
    "TimesView": {
        "items": [
            {"nominal": "2026-11-03T01:30:00Z", "fire": "2026-11-03T01:30:00Z", "local": "2026-11-03T02:30:00+01:00"}
        ],
        "ended": None,
    },
    "Changed": {"changed": 2},
    "Count": {"count": 2},
    "Problem": {
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "code": "unknown_timezone",
        "detail": 'Unknown time zone "Europe/Berlim"', "hint": "did you mean Europe/Berlin?",
        "errors": [{"path": "spec", "message": 'Unknown time zone "Europe/Berlim"'}],
        "details": {"timezone": "Europe/Berlim"},
    },
}  # fmt: skip
"""Examples by the names of their schemas."""

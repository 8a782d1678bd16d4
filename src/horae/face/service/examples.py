"""Examples of requests and answers for the OpenAPI document. Tests check them against their schemas."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from horae.app.schedule_views import ScheduleView
from horae.app.view_base import View, view_of
from horae.app.views import BackfillView, RunView, UnstartedView
from horae.model import (
    AUTOMATIC,
    Action,
    Backfill,
    Overlap,
    Policies,
    Reason,
    Run,
    Schedule,
    State,
    Status,
    UnstartedRange,
    schedule_key,
)
from horae.spec import Spec

SPEC = {"crons": ["30 2 * * *"], "timezone": "Europe/Berlin", "gap": "shift"}
_ID = "nightly-report"


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def _shown(kind: type[View], model: object) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(view_of(kind, model))
    return shown


_NOW, _SLOT = _ms("2026-11-02T10:00"), _ms("2026-11-03T01:30")
SCHEDULE = _shown(
    ScheduleView,
    Schedule(
        id=_ID, owner="alice", spec=Spec.parse(SPEC).text, action=Action(name="report", input={"format": "pdf"}),
        policies=Policies(overlap=Overlap.BUFFER_ONE), state=State(), tags=("reports",), generation=1, version=1,
        cursor_ms=_NOW, created_at_ms=_NOW, updated_at_ms=_NOW,
    ),
)  # fmt: skip
RUN = _shown(
    RunView,
    Run(
        id="019a4752-5d20-8b13-a3a0-c0e9bee3be20", schedule_key=schedule_key("alice", _ID), owner="alice", generation=1, action="report",
        action_id=f"{_ID}-2026-11-03T01:30:00Z", nominal_ms=_SLOT, fire_ms=_SLOT, start_at_ms=_SLOT,
        decided_at_ms=_SLOT + 4, started_at_ms=_SLOT + 12, ended_at_ms=_SLOT + 4200, status=Status.SUCCEEDED,
        origin=AUTOMATIC, attempt=1, overlap=Overlap.BUFFER_ONE, input={"format": "pdf"}, result={"pages": 12},
    ),
)  # fmt: skip
UNSTARTED = _shown(
    UnstartedView,
    UnstartedRange(
        schedule_key=schedule_key("alice", _ID), owner="alice", generation=1, start_ms=_ms("2026-11-01T01:30"), end_ms=_ms("2026-11-02T01:30"),
        count=2, status=Status.SKIPPED, reason=Reason.PAUSED, decided_at_ms=_NOW,
    ),
)  # fmt: skip
BACKFILL = _shown(
    BackfillView,
    Backfill(
        id=f"{_ID}:7", schedule_key=schedule_key("alice", _ID), generation=1, start_ms=_ms("2026-11-01T00:00"), end_ms=_ms("2026-11-07T23:59"),
        overlap=Overlap.BUFFER_ALL, total=7, made=2, cursor_ms=_ms("2026-11-02T01:30"),
        created_at_ms=_ms("2026-11-10T09:00"), author="alice", note="the disk was full",
    ),
)  # fmt: skip

WORKFLOW = {
    "workflow_id": "report",
    "version": 1,
    "nodes": [
        {
            "id": "daily", "type": "trigger",
            "data": {"kind": "schedule_based", "schedule": {"cron_expr": "0 9 * * *", "timezone": "Europe/Berlin"}},
        },
        {"id": "fetch", "type": "action", "data": {"action": "report", "input": {"day": "run.scheduled_for"}}},
    ],
    "edges": [{"source": "daily", "target": "fetch"}],
}  # fmt: skip
REQUESTS: dict[str, Any] = {
    "Workflow": WORKFLOW,
    "LaunchBody": {"version": 1, "input": {"day": "2026-11-17"}, "key": "report-2026-11-17"},
    "LaunchInput": {
        "workflow_id": "report", "version": 1, "user_id": "alice", "scheduled_for": "2026-11-17T09:00:00Z",
        "idempotency_key": "report-2026-11-17",
    },
    "CreateSchedule": {
        "id": _ID, "spec": SPEC, "action": {"name": "report", "input": {"format": "pdf"}},
        "policies": {"overlap": "buffer_one"}, "tags": ["reports"],
    },
    "PublishEvent": {"topic": "mail", "message_id": "m-17", "payload": {"subject": "Hello"}},
    "PauseFlow": {"note": "until the import is done"},
    "ResolveFlow": {"decision": "applied", "result": {"row": 7}},
    "SkipInput": {"source": "gmail", "type": "message", "id": "m-17"},
    "RunOnce": {"action": {"name": "ping", "input": {"rows": 10}}, "in": "10m", "key": "report-of-ada"},
    "CreateSchedules": {"schedules": [{"id": "every-minute", "spec": "* * * * *", "action": "ping"}]},
    "ReplaceSchedule": {"spec": "0 3 * * *", "action": "report", "version": 1},
    "MergeSchedule": {"policies": {"overlap": "allow_all"}},
    "PatchSchedule": {"trigger": {"note": "asked for by phone"}, "pause": "until it is repaired"},
    "TriggerBody": {"input": {"format": "csv"}, "note": "asked for by phone"},
    "StartBackfill": {"start": "2026-11-01T00:00:00Z", "end": "2026-11-07T23:59:59Z", "dry_run": True},
    "PauseSchedule": {"note": "the printer is broken", "until": "2126-12-01T08:00:00+01:00"},
    "ResumeSchedule": {"note": "the printer is repaired", "on_resume": "skip"},
    "SkipNext": {"number": 1},
    "SharedCalendar": {"dates": ["2026-12-25", "2026-12-26"]},
    "PreviewChange": {"spec": "0 4 * * *", "days": 7},
    "PreviewSpec": {"spec": {"intervals": [{"every": "90m"}]}, "limit": 5},
    "ManyByFilter": {"filter": {"tag": "reports"}, "note": "the printer is broken"},
    "CreateGrant": {"scopes": ["graph:execute:langgraph:poet"], "expires_at": "2126-12-01T00:00:00Z"},
    "RenewGrant": {"expires_at": "2127-12-01T00:00:00Z"},
    "PutAccount": {"credit": 5_000_000},
    "ExecuteGraph": {
        "run_id": RUN["id"], "user_id": "alice", "grant_id": "3f1c0d52-9c0e-4f0c-8d59-6f1c58a0a7f1",
        "input": {"messages": [], "model": "default"},
    },
    "CancelGraph": {"user_id": "alice"},
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
    "StoredSchedule": {**SCHEDULE, "warnings": []},
    "PutSchedule": {**SCHEDULE, "warnings": [], "outcome": "unchanged"},
    "PatchedView": {"schedule": SCHEDULE, "run_id": RUN["id"], "backfills": [], "warnings": []},
    "DescribedSchedule": {
        **SCHEDULE,
        "info": {
            "started": 1, "skipped": 0, "missed": 0, "dropped": 0, "unstarted": {}, "pending": 0, "retrying": 0, "running": 0, "recent_runs": [RUN],
            "next_times": ["2026-11-04T01:30:00Z"], "last_result": {"pages": 12}, "last_failure": None,
        },
    },
    "ResumedSchedule": {
        **SCHEDULE,
        "resumption": {
            "sentence": "2 slots do not start (2026-11-01T01:30:00Z to 2026-11-02T01:30:00Z), because the schedule was paused. "
            'With on_resume "catch_up", they are made up as the policy catch_up says.',
            "on_resume": "skip", "other": "catch_up", "starts": None, "waits": None, "later": 0,
            "unstarted": [{"count": 2, "start": UNSTARTED["start"], "end": UNSTARTED["end"], "reason": "paused"}],
        },
    },
    "RunView": RUN,
    "LedgerPage": {"items": [{"kind": "run", **RUN}, {"kind": "unstarted", **UNSTARTED}], "next": None},
    "RunWithAttempts": {**RUN, "attempts": [], "checkpoints": []},
    "LogPage": {
        "items": [
            {
                "attempt": 1, "number": 1, "at": "2026-11-03T01:30:00.5Z", "level": "INFO", "logger": "report",
                "message": "12 pages", "dropped": 0,
            }
        ],
        "next": None,
    },
    "Triggered": {"run_id": RUN["id"], "warnings": []},
    "ReportView": {"status": "running", "stop": ""},
    "BackfillView": BACKFILL,
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
ANSWERS |= {
    f"{name}Page": {"items": [each], "next": None}
    for name, each in (("Schedule", SCHEDULE), ("Run", RUN), ("Backfill", BACKFILL))
}
"""Examples by the names of their schemas."""

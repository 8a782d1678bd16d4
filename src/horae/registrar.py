"""The registrar: cron schedules that start workflows, the same from Python and over HTTP."""

from horae.face.registrar import (
    Executor,
    LedgerRow,
    Registered,
    Registrar,
    RunLauncher,
    RunMeta,
    ScheduleInput,
    Upserted,
    WorkflowStore,
)

__all__ = [
    "Executor", "LedgerRow", "Registered", "Registrar", "RunLauncher", "RunMeta", "ScheduleInput", "Upserted", "WorkflowStore",
]  # fmt: skip

"""The registrar: cron schedules that start workflows, the same from Python and over HTTP."""

from horae.app.workflow_schedules import ScheduleInput
from horae.face.registrar.registrar import Registrar
from horae.face.registrar.views import LedgerRow, Registered, Upserted
from horae.workflow.ports import DagExecutor as Executor
from horae.workflow.ports import RunLauncher, RunMeta, WorkflowStore

__all__ = [
    "Executor", "LedgerRow", "Registered", "Registrar", "RunLauncher", "RunMeta", "ScheduleInput", "Upserted", "WorkflowStore",
]  # fmt: skip

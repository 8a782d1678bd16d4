"""The registrar: cron schedules that start workflows, the same from Python and over HTTP."""

from horae.face.registrar.registrar import Registrar
from horae.face.registrar.schedule_input import ScheduleInput
from horae.face.registrar.views import LedgerRow, Registered, Upserted
from horae.face.registrar.workflow_action import RunLauncher

__all__ = ["LedgerRow", "Registered", "Registrar", "RunLauncher", "ScheduleInput", "Upserted"]

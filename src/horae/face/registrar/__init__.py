"""The registrar: cron schedules that start workflows, the same from Python and over HTTP."""

from horae.face.registrar.launch import RunLauncher
from horae.face.registrar.registrar import Registrar
from horae.face.registrar.request import ScheduleInput
from horae.face.registrar.views import LedgerRow, Registered, Upserted

__all__ = ["LedgerRow", "Registered", "Registrar", "RunLauncher", "ScheduleInput", "Upserted"]

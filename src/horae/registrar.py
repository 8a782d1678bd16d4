"""The registrar: cron schedules that start workflows, the same from Python and over HTTP."""

from horae.face.registrar import LedgerRow, Registered, Registrar, RunLauncher, ScheduleInput, Upserted

__all__ = ["LedgerRow", "Registered", "Registrar", "RunLauncher", "ScheduleInput", "Upserted"]

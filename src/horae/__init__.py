"""Horae, a durable scheduler for Python."""

from typing import TYPE_CHECKING

from horae.app import App, Filter, NewSchedule
from horae.app.schedule_warnings import ScheduleWarning
from horae.app.sync import SyncApp
from horae.config import Config
from horae.errors import HoraeError, NotStartedError
from horae.executor.context import Accepted, Context
from horae.executor.port import Executor
from horae.model import (
    Backfill,
    CatchUp,
    CatchUpPolicy,
    OnResume,
    Origin,
    OriginKind,
    Overlap,
    Policies,
    Reason,
    Retention,
    RetryPolicy,
    Run,
    Schedule,
    Status,
    Timeouts,
    WhenFull,
)
from horae.spec import Spec

if TYPE_CHECKING:
    from horae.face.declarative import Scheduler

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "App",
    "Backfill",
    "CatchUp",
    "CatchUpPolicy",
    "Config",
    "Context",
    "Executor",
    "Filter",
    "HoraeError",
    "NewSchedule",
    "NotStartedError",
    "OnResume",
    "Origin",
    "OriginKind",
    "Overlap",
    "Policies",
    "Reason",
    "Retention",
    "RetryPolicy",
    "Run",
    "Schedule",
    "ScheduleWarning",
    "Scheduler",
    "Spec",
    "Status",
    "SyncApp",
    "Timeouts",
    "WhenFull",
    "__version__",
]


def __getattr__(name: str) -> object:
    """The declarative scheduler loads when it is asked for."""
    if name == "Scheduler":
        from horae.face.declarative import Scheduler  # noqa: PLC0415 - a face, and this is not

        return Scheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

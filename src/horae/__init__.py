"""Horae, a durable scheduler for Python."""

from horae.app import App, Filter, NewSchedule
from horae.config import Config
from horae.errors import HoraeError, NotStartedError
from horae.executor.function import Context
from horae.model import (
    Backfill,
    CatchUp,
    CatchUpPolicy,
    OnResume,
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

__version__ = "0.1.0"

__all__ = [
    "App",
    "Backfill",
    "CatchUp",
    "CatchUpPolicy",
    "Config",
    "Context",
    "Filter",
    "HoraeError",
    "NewSchedule",
    "NotStartedError",
    "OnResume",
    "Overlap",
    "Policies",
    "Reason",
    "Retention",
    "RetryPolicy",
    "Run",
    "Schedule",
    "Spec",
    "Status",
    "Timeouts",
    "WhenFull",
    "__version__",
]

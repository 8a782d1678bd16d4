"""Horae, a durable scheduler for Python."""

from importlib import import_module
from typing import TYPE_CHECKING

from horae.config import Config
from horae.errors import HoraeError, NotStartedError
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
    from horae.app import App, Filter, NewSchedule
    from horae.app.schedule_warnings import ScheduleWarning
    from horae.app.sync import SyncApp
    from horae.executor.attempt_context import Accepted, Context
    from horae.executor.port import Executor
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


_LOADED_WHEN_ASKED = {
    "App": "app", "Filter": "app", "NewSchedule": "app", "ScheduleWarning": "app.schedule_warnings", "SyncApp": "app.sync",
    "Accepted": "executor.attempt_context", "Context": "executor.attempt_context", "Executor": "executor.port", "Scheduler": "face.declarative",
}  # fmt: skip
"""The names that need the engine, and where they are: a command that asks a server needs none of it."""


def __getattr__(name: str) -> object:
    """Load a name of the engine when it is first asked for."""
    if name not in _LOADED_WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_LOADED_WHEN_ASKED[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, whether or not they are loaded."""
    return __all__

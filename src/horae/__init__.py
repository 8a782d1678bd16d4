"""Horae, a durable scheduler for Python."""

from horae.app import App
from horae.errors import HoraeError
from horae.executor.function import Context
from horae.model import (
    CatchUp,
    CatchUpPolicy,
    OnResume,
    Overlap,
    Policies,
    RetryPolicy,
    Run,
    Schedule,
    Status,
)
from horae.spec import Spec

__version__ = "0.1.0"

__all__ = [
    "App",
    "CatchUp",
    "CatchUpPolicy",
    "Context",
    "HoraeError",
    "OnResume",
    "Overlap",
    "Policies",
    "RetryPolicy",
    "Run",
    "Schedule",
    "Spec",
    "Status",
    "__version__",
]

"""The declarative scheduler: an application lists its tasks as data, and the scheduler reconciles the stored tasks with the list."""

from horae.face.declarative.events import (
    Event,
    PollingStarted,
    PollingStopped,
    PollingStopRequested,
    SchedulerInitializationCompleted,
    SchedulerInitializationFailed,
    SchedulerInitializationStarted,
    SchedulerStopped,
    SchedulerStopRequested,
    TaskRetryPreempted,
    TaskRetryStarted,
    TaskRunCompleted,
    TaskRunFailed,
    TaskRunStarted,
)
from horae.face.declarative.registration import Registration
from horae.face.declarative.scheduler import Scheduler

__all__ = [
    "Event",
    "PollingStarted",
    "PollingStopRequested",
    "PollingStopped",
    "Registration",
    "Scheduler",
    "SchedulerInitializationCompleted",
    "SchedulerInitializationFailed",
    "SchedulerInitializationStarted",
    "SchedulerStopRequested",
    "SchedulerStopped",
    "TaskRetryPreempted",
    "TaskRetryStarted",
    "TaskRunCompleted",
    "TaskRunFailed",
    "TaskRunStarted",
]

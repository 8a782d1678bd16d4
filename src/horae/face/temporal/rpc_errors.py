"""Errors as Temporal's clients expect them: a status code, a sentence, and a detail of the error's type."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import GrpcStatus
from temporalio.api.enums.v1 import ResourceExhaustedCause
from temporalio.api.errordetails.v1 import (
    NotFoundFailure,
    PermissionDeniedFailure,
    ResourceExhaustedFailure,
    WorkflowExecutionAlreadyStartedFailure,
)

from horae.errors import (
    AuthenticationError,
    ClockOffError,
    ConflictTokenMismatchError,
    DatabaseVersionError,
    EvaluationTimeoutError,
    HoraeError,
    LimitExceededError,
    PermissionDeniedError,
    ScheduleExistsError,
    ScheduleNotFoundError,
    ScheduleUnreadableError,
    StoreUnavailableError,
    TooManyEvaluationsError,
    UnknownActionError,
)

Code = grpc.StatusCode
M = TypeVar("M", bound=Message)
MAX_MESSAGE_LENGTH = 2000
"""The most characters of a message, which is sent in a header."""
INTERNAL = "The call failed. The log of the service says why."

CODES: dict[type[HoraeError], Code] = {
    ScheduleNotFoundError: Code.NOT_FOUND,
    ScheduleExistsError: Code.ALREADY_EXISTS,
    ConflictTokenMismatchError: Code.FAILED_PRECONDITION,
    ScheduleUnreadableError: Code.FAILED_PRECONDITION,
    AuthenticationError: Code.UNAUTHENTICATED,
    PermissionDeniedError: Code.PERMISSION_DENIED,
    LimitExceededError: Code.RESOURCE_EXHAUSTED,
    TooManyEvaluationsError: Code.RESOURCE_EXHAUSTED,
    StoreUnavailableError: Code.UNAVAILABLE,
    ClockOffError: Code.UNAVAILABLE,
    DatabaseVersionError: Code.UNAVAILABLE,
    EvaluationTimeoutError: Code.DEADLINE_EXCEEDED,
}
"""The code of each error; all others are INVALID_ARGUMENT."""


class Refusal(Exception):  # noqa: N818 - an answer, not always an error
    """Answers a call with a code and a sentence."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def read_message(kind: type[M], data: bytes) -> M:
    """Decode a message; what cannot be decoded is refused."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise Refusal(Code.INVALID_ARGUMENT, f"The message is no {kind.__name__}") from None


class Answer(NamedTuple):
    """An error as it is sent."""

    code: Code
    message: str
    details: bytes


def answer_to(error: HoraeError | Refusal) -> Answer:
    """The answer to a call that failed."""
    code = error.code if isinstance(error, Refusal) else CODES.get(type(error), Code.INVALID_ARGUMENT)
    message = error.message
    if isinstance(error, HoraeError):
        if isinstance(error, UnknownActionError):
            message = f"schedule.action.start_workflow.workflow_type: {message}"
        if error.hint:
            message = f"{message} ({error.hint})"
    message = message[:MAX_MESSAGE_LENGTH]
    return Answer(code, message, _status(code, message, _detail(code, error)))


def _detail(code: Code, error: HoraeError | Refusal) -> Message | None:
    match code:
        case Code.NOT_FOUND:
            return NotFoundFailure()
        case Code.ALREADY_EXISTS:
            return WorkflowExecutionAlreadyStartedFailure()
        case Code.PERMISSION_DENIED:
            return PermissionDeniedFailure(reason=error.message)
        case Code.RESOURCE_EXHAUSTED:
            return ResourceExhaustedFailure(
                cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT
                if isinstance(error, LimitExceededError) and error.details["limit"] == "requests_per_second"
                else ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED
            )
        case _:
            return None


def _status(code: Code, message: str, detail: Message | None) -> bytes:
    packed = []
    if detail is not None:
        packed.append(AnyMessage())
        packed[0].Pack(detail)
    return GrpcStatus(code=code.value[0], message=message, details=packed).SerializeToString()

"""The exceptions that handlers raise, and how the host classifies them: by class, never by message text."""

from __future__ import annotations

from horae.flow_model import FailureKind


class Transient(Exception):  # noqa: N818 - the name that the handlers of flows use
    """A temporary failure: a rate limit, the network, a 5xx, a timeout. The run is retried after a while.

    Raised by ``mutate``, it leaves open whether the effect happened; ``applied=False`` says that it did not.
    """

    def __init__(self, *args: object, applied: bool | None = None) -> None:
        super().__init__(*args)
        self.applied = applied


class LogicError(Exception):
    """The handler, or its input, is wrong: it needs other code. In ``mutate`` it says that nothing happened."""


class NeedsApproval(Exception):  # noqa: N818
    """A person must do something first: sign in again, grant a permission. In ``mutate`` it says that nothing happened."""


class Internal(Exception):  # noqa: N818
    """A fault of the host or of a connector: neither waiting nor other handler code helps."""


class HandlerStopped(BaseException):
    """Ends a handler after a failed call of its context. Not an ``Exception``, so that handlers do not swallow it by accident."""


class Failure(Exception):  # noqa: N818
    """A classified failure of a run: its kind, and its message for people."""

    def __init__(self, kind: FailureKind, issue: str, error: BaseException | None = None) -> None:
        super().__init__(issue)
        self.kind = kind
        self.issue = issue
        self.error = error


_KINDS: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (LogicError, FailureKind.LOGIC),
    (NeedsApproval, FailureKind.APPROVAL),
    (Internal, FailureKind.INTERNAL),
    (ConnectionError, FailureKind.TRANSIENT),
    (TimeoutError, FailureKind.TRANSIENT),
)


def classify(error: BaseException) -> Failure:
    """Classify an exception of a handler."""
    if isinstance(error, Failure):
        return error
    issue = _words(error)
    if isinstance(error, Transient):
        kind = FailureKind.NOT_APPLIED if error.applied is False else FailureKind.TRANSIENT
        return Failure(kind, issue, error)
    kinds = (kind for known, kind in _KINDS if isinstance(error, known))
    return Failure(next(kinds, FailureKind.UNCLASSIFIED), issue, error)


def _words(error: BaseException) -> str:
    """The message of an error; other classes than the ones above are named in front of it."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, Transient | LogicError | NeedsApproval | Internal):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

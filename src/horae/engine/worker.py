"""The worker: runs claimed attempts, the only part that calls executors.

It knows how many more may begin, enforces their deadlines, stops them, gives up those that do not stop, and keeps their results
until the decider that launched them has recorded them.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from horae.engine.claim_preparation import prepare
from horae.errors import GraphError, LeftToOtherNodeError, NotAdmittedError, NotStartedError
from horae.executor.action_registry import Executors
from horae.executor.attempt_context import Accepted, Context, KeepToken, RunningAttempt, SaveCheckpoints
from horae.executor.attempt_log import AttemptLog, capture_standard_logging, collect_in
from horae.executor.stored_output import kept_failure, kept_result
from horae.executor.tracebacks import traceback_text, without_own_frames
from horae.model import (
    Action,
    AttemptEnd,
    AttemptResult,
    Checkpoint,
    Denial,
    LastOutcome,
    Reason,
    Run,
    Timeouts,
)
from horae.policy.admission import admit
from horae.spec.duration import milliseconds
from horae.store.port import Transaction

Key = tuple[str, str, int]
"""An attempt: the decider that launched it, the id of its run, and its number."""
_NO_TIMEOUTS = Timeouts()


class Launch(msgspec.Struct, frozen=True, kw_only=True):  # its refusal leads to frames, and these back to it
    """A claimed run, with what its attempt needs."""

    run: Run
    timeouts: Timeouts = _NO_TIMEOUTS
    last: LastOutcome | None = None
    action: Action | None = None
    """The schedule's current action; ``None`` if the schedule was deleted."""
    permitted_by: str = ""
    """The scope by which the action was stored."""
    grant_id: str = ""
    """The grant that the schedule names; empty if it names none."""
    denial: Denial | None = None
    """Why its grant did not allow it when it was claimed; ``None`` if it did, or needs none."""
    deleted: bool = False
    """Whether the schedule was deleted since the run was claimed."""
    unreadable: str = ""
    """Why the input of the run cannot be read; empty if it can."""
    checkpoints: Sequence[Checkpoint] = ()
    """The checkpoints of earlier attempts of the run."""
    prepared: bool = False
    """Whether its executor prepared it in the transaction that claimed it; it was admitted before."""
    refusal: NotStartedError | None = None
    """Why its executor could not prepare it, if it could not."""
    call: Callable[[RunningAttempt], Awaitable[object]] | None = None
    """Makes the attempt instead of an executor; its decider receives the return value unchanged."""


class Decided:
    """Base class for return values of a decider's own call; they are passed back unchanged, not stored as a result."""

    __slots__ = ()


class Worker:
    """Runs attempts in this program, and collects how they ended.

    Timeouts are enforced when the engine asks, by a clock that is never set: ``monotonic``, in milliseconds. When actions are
    called is noted by the clock that all nodes share: ``shared_now``.
    """

    def __init__(
        self,
        executors: Executors,
        wake: Callable[[], None],
        monotonic: Callable[[], int],
        shared_now: Callable[[], int],
        *,
        concurrency: int,
        terminate_ms: int,
    ) -> None:
        capture_standard_logging()
        self._executors = executors
        self._wake = wake
        self._now = monotonic
        self.shared_now = shared_now
        self._concurrency = concurrency
        self._terminate_ms = terminate_ms
        self._attempts: dict[Key, RunningAttempt] = {}
        self._results: defaultdict[str, deque[AttemptResult]] = defaultdict(deque)
        self._given_up: set[asyncio.Task[None]] = set()
        self._deadlines: list[tuple[int, int, str, Key]] = []
        self._numbers = count()
        self.keep_token: KeepToken = _keep_no_token
        self.save_checkpoints: SaveCheckpoints = _save_no_checkpoints
        self.new_log: Callable[..., AttemptLog | None] = _keep_no_log
        self.on_launch: Callable[[Run, int], None] | None = None
        """Called right before an action is called, with its run and the time."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The addresses of the actions that can be run here."""
        return self._executors.actions

    def can_run(self, run: Run) -> bool:
        """Whether a run can be attempted here."""
        return self._executors.can_run(run)

    @property
    def free_capacity(self) -> int:
        """How many more attempts may begin."""
        return max(self._concurrency - len(self._attempts), 0)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The asyncio tasks of running attempts."""
        return [attempt.task for attempt in self._attempts.values() if attempt.task is not None]

    @property
    def running(self) -> Counter[str]:
        """How many attempts run of each action, by its address."""
        return Counter(attempt.run.action for attempt in self._attempts.values())

    def attempt_in(self, task: asyncio.Task[Any]) -> tuple[str, Run] | None:
        """The decider and the run whose attempt is a task; other threads may ask too."""
        running = list(self._attempts.items())
        return next(((key[0], attempt.run) for key, attempt in running if attempt.task is task), None)

    def known(self, decider: str) -> set[tuple[str, int]]:
        """The attempts of a decider that are running, or whose results are not recorded yet: ids of runs, and numbers."""
        running = {(run_id, number) for name, run_id, number in self._attempts if name == decider}
        return running | {(each.run.id, each.run.attempt) for each in self._results[decider]}

    def launch(self, decider: str, start: Launch) -> None:
        """Begin an attempt that a decider has claimed, once the claim is durable, if its run is admitted."""
        run = start.run
        attempt = RunningAttempt(run, start.timeouts, self._now)
        if start.refusal is not None:
            self._results[decider].append(_raised(attempt, start.refusal))
            self._wake()
            return
        if start.call is None and not start.prepared and (denial := self.denial(start)) is not None:
            self._deny(decider, run, denial)
            return
        key = (decider, run.id, run.attempt)
        self._attempts[key] = attempt
        attempt.task = asyncio.create_task(self._run(key, attempt, start), name=run.action_id)
        if start.timeouts.run is not None or start.timeouts.heartbeat is not None:
            self._set_deadlines(key, attempt)

    def denial(self, start: Launch) -> Denial | None:
        """Why a claimed run must no longer start; ``None`` admits it."""
        denied = self._executors.admit(start.run, start.action, start.permitted_by)
        return admit(
            deleted=start.deleted, unreadable=start.unreadable, by_grant=start.denial, by_executor=denied
        )

    async def prepare(
        self, transaction: Transaction, launches: Sequence[Launch], now: int
    ) -> Sequence[Launch]:
        """Let executors write what attempts need in the transaction that claims them; most kinds write nothing."""
        if not self._executors.prepare_some:
            return launches
        return await prepare(transaction, launches, self._executors.preparing, self.denial, now)

    def _call(self, attempt: RunningAttempt, start: Launch) -> Awaitable[object]:
        """Call the executor. Neither this nor what it calls is a coroutine, because each coroutine would cost every run time."""
        if start.call is not None:
            attempt.log = self.new_log(start.run, flow=True)
            collect_in(attempt.log)
            return start.call(attempt)
        if self.on_launch is not None:
            self.on_launch(start.run, attempt.launched_at_ms or 0)
        attempt.log = self.new_log(start.run)
        collect_in(attempt.log)
        context = Context(
            start.run, start.last, attempt, self.keep_token,
            save_checkpoints=self.save_checkpoints, earlier=start.checkpoints, grant_id=start.grant_id,
        )  # fmt: skip
        return self._executors.run(context, start.action)

    def _deny(self, decider: str, run: Run, denial: Denial) -> None:
        failure = kept_failure(denial.sentence)
        self._results[decider].append(
            AttemptResult(run=run, ending=AttemptEnd.NOT_ADMITTED, reason=denial.reason, failure=failure)
        )
        self._wake()

    def _set_deadlines(self, key: Key, attempt: RunningAttempt) -> None:
        attempt.beat()
        for kind, span in (("run", attempt.timeouts.run), ("heartbeat", attempt.timeouts.heartbeat)):
            if span is not None:
                self._deadline(attempt.beat_at + milliseconds(span), kind, key)

    async def _run(self, key: Key, attempt: RunningAttempt, start: Launch) -> None:
        # The clock may have been corrected, and so set back, since the claim.
        attempt.launched_at_ms = max(self.shared_now(), attempt.run.started_at_ms or 0)
        try:
            ended = _returned(attempt, await self._call(attempt, start))
        except BaseException as error:
            ended = _raised(attempt, error)
        if self._attempts.pop(key, None) is attempt:  # else it was given up, and has its result already
            self._end(key, attempt, ended)
            self._wake()

    def _end(self, key: Key, attempt: RunningAttempt, ended: AttemptResult) -> None:
        if attempt.log is not None and (rest := attempt.log.close()) is not None:
            ended = msgspec.structs.replace(ended, log=rest)
        self._results[key[0]].append(ended)

    def stop(self, decider: str, run: Run) -> None:
        """Cancel or terminate an attempt. One that ignores a cancel is terminated; one that ignores that is given up."""
        key = (decider, run.id, run.attempt)
        attempt = self._attempts.get(key)
        if attempt is None or attempt.stop in {run.stop, "terminate"}:
            return
        attempt.run = msgspec.structs.replace(attempt.run, stop=run.stop)
        attempt.reason = Reason(run.reason) if run.reason else Reason.CANCELLED
        cancel_ms = milliseconds(attempt.timeouts.cancel)
        self._stop(key, attempt, run.stop, self._terminate_ms if run.stop == "terminate" else cancel_ms)

    def stop_all(self, reason: Reason, within_ms: float = math.inf) -> None:
        """Terminate every attempt, because this program ends or has lost its lease."""
        grace_ms = int(min(self._terminate_ms, within_ms))
        for key, attempt in list(self._attempts.items()):
            attempt.reason = reason
            self._stop(key, attempt, "terminate", grace_ms)

    def _stop(self, key: Key, attempt: RunningAttempt, how: str, grace_ms: int) -> None:
        attempt.stop = how
        attempt.time_to_stop_ms = grace_ms if how == "terminate" or attempt.timed_out else None
        if attempt.task is not None and attempt.launched_at_ms is not None:
            attempt.task.cancel()
        elif attempt.task is not None:  # a task cancelled before its first step would never call the action
            asyncio.get_running_loop().call_soon(attempt.task.cancel)
        self._deadline(self._now() + grace_ms, "end", key)

    def _deadline(self, at: int, kind: str, key: Key) -> None:
        heapq.heappush(self._deadlines, (at, next(self._numbers), kind, key))

    def next_deadline(self) -> int | None:
        """In how many milliseconds to enforce timeouts again."""
        return max(self._deadlines[0][0] - self._now(), 0) if self._deadlines else None

    def enforce(self) -> None:
        """Stop attempts that take too long, and give up those that do not stop."""
        now = self._now() if self._deadlines else 0
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, kind, key = heapq.heappop(self._deadlines)
            attempt = self._attempts.get(key)
            if attempt is None:
                continue
            silent_at = attempt.beat_at + milliseconds(attempt.timeouts.heartbeat or "0s")
            if kind == "end":
                self._give_up(key, attempt)
            elif kind == "heartbeat" and now < silent_at:
                self._deadline(silent_at, "heartbeat", key)
            elif not attempt.timed_out and not attempt.stop:
                attempt.timed_out = True
                attempt.reason = Reason.RUN_TIMEOUT if kind == "run" else Reason.HEARTBEAT_TIMEOUT
                self._stop(key, attempt, "cancel", self._terminate_ms)

    def _give_up(self, key: Key, attempt: RunningAttempt) -> None:
        """End an attempt that did not stop in time: its task is cancelled once more, and its result is ignored."""
        if attempt.stop == "cancel" and not attempt.timed_out:
            attempt.run = msgspec.structs.replace(attempt.run, stop="terminate")
            self._stop(key, attempt, "terminate", self._terminate_ms)
            return
        del self._attempts[key]
        if attempt.task is not None:
            attempt.task.cancel()
            self._given_up.add(attempt.task)
            attempt.task.add_done_callback(self._given_up.discard)
        self._end(key, attempt, _stopped(attempt, "it did not stop when it was asked to"))

    def give_up_all(self) -> None:
        """Wait no longer for any attempt."""
        for key, attempt in list(self._attempts.items()):
            self._give_up(key, attempt)

    def leave_behind(self) -> list[str]:
        """The names of given-up attempts that still run; the program does not wait for them.

        ``asyncio.run`` waits for every task that it knows, so an action that never stops would keep the program from ending.
        """
        for task in self._given_up:
            asyncio._unregister_task(task)  # noqa: SLF001 - documented for loops of others
        return sorted({task.get_name() for task in self._given_up})

    def results(self, decider: str) -> list[AttemptResult]:
        """The results of a decider's attempts that are not recorded yet."""
        return list(self._results[decider])

    def has_results(self, decider: str) -> bool:
        """Whether a decider has results to record."""
        return bool(self._results[decider])

    def ended(self) -> list[AttemptResult]:
        """The results of all deciders' attempts that are not recorded yet."""
        return [result for results in self._results.values() for result in results]

    def forget(self, decider: str, recorded: int) -> None:
        """Drop the first ``recorded`` results of a decider: they are stored."""
        for _ in range(recorded):
            self._results[decider].popleft()

    def refuse(self, decider: str, run: Run) -> None:
        """End a claimed attempt that must no longer begin."""
        self._results[decider].append(AttemptResult(run=run, ending=AttemptEnd.UNLAUNCHED))


async def _keep_no_token(run: Run, token_hash: str) -> None:  # noqa: ARG001 - what keeps tokens takes both
    raise RuntimeError("this program has no engine that could keep a token")


async def _save_no_checkpoints(run: Run, values: Mapping[str, str]) -> None:  # noqa: ARG001 - what saves takes both
    raise RuntimeError("this program has no engine that could save a checkpoint")


def _keep_no_log(run: Run, *, flow: bool = False) -> AttemptLog | None:  # noqa: ARG001 - what keeps logs takes it
    return None


def _returned(attempt: RunningAttempt, value: object) -> AttemptResult:
    if attempt.timed_out:
        return _stopped(attempt, "it ended after its time was up")
    if attempt.reason is Reason.CRASHED:
        return _stopped(attempt, "it ended after its node had lost its lease")
    ending, result, decided = AttemptEnd.RETURNED, None, None
    if isinstance(value, Decided):
        decided = value
    elif isinstance(value, Accepted):
        ending = AttemptEnd.ACCEPTED
    elif value is not None:
        result = kept_result(value)
    return AttemptResult(
        run=attempt.run, ending=ending, result=result, value=decided, launched_at_ms=attempt.launched_at_ms
    )


def _raised(attempt: RunningAttempt, error: BaseException) -> AttemptResult:
    without_own_frames(error)
    failure = _words(error)
    if attempt.timed_out or attempt.stop:
        return _stopped(attempt, "" if isinstance(error, asyncio.CancelledError) else failure, error)
    names = tuple(kind.__name__ for kind in type(error).__mro__)
    if isinstance(error, NotAdmittedError):
        failure = kept_failure(error.message)
        return AttemptResult(
            run=attempt.run, ending=AttemptEnd.NOT_ADMITTED, reason=Reason(error.reason), failure=failure
        )
    if isinstance(error, LeftToOtherNodeError):
        return AttemptResult(run=attempt.run, ending=AttemptEnd.UNLAUNCHED)
    if isinstance(error, NotStartedError):
        return AttemptResult(
            run=attempt.run, ending=AttemptEnd.REFUSED, failure=failure, errors=names, permanent=error.permanent,
            launched_at_ms=attempt.launched_at_ms,
        )  # fmt: skip
    return AttemptResult(
        run=attempt.run, ending=AttemptEnd.RAISED, failure=failure, errors=names,
        reason=Reason(error.code) if isinstance(error, GraphError) else None,
        launched_at_ms=attempt.launched_at_ms, error=error, traceback=traceback_text(error),
    )  # fmt: skip


def _stopped(attempt: RunningAttempt, failure: str, error: BaseException | None = None) -> AttemptResult:
    """The result of an attempt that was stopped. If it timed out, the traceback shows where it was."""
    if not attempt.timed_out and isinstance(error, asyncio.CancelledError):
        error = None
    return AttemptResult(
        run=attempt.run, ending=AttemptEnd.TIMED_OUT if attempt.timed_out else AttemptEnd.STOPPED,
        failure=failure or None, reason=attempt.reason, launched_at_ms=attempt.launched_at_ms,
        error=error, traceback=None if error is None else traceback_text(error),
    )  # fmt: skip


def _words(error: BaseException) -> str:
    try:
        return kept_failure(f"{type(error).__name__}: {error}")
    except BaseException:
        return type(error).__name__

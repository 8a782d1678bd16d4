"""Python functions as actions: coroutine functions in the event loop, plain ones in threads."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import heapq
import inspect
import secrets
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import msgspec

from horae.errors import NotStartedError
from horae.json_bounds import MAX_DEPTH, JsonTooLargeError, check_json
from horae.model import (
    AUTOMATIC,
    Action,
    AttemptEnd,
    AttemptResult,
    HttpRequest,
    LastOutcome,
    Reason,
    Run,
    Timeouts,
)
from horae.spec import slot_key

THREAD = "horae:"
"""How the names of threads begin in which plain functions run."""
MAX_RESULT_LENGTH = 1024 * 1024
MAX_FAILURE_LENGTH = 10_000
_NO_TIMEOUTS = Timeouts()
_encode = msgspec.json.Encoder().encode


class Accepted(msgspec.Struct, frozen=True):
    """Return it from an action whose work somebody else goes on with, who reports its end with the run's own token.

    The run goes on, and this program has room for another one. Make the token with :meth:`Context.report_token` before.
    """


KeepToken = Callable[[Run, str], Awaitable[None]]
"""Stores the hash of a run's token under the claim of its attempt, or raises: the claim is stale."""


class Context:
    """What an action gets to know about its run."""

    __slots__ = ("_action", "_held", "_keep_token", "_last", "_run")

    def __init__(
        self, run: Run, last: LastOutcome | None, held: _Held, action: Action | None, keep_token: KeepToken
    ) -> None:
        self._run = run
        self._last = last
        self._held = held
        self._action = action
        self._keep_token = keep_token

    @property
    def schedule_id(self) -> str:
        """The schedule it belongs to."""
        return self._run.schedule_id

    @property
    def run_id(self) -> str:
        """The same for every attempt of the run."""
        return self._run.id

    @property
    def action_id(self) -> str:
        """The id that was known ahead: the base id and the nominal time."""
        return self._run.action_id

    @property
    def key(self) -> str:
        """The same for every attempt of the same slot, and for no other: use it to make effects idempotent."""
        run = self._run
        return slot_key(run.schedule_id, run.nominal) if run.origin == AUTOMATIC else run.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return self._run.attempt

    @property
    def after(self) -> str:
        """Why there is another attempt: ``failed``, ``crashed`` …; empty for the first."""
        return self._run.reason

    @property
    def origin(self) -> str:
        """What brought it about: ``automatic``, ``trigger:…`` or ``backfill:…``."""
        return self._run.origin

    @property
    def nominal(self) -> datetime:
        """The time that the schedule names."""
        return datetime.fromtimestamp(self._run.nominal, UTC)

    @property
    def fire_time(self) -> datetime:
        """The nominal time, moved by jitter."""
        return datetime.fromtimestamp(self._run.fire_at / 1000, UTC)

    @property
    def input(self) -> Any:  # noqa: ANN401 - any JSON
        """What the schedule, the trigger or the backfill gave it."""
        return self._run.input

    @property
    def request(self) -> HttpRequest | None:
        """The request of the schedule, if it has one; header values and secret as they are stored."""
        return None if self._action is None else self._action.http

    @property
    def last_result(self) -> Any:  # noqa: ANN401 - any JSON
        """What the latest run of the schedule that ended well returned."""
        return (
            None
            if self._last is None or self._last.result is None
            else msgspec.json.decode(self._last.result)
        )

    @property
    def last_failure(self) -> str | None:
        """How the latest run of the schedule failed; ``None`` if it ended well."""
        return None if self._last is None else self._last.failure

    def heartbeat(self) -> None:
        """A sign of life: call it now and then in long work that has a heartbeat timeout."""
        self._held.beat()

    def stop_requested(self) -> bool:
        """Whether the run was asked to stop. A coroutine is cancelled; a plain function looks here."""
        return bool(self._held.stop)

    @property
    def time_to_stop(self) -> int | None:
        """How many milliseconds an attempt that is made to stop has before it is given up; ``None`` if it is not made to.

        One that was asked to stop, and has not when its time is up, is made to: it is cancelled a second time.
        """
        return self._held.time_to_stop

    async def report_token(self) -> str:
        """A token with which somebody else may report on this attempt; its hash is stored when this returns.

        Another call makes another token, and the one before holds no longer.
        """
        token = secrets.token_urlsafe(24)
        await self._keep_token(self._run, hash_of(token))
        return token


def hash_of(token: str) -> str:
    """What is stored of a token: enough to know it again, and not enough to use it."""
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).hexdigest()


ActionFunction = Callable[[Context], Awaitable[Any]] | Callable[[Context], Any]
Key = tuple[str, int]


class _Held:
    """An attempt that is going on."""

    __slots__ = (
        "_now", "beat_at", "launched_at", "reason", "run", "stop", "task", "threaded", "time_to_stop", "timed_out",
        "timeouts",
    )  # fmt: skip

    def __init__(self, run: Run, timeouts: Timeouts, now: Callable[[], int], *, threaded: bool) -> None:
        self.run = run
        self.timeouts = timeouts
        self.threaded = threaded
        self.task: asyncio.Task[None] | None = None
        self.stop = ""
        self.time_to_stop: int | None = None
        self.timed_out = False
        self.reason: Reason | None = None
        self.beat_at = 0
        self.launched_at: int | None = None
        self._now = now

    def beat(self) -> None:
        self.beat_at = self._now()


class FunctionExecutor:
    """Runs actions of this program, and collects how they ended.

    Timeouts are enforced when the engine asks, by a clock that is never set: ``monotonic``, in milliseconds. When actions are
    called is noted by the clock that all nodes share: ``shared_now``.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        monotonic: Callable[[], int],
        shared_now: Callable[[], int],
        *,
        concurrency: int,
        terminate: int,
    ) -> None:
        self._wake = wake
        self._now = monotonic
        self._shared_now = shared_now
        self._concurrency = concurrency
        self._terminate = terminate
        self._actions: dict[str, tuple[ActionFunction, bool]] = {}
        self._accepts: dict[str, Callable[[Run], bool]] = {}
        self._held: dict[Key, _Held] = {}
        self._ended: deque[AttemptResult] = deque()
        self._given_up: set[asyncio.Task[None]] = set()
        self._threads_given_up: set[str] = set()
        self._deadlines: list[tuple[int, int, str, Key]] = []
        self._numbers = count()
        self.keep_token: KeepToken = _keep_no_token
        self.on_launch: Callable[[Run, int], None] | None = None
        """Told of each attempt and when its action is called, right before."""

    def register(
        self, name: str, function: ActionFunction, accepts: Callable[[Run], bool] | None = None
    ) -> None:
        """Let runs refer to a function by a name; with ``accepts``, only those that it accepts."""
        self._actions[name] = (function, is_coroutine_function(function))
        if accepts is not None:
            self._accepts[name] = accepts

    @property
    def functions(self) -> dict[str, ActionFunction]:
        """What was registered, by name."""
        return {name: function for name, (function, _) in self._actions.items()}

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of what can be run here."""
        return tuple(sorted(self._actions))

    @property
    def free_capacity(self) -> int:
        """How many more attempts may begin."""
        return max(self._concurrency - len(self._held), 0)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What is going on."""
        return [held.task for held in self._held.values() if held.task is not None]

    @property
    def known(self) -> set[Key]:
        """The attempts that are going on, or have ended and are not recorded yet."""
        return set(self._held) | {(each.run.id, each.run.attempt) for each in self._ended}

    def knows(self, action: str) -> bool:
        """Whether an action of this name was registered."""
        return action in self._actions

    def can_run(self, run: Run) -> bool:
        """Whether a run is for an action of this program, and accepted by it."""
        if run.action not in self._actions:
            return False
        accepts = self._accepts.get(run.action)
        return accepts is None or accepts(run)

    def launch(
        self,
        run: Run,
        timeouts: Timeouts = _NO_TIMEOUTS,
        last: LastOutcome | None = None,
        action: Action | None = None,
    ) -> None:
        """Begin an attempt whose claim is durable."""
        key = (run.id, run.attempt)
        function, waits = self._actions.get(run.action, (_unknown, True))
        held = _Held(run, timeouts, self._now, threaded=not waits)
        self._held[key] = held
        context = Context(run, last, held, action, self.keep_token)
        held.task = asyncio.create_task(self._attempt(key, held, function, context), name=run.action_id)
        if timeouts.run is not None or timeouts.heartbeat is not None:
            self._watch(key, held)

    def _watch(self, key: Key, held: _Held) -> None:
        """An attempt that has its time."""
        held.beat()
        for kind, span in (("run", held.timeouts.run), ("heartbeat", held.timeouts.heartbeat)):
            if span is not None:
                self._deadline(held.beat_at + span, kind, key)

    async def _attempt(self, key: Key, held: _Held, function: ActionFunction, context: Context) -> None:
        held.launched_at = at = self._shared_now()
        if self.on_launch is not None:
            self.on_launch(held.run, at)
        try:
            ended = _returned(held, await call_action(function, context, threaded=held.threaded))
        except BaseException as error:
            ended = _raised(held, error)
        if self._held.pop(key, None) is held:  # else it was given up before, and its end is known
            self._ended.append(ended)
            self._wake()

    def stop(self, run: Run) -> None:
        """Ask a run to stop, or make it; its node gives it some time, and then gives it up."""
        held = self._held.get((run.id, run.attempt))
        if held is None or held.stop in {run.stop, "terminate"}:
            return
        held.run = msgspec.structs.replace(held.run, stop=run.stop)
        held.reason = Reason(run.reason) if run.reason else Reason.CANCELLED
        self._stop(held, run.stop, self._terminate if run.stop == "terminate" else held.timeouts.cancel)

    def stop_all(self, reason: Reason) -> None:
        """Stop everything: this program ends, or may not go on with what it holds."""
        for held in list(self._held.values()):
            held.reason = reason
            self._stop(held, "terminate", self._terminate)

    def _stop(self, held: _Held, how: str, grace: int) -> None:
        held.stop = how
        held.time_to_stop = grace if how == "terminate" or held.timed_out else None
        if held.task is not None and not held.threaded:
            held.task.cancel()
        self._deadline(self._now() + grace, "end", (held.run.id, held.run.attempt))

    def _deadline(self, at: int, kind: str, key: Key) -> None:
        heapq.heappush(self._deadlines, (at, next(self._numbers), kind, key))

    def next_deadline(self) -> int | None:
        """In how many milliseconds to enforce timeouts again."""
        return max(self._deadlines[0][0] - self._now(), 0) if self._deadlines else None

    def enforce(self) -> None:
        """Stop what takes too long, and give up what does not stop."""
        now = self._now() if self._deadlines else 0
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, kind, key = heapq.heappop(self._deadlines)
            held = self._held.get(key)
            if held is None:
                continue
            if kind == "end":
                self._give_up(key, held)
            elif kind == "heartbeat" and now - held.beat_at < (held.timeouts.heartbeat or 0):
                self._deadline(held.beat_at + (held.timeouts.heartbeat or 0), "heartbeat", key)
            elif not held.timed_out and not held.stop:
                held.timed_out = True
                held.reason = Reason.RUN_TIMEOUT if kind == "run" else Reason.HEARTBEAT_TIMEOUT
                self._stop(held, "cancel", self._terminate)

    def _give_up(self, key: Key, held: _Held) -> None:
        """It did not stop in time. A coroutine is cancelled once more; a thread goes on, and nobody listens to it."""
        if held.stop == "cancel" and not held.timed_out:
            held.run = msgspec.structs.replace(held.run, stop="terminate")
            self._stop(held, "terminate", self._terminate)
            return
        del self._held[key]
        if held.task is not None:
            held.task.cancel()
            self._given_up.add(held.task)
            held.task.add_done_callback(self._given_up.discard)
        if held.threaded:
            self._threads_given_up &= _alive()
            self._threads_given_up.add(f"{THREAD}{held.run.action_id}")
        self._ended.append(_stopped(held, "it did not stop when it was asked to"))

    def give_up_all(self) -> None:
        """Wait for nothing that was made to stop."""
        for key, held in list(self._held.items()):
            self._give_up(key, held)

    def leave_behind(self) -> list[str]:
        """The names of attempts that go on although they were given up; the program does not wait for them.

        ``asyncio.run`` waits for every task that it knows, so that a coroutine which is never done would keep the program.
        """
        for task in self._given_up:
            asyncio._unregister_task(task)  # noqa: SLF001 - documented for loops of others
        names = {task.get_name() for task in self._given_up}
        names |= {name.removeprefix(THREAD) for name in self._threads_given_up & _alive()}
        return sorted(names)

    def ended(self) -> list[AttemptResult]:
        """What has ended and is not recorded yet."""
        return list(self._ended)

    def forget(self, recorded: int) -> None:
        """So many were recorded: the first ones that had ended."""
        for _ in range(recorded):
            self._ended.popleft()

    def refuse(self, run: Run) -> None:
        """An attempt that must not begin any more."""
        self._ended.append(AttemptResult(run=run, ending=AttemptEnd.UNLAUNCHED))


def _alive() -> set[str]:
    """The names of the threads that have not ended."""
    return {thread.name for thread in threading.enumerate()}


def is_coroutine_function(function: object) -> bool:
    """Functions made with ``async def``, partials of them, and objects whose call is one."""
    while isinstance(function, partial):
        function = function.func
    if not callable(function):
        return False
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _keep_no_token(run: Run, token_hash: str) -> None:  # noqa: ARG001 - what keeps tokens takes both
    raise RuntimeError("this program has no engine that could keep a token")


async def _unknown(context: Context) -> None:
    raise NotStartedError(
        f'the action of "{context.schedule_id}" is not registered in this program', permanent=True
    )


async def call_action(function: ActionFunction, context: Context, *, threaded: bool) -> Any:  # noqa: ANN401 - what it likes
    """Call an action; a plain function in a thread of its own, which ends with the program whatever it does."""
    if not threaded:
        return await function(context)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result: object = None
        raised: BaseException | None = None
        try:
            result = function(context)
        except BaseException as error:
            raised = error
        try:
            loop.call_soon_threadsafe(settle, result, raised)
        except RuntimeError:  # the program has ended meanwhile
            return

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), name=f"{THREAD}{context.action_id}", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("the action returned a coroutine: define it with `async def`")
    return result


def _returned(held: _Held, value: object) -> AttemptResult:
    if held.timed_out:
        return _stopped(held, "it ended after its time was up")
    if held.reason is Reason.CRASHED:
        return _stopped(held, "it ended after its node had lost its lease")
    if value is None:
        return AttemptResult(run=held.run, ending=AttemptEnd.RETURNED, launched_at=held.launched_at)
    if isinstance(value, Accepted):
        return AttemptResult(run=held.run, ending=AttemptEnd.ACCEPTED, launched_at=held.launched_at)
    result = kept_result(value)
    return AttemptResult(
        run=held.run, ending=AttemptEnd.RETURNED, result=result, launched_at=held.launched_at
    )


def kept_result(value: object) -> str:
    """A result as it is kept: JSON, not too much of it, and nothing that could not be read and shown again."""
    try:
        result = _encode(value)
    except RecursionError:
        raise ValueError(f"the result has values more than {MAX_DEPTH} deep within each other") from None
    if len(result) > MAX_RESULT_LENGTH:
        raise ValueError(
            f"the result has {len(result)} bytes of JSON, and {MAX_RESULT_LENGTH} are kept at most"
        )
    try:
        check_json(result)
    except JsonTooLargeError as error:
        raise ValueError(f"the result {error}") from None
    return result.decode()


def _raised(held: _Held, error: BaseException) -> AttemptResult:
    failure = _words(error)
    if held.timed_out or held.stop:
        return _stopped(held, "" if isinstance(error, asyncio.CancelledError) else failure)
    names = tuple(kind.__name__ for kind in type(error).__mro__)
    if isinstance(error, NotStartedError):
        return AttemptResult(
            run=held.run, ending=AttemptEnd.REFUSED, failure=failure, errors=names, permanent=error.permanent,
            launched_at=held.launched_at,
        )  # fmt: skip
    return AttemptResult(
        run=held.run, ending=AttemptEnd.RAISED, failure=failure, errors=names, launched_at=held.launched_at
    )


def _stopped(held: _Held, failure: str) -> AttemptResult:
    ending = AttemptEnd.TIMED_OUT if held.timed_out else AttemptEnd.STOPPED
    return AttemptResult(
        run=held.run, ending=ending, failure=failure or None, reason=held.reason, launched_at=held.launched_at
    )


def _words(error: BaseException) -> str:
    try:
        return kept_failure(f"{type(error).__name__}: {error}")
    except BaseException:
        return type(error).__name__


def kept_failure(text: str) -> str:
    """A failure as a text that every database takes: not too long, no half characters, no NUL."""
    text = text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    return text if len(text) <= MAX_FAILURE_LENGTH else f"{text[:MAX_FAILURE_LENGTH]}…"

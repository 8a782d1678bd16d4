"""The context of an attempt: what its action knows, and what it can ask of the worker."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from horae.executor.attempt_log import AttemptLog, AttemptLogger
from horae.executor.checkpoints import DEFAULT_BOUNDS, Checkpoints
from horae.model import Checkpoint, LastOutcome, Origin, Reason, Run, Timeouts


class Accepted(msgspec.Struct, frozen=True):
    """Return this from an action whose work an external worker continues; the worker reports with the run's report token.

    The run stays open, and this program has capacity for another one. First create the token with :meth:`Context.report_token`.
    """


KeepToken = Callable[[Run, str], Awaitable[None]]
"""Stores the hash of a run's report token under the claim of its attempt; raises if the claim is stale."""
SaveCheckpoints = Callable[[Run, Mapping[str, str]], Awaitable[None]]
"""Saves values, as JSON by key, under the claim of an attempt, all or none; raises if the claim is stale."""


class RunningAttempt:
    """An attempt that a worker runs: when it was called, and whether it is to stop."""

    __slots__ = (
        "_now", "beat_at", "launched_at_ms", "log", "reason", "run", "stop", "task", "time_to_stop_ms", "timed_out", "timeouts",
    )  # fmt: skip

    def __init__(self, run: Run, timeouts: Timeouts, now: Callable[[], int]) -> None:
        self.run = run
        self.timeouts = timeouts
        self.task: asyncio.Task[None] | None = None
        self.stop = ""
        self.time_to_stop_ms: int | None = None
        self.timed_out = False
        self.reason: Reason | None = None
        self.beat_at = 0
        self.launched_at_ms: int | None = None
        self.log: AttemptLog | None = None
        self._now = now

    def beat(self) -> None:
        """Note a sign of life."""
        self.beat_at = self._now()


class Context:
    """The context of an attempt: facts about its run, and requests to its worker."""

    __slots__ = (
        "_attempt", "_checkpoints", "_earlier", "_keep_token", "_last", "_logger", "_run", "_save_checkpoints",
        "checkpoint_bounds", "grant_id", "options",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        last: LastOutcome | None,
        attempt: RunningAttempt,
        keep_token: KeepToken,
        *,
        save_checkpoints: SaveCheckpoints,
        earlier: Sequence[Checkpoint] = (),
        grant_id: str = "",
    ) -> None:
        self._run = run
        self._save_checkpoints = save_checkpoints
        self.checkpoint_bounds = DEFAULT_BOUNDS
        self._earlier = earlier
        self._checkpoints: Checkpoints | None = None
        self._logger: AttemptLogger | None = None
        self._last = last
        self._attempt = attempt
        self._keep_token = keep_token
        self.grant_id = grant_id
        """The grant that its schedule names; empty if it names none."""
        self.options: Any = None
        """The options of the action, as its kind types them, secrets decrypted; ``None`` if the kind has none."""

    @property
    def parts(self) -> tuple[Run, RunningAttempt, SaveCheckpoints]:
        """What a context derived from this one needs."""
        return self._run, self._attempt, self._save_checkpoints

    @property
    def action(self) -> str:
        """The address of the action: ``report``, ``http``, ``command:backup``."""
        return self._run.action

    @property
    def schedule_id(self) -> str:
        """The id of its schedule."""
        return self._run.schedule_id

    @property
    def run_id(self) -> str:
        """The same for every attempt of the run."""
        return self._run.id

    @property
    def owner(self) -> str:
        """The owner of its schedule; empty if it has none."""
        return self._run.owner

    @property
    def failures(self) -> int:
        """How many attempts of the run have failed; crashes, and attempts that could not begin, do not count."""
        return self._run.failures

    @property
    def action_id(self) -> str:
        """The id that was known in advance: the base id and the nominal time."""
        return self._run.action_id

    @property
    def key(self) -> str:
        """The same for every attempt of the same slot, and for no other: use it to make effects idempotent."""
        return self._run.key

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return self._run.attempt

    @property
    def work_id(self) -> str:
        """The id of this attempt's work: the same in an attempt after a crash or a shutdown, another one after a failure."""
        return work_id_of(self._run)

    @property
    def after(self) -> str:
        """Why there is another attempt: ``failed``, ``crashed`` …; empty for the first."""
        return self._run.reason

    @property
    def origin(self) -> Origin:
        """What caused the run: its ``kind`` is automatic, trigger or backfill, its ``id`` that of the trigger or backfill."""
        return self._run.origin

    @property
    def nominal(self) -> datetime:
        """The time that the schedule names."""
        return datetime.fromtimestamp(self._run.nominal_ms / 1000, UTC)

    @property
    def fire_time(self) -> datetime:
        """The nominal time, moved by jitter."""
        return datetime.fromtimestamp(self._run.fire_ms / 1000, UTC)

    @property
    def input(self) -> Any:  # noqa: ANN401 - any JSON
        """The input that the schedule, the trigger or the backfill gave."""
        return self._run.input

    @property
    def input_bytes(self) -> bytes | None:
        """The bytes of an input that is no JSON: the argument of a Temporal client in another encoding; ``None`` if it is JSON."""
        given = self.input
        if not isinstance(given, Mapping) or given.keys() != {"metadata", "data"}:
            return None
        try:
            return base64.b64decode(given["data"], validate=True)
        except (TypeError, ValueError):
            return None

    @property
    def last_result(self) -> Any:  # noqa: ANN401 - any JSON
        """The result of the schedule's latest run that succeeded."""
        last = self._last
        return None if last is None or last.result is None else msgspec.json.decode(last.result)

    @property
    def last_failure(self) -> str | None:
        """How the latest run of the schedule failed; ``None`` if it succeeded."""
        return None if self._last is None else self._last.failure

    def heartbeat(self) -> None:
        """Give a sign of life; long work that has a heartbeat timeout calls this now and then."""
        self._attempt.beat()

    def stop_requested(self) -> bool:
        """Whether the run was asked to stop. A coroutine is cancelled; a plain function must check this."""
        return bool(self._attempt.stop)

    @property
    def is_given_away(self) -> bool:
        """Whether this attempt stops because its node does, and another attempt will follow: work on another engine continues."""
        return self._attempt.reason in {Reason.SHUTDOWN, Reason.CRASHED}

    @property
    def time_to_stop(self) -> timedelta | None:
        """How long an attempt that is terminated or timed out has before it is given up; ``None`` otherwise.

        An attempt that does not stop within ``timeouts.cancel`` is terminated: it is cancelled a second time.
        """
        left_ms = self._attempt.time_to_stop_ms
        return None if left_ms is None else timedelta(milliseconds=left_ms)

    @property
    def log(self) -> logging.Logger:
        """A logger whose lines are kept with this attempt, whatever their level: ``horae runs logs`` shows them.

        They are passed on to the logger ``horae.actions``. What the action logs through the standard library is kept too.
        """
        if self._logger is None:
            self._logger = AttemptLogger(self._run, self._attempt.log)
        return self._logger

    def event(self, text: str) -> None:
        """Keep a line with this attempt without passing it on to a logger. It is a sign of life too."""
        self.heartbeat()
        if self._attempt.log is not None:
            self._attempt.log.add("INFO", self.action, text)

    def hide(self, secret: str) -> None:
        """Replace a text in all that this attempt logs from now on."""
        if self._attempt.log is not None and secret:
            self._attempt.log.hide(secret)

    @property
    def checkpoints(self) -> Mapping[str, Any]:
        """The values that this and earlier attempts of the run saved, by key. Read-only."""
        return self._saved()

    async def checkpoint(self, key: str, value: Any = None) -> None:  # noqa: ANN401 - any JSON
        """Save a value for the next attempts of this run; it is durable when this returns.

        Raises ``StaleClaimError`` if this attempt is no longer the run's current one: it must end.
        """
        await self._saved().save({key: value})

    async def checkpoint_all(self, values: Mapping[str, Any]) -> None:
        """Save several values at once: all of them are durable when this returns, or none."""
        await self._saved().save(values)

    def checkpoint_from_thread(self, key: str, value: Any = None) -> None:  # noqa: ANN401 - any JSON
        """Like :meth:`checkpoint`, for a plain function, which runs in a thread: blocks until the value is durable."""
        if self._attempt.task is None:
            raise RuntimeError("the attempt has not been launched")
        loop = self._attempt.task.get_loop()
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is loop:
                raise TypeError("this would block the event loop: use `await context.checkpoint(…)`")
        asyncio.run_coroutine_threadsafe(self.checkpoint(key, value), loop).result()

    def _saved(self) -> Checkpoints:
        if self._checkpoints is None:
            save = partial(self._save_checkpoints, self._run)
            self._checkpoints = Checkpoints(self._earlier, save, self.checkpoint_bounds)
        return self._checkpoints

    async def report_token(self) -> str:
        """Create a token with which an external worker reports on this attempt; its hash is stored when this returns.

        Another call creates another token and invalidates the one before.
        """
        token = secrets.token_urlsafe(24)
        await self._keep_token(self._run, hash_of(token))
        return token


def work_id_of(run: Run) -> str:
    """The id of the work of a run's current attempt."""
    return f"{run.key}-{run.failures + 1}"


def hash_of(token: str) -> str:
    """The hash of a token, which is stored instead of it."""
    return hashlib.sha256(token.encode("utf-8", "backslashreplace")).hexdigest()

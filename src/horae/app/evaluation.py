"""Evaluating specs for those who ask: beside the event loop, one question at a time for each owner, and not for ever.

Most questions are answered at once: the usual spec says in microseconds when it fires. What takes more than a few steps goes to
a thread. There, one question of an owner is worked on at a time, the next ones wait their turn, and those who come when too many
wait are told to come back. All threads together compute only a part of the time (threads share one interpreter, and what they
take the engine has not), and between two questions about a spec they look whether the answer is still wanted.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from horae.clock import Clock, SystemClock
from horae.errors import EvaluationTimeoutError, HoraeError, TooManyEvaluationsError
from horae.spec.budget import OverBudget, between_slices, small_budget

T = TypeVar("T")

AT_ONCE = 500
"""Steps that are done in the event loop; a step is about a microsecond."""
AT_ONCE_EACH = 10
"""The same, for each of several that are asked for together."""
THREADS = 8
"""How many owners are worked for at the same time."""
WAITING_PER_OWNER = 32
WAITING = 256
"""How many evaluations of one owner, and of all, wait or go on at most."""
LIMIT = 10.0
"""Seconds after which an answer is given up."""
CHANGE_LIMIT = 60.0
"""The same for what a change of many schedules needs, which asks about all of a batch together."""
SLICE = 0.002
"""Seconds of work after which a thread rests."""
REST = 2.0
"""How long it rests, in parts of what it has worked: so all of them work a third of the time."""
LEARNT_TOGETHER = 200
"""How many questions are answered in one turn of the event loop."""
TRIES = 5
"""How often a transaction is undone for answers that it lacks."""


class _AbandonedError(BaseException):
    """No caller waits for the answer any longer. Nothing that handles errors may take it for one."""


class Evaluator:
    """Evaluates specs: at once if that takes a moment only, else in a thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._monotonic = (clock or SystemClock()).monotonic
        # On a virtual clock, and without one, one thing happens after the other.
        self._inline = not isinstance(clock, SystemClock)
        self._threads: ThreadPoolExecutor | None = None
        self._places = asyncio.Semaphore(THREADS)
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()
        self._working = threading.Lock()
        self._rested_at = 0.0  # when the next may work
        self._closed = threading.Event()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """What a function without side effects answers. It may be called twice."""
        try:
            return self.at_once(work)
        except OverBudget:
            return await self.in_thread(owner, work)

    def at_once(self, work: Callable[[], T], number: int = 1) -> T:
        """The same for ``number`` things, if that takes a moment only; else ``OverBudget``."""
        if self._inline:
            return work()
        with small_budget(AT_ONCE + AT_ONCE_EACH * number):
            return work()

    async def in_thread(self, owner: str, work: Callable[[], T], limit: float = LIMIT) -> T:
        """What a function answers that may take long; one of each owner at a time, and only so many seconds."""
        if self._inline:
            return work()
        if self._waiting[owner] >= WAITING_PER_OWNER or self._waiting.total() >= WAITING:
            raise TooManyEvaluationsError(WAITING_PER_OWNER)
        turn = self._turns.setdefault(owner, asyncio.Lock())
        self._waiting[owner] += 1
        try:
            async with asyncio.timeout(limit), turn, self._places:
                return await self._threaded(work)
        except TimeoutError:
            raise EvaluationTimeoutError(limit) from None
        finally:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner], self._turns[owner]

    async def _threaded(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="horae-evaluate")
        abandoned = threading.Event()
        done = asyncio.get_running_loop().run_in_executor(self._threads, self._work, work, abandoned)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            abandoned.set()
            # It ends before its next question, and only then is there room for another.
            await asyncio.gather(done, return_exceptions=True)
            raise

    def _work(self, work: Callable[[], T], abandoned: threading.Event) -> T:
        """Work in a thread, in slices: one thread at a time, with rests between."""
        began = self._begin(abandoned)

        def rest() -> None:
            nonlocal began
            if abandoned.is_set() or self._closed.is_set():
                raise _AbandonedError
            if self._monotonic() - began >= SLICE:
                self._end(began)
                abandoned.wait(SLICE / 10)  # one that waits for the lock gets it
                began = self._begin(abandoned)

        try:
            with between_slices(rest):
                return work()
        finally:
            self._end(began)

    def _begin(self, abandoned: threading.Event) -> float:
        """Wait until no other thread works, and for as long as the work before needs to be paid for."""
        self._working.acquire()
        abandoned.wait(max(self._rested_at - self._monotonic(), 0.0))
        return self._monotonic()

    def _end(self, began: float) -> None:
        now = self._monotonic()
        self._rested_at = now + (now - began) * REST
        self._working.release()

    def close(self) -> None:
        """Answer nothing any more."""
        self._closed.set()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


class _UnansweredError(Exception):
    """A transaction needs answers that take a while, and is undone until they are known."""

    def __init__(self, questions: dict[Hashable, Callable[[], Any]]) -> None:
        super().__init__(list(questions))
        self.questions = questions


class Answers:
    """What one transaction has to know about specs.

    Within a transaction only what takes a moment is evaluated. What takes longer undoes it, is evaluated outside, and then the
    transaction is begun again.
    """

    def __init__(self, evaluator: Evaluator, owner: str) -> None:
        self._evaluator = evaluator
        self._owner = owner
        self._known: dict[Hashable, Any] = {}
        self._tries = 0

    async def carry_out(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do something whose transaction asks: once more, whenever it asked for what is not known yet."""
        while True:
            try:
                return await act()
            except _UnansweredError as unanswered:
                self._tries += 1
                work = partial(_all_of, unanswered.questions)
                self._known |= await self._evaluator.in_thread(self._owner, work, CHANGE_LIMIT)

    async def learn(self, questions: Sequence[tuple[Hashable, Callable[[], Any]]]) -> None:
        """Have answers ready before a transaction begins, so that it does not stand still while many are computed."""
        for start in range(0, len(questions), LEARNT_TOGETHER):
            some = dict(questions[start : start + LEARNT_TOGETHER])
            try:
                self._known |= self._at_once(some)
            except OverBudget:
                self._known |= await self._evaluator.in_thread(
                    self._owner, partial(_all_of, some), CHANGE_LIMIT
                )
            await asyncio.sleep(0)  # let others have their turn

    def ask(self, key: Hashable, work: Callable[[], T]) -> T:
        """An answer; ``key`` says what it depends on."""
        return self.ask_all([(key, work)])[0]

    def ask_all(self, questions: Sequence[tuple[Hashable, Callable[[], T]]]) -> list[T]:
        """Several answers."""
        missing = {key: work for key, work in questions if key not in self._known}
        if missing:
            try:
                self._known |= self._at_once(missing)
            except OverBudget:
                raise _UnansweredError(dict(missing)) from None
        found = [self._known[key] for key, _ in questions]
        for each in found:
            if isinstance(each, HoraeError):
                raise each
        return found

    def _at_once(self, questions: dict[Hashable, Callable[[], T]]) -> dict[Hashable, Any]:
        if self._tries >= TRIES:  # it changes all the time: each single question is bounded all the same
            return _all_of(questions)
        return self._evaluator.at_once(partial(_all_of, questions), len(questions))


def _all_of(questions: dict[Hashable, Callable[[], T]]) -> dict[Hashable, T | HoraeError]:
    """The answers to some questions; one that is wrong has its error as answer."""
    found: dict[Hashable, T | HoraeError] = {}
    for key, work in questions.items():
        try:
            found[key] = work()
        except HoraeError as error:
            found[key] = error
    return found

"""Evaluate specs for callers without blocking the event loop: one evaluation at a time for each owner, within a time limit.

Most evaluations finish at once: a typical spec yields its fire times in microseconds. What takes more than a few steps moves to
a thread. There, each owner has one evaluation at a time; the next ones queue, and are refused when the queue is full. All
threads together compute only part of the time (they share one interpreter with the engine), and between two questions about a
spec they check whether a caller still waits for the answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from horae.clock import Clock, SystemClock
from horae.errors import EvaluationTimeoutError, HoraeError, TooManyEvaluationsError
from horae.spec import Spec
from horae.spec.budget import OverBudget, between_slices, small_budget

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

AT_ONCE = 500
"""The number of steps that may run in the event loop; a step takes about a microsecond."""
AT_ONCE_EACH = 10
"""Additional steps for each question, where several are asked together."""
THREADS = 8
"""How many owners' evaluations may run at the same time."""
WAITING_PER_OWNER = 32
WAITING = 256
"""How many evaluations of one owner, and of all owners, may wait or run."""
LIMIT = 10.0
"""Seconds after which an evaluation is abandoned."""
CHANGE_LIMIT = 60.0
"""Seconds after which a change of many schedules, which evaluates a whole batch together, is abandoned."""
SLICE = 0.002
"""Seconds of work after which a thread rests."""
REST = 2.0
"""The length of a rest relative to the work before it; so all threads together work a third of the time."""
LEARNT_TOGETHER = 200
"""How many questions are answered before the event loop may run other tasks."""
TRIES = 5
"""How often a transaction is rolled back for missing answers before it computes them itself."""


class _AbandonedError(BaseException):
    """No caller waits for the answer any longer. A ``BaseException``, so that no error handler catches it."""


class Evaluator:
    """Evaluates specs: in the event loop if it takes few steps, otherwise in a thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._monotonic = (clock or SystemClock()).monotonic
        # With a virtual clock, or without a clock, everything runs in sequence.
        self._inline = not isinstance(clock, SystemClock)
        self._working = threading.Lock()
        self._rested_at = 0.0  # when the next slice of work may begin
        self.open()

    def open(self) -> None:
        """Start afresh, in the current event loop."""
        self._threads: ThreadPoolExecutor | None = None
        self._places = asyncio.Semaphore(THREADS)
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()
        self._closed = threading.Event()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Call a function without side effects and return its result. It may be called twice."""
        try:
            return self.at_once(work)
        except OverBudget:
            return await self.in_thread(owner, work)

    def at_once(self, work: Callable[[], T], number: int = 1) -> T:
        """Call a function that answers ``number`` questions here; raise ``OverBudget`` if it takes too many steps."""
        if self._inline:
            return work()
        with small_budget(AT_ONCE + AT_ONCE_EACH * number):
            return work()

    async def in_thread(self, owner: str, work: Callable[[], T], limit: float = LIMIT) -> T:
        """Call a function that may take long in a thread: one per owner at a time, for at most ``limit`` seconds."""
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
            # The thread ends before its next question; until then it keeps its place.
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
                abandoned.wait(SLICE / 10)  # a thread that waits for the lock gets it
                began = self._begin(abandoned)

        try:
            with between_slices(rest):
                return work()
        finally:
            self._end(began)

    def _begin(self, abandoned: threading.Event) -> float:
        """Wait until no other thread works, and until the rest that the previous slice requires is over."""
        self._working.acquire()
        abandoned.wait(max(self._rested_at - self._monotonic(), 0.0))
        return self._monotonic()

    def _end(self, began: float) -> None:
        now = self._monotonic()
        self._rested_at = now + (now - began) * REST
        self._working.release()

    def close(self) -> None:
        """Abandon all evaluations, and start no more."""
        self._closed.set()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


class _UnansweredError(Exception):
    """A transaction needs answers that take long; it is rolled back and repeated once they are known."""

    def __init__(self, questions: dict[Hashable, Callable[[], Any]]) -> None:
        super().__init__(list(questions))
        self.questions = questions


class Answers:
    """The answers about specs that one transaction needs.

    Within a transaction, only evaluations of few steps run. A longer one rolls the transaction back and runs outside it; then the
    transaction is repeated.
    """

    def __init__(self, evaluator: Evaluator, owner: str) -> None:
        self._evaluator = evaluator
        self._owner = owner
        self._known: dict[Hashable, Any] = {}
        self._tries = 0

    async def carry_out(self, act: Callable[[], Awaitable[T]]) -> T:
        """Run a transaction that asks questions; repeat it each time that an answer had to be computed outside it."""
        while True:
            try:
                return await act()
            except _UnansweredError as unanswered:
                self._tries += 1
                work = partial(_all_of, unanswered.questions)
                self._known |= await self._evaluator.in_thread(self._owner, work, CHANGE_LIMIT)

    async def learn(self, keys: Sequence[K], answer: Callable[[K], T]) -> dict[K, T | HoraeError]:
        """Answer a question for each of many keys before a transaction begins, so that it does not stay open meanwhile."""
        found: dict[K, T | HoraeError] = {}
        for start in range(0, len(keys), LEARNT_TOGETHER):
            some = keys[start : start + LEARNT_TOGETHER]
            work = partial(_each_of, some, answer)
            try:
                found |= self._evaluator.at_once(work, len(some))
            except OverBudget:
                found |= await self._evaluator.in_thread(self._owner, work, CHANGE_LIMIT)
            await asyncio.sleep(0)  # let other tasks run
        return found

    def spec(self, text: str) -> Spec:
        """A stored spec."""
        return self.ask(("spec", text), partial(Spec.parse, text))

    def ask(self, key: Hashable, work: Callable[[], T]) -> T:
        """The answer to one question; ``key`` identifies everything that the answer depends on."""
        return self.ask_all([(key, work)])[0]

    def ask_all(self, questions: Sequence[tuple[Hashable, Callable[[], T]]]) -> list[T]:
        """The answers to several questions, in their order."""
        missing = {key: work for key, work in questions if key not in self._known}
        if missing:
            try:
                self._known |= self._at_once(missing)
            except OverBudget:
                raise _UnansweredError(dict(missing)) from None
        return [answered(self._known[key]) for key, _ in questions]

    def _at_once(self, questions: dict[Hashable, Callable[[], T]]) -> dict[Hashable, Any]:
        if self._tries >= TRIES:  # the schedules keep changing; each question has a bound anyway
            return _all_of(questions)
        return self._evaluator.at_once(partial(_all_of, questions), len(questions))


def answered(answer: T | HoraeError) -> T:
    """The answer to a question; one that could not be answered raises its error."""
    if isinstance(answer, HoraeError):
        raise answer
    return answer


def _all_of(questions: dict[Hashable, Callable[[], T]]) -> dict[Hashable, T | HoraeError]:
    """The answers to several questions."""
    return _each_of(questions, lambda key: questions[key]())


def _each_of(keys: Iterable[K], answer: Callable[[K], T]) -> dict[K, T | HoraeError]:
    """The answer for each key; a question that fails has its error as the answer."""
    found: dict[K, T | HoraeError] = {}
    for key in keys:
        try:
            found[key] = answer(key)
        except HoraeError as error:
            found[key] = error
    return found

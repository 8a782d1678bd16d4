"""Runs a handler of a flow, part by part. Before each part, writes what must be durable before it is called."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from horae.engine.flow_phase_writer import FlowJournal, ReservationLostError
from horae.engine.worker import Decided
from horae.errors import StaleClaimError
from horae.executor.attempt_context import RunningAttempt
from horae.executor.attempt_log import AttemptLogger
from horae.executor.stored_output import kept_failure
from horae.executor.tracebacks import traceback_text, without_own_frames
from horae.flow.contexts import EventSource, FlowContext, Published
from horae.flow.definition import Flow, Handler
from horae.flow.failures import Failure, HandlerStopped, classify
from horae.flow.handler_values import Applied, Input, NotApplied, Outcome, Prepared, Reservation, Unknown
from horae.flow.json_text import json_text
from horae.flow.phase_permissions import MAX_KEPT, MAX_RESERVED, MAX_TITLE, Part
from horae.flow_model import (
    EventStatus,
    FailureKind,
    FlowEvent,
    FlowRun,
    HandlerKind,
    Mutation,
    MutationStatus,
    Phase,
    PreparedRecord,
)
from horae.policy.flow_failure_handling import Answer
from horae.policy.flow_next_handler import wake_time
from horae.store.flow_queries import RunMove

_log = logging.getLogger("horae.flows")
_record = msgspec.json.Decoder(PreparedRecord).decode
_mutation = msgspec.json.Decoder(Mutation).decode
_encode = msgspec.json.Encoder().encode
NONE = Mutation(MutationStatus.NONE)


def text_of(value: object) -> str:
    """A record as JSON text."""
    return _encode(value).decode()


def read_prepared(run: FlowRun) -> PreparedRecord:
    """The stored prepare result of a run."""
    return PreparedRecord() if run.prepared is None else _record(run.prepared)


def read_mutation(text: str | None) -> Mutation | None:
    """A stored outcome of a mutation."""
    return None if text is None else _mutation(text)


class RunEnd(msgspec.Struct, Decided):
    """How a run of a handler ended: what its commit writes, or its failure."""

    run: FlowRun
    phase: Phase
    failure: Failure | None = None
    prepared: PreparedRecord | None = None
    mutation: Mutation | None = None
    journaled: bool = False
    """Whether the prepare result and its reservations are already durable."""
    state: str | None = None
    """The new state, as JSON; ``None`` if it did not change."""
    published: Sequence[Published] = ()
    inputs: Sequence[Input] = ()
    caused: Sequence[int] = ()
    """The numbers of the reserved events that were caused by inputs."""
    largest_peek: int = 0


class Reconciled(msgspec.Struct, Decided):
    """The answer of ``reconcile``."""

    answer: Answer
    issue: str = ""


class Fixed(msgspec.Struct, Decided):
    """The answer of a fixer: a new version, or ``None``."""

    flow: Flow | None
    issue: str = ""


class HandlerRun:
    """One attempt of a handler."""

    def __init__(
        self,
        flow: str,
        handler: Handler,
        run: FlowRun,
        epoch: int,
        state: str | None,
        *,
        events: EventSource,
        journal: FlowJournal,
        now: Callable[[], int],
    ) -> None:
        self._handler = handler
        self._run = run
        self._epoch = epoch
        self._state = state
        self._journal = journal
        self._events = events
        self._now = now
        self._end = RunEnd(run, run.phase)
        self._context = FlowContext(flow, handler.definition, run.id, events, now)

    async def __call__(self, attempt: RunningAttempt) -> Decided:
        """Run the handler; a failure is part of what it returns. Cancelling it raises."""
        end, context = self._end, self._context
        _keep_log(context, attempt)
        try:
            if self._run.kind is HandlerKind.PRODUCER:
                await self._produce()
            else:
                await self._consume()
        except Failure as failure:
            end.failure = failure
        except asyncio.CancelledError as error:
            if attempt.stop or attempt.timed_out:
                raise
            end.failure = Failure(FailureKind.UNCLASSIFIED, "the handler cancelled itself", error)
        except (StaleClaimError, HandlerStopped) as error:
            # Another node has taken it over: nothing is written.
            end.failure = Failure(FailureKind.INTERNAL, str(error), error)
        except Exception as error:
            _log.exception("running a handler failed for a fault of the host")
            end.failure = Failure(FailureKind.INTERNAL, f"{type(error).__name__}: {error}", error)
        finally:
            context.close()
        if end.failure is None:
            end.published, end.inputs = context.published, list(context.inputs)
            end.phase = Phase.COMMITTED
        else:
            end.failure.issue = kept_failure(end.failure.issue)
            if attempt.log is not None and end.failure.error is not None:
                trace = traceback_text(without_own_frames(end.failure.error))
                attempt.log.add("ERROR", self._handler.name, (trace or end.failure.issue).rstrip())
        end.largest_peek = context.largest_peek
        return end

    # A producer

    async def _produce(self) -> None:
        state = self._read_state()
        self._context.enter(Part.PRODUCER)
        self._keep_state(await self._called(self._handler.code, state))

    # A consumer

    async def _consume(self) -> None:
        end = self._end
        if self._run.phase is Phase.EMITTING:  # it continues a run whose mutation is known
            end.prepared, end.mutation = read_prepared(self._run), read_mutation(self._run.mutation)
            end.journaled = True
            self._context.key = end.prepared.key or self._run.id
            await self._emit(end.prepared)
            return
        self._context.enter(Part.PREPARE)
        prepare = self._handler.part("prepare")
        prepared = await self._checked_result(await self._called(prepare, self._read_state()))
        end.prepared, end.phase = prepared, Phase.PREPARED
        if prepared.numbers and self._handler.definition.mutates:
            await self._move(Phase.MUTATING)
            await self._mutate(prepared)
        else:
            end.mutation = NONE
        await self._emit(prepared)

    async def _mutate(self, prepared: PreparedRecord) -> None:
        if not self._journal.holds_lease:
            raise Failure(FailureKind.NOT_APPLIED, "the lease of its node was about to end")
        self._context.enter(Part.MUTATE)
        result = await self._called(self._handler.part("mutate"), _shown(self._handler, prepared))
        try:
            _json(result, "the result of mutate")
        except Failure:
            self._end.mutation = Mutation(MutationStatus.APPLIED)
            await self._move(Phase.MUTATED)
            raise
        self._end.mutation = Mutation(MutationStatus.APPLIED, result)
        if self._handler.definition.emits:
            await self._move(Phase.EMITTING)

    async def _emit(self, prepared: PreparedRecord) -> None:
        """Call ``next``. If nothing was mutated and ``next`` awaits nothing, nothing is written before the commit."""
        end = self._end
        end.phase = Phase.EMITTING
        emit = self._handler.part("next")
        if emit is None:
            return
        mutation = end.mutation or NONE
        self._context.enter(Part.NEXT)
        given = _shown(self._handler, prepared), Outcome(mutation.status.value, mutation.result)
        before = None if end.journaled else (lambda: self._move(Phase.EMITTING))
        self._keep_state(await self._called(emit, *given, when_it_waits=before))

    async def _move(self, phase: Phase) -> None:
        """Write the phase of the run, with its prepare result and the outcome of its mutation."""
        end, prepared = self._end, self._end.prepared or PreparedRecord()
        first = not end.journaled
        move = RunMove(
            run_id=self._run.id, epoch=self._epoch, phase=phase, updated_at_ms=self._now(),
            prepared=text_of(prepared) if first else None, mutation=None if end.mutation is None else text_of(end.mutation),
            events=len(prepared.numbers), title=prepared.title, numbers=prepared.numbers if first else (),
        )  # fmt: skip
        try:
            await self._journal.move(move)
        except ReservationLostError as lost:
            raise Failure(FailureKind.NOT_APPLIED, str(lost), lost) from None
        end.journaled, end.phase = True, phase

    # Calling the handler

    async def _called(
        self,
        code: Callable[..., Any] | None,
        *given: object,
        when_it_waits: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever a handler returns
        """Call a part of the handler. ``when_it_waits`` is awaited once, before the handler's first suspension."""
        assert code is not None  # noqa: S101 - the definition says that it has it
        context = self._context
        try:
            returned = code(context, *given)
            if when_it_waits is not None and inspect.iscoroutine(returned):
                returned = await _eagerly(returned, when_it_waits)
            elif inspect.isawaitable(returned):
                returned = await returned
        except HandlerStopped:
            if context.failure is None:
                raise
        except Failure as failure:  # of what it waited for
            raise context.failure or failure from None
        except StaleClaimError:
            raise
        except Exception as error:
            raise context.failure or classify(error) from None
        if context.failure is not None:  # whatever the handler made of it
            raise context.failure
        return returned

    def _read_state(self) -> Any:  # noqa: ANN401
        try:
            return self._handler.state_type.read(self._state)
        except (msgspec.MsgspecError, ValueError) as error:
            raise _fault(f"the state that an earlier version kept cannot be read: {error}", error) from None

    def _keep_state(self, state: object) -> None:
        text = _json(state, "the state")
        if text != (self._state or "null"):
            self._end.state = text

    async def _checked_result(self, returned: object) -> PreparedRecord:
        """Validate what ``prepare`` returned: its events exist, are pending, and are reserved once."""
        if isinstance(returned, Mapping):
            try:
                returned = Prepared(**returned)
            except TypeError as error:
                raise _fault(f"prepare returned another mapping: {error}", error) from None
        if not isinstance(returned, Prepared):
            raise _fault(f"prepare must return Prepared(…), and returned {type(returned).__name__}")
        reservations, events = await self._reserved(returned.reservations)
        _json(returned.data, "the data of the prepare result")
        _read_data(self._handler, returned.data)  # before anything is reserved for it
        wake_at_ms, problem = wake_time(returned.wake_at)
        if problem:
            _log.warning('flow "%s", handler "%s": %s', self._context.flow, self._handler.name, problem)
        self._end.caused = [each.number for each in events if each.caused]
        return PreparedRecord(
            key=self._run.id, reservations=tuple((each.topic, tuple(each.ids)) for each in reservations),
            numbers=tuple(each.number for each in events), data=returned.data, wake_at_ms=wake_at_ms,
            title=str(returned.title or "")[:MAX_TITLE],
        )  # fmt: skip

    async def _reserved(self, given: Iterable[object]) -> tuple[list[Reservation], list[FlowEvent]]:
        try:
            wanted = [_reservation(each) for each in given]
        except (TypeError, KeyError, msgspec.ValidationError) as error:
            raise _fault(f"reservations must be a list of Reservation(topic, ids): {error}", error) from None
        found: dict[tuple[str, str], FlowEvent] = {}
        for each in wanted:
            await self._look_up(each)
            for message_id in each.ids:
                key = (each.topic, message_id)
                event = self._context.seen.get(key)
                what = f'it reserves the event "{message_id}" of the topic "{each.topic}"'
                if event is None or event.status is not EventStatus.PENDING:
                    raise _violation(f"{what}, which is {'absent' if event is None else event.status.value}")
                if key in found:
                    raise _violation(f"{what} twice")
                found[key] = event
        if len(found) > MAX_RESERVED:
            raise _violation(f"it reserves {len(found)} events, and a run takes at most {MAX_RESERVED}")
        return wanted, list(found.values())

    async def _look_up(self, reservation: Reservation) -> None:
        """Read the reserved events that the handler has not read."""
        if reservation.topic not in self._handler.definition.subscribes:
            raise _violation(
                f'it reserves events of the topic "{reservation.topic}", to which it does not subscribe'
            )
        seen = self._context.seen
        unseen = [each for each in reservation.ids if (reservation.topic, each) not in seen]
        if unseen:
            for event in await self._events.by_message(reservation.topic, unseen):
                seen[event.topic, event.message_id] = event


def _read_data(handler: Handler, data: object) -> Any:  # noqa: ANN401
    """The prepared data, converted to its annotated type; ``None`` stays ``None``."""
    try:
        return None if data is None else handler.data_type.read(text_of(data))
    except (msgspec.MsgspecError, ValueError) as error:
        raise _fault(
            f"the data of the prepare result is not what it is annotated as: {error}", error
        ) from None


def _shown(handler: Handler, prepared: PreparedRecord) -> Prepared[Any]:
    """The prepare result as it is stored, which is how the other parts receive it."""
    data = _read_data(handler, prepared.data)
    reservations = [Reservation(topic, list(ids)) for topic, ids in prepared.reservations]
    return Prepared(reservations, data, title=prepared.title or None, key=prepared.key)


async def reconcile(
    flow: str,
    handler: Handler,
    run: FlowRun,
    attempt: RunningAttempt,
    *,
    events: EventSource,
    now: Callable[[], int],
) -> Reconciled:
    """Call ``reconcile`` to find out whether a mutation was applied; a failure counts as ``Unknown``."""
    prepared = read_prepared(run)
    context = FlowContext(flow, handler.definition, run.id, events, now, key=prepared.key or run.id)
    _keep_log(context, attempt)
    context.enter(Part.RECONCILE)
    code = handler.part("reconcile")
    assert code is not None  # noqa: S101 - the definition says that it has it
    try:
        answer = code(context, _shown(handler, prepared))
        if inspect.isawaitable(answer):
            answer = await answer
    except (Exception, HandlerStopped) as error:
        return Reconciled("unknown", kept_failure((context.failure or classify(error)).issue))
    finally:
        context.close()
    if context.failure is not None:
        return Reconciled("unknown", kept_failure(context.failure.issue))
    return _answer(answer)


def _answer(answer: object) -> Reconciled:
    if isinstance(answer, NotApplied) or answer is NotApplied:
        return Reconciled("not_applied")
    if isinstance(answer, Applied) or answer is Applied:
        result = answer.result if isinstance(answer, Applied) else None
        try:
            json_text(result, "the result of reconcile", MAX_KEPT)
        except ValueError as error:
            return Reconciled("unknown", str(error))
        return Reconciled(Mutation(MutationStatus.APPLIED, result))
    if isinstance(answer, Unknown) or answer is Unknown:
        return Reconciled("unknown")
    return Reconciled(
        "unknown",
        f"reconcile must return Applied, NotApplied or Unknown, and returned {type(answer).__name__}",
    )


def _keep_log(context: FlowContext, attempt: RunningAttempt) -> None:
    """Keep what a handler logs with its attempt."""
    context.make_log = lambda: AttemptLogger(
        attempt.run, attempt.log, flow=context.flow, handler=context.handler
    )


def _json(value: object, what: str) -> str:
    """A value of a handler as JSON, within the limit of what is kept."""
    try:
        return json_text(value, what, MAX_KEPT)
    except ValueError as error:
        raise _fault(str(error), error) from None


def _fault(reason: str, error: Exception | None = None) -> Failure:
    return Failure(FailureKind.LOGIC, reason, error)


def _violation(reason: str) -> Failure:
    return Failure(FailureKind.VIOLATION, reason)


def _reservation(given: object) -> Reservation:
    if isinstance(given, Mapping):
        given = Reservation(given["topic"], given["ids"])
    if isinstance(given, Reservation) and isinstance(given.ids, list) and _are_texts(given.topic, *given.ids):
        return given
    return msgspec.convert(given, Reservation, from_attributes=True)


def _are_texts(*values: object) -> bool:
    return all(type(each) is str for each in values)


async def _eagerly(coroutine: Coroutine[Any, Any, Any], when_it_waits: Callable[[], Awaitable[None]]) -> Any:  # noqa: ANN401
    """Run a coroutine. If it suspends, ``when_it_waits`` is awaited before it continues."""
    try:
        yielded = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    try:
        await when_it_waits()
    except BaseException:
        coroutine.close()
        raise
    return await _Resumed(coroutine, yielded)


class _Resumed:
    """The rest of a coroutine that has suspended on ``yielded``."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], yielded: object) -> None:
        self._coroutine = coroutine
        self._yielded = yielded

    def __await__(self) -> Generator[Any, Any, Any]:
        yielded = self._yielded
        while True:
            try:
                try:
                    sent = yield yielded
                except BaseException as error:
                    yielded = self._coroutine.throw(error)
                else:
                    yielded = self._coroutine.send(sent)
            except StopIteration as stop:
                return stop.value

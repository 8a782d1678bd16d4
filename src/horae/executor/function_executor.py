"""Python functions as actions: coroutine functions in the event loop, plain ones in threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, NamedTuple

from horae.errors import InvalidActionError, InvalidInputError
from horae.executor.attempt_context import Context
from horae.executor.function_arguments import ActionFunction, Signature, place_of, read_signature
from horae.executor.port import Executor
from horae.model import FUNCTION, Action, Denial, Run


class RegisteredFunction(NamedTuple):
    """A function and how it is called."""

    function: ActionFunction
    signature: Signature
    threaded: bool
    accepts: Callable[[Run], bool] | None
    admit: Callable[[Action], Denial | None] | None


class FunctionExecutor(Executor):
    """Calls the functions that this program registered. Their addresses are their names."""

    kind = FUNCTION
    for_nodes = True
    own_of_app = True

    def __init__(self) -> None:
        self._actions: dict[str, RegisteredFunction] = {}

    def register(
        self,
        name: str,
        function: ActionFunction,
        accepts: Callable[[Run], bool] | None = None,
        admit: Callable[[Action], Denial | None] | None = None,
        *,
        replace: bool = False,
    ) -> None:
        """Register a function under a name, which no other function may have unless it is to ``replace`` it.

        With ``accepts``, the function runs only the runs that it accepts. ``admit`` is called right before each attempt and says
        whether the action may still run: be quick, and do nothing else.
        """
        signature, old = read_signature(name, function), self._actions.get(name)
        if old is not None and old.function != function and not replace:
            reason = f"is {place_of(old.function)} already, and cannot be another function too"
            raise InvalidActionError(name, reason, place_of(function), hint="give one of them another name")
        if old is not None:
            accepts, admit = accepts or old.accepts, admit or old.admit
        threaded = not is_coroutine_function(function)
        self._actions[name] = RegisteredFunction(function, signature, threaded, accepts, admit)

    def unregister(self, name: str) -> None:
        """Remove the function of a name."""
        self._actions.pop(name, None)

    @property
    def functions(self) -> dict[str, ActionFunction]:
        """The registered functions by name."""
        return {name: each.function for name, each in self._actions.items()}

    def name_of(self, function: ActionFunction) -> str | None:
        """The first name under which a function is registered; ``None`` if it is not."""
        return next((name for name, each in self._actions.items() if each.function == function), None)

    def doubt(self, action: Action) -> InvalidInputError | None:
        """What is or may be wrong with the input of an action; ``None`` if nothing is, or its function is not registered here."""
        registered = self._actions.get(action.name)
        return None if registered is None else registered.signature.doubt(action.input)

    def actions(self) -> Collection[str]:
        """The registered names."""
        return self._actions.keys()

    def can_run(self, run: Run) -> bool:
        """Whether the action of a run is registered here, and accepts it."""
        registered = self._actions.get(run.action)
        return registered is not None and (registered.accepts is None or registered.accepts(run))

    def admit(self, action: Action) -> Denial | None:
        """Call the ``admit`` that was registered with the function, if any."""
        registered = self._actions.get(action.name)
        return None if registered is None or registered.admit is None else registered.admit(action)

    def run(self, context: Context) -> Coroutine[Any, Any, Any]:
        """Call the function of a run: await what this returns."""
        return self.call(context.action, context)

    def call(self, name: str, context: Context) -> Coroutine[Any, Any, Any]:
        """Call the function of a name, with the context and the input of a run as far as it takes them: await what this returns."""
        function, signature, threaded, *_ = self._actions[name]
        positional, keywords = signature.arguments(context)
        if threaded:
            return call_in_thread(partial(function, *positional, **keywords), context)
        coroutine: Coroutine[Any, Any, Any] = function(*positional, **keywords)
        return coroutine


def is_coroutine_function(function: object) -> bool:
    """Whether it is an ``async def`` function, a partial of one, or an object whose ``__call__`` is one."""
    while isinstance(function, partial):
        function = function.func
    if not callable(function):
        return False
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def call_in_thread(call: Callable[[], Any], context: Context) -> Any:  # noqa: ANN401 - any JSON
    """Call a plain function in its own daemon thread, which does not keep the program from ending."""
    result, error = await _in_thread(call, context)
    if error is not None:
        raise error
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("the action returned a coroutine: define it with `async def`")
    return result


async def _in_thread(call: Callable[[], Any], context: Context) -> tuple[object, BaseException | None]:
    """Return the result and the error of a function. A thread cannot be cancelled: after a stop request, this waits for its end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def work() -> None:
        result: object = None
        raised: BaseException | None = None
        try:
            result = call()
        except BaseException as error:
            raised = error
        try:
            loop.call_soon_threadsafe(done.set_result, (result, raised))
        except RuntimeError:  # the program has ended
            return

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), name=f"horae:{context.action_id}", daemon=True).start()
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            if not context.stop_requested():  # the program ends
                raise
    return done.result()

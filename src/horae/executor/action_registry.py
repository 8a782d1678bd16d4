"""The kinds of actions that a program can store and run, and what they share: addresses, options, secrets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from horae.checked import input_error
from horae.errors import InvalidActionError, InvalidInputError, NotStartedError, did_you_mean
from horae.executor.action_permissions import Permissions
from horae.executor.attempt_context import Context
from horae.executor.builtin_kinds import KINDS
from horae.executor.executor_database import Database
from horae.executor.function_arguments import ActionFunction, name_of, place_of
from horae.executor.function_executor import FunctionExecutor
from horae.executor.port import Executor
from horae.executor.secret_sealing import HIDDEN, Sealer
from horae.executor.stored_output import kept_failure
from horae.json_bounds import convert_json
from horae.model import Action, Denial, Reason, Run

ActionLike = Action | Mapping[str, Any] | str | ActionFunction
"""An action, its document, its address, or the function that was registered as one."""
_log = logging.getLogger("horae")
_replace = msgspec.structs.replace


class Executors:
    """The executors of a program, by kind."""

    def __init__(
        self,
        functions: FunctionExecutor,
        secret_key: str = "",
        permissions: Permissions | None = None,
        database: Database | None = None,
    ) -> None:
        self.permissions = permissions or Permissions()
        self._functions = functions
        self._sealer = Sealer(secret_key)
        self._database = database
        self._kinds: dict[str, Executor] = {functions.kind: functions}

    def register(self, name: str, function: ActionFunction) -> None:
        """Register a function under a name that neither another function nor a kind of action has."""
        if not name or not name.isprintable():
            raise InvalidActionError(name, "has a name that is empty or not printable")
        if name.partition(":")[0] in {*self._kinds, *KINDS}:
            reason = "has the name of a kind of action"
            raise InvalidActionError(name, reason, place_of(function), hint="give it another name")
        self._functions.register(name, function)

    def name_for(self, function: ActionFunction) -> str:
        """The name under which a function is registered, or its own name if it is not."""
        return self._functions.name_of(function) or name_of(function)

    def _name_of(self, function: ActionFunction) -> str:
        name = self._functions.name_of(function)
        if name is None:
            reason = f"is a function that is not registered: {place_of(function)}"
            raise InvalidInputError(
                "action", reason, hint="register it with @app.action, or name another action"
            )
        return name

    def use(self, executor: Executor) -> None:
        """Add the executor of a kind, or replace it."""
        if executor.kind in self._functions.actions():
            reason = "is a function, so its name cannot be that of a kind of action"
            place = place_of(self._functions.functions[executor.kind])
            raise InvalidActionError(executor.kind, reason, place)
        self._kinds[executor.kind] = executor
        if self._database is not None:
            executor.bind(self._database)

    def adopt(self, other: Executors) -> None:
        """Add the functions and kinds of other executors."""
        for name, function in other._functions.functions.items():
            self._functions.register(name, function)
        for executor in other._kinds.values():
            if not executor.own_of_app:
                self.use(executor)

    @property
    def option_types(self) -> list[type[msgspec.Struct]]:
        """The types of the kinds' options."""
        return [each.options for each in self._kinds.values() if each.options is not None]

    @property
    def actions(self) -> tuple[str, ...]:
        """The addresses of the actions that this program can run."""
        return tuple(sorted({address for each in self._kinds.values() for address in each.actions()}))

    def knows(self, address: str) -> bool:
        """Whether this program can run the action of an address."""
        return address in self._of(address).actions()

    def can_run(self, run: Run) -> bool:
        """Whether this program can attempt a run."""
        return self._of(run.action).can_run(run)

    @property
    def prepare_some(self) -> bool:
        """Whether any kind writes in the transactions of claims."""
        return any(each.prepares for each in self._kinds.values())

    def preparing(self, run: Run) -> Executor | None:
        """The executor of a run, if it writes in the transaction that claims it."""
        executor = self._of(run.action)
        return executor if executor.prepares else None

    def _of(self, address: str) -> Executor:
        """The executor of an address: ``kind`` or ``kind:name``; any other address is the name of a function."""
        return self._kinds.get(address.partition(":")[0], self._functions)

    def read(self, given: ActionLike) -> Action:
        """Read an action from any of its forms. A name without a kind is an address."""
        if callable(given):
            return Action(name=self._name_of(given))
        try:
            action: Action = Action(name=given) if isinstance(given, str) else convert_json(given, Action)
        except msgspec.ValidationError as error:
            raise input_error(error, Action, "action") from None
        if action.kind != self._functions.kind or (executor := self._of(action.name)) is self._functions:
            return action
        return _replace(action, kind=executor.kind, name=action.name.partition(":")[2])

    def doubt(self, action: Action) -> str | None:
        """What is or may be wrong with the input of a function of this program, as a clause with its hint."""
        error = self._functions.doubt(action) if self._of(action.address) is self._functions else None
        if error is None:
            return None
        return f"its {error.message}" + (f"; {error.hint}" if error.hint else "")

    def check(self, action: Action, stored: Action | None) -> Action:
        """An action as it is stored: options completed, secrets sealed. ``stored`` is the action that it replaces."""
        executor = self._kinds.get(action.kind)
        if executor is None:
            raise InvalidInputError("action.kind", f"must be one of {', '.join(sorted(self._kinds))}")
        if executor.options is None and action.options:
            raise InvalidInputError("action.options", f'must be empty: the kind "{action.kind}" has none')
        before = stored.options if stored is not None and stored.kind == action.kind else None
        options = executor.check(action, _read(executor, action.options), before and _read(executor, before))
        if options is None:
            return action
        document = msgspec.json.decode(msgspec.json.encode(options))
        sealed = _each_secret(executor, document, self._sealing(executor, before or {}))
        return _replace(action, options=sealed)

    def _sealing(self, executor: Executor, stored: dict[str, Any]) -> Callable[[str, str], str]:
        """A function that seals a secret. For ``***``, and for an unchanged value, it returns the stored secret of the field."""
        kept: dict[str, str] = {}
        _each_secret(executor, stored, lambda value, field: kept.setdefault(field.lower(), value))

        def seal(value: str, field: str) -> str:
            before = kept.get(field.lower())
            if value == HIDDEN:
                if before is None:
                    reason = f"is {HIDDEN}, and no value is stored for it"
                    raise InvalidInputError(field, reason)
                return before
            if before is not None and self._sealer.holds(before, value):
                return before
            return self._sealer.seal(value, field)

        return seal

    def admit(self, run: Run, action: Action | None, permitted_by: str = "") -> Denial | None:
        """Why a run may no longer start; ``None`` admits it. If its schedule has another action now, the executor is not asked.

        ``permitted_by`` is the scope that permitted storing the action.
        """
        address = run.action
        denial = self.permissions.denial(address, run.owner, permitted_by)
        if denial is not None or action is None or action.address != address:
            return denial
        try:
            return self._of(address).admit(action)
        except (
            Exception
        ) as error:  # from the program's own code; the other runs of the batch must be launched
            reason = f"whether the action may run is not known: {type(error).__name__}: {error}"
            return Denial(Reason.NOT_ALLOWED, kept_failure(reason))

    def run(self, context: Context, action: Action | None) -> Coroutine[Any, Any, Any]:
        """Make an attempt: await the result. ``action`` is the schedule's current one; ``None`` if the schedule was deleted."""
        address = context.action
        executor = self._of(address)
        if address not in executor.actions():
            reason = f'the action of "{context.schedule_id}" is not registered in this program'
            raise NotStartedError(reason, permanent=True)
        context.checkpoint_bounds = executor.checkpoint_bounds
        if executor.options is not None:
            if action is None or action.address != address:
                reason = f'the schedule "{context.schedule_id}" has no action "{address}" any more'
                raise NotStartedError(reason, permanent=True)
            context.options = self.open_options(action)
        return executor.run(context)

    def refusal_for_node(self, address: str) -> str | None:
        """Why a node of a workflow cannot call an action in this program; ``None`` if it can.

        Nodes may call only actions that the program or the operator has defined completely: a workflow cannot change what they reach.
        """
        if not self.open_to_nodes(address):
            return f'cannot call "{address}": nodes call functions of the program, and requests and commands that the operator named'
        if not self.knows(address):
            near = did_you_mean(address, self.actions)
            return f'calls an unknown action, "{address[:200]}"' + (f": {near}" if near else "")
        return None

    def open_to_nodes(self, address: str) -> bool:
        """Whether nodes of workflows may call actions of this kind."""
        return self._of(address).for_nodes

    async def call_for_node(self, context: Context) -> Any:  # noqa: ANN401 - any JSON
        """Call the action of a node."""
        address = context.action
        if (refusal := self.refusal_for_node(address)) is not None:
            raise NotStartedError(f"the node {refusal}", permanent=True)
        if (denial := self.permissions.denial(address, context.owner, "")) is not None:
            raise NotStartedError(denial.sentence, permanent=True)
        return await self._of(address).run(context)

    def open_options(self, action: Action) -> Any:  # noqa: ANN401 - the kind's own type
        """The options of a stored action as its kind types them, secrets decrypted."""
        executor = self._of(action.address)
        try:
            return _read(executor, _each_secret(executor, action.options, self._sealer.open))
        except InvalidInputError as error:
            raise NotStartedError(error.message, permanent=True) from None

    async def close(self) -> None:
        """Close all executors, even if closing one of them fails."""
        for kind, executor in self._kinds.items():
            try:
                await executor.close()
            except Exception:  # from another library, or from the program's own code
                _log.exception('the executor of the kind "%s" cannot be closed', kind)


def _read(executor: Executor, options: dict[str, Any]) -> Any:  # noqa: ANN401 - the kind's own type
    if executor.options is None:
        return None
    try:
        return convert_json(options, executor.options)
    except msgspec.ValidationError as error:
        raise input_error(error, executor.options, "action.options") from None


def _each_secret(
    executor: Executor, options: Mapping[str, Any], change: Callable[[str, str], str]
) -> dict[str, Any]:
    """Options with their secrets changed; an empty text is no secret."""
    changed = dict(options)
    for name in executor.secrets:
        field, value = f"action.options.{name}", changed.get(name)
        if isinstance(value, str) and value:
            changed[name] = change(value, field)
        elif isinstance(value, Mapping):
            changed[name] = {
                key: change(each, f"{field}.{key}") if each else each for key, each in value.items()
            }
    return changed

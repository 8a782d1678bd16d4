"""How an action calls its function: with the context of the attempt, with the keys of the input as arguments, or both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec

from horae.errors import InvalidActionError, InvalidInputError, did_you_mean
from horae.executor.argument_types import from_json
from horae.executor.attempt_context import Context

ActionFunction = Callable[..., Any]
"""A plain or a coroutine function. It may take the context, and keys of the input by their names."""
CONTEXT = "context"
"""The parameter of this name gets the context, and so does one that is annotated with ``Context``."""
_BY_KEYWORD = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
_UNFILLED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a function, by what they get."""

    context: str | None
    """The parameter that gets the context."""
    positional: bool
    """Whether the context can only be passed by position."""
    required: tuple[str, ...]
    optional: tuple[str, ...]
    takes_all: bool
    """Whether ``**kwargs`` takes the keys that no parameter names."""
    types: dict[str, Any]
    """The annotations of the parameters that have one."""

    @property
    def named(self) -> tuple[str, ...]:
        """The parameters that get keys of the input."""
        return (*self.required, *self.optional)

    def keywords(self, given: object) -> dict[str, Any]:
        """The arguments that an input makes; one that does not fit raises ``InvalidInputError``. Keys that are not named are left
        to the context.
        """
        named = self.named
        if given is None:
            given = {}
        if not isinstance(given, Mapping):
            if named or self.takes_all:
                reason = "must be an object: its keys are the arguments of the action"
                raise InvalidInputError("input", reason, hint=self._hint(next(iter(self.required), "")))
            return {}
        self._check_keys(given, named)
        return {key: self._converted(key, given[key]) for key in given if self.takes_all or key in named}

    def _check_keys(self, given: Mapping[str, Any], named: tuple[str, ...]) -> None:
        missing = [name for name in self.required if name not in given]
        unknown = [] if self.takes_all or not named else [key for key in given if key not in named]
        if unknown and (self.context is None or (missing and did_you_mean(unknown[0], missing))):
            raise self._unknown(unknown, given)
        if missing:
            reason = f"has no {_listed(missing)}, which the action needs"
            raise InvalidInputError("input", reason, hint=self._hint(missing[0]))

    def doubt(self, given: object) -> InvalidInputError | None:
        """What is wrong with an input, or may be: a key that only the context takes may be a misspelt parameter."""
        try:
            self.keywords(given)
        except InvalidInputError as error:
            return error
        keys = given if isinstance(given, Mapping) else {}
        unknown = [key for key in keys if key not in self.named]
        free = [name for name in self.optional if name not in keys]
        alike = [key for key in unknown if did_you_mean(key, free)]
        return self._unknown(alike, keys) if alike else None

    def _unknown(self, unknown: Sequence[str], given: Mapping[str, Any]) -> InvalidInputError:
        near = did_you_mean(unknown[0], [name for name in self.named if name not in given])
        taken = f"it takes {_listed(self.named)}" if self.named else None
        reason = f"has {_listed(unknown)}, which the action does not take"
        return InvalidInputError("input", reason, hint=near or taken)

    def _hint(self, missing: str) -> str | None:
        """How to give a missing parameter: as a key of the input, or with the annotation that makes it the context."""
        if not missing:
            return None
        by_name = f'input={{"{missing}": …}}'
        if self.context is not None or missing in self.types:
            return f"give it by name: {by_name}"
        return f"for the context of the attempt write {missing}: horae.Context; otherwise give it by name: {by_name}"

    def _converted(self, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON, and a value of any type
        kind = self.types.get(name)
        if kind is None or type(value) is kind:
            return value
        return from_json(value, kind, f"input.{name}")

    def arguments(self, context: Context) -> tuple[tuple[Context, ...], dict[str, Any]]:
        """The arguments of a call, by position and by keyword; an input that does not fit raises ``InvalidInputError``."""
        keywords = self.keywords(context.input)
        if self.context is None:
            return (), keywords
        if self.positional:
            return (context,), keywords
        return (), keywords | {self.context: context}


def read_signature(name: str, function: object) -> Signature:
    """The signature of a function; refuse one that an action cannot be called with."""
    if not callable(function) or inspect.isclass(function):
        raise InvalidActionError(name, f"must be a function, and is {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidActionError(name, "is a generator, and calling it does nothing", place_of(function))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidActionError(
            name, "does not say which arguments it takes", hint="call it in a function of your own"
        ) from None
    hints = _annotations(function)
    takers = [each for each in parameters if _takes_context(each, hints)]
    if len(takers) > 1:
        raise InvalidActionError(
            name, f"has two parameters for the context: {_listed(each.name for each in takers)}", place_of(function)
        )  # fmt: skip
    others = [each for each in parameters if each not in takers and each.kind not in _UNFILLED]
    for number, each in enumerate(others):
        _check(name, function, each, first=number == 0)
    by_keyword = [each for each in others if each.kind in _BY_KEYWORD]
    return Signature(
        context=takers[0].name if takers else None,
        positional=bool(takers) and takers[0].kind is inspect.Parameter.POSITIONAL_ONLY,
        required=tuple(each.name for each in by_keyword if each.default is inspect.Parameter.empty),
        optional=tuple(each.name for each in by_keyword if each.default is not inspect.Parameter.empty),
        takes_all=any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters),
        types={each.name: hints[each.name] for each in by_keyword if _has_type(hints.get(each.name))},
    )


def _has_type(hint: object) -> bool:
    """Whether an annotation names a type; one whose names exist only for type checkers is a text."""
    return not (hint is None or hint is Any or hint is inspect.Parameter.empty or isinstance(hint, str))


def _check(name: str, function: ActionFunction, parameter: inspect.Parameter, *, first: bool) -> None:
    """Refuse a parameter that no key of an input can fill."""
    if first and parameter.name in {"self", "cls"}:
        reason = f'is a method that is not bound: nothing fills its parameter "{parameter.name}"'
        hint = "register it of an object: app.action(name)(object.method)"
        raise InvalidActionError(name, reason, place_of(function), hint=hint)
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.default is inspect.Parameter.empty:
        reason = f'takes its parameter "{parameter.name}" by position only, and inputs are passed by name'
        raise InvalidActionError(name, reason, place_of(function), hint="remove the / from its parameters")


def _takes_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    if parameter.kind in _UNFILLED:
        return False
    hint = hints.get(parameter.name)
    return parameter.name == CONTEXT or hint is Context or hint in ("Context", "horae.Context")


def _annotations(function: ActionFunction) -> dict[str, Any]:
    """The annotations of a function; those whose names exist only for type checkers stay texts."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except Exception:  # an annotation may be any expression
        names = getattr(_innermost(function), "__globals__", {})
        written = inspect.signature(function).parameters
        return {name: _evaluated(each.annotation, names) for name, each in written.items()}
    return {name: each.annotation for name, each in parameters.items()}


def _evaluated(annotation: object, names: dict[str, Any]) -> Any:  # noqa: ANN401 - a type, or a text
    """One annotation of several, of which some cannot be evaluated."""
    try:
        alone = SimpleNamespace(__annotations__={"it": annotation})
        return get_type_hints(alone, names, include_extras=True)["it"]
    except Exception:  # as above
        return annotation


def _innermost(function: ActionFunction) -> ActionFunction:
    """The function that others bind to arguments, bind to an object, or wrap."""
    while isinstance(function, partial):
        function = function.func
    innermost: ActionFunction = inspect.unwrap(getattr(function, "__func__", function))
    return innermost


def name_of(function: ActionFunction) -> str:
    """The name under which a function is registered if none is given."""
    name = getattr(function, "__name__", "")
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidActionError(repr(function), "has no name", hint='give it one: @app.action("name")')
    return name


def place_of(function: ActionFunction) -> str:
    """Where a function is defined: its module, name, file and line, as far as it has them."""
    function = _innermost(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    shown = f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"
    return shown if code is None else f"{shown} ({code.co_filename}, line {code.co_firstlineno})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in names)

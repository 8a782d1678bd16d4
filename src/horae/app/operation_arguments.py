"""Checks of the arguments of public operations: names and types, before anything else happens.

An argument that is misspelt, missing or of the wrong type is an error at the call, which names the argument. The meaning of a value
is checked where it is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta, tzinfo
from functools import cached_property, wraps
from pathlib import PurePath
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Literal,
    Never,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from horae.checked import unknown_field
from horae.errors import InvalidInputError
from horae.spec.duration import duration_text

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_WORDS: dict[object, str] = {
    str: "a text", int: "a whole number", bool: "True or False", NoneType: "None", dict: "a mapping", Mapping: "a mapping",
    tzinfo: "a ZoneInfo", Callable: "a function",
}  # fmt: skip


def checks_arguments(kind: type[C]) -> type[C]:
    """Make all public operations of a class check their arguments."""
    for name, member in list(vars(kind).items()):
        if not name.startswith("_") and inspect.iscoroutinefunction(member):
            setattr(kind, name, _checked_operation(member))
    return kind


def _checked_operation(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    check = _Arguments(function).check

    @wraps(function)
    async def call(*args: P.args, **fields: P.kwargs) -> R:
        check(args, fields)
        return await function(*args, **fields)

    return call


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function check its arguments."""
    check = _Arguments(function).check

    @wraps(function)
    def call(*args: P.args, **fields: P.kwargs) -> R:
        check(args, fields)
        return function(*args, **fields)

    return call


def needs_parentheses(
    hint: str,
) -> Callable[[Callable[Concatenate[T, P], R]], Callable[Concatenate[T, P], R]]:
    """Refuse to use a method as a decorator without parentheses, where the function takes the place of the first argument."""

    def refuse(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
        @wraps(method)
        def call(owner: T, /, *args: P.args, **fields: P.kwargs) -> R:
            if len(args) == 1 and not fields and (inspect.isroutine(args[0]) or inspect.isclass(args[0])):
                raise InvalidInputError(f"@{method.__name__}", "needs parentheses", hint=hint)
            return method(owner, *args, **fields)

        return call

    return refuse


def hint_if_missing(hint: str) -> Callable[[F], F]:
    """Give an operation the hint for an argument that is missing."""

    def mark(function: F) -> F:
        vars(function)["hint_if_missing"] = hint
        return function

    return mark


def shows_fields(declaration: type[msgspec.Struct], others: Mapping[str, object] = {}) -> Callable[[F], F]:
    """Make the signature of a function name the keywords of its ``**more: Unpack[…]``, with the defaults of a struct, or ``others``."""
    defaults = {each.name: _default(each) for each in msgspec.structs.fields(declaration)} | {**others}

    def show(function: F) -> F:
        signature = inspect.signature(function)
        *named, others = signature.parameters.values()
        (keywords,) = get_args(inspect.get_annotations(function, eval_str=True)[others.name])
        shown = [
            inspect.Parameter(
                name, others.KEYWORD_ONLY, annotation=type_.__forward_arg__, default=defaults[name]
            )
            for name, type_ in keywords.__annotations__.items()
        ]
        vars(function)["__signature__"] = signature.replace(parameters=[*named, *shown])
        return function

    return show


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


class NeedsAsyncWith:
    """Refuses ``with`` in one sentence, where Python says only that it is not supported."""

    if not TYPE_CHECKING:

        def __enter__(self) -> Never:
            name = type(self).__name__
            other = "; without an event loop, use horae.SyncApp" if name == "App" else ""
            raise TypeError(f'write "async with" for {_word(type(self))}{other}')

        def __exit__(self, *_: object) -> None: ...


class _Arguments:
    """The parameters of a function, and the errors for arguments that do not fit."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self._named = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
        self._if_missing: str | None = getattr(function, "hint_if_missing", None)
        self._takes_others = len(self._named) < len(parameters)

    @cached_property
    def _types(self) -> dict[str, tuple[Any, ...]]:
        hints = get_type_hints(self._function)
        return {each.name: _alternatives(hints.get(each.name, Any)) for each in self._named}

    def check(self, args: tuple[object, ...], fields: dict[str, object]) -> None:
        for name, given in self._bound(args, fields).items():
            types = self._types.get(name, (object,))
            if not any(_fits(given, each) for each in types):
                wanted = " or ".join(dict.fromkeys(map(_word, types)))
                reason = f"must be {wanted}, not {_word(type(given))}"
                raise InvalidInputError(name, reason, hint=self._form_of(name, given))

    def _form_of(self, name: str, given: object) -> str | None:
        """The hint for a value in another form than it is taken."""
        if isinstance(given, PurePath):
            return f'write "sqlite:///{given}"'
        if name != "spec":
            return None
        if isinstance(given, list | tuple):
            return 'several cron expressions are a document: {"crons": ["0 9 * * *", …]}'
        every = (
            duration_text(given // timedelta(milliseconds=1)) if isinstance(given, timedelta) else f"{given}m"
        )
        if any(each.name == "every" for each in self._named):
            return f'write every="{every}"'
        return f'an interval is a document: {{"intervals": [{{"every": "{every}"}}]}}'

    def _check_number(self, args: tuple[object, ...]) -> None:
        """Refuse an argument by position that is taken only by name."""
        places = [each for each in self._named if each.kind is each.POSITIONAL_OR_KEYWORD]
        if len(args) <= len(places):
            return
        by_name = [each.name for each in self._named if each.kind is each.KEYWORD_ONLY]
        extra = args[len(places)]
        if "timezone" in by_name and (isinstance(extra, tzinfo) or (isinstance(extra, str) and "/" in extra)):
            raise InvalidInputError(
                "timezone", "must be given by name", hint=f'write timezone="{extra}"'
            ) from None
        hint = f"give the others by name: {'=…, '.join(by_name)}=…" if by_name else None
        raise InvalidInputError("the arguments", "are too many", hint=hint) from None

    def _bound(self, args: tuple[object, ...], fields: dict[str, object]) -> dict[str, object]:
        try:
            return self._signature.bind(*args, **fields).arguments
        except TypeError:
            names = [each.name for each in self._named]
            for name in fields.keys() - set(names) if not self._takes_others else ():
                raise unknown_field(name, [each for each in names if each != "self"]) from None
            for each in self._named[len(args) :]:
                if each.default is each.empty and each.name not in fields:
                    raise InvalidInputError(each.name, "is missing", hint=self._if_missing) from None
            self._check_number(args)
            raise


def _alternatives(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a type as it was annotated
    """The classes that an annotation stands for; ``object`` for one that only the called function can judge."""
    if hint is Any:
        return (object,)
    origin = get_origin(hint)
    if origin in {Union, UnionType}:
        return tuple(kind for each in get_args(hint) for kind in _alternatives(each))
    if origin is Annotated:
        return _alternatives(get_args(hint)[0])
    if origin is Literal:
        return tuple(type(each) for each in get_args(hint))
    if is_typeddict(hint):
        return (dict,)
    kind = origin or hint
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return (object,)
    return (kind,)


def _fits(value: object, kind: type) -> bool:
    if kind is int and isinstance(value, bool):
        return False
    if isinstance(value, str) and kind.__module__ == "collections.abc":
        return False  # a text is a sequence of texts, and never meant as one
    return isinstance(value, kind)


def _word(kind: Any) -> str:  # noqa: ANN401 - a class
    return _WORDS.get(kind) or f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"

"""Maps structs to rows: a :class:`Table` derives the columns, and what encodes and decodes them, from a struct's fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from horae.model import NOT_READ

T = TypeVar("T", bound=msgspec.Struct)
Row = Sequence[Any]
Unreadable = Callable[[dict[str, Any], dict[str, Exception]], T]
"""Makes a value of a row that cannot be decoded: from its columns, decoded as far as possible, and the errors of the others."""

SHARED_VALUES = 4096
"""How many decoded values of a column are kept, for columns that have the same text in many rows."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_KINDS = {bool: "boolean", int: "bigint", float: "double precision"}


def to_json(value: object) -> str:
    """A value as the JSON text of a column."""
    return _encode(value).decode()


class Column(NamedTuple):
    """A column, derived from the type of its field: its SQL type, and functions for values that are stored otherwise."""

    name: str
    kind: str
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None
    absent: str | None = None
    """The value that is stored as ``NULL``, as Python source; ``None`` if no value is."""


def _column(name: str, type_: Any, *, shared: bool) -> Column:  # noqa: ANN401 - any annotation
    """Numbers, texts, enumerations and what can be parsed are stored as such, and everything else as JSON."""
    members = get_args(type_) if get_origin(type_) in {Union, UnionType} else (type_,)
    absent = "None" if NoneType in members else None
    (kind,) = [getattr(each, "__supertype__", each) for each in members if each is not NoneType]
    if kind is str or kind in _KINDS:
        return Column(name, _KINDS.get(kind, "text"), decode=bool if kind is bool else None, absent=absent)
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = {each.value: each for each in kind}
        return Column(name, "text", str.__str__, known.__getitem__, absent)
    if hasattr(kind, "parse"):
        return Column(name, "text", str, kind.parse, absent)
    if kind is Any or get_args(kind) == (str, Any):
        return Column(name, "text", to_json, _decode, "None" if kind is Any else "{}")
    if get_origin(kind) is dict:
        return Column(name, "text", to_json, msgspec.json.Decoder(kind).decode, "{}")
    decode = msgspec.json.Decoder(kind).decode
    return Column(name, "text", to_json, lru_cache(SHARED_VALUES)(decode) if shared else decode, absent)


def _unread(name: str) -> Column:
    return Column(name, "text", decode=lambda _: NOT_READ, absent="None")


def _presence(name: str) -> str:
    """Whether a column has a value, which the database knows without reading it."""
    return f"CASE WHEN {name} IS NULL THEN NULL ELSE 1 END"


class Table(Generic[T]):
    """How a noun is stored: each field is a column, unless the declaration says otherwise.

    Every statement names the columns in the order of this declaration, so that rows are decoded by position.
    """

    def __init__(
        self,
        noun: type[T],
        name: str,
        *,
        computed: Collection[str] = (),
        unstored: Collection[str] = (),
        not_inserted: Collection[str] = (),
        not_updated: Collection[str] = (),
        shared: Collection[str] = (),
        unread: Collection[str] = (),
        unreadable: Unreadable[T] | None = None,
    ) -> None:
        """Declare a table.

        ``computed`` columns are texts that a value computes from its fields: they are written and never read. ``unstored`` fields
        have no column. An insert leaves ``not_inserted`` to the database, an update leaves ``not_updated`` as they are. ``shared``
        columns have the same text in many rows, and their values are frozen. ``unread`` columns may be large, and are not read:
        their values are ``NOT_READ``, or absent. ``unreadable`` stands in for a row that was edited by hand and cannot be decoded.
        """
        fields = [each for each in msgspec.structs.fields(noun) if each.name not in unstored]
        made = [
            _unread(each.name)
            if each.name in unread
            else _column(each.name, each.type, shared=each.name in shared)
            for each in fields
        ]
        written = [*(Column(each, "text") for each in computed), *made]
        inserted = [each for each in written if each.name not in not_inserted]
        self.name = name
        self.columns = tuple(each.name for each in made)
        self.selected = tuple(_presence(each) if each in unread else each for each in self.columns)
        """What a query selects, for :meth:`decode`."""
        self.kinds = {each.name: each.kind for each in written}
        self.inserted = tuple(each.name for each in inserted)
        self.updated = tuple(each for each in self.columns if each not in not_updated)
        self.encode: Callable[[T], tuple[Any, ...]] = _encoder(inserted)
        self.parameters: Callable[[T], dict[str, Any]] = _encoder(written, as_dict=True)
        """All columns of a value, by name, for a statement that names its parameters."""
        self._decode = _decoder(noun, made)
        self._made = made
        self._unreadable = unreadable

    def decode(self, row: Row) -> T:
        """The value of a row that has all columns, in order."""
        try:
            return self._decode(*row)
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError):
            if self._unreadable is None:
                raise
            return self._unreadable(*self._decode_each(row))

    def _decode_each(self, row: Row) -> tuple[dict[str, Any], dict[str, Exception]]:
        """The columns of a row, decoded as far as possible, and the errors of those that stay as they are stored."""
        values, faults = dict(zip(self.columns, row, strict=True)), dict[str, Exception]()
        for each in self._made:
            try:
                values[each.name] = _decoded(each, values[each.name])
            except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
                faults[each.name] = error
        return values, faults


def _decoded(column: Column, stored: Any) -> Any:  # noqa: ANN401 - of any column
    """The value of one column, as a generated decoder makes it."""
    if column.decode is None:
        return stored
    if stored is None and column.absent is not None:
        return {} if column.absent == "{}" else None
    return column.decode(stored)


# Functions are generated, because a herd decodes and encodes hundreds of thousands of rows, and a loop over 25 columns
# takes twice as long.


def _decoder(noun: type[T], columns: Sequence[Column]) -> Callable[..., T]:
    names: dict[str, Any] = {"_noun": noun}
    values = []
    for each in columns:
        value = each.name
        if each.decode is not None:
            names[f"_{each.name}"] = each.decode
            value = f"_{each.name}({value})"
            if each.absent is not None:
                value = f"{each.absent} if {each.name} is None else {value}"
        values.append(f"{each.name}={value}")
    return _generated(f"lambda {', '.join(each.name for each in columns)}: _noun({', '.join(values)})", names)


def _encoder(columns: Sequence[Column], *, as_dict: bool = False) -> Callable[[T], Any]:
    names: dict[str, Any] = {}
    values = []
    for each in columns:
        value = f"_value.{each.name}"
        if each.encode is not None:
            names[f"_{each.name}"] = each.encode
            value = f"_{each.name}({value})"
            if each.absent is not None:
                same = "is" if each.absent == "None" else "=="
                value = f"None if _value.{each.name} {same} {each.absent} else {value}"
        values.append(f"{each.name!r}: {value}" if as_dict else value)
    made = f"{{{', '.join(values)}}}" if as_dict else f"({', '.join(values)},)"
    return _generated(f"lambda _value: {made}", names)


def _generated(source: str, names: dict[str, Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(source, names)  # noqa: S307 - made of the names of our own fields
    return made

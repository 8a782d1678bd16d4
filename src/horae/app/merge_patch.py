"""JSON merge patch (RFC 7396): a change of a part of a document. ``null`` removes a field, a list replaces the list."""

from __future__ import annotations

from typing import Any

import msgspec

from horae.checked import input_error
from horae.model import Policies

Document = dict[str, Any]


def merge(old: Document, change: Document) -> Document:
    """A document with a change applied."""
    new = dict(old)
    for key, value in change.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            inner = new.get(key)
            new[key] = merge(inner if isinstance(inner, dict) else {}, value)
        else:
            new[key] = value
    return new


def merged_policies(policies: Policies, change: Document) -> Policies:
    """Policies with a change applied; ``null`` restores a default."""
    try:
        return msgspec.convert(merge(msgspec.to_builtins(policies), change), Policies)
    except msgspec.ValidationError as error:
        raise input_error(error, Policies, "policies") from None


def merged_spec(stored: str, change: Document | str) -> Document | str:
    """A stored spec with a change applied. A cron expression replaces it, and so does a document if the stored one cannot be read."""
    if isinstance(change, str):
        return change
    try:
        old = msgspec.json.decode(stored, type=dict[str, Any])
    except msgspec.MsgspecError:
        old = {}
    old.pop("shared", None)  # the contents of shared calendars, which are read anew
    return merge(old, change)

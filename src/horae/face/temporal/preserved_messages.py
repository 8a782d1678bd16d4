"""Messages as Temporal's clients sent them, if Horae's fields cannot express them: kept in the memo, and shown again while they fit.

An original *fits* if it means what the schedule says now, so it never hides a change through another face.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import Memo, Payload, SearchAttributes
from temporalio.api.schedule.v1 import Schedule as ScheduleMessage
from temporalio.api.schedule.v1 import ScheduleSpec
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo

from horae.errors import HoraeError, InvalidInputError
from horae.executor.temporal_payloads import payload_of, search_payload_of, search_value_of, value_of
from horae.face.temporal import action_message, spec_message
from horae.face.temporal.action_message import Start
from horae.model import Schedule, SearchValue
from horae.spec import Spec

KEY = "horae.temporal"
"""The memo's entry for the originals."""
MAX_ORIGINAL_LENGTH = 32 * 1024
"""The most bytes of a message that is kept; of larger ones only the meaning is."""
M = TypeVar("M", bound=Message)
V = TypeVar("V")


class Originals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages as they were sent, in base64, if they would be shown differently."""

    spec: str = ""
    action: str = ""
    memo: dict[str, str] = {}
    search: dict[str, str] = {}


def originals_of(memo: Mapping[str, Any]) -> Originals:
    """The originals in a memo; none if its entry has another form."""
    try:
        return msgspec.convert(memo.get(KEY, {}), Originals)
    except msgspec.ValidationError:
        return Originals()


def stored_memo(memo: Mapping[str, Any], originals: Originals) -> dict[str, Any]:
    """A memo with originals."""
    kept = msgspec.to_builtins(originals)
    return plain_memo(memo) | {KEY: kept} if kept else plain_memo(memo)


def plain_memo(memo: Mapping[str, Any]) -> dict[str, Any]:
    """A memo without originals."""
    return {name: value for name, value in memo.items() if name != KEY}


def _kept(message: Message) -> str:
    data = message.SerializeToString(deterministic=True)
    return base64.b64encode(data).decode() if len(data) <= MAX_ORIGINAL_LENGTH else ""


def _read(kind: type[M], text: str) -> M | None:
    if not text:
        return None
    try:
        return kind.FromString(base64.b64decode(text))
    except (ValueError, DecodeError):
        return None


def sent_originals(
    message: ScheduleMessage, spec: Spec, start: Start, memo: dict[str, str], search: dict[str, str]
) -> Originals:
    """The originals of a schedule that was sent; ``spec`` and ``start`` are what is stored for it."""
    action = _original_action(message.action.start_workflow, start)
    return Originals(spec=_original_spec(message.spec, spec), action=action, memo=memo, search=search)


def _original_spec(message: ScheduleSpec, spec: Spec) -> str:
    """A spec as it was sent; empty if it would be shown so anyway."""
    shown = spec_message.cleaned(message)
    return "" if shown == spec_message.message_of(spec) else _kept(shown)


def shown_spec(schedule: Schedule) -> ScheduleSpec:
    """The spec of a schedule; empty if the stored one cannot be read. Do not change it."""
    return _shown_spec(schedule.spec, originals_of(schedule.memo).spec)


@lru_cache(maxsize=4096)
def _shown_spec(text: str, sent: str) -> ScheduleSpec:
    """Cached, because many schedules share a spec, and lists are read often."""
    try:
        spec = Spec.parse(text)
    except HoraeError:
        return ScheduleSpec()
    original = _read(ScheduleSpec, sent)
    if original is not None and spec_message.says(original, spec):
        return original
    return spec_message.message_of(spec)


def _original_action(message: NewWorkflowExecutionInfo, start: Start) -> str:
    """An action as it was sent; empty if it would be shown so anyway. An input that can be restored is not kept twice."""
    if message == action_message.message_of(start):
        return ""
    stripped = NewWorkflowExecutionInfo()
    stripped.CopyFrom(message)
    stripped.ClearField("input")
    if action_message.message_of(start, stripped) == message:
        return _kept(stripped)
    return _kept(message) or _kept(stripped)


def shown_action(schedule: Schedule) -> NewWorkflowExecutionInfo:
    """The action of a schedule."""
    original = _read(NewWorkflowExecutionInfo, originals_of(schedule.memo).action)
    try:
        return action_message.message_of(action_message.stored_start(schedule), original)
    except HoraeError:
        return action_message.message_of(action_message.stored_start(schedule))


def read_memo(memo: Memo) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of a memo, and the originals of those that would be shown differently."""
    if KEY in memo.fields:
        raise InvalidInputError(f"memo.{KEY}", "is reserved for Horae")
    return _read_payloads(memo.fields, value_of, payload_of)


def shown_memo(schedule: Schedule) -> Memo | None:
    """The memo of a schedule; ``None`` if it is empty."""
    memo, originals = plain_memo(schedule.memo), originals_of(schedule.memo).memo
    return Memo(fields=_shown_payloads(memo, originals, value_of, payload_of)) if memo else None


def read_search(given: SearchAttributes) -> tuple[dict[str, SearchValue], dict[str, str]]:
    """The values of search attributes, and the originals of those that would be shown differently."""
    return _read_payloads(given.indexed_fields, search_value_of, search_payload_of)


def shown_search(schedule: Schedule) -> SearchAttributes | None:
    """The search attributes of a schedule; ``None`` if it has none."""
    values, originals = schedule.search_attributes, originals_of(schedule.memo).search
    fields = _shown_payloads(values, originals, search_value_of, search_payload_of)
    return SearchAttributes(indexed_fields=fields) if fields else None


def _read_payloads(
    given: Mapping[str, Payload], read: Callable[[Payload], V], write: Callable[[V], Payload]
) -> tuple[dict[str, V], dict[str, str]]:
    values = {name: read(payload) for name, payload in given.items()}
    kept = {name: _kept(payload) for name, payload in given.items() if write(values[name]) != payload}
    return values, {name: text for name, text in kept.items() if text}


def _shown_payloads(
    values: Mapping[str, V], originals: Mapping[str, str], read: Callable[[Payload], V], write: Callable[[V], Payload]
) -> dict[str, Payload]:  # fmt: skip
    sent = {name: _read(Payload, originals.get(name, "")) for name in values}
    return {
        name: original if (original := sent[name]) is not None and read(original) == value else write(value)
        for name, value in values.items()
    }

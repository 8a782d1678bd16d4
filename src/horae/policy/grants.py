"""Grants: what they may allow, and whether one still allows a graph to run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from horae.errors import GrantError, InvalidInputError
from horae.grant_model import GRANT_ERRORS, GRAPH_ID, Grant
from horae.model import AttemptEnd, AttemptResult, Denial, Outcome, Reason, State

SCOPE = "graph:execute"
_replace = msgspec.structs.replace
ANY_GRAPH = f"{SCOPE}:*"
MAX_SCOPES = 100

NEEDS_RENEWAL = (*GRANT_ERRORS, Reason.NO_CREDIT)
"""The reasons of slots that are skipped until the grant is renewed, or its account has credit again."""


def scope_of(graph_id: str) -> str:
    """The scope that a run of a graph needs."""
    return f"{SCOPE}:{graph_id}"


def check_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """The distinct scopes of a new grant; refuse an empty list, too many scopes, and invalid ones."""
    if not scopes:
        raise InvalidInputError(
            "scopes", "must name at least one graph", hint=f"write {ANY_GRAPH}, or {SCOPE}:langgraph:poet"
        )
    if len(scopes) > MAX_SCOPES:
        raise InvalidInputError("scopes", f"must be at most {MAX_SCOPES}, and are {len(scopes)}")
    for scope in scopes:
        graph_id = scope.removeprefix(f"{SCOPE}:")
        if scope == ANY_GRAPH or (graph_id != scope and GRAPH_ID.fullmatch(graph_id)):
            continue
        raise InvalidInputError(
            "scopes", f'has "{scope[:100]}", which is no scope',
            hint=f"write {ANY_GRAPH} for every graph, or one such as {SCOPE}:langgraph:poet",
        )  # fmt: skip
    return tuple(dict.fromkeys(scopes))


def fault_of(grant: Grant | None, user_id: str, graph_id: str | None, now: int) -> Reason | None:
    """Why a grant does not allow a user's run of a graph; ``None`` if it does. Without a graph, the scopes are not checked.

    Another user's grant counts as not found. It has expired from the moment ``expires_at`` on.
    """
    if grant is None or grant.user_id != user_id:
        return Reason.GRANT_NOT_FOUND
    if grant.revoked_at_ms is not None:
        return Reason.GRANT_REVOKED
    if grant.expires_at_ms is not None and now >= grant.expires_at_ms:
        return Reason.GRANT_EXPIRED
    if graph_id is not None and not {scope_of(graph_id), ANY_GRAPH} & set(grant.scopes):
        return Reason.GRANT_SCOPE
    return None


def error_of(fault: Reason, grant_id: str) -> GrantError:
    """The error that says why a grant does not hold."""
    return GRANT_ERRORS[fault](grant_id)


def denial_of(fault: Reason | None, grant_id: str) -> Denial | None:
    """The denial of a run whose grant does not allow it; ``None`` if it does."""
    return None if fault is None else Denial(fault, error_of(fault, grant_id).message)


_NEVER_BEGAN = {AttemptEnd.NOT_ADMITTED, AttemptEnd.REFUSED, AttemptEnd.UNLAUNCHED}


def with_attention(state: State, ended: AttemptResult, outcome: Outcome) -> State:
    """The state of a schedule after an attempt: it needs attention while its grant, its account or the settings prevent runs."""
    if ended.ending is AttemptEnd.NOT_ADMITTED and outcome.reason == Reason.NOT_ALLOWED:
        return _replace(state, attention=ended.failure or outcome.reason)  # until it is claimed again
    if ended.ending is AttemptEnd.NOT_ADMITTED and outcome.reason in NEEDS_RENEWAL:
        return _replace(state, attention=ended.failure or outcome.reason, attention_reason=outcome.reason)
    if state.attention_reason and ended.ending not in _NEVER_BEGAN:
        return without_attention(state)
    return state


def without_attention(state: State) -> State:
    """The state of a schedule whose grant holds again."""
    return _replace(state, attention="", attention_reason="") if state.attention_reason else state

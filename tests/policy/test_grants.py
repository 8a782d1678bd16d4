"""What a grant may allow, and whether it still does: pure decisions."""

from __future__ import annotations

import pytest

from horae.errors import (
    GrantExpiredError,
    GrantNotFoundError,
    GrantRevokedError,
    GrantScopeError,
    InvalidInputError,
)
from horae.grant_model import GRANT_ERRORS, Grant
from horae.model import Reason
from horae.policy.grants import ANY_GRAPH, MAX_SCOPES, check_scopes, denial_of, error_of, fault_of
from horae.policy.reason import SENTENCES
from tests.support.cases import each_of

NOW = 1_000_000
POET = "graph:execute:langgraph:poet"


def grant(**fields: object) -> Grant:
    given: dict[str, object] = {
        "id": "g", "user_id": "ada", "billing_account_id": "a", "scopes": (POET,), "created_at_ms": 0,
    }  # fmt: skip
    return Grant(**(given | fields))  # type: ignore[arg-type]


@pytest.mark.contract("GRNT-03")
@each_of(
    ("found", "graph", "fault"),
    [
        (grant(), "langgraph:poet", None),
        (grant(), None, None),
        (grant(scopes=(ANY_GRAPH,)), "langgraph:poet", None),
        (grant(expires_at_ms=NOW + 1), "langgraph:poet", None),
        (None, "langgraph:poet", Reason.GRANT_NOT_FOUND),
        (grant(user_id="eve"), "langgraph:poet", Reason.GRANT_NOT_FOUND),
        (grant(revoked_at_ms=NOW + 5), "langgraph:poet", Reason.GRANT_REVOKED),
        (grant(expires_at_ms=NOW), "langgraph:poet", Reason.GRANT_EXPIRED),
        (grant(), "langgraph:poets", Reason.GRANT_SCOPE),
        (grant(), "langgraph:poe", Reason.GRANT_SCOPE),
        (grant(scopes=("graph:execute",)), "langgraph:poet", Reason.GRANT_SCOPE),
        # the order: not found, revoked, expired, scope
        (grant(user_id="eve", revoked_at_ms=1, expires_at_ms=1), "x:y", Reason.GRANT_NOT_FOUND),
        (grant(revoked_at_ms=1, expires_at_ms=1), "x:y", Reason.GRANT_REVOKED),
        (grant(expires_at_ms=1), "x:y", Reason.GRANT_EXPIRED),
    ],
)
def test_the_first_fault_that_applies_is_the_one(
    found: Grant | None, graph: str | None, fault: Reason | None
):
    assert fault_of(found, "ada", graph, NOW) is fault


@pytest.mark.contract("GRNT-03")
def test_each_fault_has_its_error_and_its_sentence():
    kinds = [GrantNotFoundError, GrantRevokedError, GrantExpiredError, GrantScopeError]
    assert list(GRANT_ERRORS.values()) == kinds
    for fault, kind in GRANT_ERRORS.items():
        assert type(error_of(fault, "g")) is kind
        denial = denial_of(fault, "g")
        assert denial is not None
        assert (denial.reason, '"g"' in denial.sentence) == (fault, True)
        assert SENTENCES[fault]
    assert denial_of(None, "g") is None


@pytest.mark.contract("GRNT-03")
@each_of(
    "scope",
    [
        "graph:execute", "graph:execute:", "graph:execute:poet", "graph:*", "*", "", "graph:execute:langgraph:", "graph:execute::poet",
        "graph:execute:langgraph:*", "graph:execute:langgraph:a b", "graph:execute:**", "GRAPH:EXECUTE:*", " graph:execute:*",
        "graph:execute:langgraph:poet\n", "graph:read:langgraph:poet", "graph:execute:langgraph:é", "graph:execute:a:b:c",
    ],
)  # fmt: skip
def test_what_is_no_scope_is_refused(scope: str):
    with pytest.raises(InvalidInputError, match="scopes"):
        check_scopes([POET, scope])


def test_scopes_are_bounded_and_kept_once():
    assert check_scopes([POET, ANY_GRAPH, POET]) == (POET, ANY_GRAPH)
    for wrong in ([], [POET] * (MAX_SCOPES + 1)):
        with pytest.raises(InvalidInputError, match="scopes"):
            check_scopes(wrong)

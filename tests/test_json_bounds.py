"""How deep and how wide a JSON text is, beside a walk through the value that it stands for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae import json_bounds
from horae.json_bounds import MAX_DEPTH, MAX_VALUES, JsonTooLargeError, check_json

ODD = st.text(alphabet='"\\[]{},:x\n\x00ä', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | ODD,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ODD, inner, max_size=5),
    max_leaves=30,
)


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


def number(value: Any) -> int:
    """Of values; an empty list or object counts for two."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if inside is None else 1 + max(sum(map(number, inside)), 1)


def is_taken(text: bytes) -> bool:
    try:
        check_json(text)
    except JsonTooLargeError:
        return False
    return True


@given(value=VALUES, pretty=st.booleans())
def test_it_agrees_with_a_walk_through_the_value(value: Any, pretty: bool):
    text = msgspec.json.encode(value)
    text = msgspec.json.format(text, indent=2) if pretty else text
    with pytest.MonkeyPatch.context() as patched:
        for deepest, most in ((depth(value), 10**6), (100, number(value))):
            patched.setattr(json_bounds, "MAX_DEPTH", deepest)
            patched.setattr(json_bounds, "MAX_VALUES", most)
            assert is_taken(text)
        patched.setattr(json_bounds, "MAX_VALUES", number(value) - 1)
        assert not is_taken(text)
        patched.setattr(json_bounds, "MAX_VALUES", 10**6)
        patched.setattr(json_bounds, "MAX_DEPTH", depth(value) - 1)
        assert not is_taken(text)


def test_the_bounds_are_named():
    check_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(JsonTooLargeError, match=f"more than {MAX_DEPTH} deep"):
        check_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    check_json(b"[" + b"1," * (MAX_VALUES - 2) + b"1]")
    with pytest.raises(JsonTooLargeError, match=f"more than {MAX_VALUES} values"):
        check_json(b"[" + b"1," * (MAX_VALUES - 1) + b"1]")


@pytest.mark.parametrize(
    "text", [b"", b'"', b'["', b'["\\', b"]]]]", b'"\\"' * 1000, b"\\" * 1001, b'{"a": [']
)
def test_what_is_no_json_is_left_to_the_decoder(text: bytes):
    check_json(text)

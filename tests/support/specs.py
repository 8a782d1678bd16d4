"""What a process remembers of specs."""

from __future__ import annotations

from horae.spec import spec


def forget_specs() -> None:
    """Forget all specs that were read, as if this process had just begun."""
    for remembered in (spec._parsed_short_text, spec._parsed_long_text, spec._interned):
        remembered.cache_clear()

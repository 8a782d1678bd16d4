"""Re-exports what faces need of :mod:`horae.store.inspection`, which they may not import."""

from horae.store.inspection import Health, inspect

__all__ = ["Health", "inspect"]

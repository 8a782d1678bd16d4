"""The state of a database, without opening or changing it."""

from horae.store.health import Health, inspect

__all__ = ["Health", "inspect"]

"""The state of a database, without opening or changing it."""

from horae.store.health import Health, look_at

__all__ = ["Health", "look_at"]

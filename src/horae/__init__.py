"""Horae, a durable scheduler for Python."""

from horae.errors import HoraeError
from horae.spec import Spec

__version__ = "0.1.0"

__all__ = ["HoraeError", "Spec", "__version__"]

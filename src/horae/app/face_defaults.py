"""Re-exports what faces need of :mod:`horae.policy.face_defaults`, which they may not import."""

from horae.policy.face_defaults import TEMPORAL, registrar, registrar_shows

__all__ = ["TEMPORAL", "registrar", "registrar_shows"]

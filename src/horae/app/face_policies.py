"""Re-exports what faces need of :mod:`horae.policy.face_policies`, which they may not import."""

from horae.policy.face_policies import registrar, registrar_shows

__all__ = ["registrar", "registrar_shows"]

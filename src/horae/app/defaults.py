"""The policies that each face stores with its schedules, and its words for the status of a run."""

from horae.policy.defaults import registrar, registrar_shows

__all__ = ["registrar", "registrar_shows"]

"""Decisions: pure functions from values to frozen values. No I/O, no clock, no randomness, no logging."""

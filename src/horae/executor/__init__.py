"""Executors: each runs actions of one kind, for a run with its claim, and returns the outcome."""

"""The calls of Temporal's clients, while schedules fire."""

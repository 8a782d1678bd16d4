"""Workflows beside DBOS, and beside a ceiling of bare checkpoint writes: runs and nodes a second."""

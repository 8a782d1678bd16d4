"""Flows beside a table that is polled, and Procrastinate: events a second, and how soon a consumer is woken."""

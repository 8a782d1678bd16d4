"""A herd: many schedules due at one instant, beside peers. Run it with ``python -m bench.herd``."""

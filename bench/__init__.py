"""How fast the time engine is beside its peers. Run it with ``make bench`` or ``python -m bench``."""

"""How soon the pages of the console are there, with many schedules and runs."""

"""How fast the service answers: real requests to a real process, with many schedules in its database."""

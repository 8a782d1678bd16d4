"""Do: what runs an action. Takes a run with its claim, and reports its outcome."""

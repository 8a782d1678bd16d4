-- Remember how many.
UPDATE horae SET version = CAST(:version AS INTEGER)

-- Store how many migrations the database has taken.
UPDATE horae SET version = CAST(:version AS INTEGER)

-- The earliest time at which a schedule is due.
SELECT min(next_at_ms) FROM due WHERE next_at_ms IS NOT NULL

-- The earliest time at which a schedule is due.
SELECT min(next_at) FROM due WHERE next_at IS NOT NULL
